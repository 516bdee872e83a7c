// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "kernelcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/arithmetic.h"
#include "common/base/clock.h"

const uint32_t kernelcheck_dims[] = {1, 31, 32, 33, 96, 100, 128, 1000};
const size_t kernelcheck_num_dims = sizeof kernelcheck_dims / sizeof kernelcheck_dims[0];

// One list: families, in the order of a batch.
static const struct family {
    const char *name;
    void (*run)(struct kernelcheck *check);
} families[] = {
    {"encode", check_encode},
    {"plane_scan", check_plane_scan},
    {"matrix_scan", check_matrix_scan},
    {"select", check_select},
    {"merge", check_merge},
    {"refine", check_refine},
    {"screen", check_screen},
    {"coarse_scan", check_coarse_scan},
    {"table_scan", check_table_scan},
    {"entries_within", check_entries_within},
    {"entry_tables", check_entry_tables},
    {"entry_bounds", check_entry_bounds},
    {"table_bounds", check_table_bounds},
};
#define NUM_FAMILIES (sizeof families / sizeof families[0])

// Failures beyond this are counted, not printed.
#define MAX_PRINTED_FAILURES 20

static struct kernelcheck *current_check; // what a broken zone counts against; may be NULL
static int quiet;                         // during the self-test

// ---- random numbers ----

uint64_t kernelcheck_random(const struct kernelcheck *check, uint64_t stream, uint64_t index)
{
    return bsw_hash2(bsw_hash2(check->seed, stream), index);
}

// The sum of four uniform numbers has variance 1/3; exact in float32.
float kernelcheck_float(const struct kernelcheck *check, uint64_t stream, uint64_t index)
{
    uint64_t random = kernelcheck_random(check, stream, index);
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) sum += (uint32_t)(random >> (16 * i)) & 0xffffu;
    return ((float)sum * 0x1p-16f - 2.0f) * 1.7320508f;
}

// ---- guarded memory ----

// A mapping: an unreadable page, the record, the zone before, the bytes, the zone after up to the
// page's end, an unreadable page.
struct allocation {
    struct allocation *next;
    unsigned char *mapping;
    size_t mapping_bytes;
    unsigned char *memory;
    size_t bytes;
};

#define ZONE_BYTES 192
#define ZONE_BYTE  0xa5

static struct allocation *allocations;
static size_t page_bytes;

static void die(const char *what)
{
    fprintf(stderr, "kernelcheck: %s: %s\n", what, strerror(errno));
    exit(1);
}

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

void *kernelcheck_allocate(size_t bytes)
{
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    size_t rounded = round_up(bytes, 64);
    size_t inner = round_up(sizeof(struct allocation) + ZONE_BYTES + rounded, page_bytes);
    unsigned char *mapping = mmap(NULL, inner + 2 * page_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) die("mmap");
    unsigned char *first = mapping + page_bytes, *last = first + inner;
    if (mprotect(mapping, page_bytes, PROT_NONE) != 0) die("mprotect");
    if (mprotect(last, page_bytes, PROT_NONE) != 0) die("mprotect");
    memset(last - rounded - ZONE_BYTES, ZONE_BYTE, ZONE_BYTES + rounded);
    struct allocation *allocation = (struct allocation *)(void *)first;
    *allocation = (struct allocation){.next = allocations,
                                      .mapping = mapping,
                                      .mapping_bytes = inner + 2 * page_bytes,
                                      .memory = last - rounded,
                                      .bytes = bytes};
    allocations = allocation;
    return allocation->memory;
}

enum bsw_status kernelcheck_allocate_array(void *unused, void *out, size_t count, size_t size,
                                           struct bsw_error *err)
{
    (void)unused;
    (void)err;
    void *memory = kernelcheck_allocate(count * size);
    memcpy(out, &memory, sizeof memory);
    return BSW_OK;
}

static void count_failure(struct kernelcheck *check, const char *function, const char *detail)
{
    if (check) check->num_failures++;
    if (quiet || (check && check->num_failures > MAX_PRINTED_FAILURES)) return;
    printf("FAIL %s.%s %s: %s (seed %" PRIu64 ")\n", check ? check->family : "-", function,
           check ? bsw_cpu_level_name(check->level) : "-", detail, check ? check->seed : 0);
    fflush(stdout);
}

static void check_zone(const unsigned char *zone, size_t bytes, const char *where, size_t size)
{
    for (size_t i = 0; i < bytes; i++) {
        if (zone[i] == ZONE_BYTE) continue;
        char detail[96];
        snprintf(detail, sizeof detail, "wrote %s an array of %zu bytes", where, size);
        count_failure(current_check, "guard zone", detail);
        return;
    }
}

