// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/facts.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static void print_json(json_t *object, FILE *out)
{
    json_dumpf(object, out, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
    fputc('\n', out);
    json_decref(object);
}

void bsw_print_json(json_t *object)
{
    print_json(object, stdout);
}

void bsw_format_bytes(double bytes, char *text, size_t capacity)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;
    while (bytes >= 1000 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, capacity, "%.4g %s", bytes, units[unit]);
}

void bsw_facts_begin(struct bsw_facts *facts, enum bsw_facts_form form, FILE *out)
{
    *facts = (struct bsw_facts){.form = form, .out = out ? out : stdout, .depth = 1};
    if (form == BSW_FACTS_JSON) facts->open[0] = json_object();
}

void bsw_facts_end(struct bsw_facts *facts, enum bsw_status status)
{
    assert(facts->depth == 1 || status != BSW_OK);
    if (facts->form == BSW_FACTS_JSON && status == BSW_OK)
        print_json(facts->open[0], facts->out);
    else
        json_decref(facts->open[0]);
    facts->open[0] = NULL;
}

// ---- programs ----

void bsw_fact_json(struct bsw_facts *facts, const char *name, json_t *value)
{
    json_t *into = facts->open[facts->depth - 1];
    if (facts->form != BSW_FACTS_JSON) {
        json_decref(value);
        return;
    }
    assert(json_is_object(into) == (name != NULL));
    if (name)
        json_object_set_new(into, name, value);
    else
        json_array_append_new(into, value);
}

void bsw_facts_merge(struct bsw_facts *facts, json_t *object)
{
    if (facts->form == BSW_FACTS_JSON) json_object_update(facts->open[facts->depth - 1], object);
    json_decref(object);
}

// value: borrowed by the list of what is open, owned by what it goes into.
static void open_value(struct bsw_facts *facts, const char *name, json_t *value)
{
    bsw_fact_json(facts, name, value);
    assert(facts->depth < BSW_FACTS_MAX_DEPTH);
    facts->open[facts->depth++] = value;
}

void bsw_facts_open_object(struct bsw_facts *facts, const char *name)
{
    open_value(facts, name, facts->form == BSW_FACTS_JSON ? json_object() : NULL);
}

void bsw_facts_open_list(struct bsw_facts *facts, const char *name)
{
    open_value(facts, name, facts->form == BSW_FACTS_JSON ? json_array() : NULL);
}

void bsw_facts_close(struct bsw_facts *facts)
{
    assert(facts->depth > 1);
    facts->depth--;
}

// ---- people ----

void bsw_facts_say(struct bsw_facts *facts, const char *format, ...)
{
    va_list list;
    if (facts->form != BSW_FACTS_TEXT) return;
    va_start(list, format);
    vfprintf(facts->out, format, list);
    va_end(list);
}

// The conversion of a format: what is before it, flags with width and precision, its letter, and
// what is behind. Everything else is printed as it is, but %% as %.
static const char *put_words(const char *text, FILE *out)
{
    for (; *text && !(text[0] == '%' && text[1] != '%'); text++) {
        if (*text == '%') text++;
        fputc(*text, out);
    }
    return text;
}

// The words up to the conversion are printed, spec gets "%8.3" of %8.3f; the rest is returned from
// the letter on.
static const char *find_conversion(const char *said, char spec[16], FILE *out)
{
    const char *at = put_words(said, out);
    size_t length = 1 + strspn(at + (*at == '%'), "-+0123456789.");
    assert(*at == '%' && length < 12);
    memcpy(spec, at, length);
    spec[length] = '\0';
    return at + length;
}

static int is_said(const struct bsw_facts *facts, const char *said)
{
    return said && facts->form == BSW_FACTS_TEXT;
}

static void say_text(struct bsw_facts *facts, const char *value, const char *said)
{
    char spec[16];
    if (!is_said(facts, said) || !value) return;
    const char *rest = find_conversion(said, spec, facts->out);
    assert(*rest == 's');
    fprintf(facts->out, strcat(spec, "s"), value);
    put_words(rest + 1, facts->out);
}

void bsw_fact_text(struct bsw_facts *facts, const char *name, const char *value, const char *said)
{
    bsw_fact_json(facts, name, value ? json_string(value) : json_null());
    say_text(facts, value, said);
}

void bsw_fact_digest(struct bsw_facts *facts, const char *name, uint64_t value, const char *said)
{
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    bsw_fact_text(facts, name, text, said);
}

// Prints what follows a 1, " rows of it", with its first word in the singular, and returns the
// rest.
static const char *put_singular(const char *words, FILE *out)
{
    size_t length = words[0] == ' ' ? 1 + strspn(words + 1, "abcdefghijklmnopqrstuvwxyz") : 0;
    if (length < 5 || words[length - 1] != 's' || words[length - 2] == 's') return words;
    int is_y = strncmp(words + length - 3, "ies", 3) == 0;
    int is_es = strncmp(words + length - 4, "ches", 4) == 0 || // searches, indexes, passes
                strncmp(words + length - 3, "xes", 3) == 0 ||
                strncmp(words + length - 4, "sses", 4) == 0;
    fprintf(out, "%.*s%s", (int)(length - (is_y ? 3 : is_es ? 2 : 1)), words, is_y ? "y" : "");
    return words + length;
}

void bsw_fact_integer(struct bsw_facts *facts, const char *name, uint64_t value, const char *said)
{
    char spec[16];
    bsw_fact_json(facts, name, json_integer((json_int_t)value));
    if (!is_said(facts, said)) return;
    const char *rest = find_conversion(said, spec, facts->out);
    assert(*rest == 'd');
    fprintf(facts->out, strcat(spec, "lld"), (long long)value);
    rest = value == 1 ? put_singular(rest + 1, facts->out) : rest + 1;
    put_words(rest, facts->out);
}

void bsw_fact_bytes(struct bsw_facts *facts, const char *name, uint64_t value, const char *said)
{
    char text[32];
    bsw_fact_json(facts, name, json_integer((json_int_t)value));
    bsw_format_bytes((double)value, text, sizeof text);
    say_text(facts, text, said);
}

void bsw_fact_real(struct bsw_facts *facts, const char *name, double value, const char *said)
{
    char spec[16], letter[2] = "";
    int is_known = isfinite(value);
    bsw_fact_json(facts, name, is_known ? json_real(value) : json_null());
    if (!is_said(facts, said) || !is_known) return;
    const char *rest = find_conversion(said, spec, facts->out);
    assert(*rest == 'g' || *rest == 'f' || *rest == 'e');
    letter[0] = *rest;
    fprintf(facts->out, strcat(spec, letter), value);
    put_words(rest + 1, facts->out);
}

void bsw_fact_flag(struct bsw_facts *facts, const char *name, int value, const char *said)
{
    bsw_fact_json(facts, name, json_boolean(value));
    if (is_said(facts, said) && value) put_words(said, facts->out);
}
