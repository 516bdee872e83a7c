// SPDX-License-Identifier: Apache-2.0
// All heap memory of the program goes through here: overflow-checked sizes, 64-byte alignment, one
// error text.
#ifndef BITSWEEP_COMMON_MEMORY_H
#define BITSWEEP_COMMON_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

#define BSW_ALIGNMENT_BYTES 64

// Allocates count * size bytes at 64-byte alignment, contents undefined, and stores the address in
// *out. A product that overflows, or no memory, is BSW_ERROR_OUT_OF_MEMORY with `what` and the
// bytes in the message; *out is then NULL. count or size 0 gives a valid pointer. The caller frees
// with bsw_free.
enum bsw_status bsw_allocate(void *out, size_t count, size_t size, const char *what,
                             struct bsw_error *err);

// The same, filled with zeros.
enum bsw_status bsw_allocate_zero(void *out, size_t count, size_t size, const char *what,
                                  struct bsw_error *err);

// Frees what bsw_allocate gave and nulls the pointer: bsw_free(&object->rows). Accepts a NULL
// pointer inside.
void bsw_free(void *address_of_pointer);

// Arrays in one piece of memory, one after the other, each aligned.

static inline size_t bsw_align_size(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

// The offset of an array of so many bytes at the end of what is there, *total, which grows by it.
static inline size_t bsw_place_array(size_t bytes, size_t alignment, size_t *total)
{
    size_t at = *total;
    *total += bsw_align_size(bytes, alignment);
    return at;
}

// A part of a piece of memory: *(void **)out is set to where it begins, aligned.
struct bsw_memory_part {
    void *out;
    size_t bytes;
};

// One part behind the other, from `at` on, which is aligned; returns the bytes of all. at NULL:
// counts them alone.
size_t bsw_divide_memory(const struct bsw_memory_part *parts, size_t num_parts, unsigned char *at);

// a * b and a + b into *out; return 0 on overflow and leave *out alone, 1 otherwise.
static inline int bsw_multiply_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return 0;
    *out = product;
    return 1;
}

static inline int bsw_add_size(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return 0;
    *out = sum;
    return 1;
}

// A byte buffer that grows and is reused: {0} is a valid empty one. Owner frees with
// bsw_buffer_deinit.
struct bsw_buffer {
    unsigned char *data;
    size_t bytes;    // in use
    size_t capacity; // allocated
};

// Makes room for `capacity` bytes; keeps the first `bytes` of what is there.
enum bsw_status bsw_buffer_reserve(struct bsw_buffer *buffer, size_t capacity,
                                   struct bsw_error *err);
enum bsw_status bsw_buffer_append(struct bsw_buffer *buffer, const void *data, size_t bytes,
                                  struct bsw_error *err);
void bsw_buffer_deinit(struct bsw_buffer *buffer);

BSW_C_END
#endif
