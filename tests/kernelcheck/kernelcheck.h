// SPDX-License-Identifier: Apache-2.0
// Our own checkasm: every level of every kernel family runs on the same seeded input as the
// reference; outputs are compared bit for bit together with guard zones round them; a failure
// prints family, function, level, shape and seed. `bitsweep bench kernels` times them.
#ifndef BITSWEEP_KERNELCHECK_H
#define BITSWEEP_KERNELCHECK_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/status.h"

struct kernelcheck {
    uint64_t seed;            // printed at the start; --seed gives it
    enum bsw_cpu_level level; // the level under test, above BSW_CPU_REFERENCE
    const char *family;
    char shape[256]; // of the case, set by kernelcheck_case
    long num_checks;
    long num_failures;
};

// One check per family, called once for each level the CPU has; each in check_FAMILY.c.
void check_encode(struct kernelcheck *check);
void check_plane_scan(struct kernelcheck *check);
void check_matrix_scan(struct kernelcheck *check);
void check_select(struct kernelcheck *check);
void check_merge(struct kernelcheck *check);
void check_refine(struct kernelcheck *check);
void check_screen(struct kernelcheck *check);
void check_coarse_scan(struct kernelcheck *check);
void check_table_scan(struct kernelcheck *check);
void check_entries_within(struct kernelcheck *check);
void check_entry_tables(struct kernelcheck *check);
void check_entry_bounds(struct kernelcheck *check);
void check_table_bounds(struct kernelcheck *check);

// The shapes every family must go through.
extern const uint32_t kernelcheck_dims[]; // 1, 31, 32, 33, 96, 100, 128, 1000
extern const size_t kernelcheck_num_dims;

// Seeded numbers: deterministic in (check->seed, stream, index).
uint64_t kernelcheck_random(const struct kernelcheck *check, uint64_t stream, uint64_t index);
float kernelcheck_float(const struct kernelcheck *check, uint64_t stream,
                        uint64_t index); // about Gaussian

// Guarded memory: bytes at 64-byte alignment with a zone of pattern bytes before and after; the
// memory ends right before an unreadable page, so that a read or a write past it faults (up to
// alignment of the size given).
void *kernelcheck_allocate(size_t bytes);
// The same as bsw_scan_case_allocate_fn (bench/host/scan_case.h).
enum bsw_status kernelcheck_allocate_array(void *unused, void *out, size_t count, size_t size,
                                           struct bsw_error *err);
// Frees it and all that was allocated after it. Checks the zones; a broken one counts as a failure
// of the current check.
void kernelcheck_free(void *memory);
// What is compared from now on: printf text, printed with a failure.
void kernelcheck_case(struct kernelcheck *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Counts a check; prints and counts a failure if the bytes differ.
void kernelcheck_compare(struct kernelcheck *check, const char *function, const void *reference,
                         const void *candidate, size_t bytes);
// The same of numbers of items, and of the items where the numbers are the same; returns whether
// they are.
int kernelcheck_compare_lists(struct kernelcheck *check, const char *function,
                              const void *reference, size_t num_reference, const void *candidate,
                              size_t num_candidate, size_t item_bytes);

#endif
