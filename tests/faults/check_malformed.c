// SPDX-License-Identifier: Apache-2.0
// Files that are not what they should be, of every format the program reads: headers with numbers
// that are off by one, huge, negative or zero, whose products overflow, wrong magic and types; and
// every truncation. Each is refused with one line and exit code 65, in little memory.
//
// usage: check_malformed BITSWEEP_BINARY; FAULT_HEADERS malformed headers (2,000), FAULT_RUNS of
// them through the program itself as well (60), FAULT_SEED
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/files/sealed_message.h"
#include "tests/faults/malformed_formats.h"

#define ROOM       ((size_t)1 << 16)
#define MAX_GROWTH ((size_t)64 << 20)

#ifdef __SANITIZE_ADDRESS__
// Freed memory is kept from reuse, but not so much that it hides what the program takes.
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}
#endif

static struct malformed_format *formats;
static size_t num_formats;
static const char *program;
static size_t idle_bytes; // of the program

struct totals {
    uint64_t refused, taken, truncations, runs;
    size_t most_growth;
};

static void restore(const struct malformed_format *format)
{
    fault_store(format->path, format->good.data, format->good.bytes);
}

// 1 if it was refused, as it must be where must_refuse says so.
static int is_refused(const struct malformed_format *format, const unsigned char *data,
                      size_t bytes, const char *what)
{
    struct bsw_error err = {0};
    char label[128];
    snprintf(label, sizeof label, "%s, %s, %zu bytes", format->label, what, bytes);
    fault_store(format->path, data, bytes);
    enum bsw_status status = format->read(format->path, &err);
    if (status == BSW_OK)
        FAULT_REQUIRE(!malformed_must_refuse(format, data, bytes), "%s: taken", label);
    else
        fault_check_error(status, &err, label);
    return status != BSW_OK;
}

// The same file through the program.
static void run_program(const struct malformed_format *format, const char *what,
                        struct totals *totals)
{
    struct fault_run run;
    char label[128];
    snprintf(label, sizeof label, "%s, %s", format->label, what);
    fault_run(format->command, &run);
    fault_check_refusal(&run, label);
    size_t growth = run.peak_bytes > idle_bytes ? run.peak_bytes - idle_bytes : 0;
    FAULT_REQUIRE(growth < MAX_GROWTH, "%s: %zu bytes above the idle program", label, growth);
    if (growth > totals->most_growth) totals->most_growth = growth;
    totals->runs++;
}

static void check_headers(uint64_t count, uint64_t num_runs, struct fault_random *random,
                          struct totals *totals)
{
    static unsigned char changed[ROOM];
    uint64_t next_run = 0;
    for (size_t i = 0; totals->refused < count; i++) {
        const struct malformed_format *format = &formats[i % num_formats];
        char what[64];
        snprintf(what, sizeof what, "header %zu", i);
        size_t bytes = malformed_change(format, random, changed, ROOM);
        if (is_refused(format, changed, bytes, what)) {
            totals->refused++;
            if (format->command[0] && totals->refused >= next_run) {
                run_program(format, what, totals);
                next_run += count / (num_runs ? num_runs : 1);
            }
        } else {
            totals->taken++;
        }
        restore(format);
    }
}

static void check_truncations(struct totals *totals)
{
    for (size_t i = 0; i < num_formats; i++) {
        const struct malformed_format *format = &formats[i];
        for (size_t bytes = 0; bytes < format->good.bytes; bytes++) {
            int refused = is_refused(format, format->good.data, bytes, "truncated");
            int is_shorter = format->row_bytes > 0 && bytes > 0 && bytes % format->row_bytes == 0;
            FAULT_REQUIRE(refused == !is_shorter, "%s: %zu bytes", format->label, bytes);
            totals->truncations += (uint64_t)refused;
            if (format->command[0] && bytes == format->good.bytes / 2) {
                // Half of a .vecs file may be rows: one byte less is not.
                if (!refused) fault_store(format->path, format->good.data, bytes - 1);
                run_program(format, "truncated", totals);
            }
        }
        restore(format);
    }
}

// A message of a million empty parts: little to read, much to unpack.
static void check_bomb(const struct malformed_format *format, unsigned char tag,
                       struct totals *totals)
{
    struct bsw_buffer bomb = {0};
    size_t bytes = (size_t)4 << 20;
    FAULT_REQUIRE(bsw_buffer_reserve(&bomb, bytes + BSW_SEAL_BYTES, NULL) == BSW_OK, "no memory");
    for (size_t i = 0; i < bytes; i++) bomb.data[i] = i % 2 ? 0 : tag;
    bomb.bytes = bytes;
    FAULT_REQUIRE(bsw_message_seal(&bomb, NULL, NULL) == BSW_OK, "no memory");
    FAULT_REQUIRE(is_refused(format, bomb.data, bomb.bytes, "bomb"), "%s", format->label);
    if (format->command[0]) run_program(format, "bomb", totals);
    bsw_buffer_deinit(&bomb);
    restore(format);
}

static void check_bombs(struct totals *totals)
{
    static const unsigned char tags[] = {0x5a, 0x72, 0x7a}; // Shard, RbeEpoch, an unknown field
    for (size_t i = 0; i < num_formats; i++) {
        for (size_t t = 0; formats[i].family == FAMILY_PROTOBUF && t < sizeof tags; t++)
            check_bomb(&formats[i], tags[t], totals);
    }
}

static void report(const struct totals *totals, size_t growth)
{
    size_t bytes = 0;
    for (size_t i = 0; i < num_formats; i++) bytes += formats[i].good.bytes;
    printf("%zu formats, %zu bytes of good files\n", num_formats, bytes);
    printf("malformed headers: %llu refused (%llu changes more made no file wrong)\n",
           (unsigned long long)totals->refused, (unsigned long long)totals->taken);
    printf("truncations: %llu refused\n", (unsigned long long)totals->truncations);
    printf("through the program: %llu runs, exit code 65, one line; at most %.1f MB above the "
           "idle program's %.1f MB\n",
           (unsigned long long)totals->runs, (double)totals->most_growth * 1e-6,
           (double)idle_bytes * 1e-6);
    printf("all readers in one process: %.1f MB more at the end than before\n",
           (double)growth * 1e-6);
}

int main(int argc, char **argv)
{
    struct totals totals = {0};
    struct fault_run idle;
    char line[512];
    FAULT_REQUIRE(argc == 2, "usage: check_malformed BITSWEEP_BINARY");
    program = argv[1];
    snprintf(line, sizeof line, "%s --version", program);
    fault_run(line, &idle);
    idle_bytes = idle.peak_bytes;
    formats = malformed_formats_make(program, &num_formats);
    struct fault_random random = {fault_count("FAULT_SEED", 1), 0};
    size_t before = fault_peak_bytes();
    check_headers(fault_count("FAULT_HEADERS", 2000), fault_count("FAULT_RUNS", 60), &random,
                  &totals);
    check_truncations(&totals);
    check_bombs(&totals);
    size_t growth = fault_peak_bytes() - before;
    FAULT_REQUIRE(growth < MAX_GROWTH, "%zu bytes more", growth);
    report(&totals, growth);
    return 0;
}
