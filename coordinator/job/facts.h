// SPDX-License-Identifier: Apache-2.0
// What a command has to say: one list of facts, each with its name and value, told either to people
// as text or to programs as one JSON object on stdout. Every fact is stated once, for both.
//
// `said` is how people read a fact: a printf format with one conversion, which stands for the value
// (%d: integers, %s: texts and bytes, %g %f %e: reals), with width and precision as in printf, or
// NULL for a fact that only JSON has. Tables are made so, too: a row is an object in a list, and
// every column one of its facts.
#ifndef BITSWEEP_COORDINATOR_FACTS_H
#define BITSWEEP_COORDINATOR_FACTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/status.h"

BSW_C_BEGIN

enum bsw_facts_form { BSW_FACTS_TEXT, BSW_FACTS_JSON, BSW_FACTS_SILENT };

#define BSW_FACTS_MAX_DEPTH 8

// Fields are private. Text goes out at once, JSON at the end.
struct bsw_facts {
    enum bsw_facts_form form;
    FILE *out;
    json_t *open[BSW_FACTS_MAX_DEPTH]; // the object or list that facts go into is the last
    int depth;
};

// out: NULL for stdout. To be ended, also after an error.
void bsw_facts_begin(struct bsw_facts *facts, enum bsw_facts_form form, FILE *out);
// Prints the JSON, if it is for programs and the status is BSW_OK, and frees it.
void bsw_facts_end(struct bsw_facts *facts, enum bsw_status status);

// name: of JSON, with its unit ("load_seconds"); NULL in a list. Texts are copied; NULL is null,
// and nothing to people, like reals that are not finite.
void bsw_fact_text(struct bsw_facts *facts, const char *name, const char *value, const char *said);
void bsw_fact_digest(struct bsw_facts *facts, const char *name, uint64_t value, const char *said);
void bsw_fact_integer(struct bsw_facts *facts, const char *name, uint64_t value, const char *said);
void bsw_fact_bytes(struct bsw_facts *facts, const char *name, uint64_t value, const char *said);
void bsw_fact_real(struct bsw_facts *facts, const char *name, double value, const char *said);
// said: what people read if it is true, without a conversion.
void bsw_fact_flag(struct bsw_facts *facts, const char *name, int value, const char *said);
// Takes the reference over; for programs alone.
void bsw_fact_json(struct bsw_facts *facts, const char *name, json_t *value);
// The same for all members of an object.
void bsw_facts_merge(struct bsw_facts *facts, json_t *object);

// The facts that follow, up to the close, belong to an object or a list of that name.
void bsw_facts_open_object(struct bsw_facts *facts, const char *name);
void bsw_facts_open_list(struct bsw_facts *facts, const char *name);
void bsw_facts_close(struct bsw_facts *facts);

// For people alone: titles, words between facts, ends of lines.
void bsw_facts_say(struct bsw_facts *facts, const char *format, ...) BSW_PRINTF(2, 3);

// Prints the object on stdout and drops the reference.
void bsw_print_json(json_t *object);

// Four digits and a unit of powers of 1000: "1.5 GB", "23.44 MB", "512 B".
void bsw_format_bytes(double bytes, char *text, size_t capacity);

BSW_C_END
#endif
