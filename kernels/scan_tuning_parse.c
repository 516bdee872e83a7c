// SPDX-License-Identifier: Apache-2.0
// The text of tuning tables: a word for each figure, a line for each row.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/scan_tuning.h"

#define MAX_WORDS      (BSW_TUNING_MAX_BITS + 5)
#define MAX_LINE_BYTES 256

struct line {
    const char *name; // of the text
    unsigned long number;
    char text[MAX_LINE_BYTES];
    char *words[MAX_WORDS];
    size_t num_words;
};

static enum bsw_status refuse(const struct line *line, const char *why, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: line %lu: %s", line->name, line->number, why);
}

// The next line without its comment; returns where the one behind it begins.
static enum bsw_status split(struct line *line, const char *text, size_t length,
                             struct bsw_error *err)
{
    char *rest = line->text;
    line->number++;
    line->num_words = 0;
    if (length >= sizeof line->text) return refuse(line, "too long", err);
    memcpy(line->text, text, length);
    line->text[length] = '\0';
    line->text[strcspn(line->text, "#")] = '\0';
    for (char *word; (word = strsep(&rest, " \t\r")) != NULL;) {
        if (*word == '\0') continue;
        if (line->num_words == MAX_WORDS) return refuse(line, "too many words", err);
        line->words[line->num_words++] = word;
    }
    return BSW_OK;
}

static int read_count(const char *word, uint32_t least, uint32_t most, uint32_t *out)
{
    char *end;
    unsigned long value = *word >= '0' && *word <= '9' ? strtoul(word, &end, 10) : 0;
    if (!(*word >= '0' && *word <= '9') || *end != '\0' || value < least || value > most) return 0;
    *out = (uint32_t)value;
    return 1;
}

static int read_cost(const char *word, float *out)
{
    char *end;
    *out = strtof(word, &end);
    return end != word && *end == '\0' && isfinite(*out) && *out >= 0;
}

// BSW_CPU_NUM_LEVELS: another build's.
static int level_of(const char *name)
{
    int level = 0;
    while (level < BSW_CPU_NUM_LEVELS &&
           strcmp(name, bsw_cpu_level_name((enum bsw_cpu_level)level)) != 0)
        level++;
    return level;
}

// table LEVEL VENDOR FAMILY BITS...
static enum bsw_status read_table(const struct line *line, struct bsw_scan_tuning_table *out,
                                  struct bsw_error *err)
{
    *out = (struct bsw_scan_tuning_table){0};
    if (line->num_words < 5 || line->num_words > 4 + BSW_TUNING_MAX_BITS ||
        strlen(line->words[2]) >= sizeof out->cpu.vendor)
        return refuse(line, "not 'table LEVEL VENDOR FAMILY BITS...'", err);
    out->level = (enum bsw_cpu_level)level_of(line->words[1]);
    snprintf(out->cpu.vendor, sizeof out->cpu.vendor, "%s", line->words[2]);
    if (!read_count(line->words[3], 0, UINT32_MAX, &out->cpu.family))
        return refuse(line, "the CPU's family is not a number", err);
    out->num_bits = line->num_words - 4;
    for (size_t i = 0; i < out->num_bits; i++)
        if (!read_count(line->words[4 + i], 1, BSW_MAX_CODE_BITS, &out->bits[i]))
            return refuse(line, "bits are not numbers from 1 to 8", err);
    return BSW_OK;
}

// row DIMS TILE_KIB STAGE_OVERHEAD FINISH_FACTOR MATRIX_FROM_QUERIES...
static enum bsw_status read_row(const struct line *line, struct bsw_scan_tuning_table *table,
                                struct bsw_error *err)
{
    if (table->num_rows == BSW_TUNING_MAX_ROWS) return refuse(line, "a table has 8 rows", err);
    struct bsw_scan_tuning_row *row = &table->rows[table->num_rows];
    if (line->num_words != 5 + table->num_bits)
        return refuse(line,
                      "not 'row DIMS TILE_KIB STAGE_OVERHEAD FINISH_FACTOR', and a number of "
                      "queries for each of the table's bits",
                      err);
    if (!read_count(line->words[1], 32, BSW_MAX_DIMS, &row->dims) || row->dims % 32 != 0)
        return refuse(line, "dims are not a multiple of 32", err);
    if (!read_count(line->words[2], 1, 1024, &row->tile_kib))
        return refuse(line, "a tile is not 1 to 1024", err);
    if (!read_cost(line->words[3], &row->stage_overhead) ||
        !read_cost(line->words[4], &row->finish_factor))
        return refuse(line, "the stage's overhead or factor is not a number >= 0", err);
    for (size_t i = 0; i < table->num_bits; i++) {
        const char *word = line->words[5 + i];
        row->matrix_from_queries[i] = UINT32_MAX;
        if (strcmp(word, "-") != 0 &&
            !read_count(word, 1, UINT32_MAX - 1, &row->matrix_from_queries[i]))
            return refuse(line, "a number of queries is neither >= 1 nor -", err);
    }
    table->num_rows++;
    return BSW_OK;
}

// What has been read of a text: the table that rows go to, and those that are whole.
struct reading {
    struct bsw_scan_tuning_table *tables, table;
    size_t max_tables, num_tables;
    int has_table;
};

static enum bsw_status end_table(struct reading *reading, const struct line *line,
                                 struct bsw_error *err)
{
    if (!reading->has_table) return BSW_OK;
    if (reading->table.num_rows == 0)
        return refuse(line, "the table before this line has no row", err);
    if (reading->table.level == BSW_CPU_NUM_LEVELS) return BSW_OK;
    if (reading->num_tables == reading->max_tables) return refuse(line, "too many tables", err);
    reading->tables[reading->num_tables++] = reading->table;
    return BSW_OK;
}

static enum bsw_status read_line(struct reading *reading, const struct line *line,
                                 struct bsw_error *err)
{
    if (line->num_words == 0) return BSW_OK;
    if (strcmp(line->words[0], "table") == 0) {
        BSW_TRY(end_table(reading, line, err));
        reading->has_table = 1;
        return read_table(line, &reading->table, err);
    }
    if (strcmp(line->words[0], "row") != 0 || !reading->has_table)
        return refuse(line, "neither a table nor one of its rows", err);
    return read_row(line, &reading->table, err);
}

enum bsw_status bsw_scan_tuning_parse(const char *name, const char *text,
                                      struct bsw_scan_tuning_table *tables, size_t max_tables,
                                      size_t *num_tables, struct bsw_error *err)
{
    struct line line = {.name = name};
    struct reading reading = {.tables = tables, .max_tables = max_tables};
    *num_tables = 0;
    while (*text) {
        size_t length = strcspn(text, "\n");
        BSW_TRY(split(&line, text, length, err));
        BSW_TRY(read_line(&reading, &line, err));
        text += length + (text[length] == '\n');
    }
    BSW_TRY(end_table(&reading, &line, err));
    *num_tables = reading.num_tables;
    return BSW_OK;
}
