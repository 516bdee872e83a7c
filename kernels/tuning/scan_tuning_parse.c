// SPDX-License-Identifier: Apache-2.0
// The text of tuning tables: a word for each figure, a line for each row.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/tuning/scan_tuning.h"
#include "kernels/tuning_text.h"

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
static enum bsw_status read_table(const struct bsw_tuning_line *line,
                                  struct bsw_scan_tuning_table *out, struct bsw_error *err)
{
    *out = (struct bsw_scan_tuning_table){0};
    if (line->num_words < 5 || line->num_words > 4 + BSW_TUNING_MAX_BITS ||
        strlen(line->words[2]) >= sizeof out->cpu.vendor)
        return bsw_tuning_line_refuse(line, "not 'table LEVEL VENDOR FAMILY BITS...'", err);
    out->level = (enum bsw_cpu_level)level_of(line->words[1]);
    snprintf(out->cpu.vendor, sizeof out->cpu.vendor, "%s", line->words[2]);
    if (!bsw_tuning_read_count(line->words[3], 0, UINT32_MAX, &out->cpu.family))
        return bsw_tuning_line_refuse(line, "the CPU's family is not a number", err);
    out->num_bits = line->num_words - 4;
    for (size_t i = 0; i < out->num_bits; i++)
        if (!bsw_tuning_read_count(line->words[4 + i], 1, BSW_MAX_CODE_BITS, &out->bits[i]))
            return bsw_tuning_line_refuse(line, "bits are not numbers from 1 to 8", err);
    return BSW_OK;
}

// row DIMS TILE_KIB STAGE_OVERHEAD FINISH_FACTOR MATRIX_FROM_QUERIES...
static enum bsw_status read_row(const struct bsw_tuning_line *line,
                                struct bsw_scan_tuning_table *table, struct bsw_error *err)
{
    if (table->num_rows == BSW_TUNING_MAX_ROWS)
        return bsw_tuning_line_refuse(line, "a table has 8 rows", err);
    struct bsw_scan_tuning_row *row = &table->rows[table->num_rows];
    if (line->num_words != 5 + table->num_bits)
        return bsw_tuning_line_refuse(
            line,
            "not 'row DIMS TILE_KIB STAGE_OVERHEAD FINISH_FACTOR', and a number of "
            "queries for each of the table's bits",
            err);
    if (!bsw_tuning_read_count(line->words[1], 32, BSW_MAX_DIMS, &row->dims) || row->dims % 32 != 0)
        return bsw_tuning_line_refuse(line, "dims are not a multiple of 32", err);
    if (!bsw_tuning_read_count(line->words[2], 1, 1024, &row->tile_kib))
        return bsw_tuning_line_refuse(line, "a tile is not 1 to 1024", err);
    if (!read_cost(line->words[3], &row->stage_overhead) ||
        !read_cost(line->words[4], &row->finish_factor))
        return bsw_tuning_line_refuse(line, "the stage's overhead or factor is not a number >= 0",
                                      err);
    for (size_t i = 0; i < table->num_bits; i++) {
        const char *word = line->words[5 + i];
        row->matrix_from_queries[i] = UINT32_MAX;
        if (strcmp(word, "-") != 0 &&
            !bsw_tuning_read_count(word, 1, UINT32_MAX - 1, &row->matrix_from_queries[i]))
            return bsw_tuning_line_refuse(line, "a number of queries is neither >= 1 nor -", err);
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

static enum bsw_status end_table(struct reading *reading, const struct bsw_tuning_line *line,
                                 struct bsw_error *err)
{
    if (!reading->has_table) return BSW_OK;
    if (reading->table.num_rows == 0)
        return bsw_tuning_line_refuse(line, "the table before this line has no row", err);
    if (reading->table.level == BSW_CPU_NUM_LEVELS) return BSW_OK;
    if (reading->num_tables == reading->max_tables)
        return bsw_tuning_line_refuse(line, "too many tables", err);
    reading->tables[reading->num_tables++] = reading->table;
    return BSW_OK;
}

static enum bsw_status read_line(struct reading *reading, const struct bsw_tuning_line *line,
                                 struct bsw_error *err)
{
    if (line->num_words == 0) return BSW_OK;
    if (strcmp(line->words[0], "table") == 0) {
        BSW_TRY(end_table(reading, line, err));
        reading->has_table = 1;
        return read_table(line, &reading->table, err);
    }
    if (strcmp(line->words[0], "row") != 0 || !reading->has_table)
        return bsw_tuning_line_refuse(line, "neither a table nor one of its rows", err);
    return read_row(line, &reading->table, err);
}

enum bsw_status bsw_scan_tuning_parse(const char *name, const char *text,
                                      struct bsw_scan_tuning_table *tables, size_t max_tables,
                                      size_t *num_tables, struct bsw_error *err)
{
    struct bsw_tuning_line line = {.name = name};
    struct reading reading = {.tables = tables, .max_tables = max_tables};
    *num_tables = 0;
    while (*text) {
        BSW_TRY(bsw_tuning_line_next(&line, &text, err));
        if (!bsw_tuning_line_is_device(&line)) BSW_TRY(read_line(&reading, &line, err));
    }
    BSW_TRY(end_table(&reading, &line, err));
    *num_tables = reading.num_tables;
    return BSW_OK;
}
