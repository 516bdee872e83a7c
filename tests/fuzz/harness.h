// SPDX-License-Identifier: Apache-2.0
// What fuzz targets share. A target is one file fuzz_X.c of this folder with the two functions
// below; CMake finds it by its name, builds it for libFuzzer and for harness_replay.c.
#ifndef BITSWEEP_TESTS_FUZZ_HARNESS_H
#define BITSWEEP_TESTS_FUZZ_HARNESS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/memory.h"
#include "common/base/status.h"

// One input through the parser. Aborts where the parser breaks its contract; 0.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

// Calls put for every seed: small valid inputs, and what is next to them.
typedef void (*fuzz_put_fn)(void *context, const void *data, size_t bytes);
void fuzz_make_seeds(fuzz_put_fn put, void *context);

// Ends the process with a line that names the place.
#define FUZZ_REQUIRE(condition) ((condition) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #condition))
void fuzz_fail(const char *file, int line, const char *condition);

// 1 if ok; else the refusal is one of `allowed` (a bit 1 << status for each), said in one line of
// printable text.
#define FUZZ_BIT(status) (1u << (status))
int fuzz_is_ok(enum bsw_status status, const struct bsw_error *err, unsigned allowed);

// A file in a folder of this process, in memory where there is /dev/shm, holding these bytes.
// The path stays valid until the eighth call from here.
const char *fuzz_file(const char *name, const void *data, size_t bytes);
const char *fuzz_folder(void);

// Room of exactly so many bytes, so that a sanitizer sees what lies outside: bsw_allocate rounds
// up. Aligned as bsw_allocate's, and freed by bsw_free. data: copied into it, or NULL.
void *fuzz_exact(const void *data, size_t bytes);

// What is left of an input that is read byte by byte; 0 behind its end.
struct fuzz_input {
    const uint8_t *data;
    size_t bytes;
};
uint8_t fuzz_next_byte(struct fuzz_input *input);

// The input as text: printable where it may be, terminated; owned by the caller (bsw_free).
char *fuzz_text(const uint8_t *data, size_t bytes);

// The input as it is, then with what protobuf files end with behind it, to `take`: a fuzzer does
// not find a checksum by chance. 0.
int fuzz_take_sealed(void (*take)(const void *data, size_t bytes), const void *data, size_t bytes);

#endif