static void check_zones(const struct allocation *allocation)
{
    if (current_check) current_check->num_checks++;
    unsigned char *end = allocation->memory + allocation->bytes;
    size_t slack = round_up(allocation->bytes, 64) - allocation->bytes;
    check_zone(allocation->memory - ZONE_BYTES, ZONE_BYTES, "before", allocation->bytes);
    check_zone(end, slack, "past", allocation->bytes);
}

void kernelcheck_free(void *memory)
{
    for (int is_last = 0; !is_last;) {
        struct allocation *allocation = allocations;
        if (!allocation) {
            fprintf(stderr, "kernelcheck: memory freed that was not allocated\n");
            exit(1);
        }
        is_last = allocation->memory == memory;
        check_zones(allocation);
        allocations = allocation->next;
        if (munmap(allocation->mapping, allocation->mapping_bytes) != 0) die("munmap");
    }
}

// ---- comparing ----

void kernelcheck_case(struct kernelcheck *check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->shape, sizeof check->shape, format, arguments);
    va_end(arguments);
}

void kernelcheck_compare(struct kernelcheck *check, const char *function, const void *reference,
                         const void *candidate, size_t bytes)
{
    check->num_checks++;
    const unsigned char *a = reference, *b = candidate;
    if (bytes == 0 || memcmp(a, b, bytes) == 0) return;
    size_t at = 0;
    while (a[at] == b[at]) at++;
    char detail[512];
    uint32_t expected = 0, found = 0;
    size_t word = at / 4 * 4, part = bytes - word < 4 ? bytes - word : 4;
    memcpy(&expected, a + word, part);
    memcpy(&found, b + word, part);
    snprintf(detail, sizeof detail,
             "%s: byte %zu of %zu differs, word %08" PRIx32 " not %08" PRIx32, check->shape, at,
             bytes, found, expected);
    count_failure(check, function, detail);
}

int kernelcheck_compare_lists(struct kernelcheck *check, const char *function,
                              const void *reference, size_t num_reference, const void *candidate,
                              size_t num_candidate, size_t item_bytes)
{
    kernelcheck_compare(check, function, &num_reference, &num_candidate, sizeof num_candidate);
    if (num_reference != num_candidate) return 0;
    kernelcheck_compare(check, function, reference, candidate, num_candidate * item_bytes);
    return 1;
}

// ---- the proof that a check can fail ----

static sigjmp_buf fault_jump;

static void jump_on_fault(int signal_number)
{
    (void)signal_number;
    siglongjmp(fault_jump, 1);
}

// 1 if reading the byte faults.
static int read_faults(const volatile unsigned char *byte)
{
    struct sigaction action = {.sa_handler = jump_on_fault}, old_segv, old_bus;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    volatile int faulted = 1;
    if (sigsetjmp(fault_jump, 1) == 0) {
        (void)*byte;
        faulted = 0;
    }
    sigaction(SIGSEGV, &old_segv, NULL);
    sigaction(SIGBUS, &old_bus, NULL);
    return faulted;
}

// Failures that freeing an array counts after one byte next to it was overwritten.
static long failures_of_overwrite(struct kernelcheck *check, ptrdiff_t place)
{
    long before = check->num_failures;
    volatile unsigned char *memory = kernelcheck_allocate(100);
    memory[place] = 0;
    kernelcheck_free((void *)(uintptr_t)memory);
    return check->num_failures - before;
}

static int self_test_passes(uint64_t seed)
{
    struct kernelcheck check = {.seed = seed, .family = "self-test"};
    struct kernelcheck *outer = current_check;
    uint32_t right[3] = {1, 2, 3}, wrong[3] = {1, 2, 0x80000003u};
    int passes = 1;
    quiet = 1;
    current_check = &check;
    kernelcheck_compare(&check, "right", right, right, sizeof right);
    passes &= check.num_failures == 0;
    kernelcheck_compare(&check, "wrong", right, wrong, sizeof right);
    passes &= check.num_failures == 1;
    passes &= failures_of_overwrite(&check, 0) == 0;
    passes &= failures_of_overwrite(&check, 99) == 0;
    passes &= failures_of_overwrite(&check, -1) == 1;
    passes &= failures_of_overwrite(&check, 100) == 1;
    unsigned char *memory = kernelcheck_allocate(128);
    passes &= !read_faults(memory + 127) && read_faults(memory + 128);
    kernelcheck_free(memory);
    passes &= check.num_checks == 7 && check.num_failures == 3;
    current_check = outer;
    quiet = 0;
    return passes;
}

// ---- the program ----

static struct sigaction fault_action_before;

// Names the case; then the fault happens again under the handler that was there (a sanitizer's).
static void report_fault(int signal_number)
{
    char text[256];
    const struct kernelcheck *check = current_check;
    int length = snprintf(text, sizeof text, "FAIL %s %s: memory fault (seed %" PRIu64 ")\n",
                          check ? check->family : "-",
                          check ? bsw_cpu_level_name(check->level) : "-", check ? check->seed : 0);
    if (length > 0 && write(STDOUT_FILENO, text, (size_t)length) < 0) _exit(1);
    sigaction(signal_number, &fault_action_before, NULL);
}

