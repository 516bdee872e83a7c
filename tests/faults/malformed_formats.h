// SPDX-License-Identifier: Apache-2.0
// The formats that check_malformed damages: a small good file of each, how it is read, how its
// header may be wrong, and which changes leave it good.
#ifndef BITSWEEP_TESTS_FAULTS_MALFORMED_FORMATS_H
#define BITSWEEP_TESTS_FAULTS_MALFORMED_FORMATS_H

#include "tests/faults/fault_tools.h"

#define MAX_FIELDS 12

// How headers of a family are changed.
enum malformed_family {
    FAMILY_FIELDS,   // numbers at fixed places
    FAMILY_NPY,      // a dict in text
    FAMILY_PROTOBUF, // tags, varints, a checksum at the end
    FAMILY_JSON      // text
};

struct malformed_format {
    const char *label;
    const char *path; // of the good file, which is replaced
    enum malformed_family family;
    struct {
        uint32_t offset, bytes;
    } fields[MAX_FIELDS];
    size_t num_fields;
    size_t row_bytes;      // vecs alone: a file cut between two rows is a good file
    uint32_t number_bytes; // FAMILY_FIELDS of dense rows: header and size must agree
    enum bsw_status (*read)(const char *path, struct bsw_error *err);
    char command[1024]; // of the program, refused where read refuses; empty: none
    struct bsw_buffer good;
};

// Makes every format's file in fault_folder(), with `program` where it writes it. Returns them.
struct malformed_format *malformed_formats_make(const char *program, size_t *count);

// Writes changed bytes, `room` at most, of a header; returns their number.
size_t malformed_change(const struct malformed_format *format, struct fault_random *random,
                        unsigned char *out, size_t room);

// 0 if these bytes may be a good file, whatever was changed.
int malformed_must_refuse(const struct malformed_format *format, const unsigned char *data,
                          size_t bytes);

#endif
