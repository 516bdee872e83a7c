// SPDX-License-Identifier: Apache-2.0
// The loops of kernels/limits, for vectors of VECTOR_BYTES, which the file that includes this
// defines: the compiler makes them instructions of its level.
#ifndef BITSWEEP_KERNELS_LIMITS_LOOPS_H
#define BITSWEEP_KERNELS_LIMITS_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernels/limits/limits.h"

#if !defined(VECTOR_BYTES)
#define VECTOR_BYTES 16
#endif

// may_alias: memory of any type is read through it.
typedef uint64_t limit_words __attribute__((vector_size(VECTOR_BYTES), may_alias));

#define LIMITS_PAGE_BYTES 4096
#define LIMITS_PAGES      8
#define LIMITS_SUMS       4

static inline uint64_t limits_add_lanes(limit_words sum)
{
    uint64_t total = 0;
    for (size_t i = 0; i < VECTOR_BYTES / 8; i++) total += sum[i];
    return total;
}

static inline uint64_t limits_read_lines(const void *memory, size_t bytes)
{
    const limit_words *words = (const limit_words *)memory;
    limit_words sums[LIMITS_SUMS] = {{0}};
    for (size_t i = 0; i < bytes / VECTOR_BYTES; i += LIMITS_SUMS) {
        for (size_t k = 0; k < LIMITS_SUMS; k++) sums[k] += words[i + k];
    }
    return limits_add_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// What is left over is read in a row.
static inline uint64_t limits_read_pages(const void *memory, size_t bytes)
{
    const char *from = (const char *)memory;
    limit_words even = {0}, odd = {0};
    size_t block = 0;
    for (; block + LIMITS_PAGES * LIMITS_PAGE_BYTES <= bytes;
         block += LIMITS_PAGES * LIMITS_PAGE_BYTES) {
        for (size_t i = 0; i < LIMITS_PAGE_BYTES; i += 2 * VECTOR_BYTES) {
            for (size_t page = 0; page < LIMITS_PAGES; page++) {
                const limit_words *at =
                    (const limit_words *)(const void *)(from + block + page * LIMITS_PAGE_BYTES +
                                                        i);
                even += at[0];
                odd += at[1];
            }
        }
    }
    return limits_add_lanes(even + odd) + limits_read_lines(from + block, bytes - block);
}

static inline void limits_write(void *memory, uint64_t word, size_t bytes)
{
    limit_words *words = (limit_words *)memory;
    limit_words value = word - (limit_words){0};
    for (size_t i = 0; i < bytes / VECTOR_BYTES; i++) {
        words[i] = value;
        __asm__("" : "+m"(words[i])); // stays a store of this width, no call of memset
    }
}

// ---- arithmetic in registers ----

#if defined(__AVX512F__)
#define LIMITS_REGISTER "+v"
#elif defined(__x86_64__)
#define LIMITS_REGISTER "+x"
#elif defined(__aarch64__)
#define LIMITS_REGISTER "+w"
#else
#define LIMITS_REGISTER "+m"
#endif

// Named sums: compilers keep an array of them in memory.
#define LIMITS_CHAINS 12
#define LIMITS_EACH_CHAIN(DO, ...) \
    DO(0, __VA_ARGS__)             \
    DO(1, __VA_ARGS__)             \
    DO(2, __VA_ARGS__)             \
    DO(3, __VA_ARGS__)             \
    DO(4, __VA_ARGS__)             \
    DO(5, __VA_ARGS__)             \
    DO(6, __VA_ARGS__)             \
    DO(7, __VA_ARGS__) DO(8, __VA_ARGS__) DO(9, __VA_ARGS__) DO(10, __VA_ARGS__) DO(11, __VA_ARGS__)
#define LIMITS_START(i, vector, start) vector s##i = start(i);
// The empty assembly lets no step be taken for another's.
#define LIMITS_STEP(i, step)          \
    __asm__("" : LIMITS_REGISTER(a)); \
    s##i = step(s##i, a, b);          \
    __asm__("" : LIMITS_REGISTER(s##i));
#define LIMITS_FINISH(i, lane) \
    *num_wrong += limits_count_wrong(&s##i, sizeof s##i, &lane, sizeof lane);

static inline uint64_t limits_count_wrong(const void *vector, size_t bytes, const void *lane,
                                          size_t lane_bytes)
{
    uint64_t num_wrong = 0;
    for (size_t i = 0; i < bytes; i += lane_bytes)
        num_wrong += memcmp((const char *)vector + i, lane, lane_bytes) != 0;
    return num_wrong;
}

// A function of kernels/limits: chains s = step(s, a, b) of vectors that begin with start(i), each
// lane of which ends as `expected`; a step is so many operations.
#define LIMITS_PEAK(name, vector, start, step, first, second, lane_type, expected, operations) \
    static uint64_t name(uint64_t steps, uint64_t *num_wrong)                                  \
    {                                                                                          \
        vector a = first, b = second;                                                          \
        lane_type lane = expected;                                                             \
        LIMITS_EACH_CHAIN(LIMITS_START, vector, start)                                         \
        for (uint64_t i = 0; i < steps; i++) {                                                 \
            LIMITS_EACH_CHAIN(LIMITS_STEP, step)                                               \
        }                                                                                      \
        *num_wrong = 0;                                                                        \
        LIMITS_EACH_CHAIN(LIMITS_FINISH, lane)                                                 \
        return steps * LIMITS_CHAINS * (operations);                                           \
    }

// The functions that are the same text for every level, and the table of one.
#define LIMITS_TABLE(name, level_text)                                          \
    static uint64_t read_lines(const void *memory, size_t bytes)                \
    {                                                                           \
        return limits_read_lines(memory, bytes);                                \
    }                                                                           \
    static uint64_t read_pages(const void *memory, size_t bytes)                \
    {                                                                           \
        return limits_read_pages(memory, bytes);                                \
    }                                                                           \
    static void copy(void *to, const void *from, size_t bytes)                  \
    {                                                                           \
        memcpy(to, from, bytes);                                                \
    }                                                                           \
    static void write_word(void *memory, uint64_t word, size_t bytes)           \
    {                                                                           \
        limits_write(memory, word, bytes);                                      \
    }                                                                           \
    const struct bsw_limits_table name = {                                      \
        .level = level_text,                                                    \
        .read = {[BSW_READ_LINES] = read_lines, [BSW_READ_PAGES] = read_pages}, \
        .copy = copy,                                                           \
        .write = write_word,                                                    \
        .peaks = {[BSW_PEAK_INT8] = int8,                                       \
                  [BSW_PEAK_FLOAT32] = float32,                                 \
                  [BSW_PEAK_FLOAT64] = float64,                                 \
                  [BSW_PEAK_POPCOUNT] = popcount}};

// s = s/2 + 1/2 comes to 1 from anywhere, exactly, within 60 steps.
#define LIMITS_U    3
#define LIMITS_Q    (-5)
#define LIMITS_WORD 0x89abcdefu // of which bits are counted
#define LIMITS_BITS 20u

#endif
