// SPDX-License-Identifier: Apache-2.0
// The text of a GPU's tuning: columns by name, read and written by one table.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/device_scan/device_tuning.h"
#include "kernels/device_scan/scan_kernels.h"
#include "kernels/tuning_text.h"

#define NEVER       UINT32_MAX
#define MOST_VALUES (2 * BSW_MOST_CHOICES)
#define MOST_STEPS  (1u << 16) // a chunk of that many tiles of 8 bundles does not pass 32 bits
#define VALUE_BYTES 256

// A column is one or more numbers of the row, each 4 bytes, one behind the other.
struct column {
    const char *name;
    size_t offset;
    uint32_t num_values, least, most;
    int has_never;  // a number may be -
    int is_choices; // names of kernels of the family and up to how many queries: two numbers
    enum bsw_scan_family family;
    const char *words[2]; // what values 0 and 1 are called, instead of numbers
    const char *what;     // it must be
};

#define AT(member) offsetof(struct bsw_device_tuning, member)
#define COUNT(member, from, to, must_be)                                                   \
    {                                                                                      \
        .name = #member, .offset = AT(member), .num_values = 1, .least = from, .most = to, \
        .what = must_be                                                                    \
    }
#define COUNT_OR_NEVER(member, num, from, must_be)                               \
    {                                                                            \
        .name = #member, .offset = AT(member), .num_values = num, .least = from, \
        .most = NEVER - 1, .has_never = 1, .what = must_be                       \
    }
#define DIVISION(text, member)                                                               \
    {                                                                                        \
        .name = text, .offset = AT(member), .num_values = 2, .least = 1, .most = MOST_STEPS, \
        .what = "STEPS,WAVES, each 1 to 65536"                                               \
    }
#define CHOICES(member, which, must_be)                                                    \
    {                                                                                      \
        .name = #member, .offset = AT(member), .num_values = MOST_VALUES, .is_choices = 1, \
        .family = which, .what = "up to 8 kernels, each NAME or NAME:QUERIES, as " must_be \
    }
#define SWITCH(text, member)                                                                    \
    {                                                                                           \
        .name = text, .offset = AT(member), .num_values = 1, .most = 1, .words = {"off", "on"}, \
        .what = "on or off"                                                                     \
    }

_Static_assert(sizeof(enum bsw_device_list_kernel) == sizeof(uint32_t), "columns are 4 bytes");

static const struct column columns[] = {
    COUNT_OR_NEVER(matrix_from_queries, 1, 1, "a number >= 1, or -"),
    CHOICES(plane_scans, BSW_PLANE_SCANS, "bits:1,popcount"),
    CHOICES(matrix_scans, BSW_MATRIX_SCANS, "few:32,mma"),
    {.name = "few_lists",
     .offset = AT(few_lists),
     .num_values = BSW_FEW_LIST_TILES,
     .most = 1,
     .words = {"off", "on"},
     .what = "off or on for up to 8 queries, and for 16, as off,on"},
    {.name = "list_kernel",
     .offset = AT(list_kernel),
     .num_values = 1,
     .most = 1,
     .words = {"mma", "hopper"},
     .what = "mma or hopper"},
    COUNT_OR_NEVER(hopper_list_bundles, BSW_LIST_TILES, 0, "four numbers, or - for never"),
    SWITCH("gpu_lists", has_gpu_lists),
    COUNT(plane_group_bytes, 1, 48 << 10, "1 to 49152"),
    {.name = "tile_queries",
     .offset = AT(tile_queries),
     .num_values = BSW_MATRIX_TILES - 1,
     .least = 1,
     .most = NEVER - 1,
     .what = "two numbers >= 1 that rise"},
    DIVISION("plane_division", plane),
    DIVISION("matrix_division", matrix),
    DIVISION("hopper_division", hopper),
    COUNT_OR_NEVER(progressive_from_dims, 1, 1, "a number >= 1, or -"),
    SWITCH("graphs", has_graphs),
    COUNT(list_items, 1, 1 << 20, "1 to 1048576"),
    COUNT(all_list_items, 1, 1 << 30, "1 to 1073741824"),
    COUNT(sample_lists, 1, 1 << 16, "1 to 65536"),
    COUNT(sample_part, 1, 1 << 16, "1 to 65536"),
    SWITCH("levels", has_levels),
    {.name = "level_costs",
     .offset = AT(level_costs),
     .num_values = 5,
     .most = NEVER - 1,
     .what = "LEVEL_NS,DENSE_PS,SPARSE_PS,ROW_FS,PRODUCT_FS, each >= 0"},
    SWITCH("exact_screen", has_exact_screen),
    COUNT_OR_NEVER(list_pairs, 1, 0, "a number, or -"),
};
#define NUM_COLUMNS (sizeof columns / sizeof columns[0])
#define ALL_COLUMNS ((1u << NUM_COLUMNS) - 1)