struct options {
    uint64_t seed;
    const char *family;            // NULL: all
    enum bsw_cpu_level only_level; // BSW_CPU_REFERENCE: all
};

static const char usage_text[] =
    "usage: kernelcheck [--seed N] [--family NAME] [--level NAME] [--help]\n"
    "Runs every kernel of every instruction set against the plain C reference, bit for bit.\n"
    "  --seed N        seed of the inputs (1)\n"
    "  --family NAME   only this one: ";

static void print_usage(FILE *to)
{
    fputs(usage_text, to);
    for (size_t i = 0; i < NUM_FAMILIES; i++) fprintf(to, "%s%s", i ? ", " : "", families[i].name);
    fputs("\n  --level NAME    only this one:", to);
    for (int level = BSW_CPU_REFERENCE + 1; level < BSW_CPU_NUM_LEVELS; level++) {
        if (bsw_cpu_level_is_built((enum bsw_cpu_level)level))
            fprintf(to, " %s", bsw_cpu_level_name((enum bsw_cpu_level)level));
    }
    fputs("\n", to);
}

static int usage_error(const char *option, const char *value)
{
    fprintf(stderr, "kernelcheck: %s%s%s is not possible; see --help\n", option, value ? " " : "",
            value ? value : "");
    return 2;
}

static int parse_seed(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

static int parse_family(const char *text, const char **out)
{
    *out = NULL;
    for (size_t i = 0; i < NUM_FAMILIES; i++) {
        if (strcmp(text, families[i].name) == 0) *out = families[i].name;
    }
    return *out != NULL;
}

// A level that this CPU lacks is an error when it is asked for by name.
static int parse_level(const char *text, enum bsw_cpu_level *out)
{
    return bsw_cpu_level_parse(text, out, NULL) == BSW_OK && *out > BSW_CPU_REFERENCE;
}

// 0: go on; 1: help was printed; 2: wrong.
static int parse_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--help") == 0) {
            print_usage(stdout);
            return 1;
        }
        int right = 0;
        if (value && strcmp(option, "--seed") == 0)
            right = parse_seed(value, &options->seed);
        else if (value && strcmp(option, "--family") == 0)
            right = parse_family(value, &options->family);
        else if (value && strcmp(option, "--level") == 0)
            right = parse_level(value, &options->only_level);
        if (!right) return usage_error(option, value);
    }
    return 0;
}

static void run_family(const struct family *family, enum bsw_cpu_level level,
                       const struct options *options, struct kernelcheck *total)
{
    struct kernelcheck check = {.seed = options->seed, .level = level, .family = family->name};
    current_check = &check;
    int64_t start = bsw_clock_ns();
    family->run(&check);
    double seconds = (double)(bsw_clock_ns() - start) * 1e-9;
    if (allocations) count_failure(&check, "memory", "arrays were left unchecked");
    current_check = NULL;
    printf("%-10s %-9s %8ld checks %6ld failures %8.2f s\n", family->name,
           bsw_cpu_level_name(level), check.num_checks, check.num_failures, seconds);
    fflush(stdout);
    total->num_checks += check.num_checks;
    total->num_failures += check.num_failures;
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 1, .only_level = BSW_CPU_REFERENCE};
    int parsed = parse_options(argc, argv, &options);
    if (parsed != 0) return parsed == 1 ? 0 : parsed;
    printf("# kernelcheck seed %" PRIu64 ", CPU level %s\n", options.seed,
           bsw_cpu_level_name(bsw_cpu_level_detect()));
    if (!self_test_passes(options.seed)) {
        printf("FAIL self-test: a wrong result or a write past an array was not noticed\n");
        return 1;
    }
    struct sigaction action = {.sa_handler = report_fault};
    sigaction(SIGSEGV, &action, &fault_action_before);
    struct kernelcheck total = {0};
    for (int level = BSW_CPU_REFERENCE + 1; level < BSW_CPU_NUM_LEVELS; level++) {
        if (options.only_level != BSW_CPU_REFERENCE && level != (int)options.only_level) continue;
        if (!bsw_cpu_level_is_built((enum bsw_cpu_level)level)) continue;
        if (!bsw_cpu_has_level((enum bsw_cpu_level)level)) {
            printf("# skipped: %s, this CPU lacks it\n",
                   bsw_cpu_level_name((enum bsw_cpu_level)level));
            continue;
        }
        for (size_t i = 0; i < NUM_FAMILIES; i++) {
            if (options.family && options.family != families[i].name) continue;
            run_family(&families[i], (enum bsw_cpu_level)level, &options, &total);
        }
    }
    printf("%ld passed, %ld failed\n", total.num_checks - total.num_failures, total.num_failures);
    return total.num_failures == 0 ? 0 : 1;
}
