// SPDX-License-Identifier: Apache-2.0
#include "kernels/tuning/scan_tuning.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/file.h"
#include "kernels/device_scan/device_tuning.h"

// The assembler takes it in; CMakeLists.txt says where it is.
__asm__(".pushsection .rodata\n"
        ".global bsw_scan_tuning_text\nbsw_scan_tuning_text:\n"
        ".incbin \"kernels/tuning/scan_tuning.txt\"\n"
        ".byte 0\n"
        ".popsection");
extern const char bsw_scan_tuning_text[];

struct tables {
    struct bsw_scan_tuning_table tables[BSW_TUNING_MAX_TABLES];
    size_t num;
};

static struct tables built_in, of_user;
static struct bsw_cpu_identity this_cpu;

static void make_built_in(void)
{
    bsw_cpu_identity_read(&this_cpu);
    if (bsw_scan_tuning_parse("scan_tuning.txt", bsw_scan_tuning_text, built_in.tables,
                              BSW_TUNING_MAX_TABLES, &built_in.num, NULL) != BSW_OK)
        abort(); // a test reads it
}

static const struct tables *get_built_in(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_built_in);
    return &built_in;
}

const struct bsw_scan_tuning_table *bsw_scan_tuning_built_in(size_t *num_tables)
{
    *num_tables = get_built_in()->num;
    return built_in.tables;
}

enum bsw_status bsw_scan_tuning_read(const char *path, struct bsw_error *err)
{
    struct bsw_buffer text = {0};
    enum bsw_status status = bsw_file_read_all(path, BSW_TUNING_MAX_FILE_BYTES, &text, err);
    if (status == BSW_OK) status = bsw_buffer_append(&text, "", 1, err);
    if (status == BSW_OK)
        status = bsw_scan_tuning_parse(path, (const char *)text.data, of_user.tables,
                                       BSW_TUNING_MAX_TABLES, &of_user.num, err);
    if (status == BSW_OK) status = bsw_device_tuning_take(path, (const char *)text.data, err);
    bsw_buffer_deinit(&text);
    return status;
}

enum bsw_status bsw_scan_tuning_read_named(struct bsw_error *err)
{
    const char *path = getenv("BITSWEEP_TUNING");
    return path && *path ? bsw_scan_tuning_read(path, err) : BSW_OK;
}

// ---- looking up ----

// How well a table of a level serves a CPU: 3 it is of the same, 2 of its vendor, 1 of another.
static int likeness(const struct bsw_scan_tuning_table *table, enum bsw_cpu_level level,
                    const struct bsw_cpu_identity *cpu)
{
    if (table->level != level) return 0;
    if (bsw_cpu_is_same(&table->cpu, cpu)) return 3;
    return strcmp(table->cpu.vendor, cpu->vendor) == 0 ? 2 : 1;
}

// The first that is as alike as the most alike, at least `least`; NULL: there is none.
static const struct bsw_scan_tuning_table *find(const struct tables *from, enum bsw_cpu_level level,
                                                const struct bsw_cpu_identity *cpu, int least)
{
    const struct bsw_scan_tuning_table *found = NULL;
    for (size_t i = 0; i < from->num; i++) {
        int alike = likeness(&from->tables[i], level, cpu);
        if (alike < least) continue;
        found = &from->tables[i];
        least = alike + 1;
    }
    return found;
}

// A level without any table has those of the next lower one.
static const struct bsw_scan_tuning_table *table_of(enum bsw_cpu_level level)
{
    const struct tables *own = get_built_in();
    const struct bsw_scan_tuning_table *table = find(&of_user, level, &this_cpu, 3);
    for (int lower = (int)level; !table && lower >= 0; lower--)
        table = find(own, (enum bsw_cpu_level)lower, &this_cpu, 1);
    return table;
}

// How far apart two positive numbers are, as a ratio >= 1.
static double ratio(double a, double b)
{
    return a > b ? a / b : b / a;
}

static struct bsw_scan_tuning look_up(const struct bsw_scan_tuning_table *table,
                                      const struct bsw_code_layout *layout)
{
    double dims = layout->padded_dims, bits = bsw_layout_row_bytes(layout) * 8 / dims;
    const struct bsw_scan_tuning_row *rows = table->rows, *row = rows;
    size_t column = 0;
    for (size_t i = 1; i < table->num_bits; i++)
        if (ratio(table->bits[i], bits) < ratio(table->bits[column], bits)) column = i;
    for (size_t i = 1; i < table->num_rows; i++)
        if (ratio(rows[i].dims, dims) < ratio(row->dims, dims)) row = &rows[i];
    return (struct bsw_scan_tuning){.dims = row->dims,
                                    .bits = table->bits[column],
                                    .matrix_from_queries = row->matrix_from_queries[column],
                                    .tile_kib = row->tile_kib,
                                    .stage_overhead = row->stage_overhead,
                                    .finish_factor = row->finish_factor};
}

struct bsw_scan_tuning bsw_scan_tuning_of(enum bsw_cpu_level level,
                                          const struct bsw_code_layout *layout)
{
    return look_up(table_of(level), layout);
}

struct bsw_scan_tuning bsw_scan_tuning_standard(const struct bsw_code_layout *layout)
{
    const struct bsw_cpu_identity nobody = {.vendor = ""};
    return look_up(find(get_built_in(), BSW_TUNING_STANDARD_LEVEL, &nobody, 1), layout);
}