_Static_assert(NUM_COLUMNS < 32, "a bit for each");

// ---- reading ----

struct reading {
    const struct bsw_tuning_line *line;
    struct bsw_device_tunings *tunings;
    uint32_t seen[BSW_TUNING_MAX_DEVICES]; // columns that lines gave, by row
};

__attribute__((format(printf, 3, 4))) static enum bsw_status
refuse(const struct bsw_tuning_line *line, struct bsw_error *err, const char *format, ...)
{
    char why[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    return bsw_tuning_line_refuse(line, why, err);
}

// "few:32"
static int read_choice(enum bsw_scan_family family, char *word, uint32_t *out)
{
    char *most = strchr(word, ':');
    if (most) *most++ = '\0';
    out[0] = 0;
    while (out[0] < BSW_NUM_SCANS && (bsw_scan_rows[out[0]].family != family ||
                                      strcmp(bsw_scan_rows[out[0]].name, word) != 0))
        out[0]++;
    out[1] = NEVER;
    return out[0] < BSW_NUM_SCANS && (!most || bsw_tuning_read_count(most, 1, NEVER - 1, &out[1]));
}

static int read_choices(const struct column *column, char *text, uint32_t *out)
{
    char *word, *rest = text;
    uint32_t num = 0;
    for (uint32_t i = 0; i < MOST_VALUES; i++) out[i] = NEVER;
    while ((word = strsep(&rest, ",")) != NULL) {
        if (num == MOST_VALUES || !read_choice(column->family, word, out + num)) return 0;
        num += 2;
    }
    return num > 0;
}

static int read_value(const struct column *column, const char *word, uint32_t *out)
{
    if (column->words[0]) {
        *out = strcmp(word, column->words[1]) == 0;
        return *out || strcmp(word, column->words[0]) == 0;
    }
    *out = NEVER;
    if (column->has_never && strcmp(word, "-") == 0) return 1;
    return bsw_tuning_read_count(word, column->least, column->most, out);
}

// "16,64": as many as the column has.
static int read_values(const struct column *column, char *text, uint32_t *out)
{
    char *word, *rest = text;
    uint32_t num = 0;
    if (column->is_choices) return read_choices(column, text, out);
    while ((word = strsep(&rest, ",")) != NULL)
        if (num == column->num_values || !read_value(column, word, &out[num++])) return 0;
    return num == column->num_values;
}

static int is_rising(const struct bsw_device_tuning *row)
{
    for (int i = 1; i < BSW_MATRIX_TILES; i++)
        if (row->tile_queries[i - 1] >= row->tile_queries[i]) return 0;
    return 1;
}

// NAME=VALUE into the row.
static enum bsw_status read_column(const struct bsw_tuning_line *line, char *text,
                                   struct bsw_device_tuning *row, uint32_t *seen,
                                   struct bsw_error *err)
{
    char *value = strchr(text, '=');
    uint32_t values[MOST_VALUES];
    size_t c = 0;
    if (!value) return refuse(line, err, "'%.32s': write NAME=VALUE", text);
    *value++ = '\0';
    while (c < NUM_COLUMNS && strcmp(columns[c].name, text) != 0) c++;
    if (c == NUM_COLUMNS) return refuse(line, err, "no column '%.32s'", text);
    const struct column *column = &columns[c];
    if (*seen >> c & 1) return refuse(line, err, "%s is there twice", column->name);
    *seen |= 1u << c;
    if (!read_values(column, value, values))
        return refuse(line, err, "%s must be %s", column->name, column->what);
    memcpy((char *)row + column->offset, values, column->num_values * sizeof values[0]);
    if (!is_rising(row)) return refuse(line, err, "%s must be %s", column->name, column->what);
    return BSW_OK;
}

// "9.0"
static int read_capability(char *text, int *major, int *minor)
{
    uint32_t numbers[2];
    char *rest = text, *first = strsep(&rest, ".");
    if (!rest || !bsw_tuning_read_count(first, 1, 999, &numbers[0]) ||
        !bsw_tuning_read_count(rest, 0, 99, &numbers[1]))
        return 0;
    *major = (int)numbers[0];
    *minor = (int)numbers[1];
    return 1;
}

// The row of a capability, a new one where there is none; NULL: there is no room.
static struct bsw_device_tuning *get_row(struct reading *reading, int major, int minor)
{
    struct bsw_device_tunings *tunings = reading->tunings;
    size_t at = 0, num = tunings->num;
    for (; at < num; at++) {
        struct bsw_device_tuning *row = &tunings->rows[at];
        if (row->major == major && row->minor == minor) return row;
        if (row->major > major || (row->major == major && row->minor > minor)) break;
    }
    if (num == BSW_TUNING_MAX_DEVICES) return NULL;
    struct bsw_device_tuning row = {.tile_queries = {1, 2, NEVER}};
    if (num > 0) row = tunings->rows[at > 0 ? at - 1 : 0];
    row.major = major;
    row.minor = minor;
    memmove(&tunings->rows[at + 1], &tunings->rows[at], (num - at) * sizeof row);
    memmove(&reading->seen[at + 1], &reading->seen[at], (num - at) * sizeof reading->seen[0]);
    tunings->rows[at] = row;
    reading->seen[at] = 0;
    tunings->num++;
    return &tunings->rows[at];
}

static enum bsw_status read_device(struct reading *reading, struct bsw_error *err)
{
    const struct bsw_tuning_line *line = reading->line;
    int major, minor;
    if (line->num_words < 3 || !read_capability(line->words[1], &major, &minor))
        return refuse(line, err, "write 'device CAPABILITY NAME=VALUE...', as 'device 9.0 ...'");
    struct bsw_device_tuning *row = get_row(reading, major, minor);
    if (!row) return refuse(line, err, "more than %d devices", BSW_TUNING_MAX_DEVICES);
    uint32_t *seen = &reading->seen[row - reading->tunings->rows];
    for (size_t i = 2; i < line->num_words; i++)
        BSW_TRY(read_column(line, line->words[i], row, seen, err));
    return BSW_OK;
}

enum bsw_status bsw_device_tuning_parse(const char *name, const char *text,
                                        struct bsw_device_tunings *tunings, struct bsw_error *err)
{
    struct bsw_tuning_line line = {.name = name};
    struct reading reading = {.line = &line, .tunings = tunings};
    int is_new = tunings->num == 0;
    while (*text) {
        BSW_TRY(bsw_tuning_line_next(&line, &text, err));
        if (bsw_tuning_line_is_device(&line)) BSW_TRY(read_device(&reading, err));
    }
    if (is_new && (tunings->num == 0 || reading.seen[0] != ALL_COLUMNS))
        return bsw_tuning_line_refuse(&line, "the first device lacks columns", err);
    return BSW_OK;
}

// ---- writing ----

static void format_choices(const uint32_t *values, char out[VALUE_BYTES])
{
    size_t length = 0;
    for (uint32_t i = 0; i < MOST_VALUES && values[i] < BSW_NUM_SCANS; i += 2) {
        char most[16] = "";
        if (values[i + 1] != NEVER) snprintf(most, sizeof most, ":%u", values[i + 1]);
        length += (size_t)snprintf(out + length, VALUE_BYTES - length, "%s%s%s", i > 0 ? "," : "",
                                   bsw_scan_rows[values[i]].name, most);
    }
}

static void format_values(const struct column *column, const struct bsw_device_tuning *row,
                          char out[VALUE_BYTES])
{
    uint32_t values[MOST_VALUES];
    size_t length = 0;
    memcpy(values, (const char *)row + column->offset, column->num_values * sizeof values[0]);
    if (column->is_choices) {
        format_choices(values, out);
        return;
    }
    for (uint32_t i = 0; i < column->num_values; i++) {
        const char *comma = i > 0 ? "," : "";
        int added;
        if (column->words[0])
            added = snprintf(out + length, VALUE_BYTES - length, "%s%s", comma,
                             column->words[values[i]]);
        else if (values[i] == NEVER)
            added = snprintf(out + length, VALUE_BYTES - length, "%s-", comma);
        else
            added = snprintf(out + length, VALUE_BYTES - length, "%s%u", comma, values[i]);
        length += (size_t)added;
    }
}

enum bsw_status bsw_device_tuning_format(const struct bsw_device_tuning *row, char *out,
                                         size_t capacity, struct bsw_error *err)
{
    size_t length = 0;
    for (size_t c = 0; c < NUM_COLUMNS; c++) {
        char values[VALUE_BYTES], begin[48] = "";
        format_values(&columns[c], row, values);
        // Lines of some columns each, so that they can be read.
        if (c % 5 == 0)
            snprintf(begin, sizeof begin, "%s" BSW_TUNING_DEVICE_WORD " %d.%d", c > 0 ? "\n" : "",
                     row->major, row->minor);
        int added = snprintf(out + length, capacity - length, "%s %s=%s%s", begin, columns[c].name,
                             values, c + 1 == NUM_COLUMNS ? "\n" : "");
        length += (size_t)added;
        if (length >= capacity)
            return bsw_fail(err, BSW_ERROR_TOO_LARGE, "a row of tuning is too long");
    }
    return BSW_OK;
}
