// SPDX-License-Identifier: Apache-2.0
// The GPU's side of `bench tune --device`: the kernels of device_bench_scan.c and whole passes, two
// at a time.
#include <string.h>

#include "bench/device/device_bench.h"
#include "bench/host/scan_tuner.h"
#include "kernels/device_scan/device_list_scan.h"
#include "kernels/device_scan/scan_kernels.h"

#define LENGTH(array)   (sizeof(array) / sizeof(array)[0])
#define TIMEOUT_SECONDS 120
#define LAYOUT          "96x3"
#define QUERY_BITS      6 // search's default
#define KEEP            100
#define FLUSH_BYTES     ((size_t)256 << 20) // beyond every second cache
#define FLUSH_PART      16                  // of the free memory
#define FLUSH_PER_ROW   1024                // at most: the emulator has few, and no caches
#define SMALL_ROWS      500000              // where launches are a part of a pass
#define SMALL_BATCH     8
#define MANY_QUERIES    1000
#define PAYS            0.98 // of the time without: what is switched on must gain something
#define ASSIGNED_ROWS   65536
#define LIST_BUNDLES    38 // of 8,192 lists of 10^7 rows
#define PROBE           32

struct bsw_device_tuner {
    struct device_bench bench;
    struct device_bench_settings settings;
    struct bsw_device_tuning row;
    struct bsw_facts *facts;
};

// Two ways to do the same.
struct duel {
    const char *what, *names[2];
    struct device_bench_shape shapes[2];
    double seconds[2];
};

static struct device_bench_shape make_shape(enum bsw_scan_kind kind,
                                            enum device_bench_kernel kernel, uint32_t queries,
                                            uint32_t list_bundles)
{
    return (struct device_bench_shape){.layout = LAYOUT,
                                       .has_affine = 1,
                                       .kind = kind,
                                       .query_bits = QUERY_BITS,
                                       .queries = queries,
                                       .batch = queries,
                                       .keep = KEEP,
                                       .kernel = kernel,
                                       .list_bundles = list_bundles};
}

static void tell(struct bsw_device_tuner *tuner, const struct duel *duel)
{
    struct bsw_facts *facts = tuner->facts;
    bsw_facts_open_object(facts, NULL);
    bsw_fact_text(facts, "what", duel->what, "  %-12s");
    bsw_fact_integer(facts, "queries", duel->shapes[0].queries, " %7d");
    bsw_fact_integer(facts, "list_bundles", duel->shapes[0].list_bundles, " %7d");
    for (int i = 0; i < 2; i++) {
        bsw_fact_text(facts, i ? "second" : "first", duel->names[i], " %13s");
        bsw_fact_real(facts, i ? "second_ms" : "first_ms", 1e3 * duel->seconds[i], " %9.4g");
    }
    bsw_facts_say(facts, "\n");
    bsw_facts_close(facts);
}

// What launches of this process find from now on.
static enum bsw_status apply(const struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    char text[BSW_DEVICE_TUNING_TEXT_BYTES];
    BSW_TRY(bsw_device_tuning_format(&tuner->row, text, sizeof text, err));
    return bsw_device_tuning_take("tuning", text, err);
}

// ---- kernels alone ----

static enum bsw_status time_kernels(struct bsw_device_tuner *tuner, struct duel *duel,
                                    struct bsw_error *err)
{
    struct device_bench *bench = &tuner->bench;
    struct device_bench_queries queries;
    struct device_times times;
    BSW_TRY(device_bench_codes_make(bench, LAYOUT, tuner->settings.rows, err));
    BSW_TRY(device_bench_queries_make(&bench->codes.codes.layout, QUERY_BITS,
                                      duel->shapes[0].queries, &queries, err));
    enum bsw_status status = BSW_OK;
    for (int i = 0; i < 2 && status == BSW_OK; i++) {
        status = device_bench_kernel_time(bench, &duel->shapes[i], bench->codes.num_rows, &queries,
                                          &times, err);
        duel->seconds[i] = times.median;
    }
    device_bench_queries_free(&queries);
    if (status == BSW_OK) tell(tuner, duel);
    return status;
}

// The fastest of all that take a batch of so many; they meet in pairs.
static enum bsw_status find_fastest(struct bsw_device_tuner *tuner, uint32_t queries,
                                    uint32_t *fastest, struct bsw_error *err)
{
    const struct bsw_code_layout *layout = &tuner->bench.codes.codes.layout;
    *fastest = BSW_SCAN_BY_mma;
    for (uint32_t i = 0; i < BSW_NUM_SCANS; i++) {
        if (bsw_scan_rows[i].family != BSW_MATRIX_SCANS || i == BSW_SCAN_BY_mma ||
            i == BSW_SCAN_BY_few_any || !bsw_device_scan_fits(i, layout, QUERY_BITS, queries))
            continue;
        struct duel duel = {
            "batch", {bsw_scan_rows[*fastest].name, bsw_scan_rows[i].name}, {{NULL}}, {0}};
        for (int k = 0; k < 2; k++)
            duel.shapes[k] = make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_ROW, queries, 0);
        duel.shapes[0].row = (enum bsw_scan_number) * fastest;
        duel.shapes[1].row = (enum bsw_scan_number)i;
        BSW_TRY(time_kernels(tuner, &duel, err));
        if (duel.seconds[1] < duel.seconds[0]) *fastest = i;
    }
    return BSW_OK;
}

// A kernel behind those that there are, or as many queries more for the last of them.
static void add_choice(struct bsw_device_tuning *row, uint32_t number, uint32_t most)
{
    struct bsw_scan_choice *choices = row->matrix_scans;
    uint32_t num = 0;
    while (num < BSW_MOST_CHOICES && choices[num].number < BSW_NUM_SCANS) num++;
    if (num > 0 && choices[num - 1].number == number)
        choices[num - 1].most_queries = most;
    else if (num < BSW_MOST_CHOICES)
        choices[num] = (struct bsw_scan_choice){number, most};
}

// For each batch the fastest; the last one's for all that are larger. Codes that these do not take
// go by what the row had, which comes behind; few-any, for others than this layout, in front.
static enum bsw_status tune_matrix_scans(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    static const uint32_t batches[] = {8, 32, 64, 128, 256, 384};
    const struct bsw_device_tuning before = tuner->row;
    BSW_TRY(device_bench_codes_make(&tuner->bench, LAYOUT, tuner->settings.rows, err));
    memset(tuner->row.matrix_scans, 0xff, sizeof tuner->row.matrix_scans);
    for (size_t i = 0; i < BSW_MOST_CHOICES; i++) {
        const struct bsw_scan_choice *own = &before.matrix_scans[i];
        if (own->number == BSW_SCAN_BY_few_any)
            add_choice(&tuner->row, own->number, own->most_queries);
    }
    for (size_t i = 0; i < LENGTH(batches); i++) {
        uint32_t fastest;
        BSW_TRY(find_fastest(tuner, batches[i], &fastest, err));
        add_choice(&tuner->row, fastest, i + 1 < LENGTH(batches) ? batches[i] : UINT32_MAX);
    }
    for (size_t i = 0; i < BSW_MOST_CHOICES; i++) {
        const struct bsw_scan_choice *own = &before.matrix_scans[i];
        if (own->number < BSW_NUM_SCANS && own->most_queries == UINT32_MAX)
            add_choice(&tuner->row, own->number, own->most_queries);
    }
    return apply(tuner, err);
}

// From where on the matrix scan, by the kernel that was chosen, is never the slower one.
static enum bsw_status tune_crossing(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    static const uint32_t batches[] = {1, 2, 3, 4, 8};
    uint32_t from = UINT32_MAX;
    for (size_t i = 0; i < LENGTH(batches); i++) {
        struct duel duel = {"few queries", {"planes", "matrix"}, {{NULL}}, {0}};
        duel.shapes[0] = make_shape(BSW_SCAN_PLANES, DEVICE_BENCH_BY_KIND, batches[i], 0);
        duel.shapes[1] = make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_BY_KIND, batches[i], 0);
        BSW_TRY(time_kernels(tuner, &duel, err));
        if (duel.seconds[1] >= duel.seconds[0])
            from = UINT32_MAX;
        else if (from == UINT32_MAX)
            from = batches[i];
    }
    tuner->row.matrix_from_queries = from;
    return BSW_OK;
}

// Lists from how many bundles on are never slower by the Hopper kernel, for a tile's full queries.
static enum bsw_status tune_tile(struct bsw_device_tuner *tuner, uint32_t queries, uint32_t *out,
                                 struct bsw_error *err)
{
    static const uint32_t lengths[] = {1, 2, 4, 8, 16, 32};
    *out = UINT32_MAX;
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        struct duel duel = {"lists", {"mma", "hopper"}, {{NULL}}, {0}};
        duel.shapes[0] = make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_MMA, queries, lengths[i]);
        duel.shapes[1] = make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_HOPPER, queries, lengths[i]);
        BSW_TRY(time_kernels(tuner, &duel, err));
        if (duel.seconds[1] >= duel.seconds[0])
            *out = UINT32_MAX;
        else if (*out == UINT32_MAX)
            *out = lengths[i];
    }
    return BSW_OK;
}

// The tile of few queries, by dp4a, stays as it is.
static enum bsw_status tune_lists(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    static const uint32_t queries[BSW_LIST_TILES] = {0, 16, 64, 256};
    struct bsw_device_tuning *row = &tuner->row;
    if (!bsw_device_has_hopper_lists(&tuner->bench.codes.codes.layout)) return BSW_OK;
    row->list_kernel = BSW_DEVICE_LISTS_MMA;
    for (int tile = 1; tile < BSW_LIST_TILES; tile++) {
        BSW_TRY(tune_tile(tuner, queries[tile], &row->hopper_list_bundles[tile], err));
        if (row->hopper_list_bundles[tile] < UINT32_MAX) row->list_kernel = BSW_DEVICE_LISTS_HOPPER;
    }
    return BSW_OK;
}

// ---- whole passes ----

static enum bsw_status time_pass(struct bsw_device_tuner *tuner,
                                 const struct device_bench_shape *shape, uint64_t rows,
                                 double *seconds, struct bsw_error *err)
{
    struct device_bench *bench = &tuner->bench;
    struct device_bench_pass *pass;
    struct device_times times;
    BSW_TRY(device_bench_pass_open(bench, shape, rows, 0, &pass, err));
    enum bsw_status status = device_bench_pass_time(bench, pass, &times, err);
    *seconds = times.median;
    device_bench_pass_close(&pass);
    return status;
}

static enum bsw_status tune_graphs(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct duel duel = {"small batch", {"launches", "graph"}, {{NULL}}, {0}};
    uint64_t rows = tuner->bench.codes.num_rows;
    for (int i = 0; i < 2; i++) {
        duel.shapes[i] = make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_BY_KIND, SMALL_BATCH, 0);
        tuner->row.has_graphs = (uint32_t)i;
        BSW_TRY(apply(tuner, err));
        BSW_TRY(time_pass(tuner, &duel.shapes[i], rows < SMALL_ROWS ? rows : SMALL_ROWS,
                          &duel.seconds[i], err));
    }
    tell(tuner, &duel);
    tuner->row.has_graphs = duel.seconds[1] < PAYS * duel.seconds[0];
    return apply(tuner, err);
}

// Over rows with a spectrum. Where it does not pay for their dimensions, only a greater number that
// somebody wrote stays.
static enum bsw_status tune_progressive(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct duel duel = {"progressive", {"full", "progressive"}, {{NULL}}, {0}};
    uint32_t *from = &tuner->row.progressive_from_dims;
    for (int i = 0; i < 2; i++) {
        duel.shapes[i] = make_shape(i ? BSW_SCAN_PROGRESSIVE_MATRIX : BSW_SCAN_MATRIX,
                                    DEVICE_BENCH_BY_KIND, MANY_QUERIES, 0);
        duel.shapes[i].layout = "32x4,32x2,64x1";
        duel.shapes[i].stage_dims = 64;
    }
    BSW_TRY(device_bench_spectrum_codes(&tuner->bench, &duel.shapes[0], err));
    for (int i = 0; i < 2; i++)
        BSW_TRY(
            time_pass(tuner, &duel.shapes[i], tuner->bench.codes.num_rows, &duel.seconds[i], err));
    tell(tuner, &duel);
    if (duel.seconds[1] < PAYS * duel.seconds[0])
        *from = DEVICE_BENCH_SPECTRUM_DIMS;
    else if (*from <= DEVICE_BENCH_SPECTRUM_DIMS)
        *from = UINT32_MAX;
    return apply(tuner, err);
}

// ---- lists ----

// A whole batch, its lists and work items made by the host or the device.
static enum bsw_status tune_gpu_lists(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct duel duel = {"whole lists", {"host", "gpu"}, {{NULL}}, {0}};
    for (int i = 0; i < 2; i++) {
        duel.shapes[i] =
            make_shape(BSW_SCAN_MATRIX, DEVICE_BENCH_BY_KIND, MANY_QUERIES, LIST_BUNDLES);
        duel.shapes[i].probe = PROBE;
        duel.shapes[i].has_gpu_lists = i;
        BSW_TRY(device_bench_lists_time(&tuner->bench, &duel.shapes[i], &duel.seconds[i], err));
    }
    tell(tuner, &duel);
    tuner->row.has_gpu_lists = duel.seconds[1] < PAYS * duel.seconds[0];
    return apply(tuner, err);
}

static uint64_t assigned_rows(const struct bsw_device_tuner *tuner)
{
    return tuner->settings.rows < ASSIGNED_ROWS ? tuner->settings.rows : ASSIGNED_ROWS;
}

// Rows for their lists, which is where ground truth of floats does the same work.
static enum bsw_status tune_screen(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct duel duel = {"rows' lists", {"exact", "screened"}, {{NULL}}, {0}};
    uint64_t pairs;
    for (int i = 0; i < 2; i++) {
        duel.shapes[i].queries = (uint32_t)assigned_rows(tuner);
        tuner->row.has_exact_screen = (uint32_t)i;
        BSW_TRY(apply(tuner, err));
        BSW_TRY(device_bench_assign_time(&tuner->bench, assigned_rows(tuner), 0, &pairs,
                                         &duel.seconds[i], err));
    }
    tell(tuner, &duel);
    tuner->row.has_exact_screen = duel.seconds[1] < PAYS * duel.seconds[0];
    return apply(tuner, err);
}

// From how many pairs of row and list on the device, by the way that was chosen, is never slower
// than the CPU beside it.
static enum bsw_status tune_list_pairs(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    uint64_t from = UINT32_MAX;
    for (uint64_t part = 64; part > 0; part /= 4) {
        struct duel duel = {"rows' lists", {"cpu", "gpu"}, {{NULL}}, {0}};
        uint64_t rows = (assigned_rows(tuner) + part - 1) / part, pairs;
        for (int i = 0; i < 2; i++) {
            duel.shapes[i].queries = (uint32_t)rows;
            BSW_TRY(device_bench_assign_time(&tuner->bench, rows, i == 0, &pairs, &duel.seconds[i],
                                             err));
        }
        tell(tuner, &duel);
        if (duel.seconds[1] >= duel.seconds[0])
            from = UINT32_MAX;
        else if (from == UINT32_MAX)
            from = pairs;
    }
    tuner->row.list_pairs = (uint32_t)from;
    return apply(tuner, err);
}

// ---- all of it ----

static enum bsw_status set_up(struct bsw_device_tuner *tuner, struct bsw_error *err)
{
    struct device_bench *bench = &tuner->bench;
    size_t free_bytes;
    int major, minor;
    for (int i = 0; i < 2; i++)
        BSW_TRY(bsw_device_launched(bench->device, device_bench_event_make(&bench->events[i]),
                                    "event", err));
    BSW_TRY(bsw_device_launched(bench->device, device_bench_capability(&major, &minor),
                                "compute capability", err));
    tuner->row = *bsw_device_tuning_find(major, minor);
    tuner->row.major = major;
    tuner->row.minor = minor;
    BSW_TRY(bsw_device_free_bytes(bench->device, &free_bytes, err));
    size_t most = free_bytes / FLUSH_PART / 256 * 256;
    if (tuner->settings.rows < most / FLUSH_PER_ROW) most = tuner->settings.rows * FLUSH_PER_ROW;
    return bsw_device_allocate(bench->device, most < FLUSH_BYTES ? most : FLUSH_BYTES, "flush",
                               &bench->flush, err);
}

enum bsw_status bsw_device_tuner_open(const struct bsw_device_tuner_options *options,
                                      struct bsw_device_tuner **out, struct bsw_error *err)
{
    struct bsw_device_tuner *tuner;
    const struct bsw_device_options device = {
        .ordinal = options->ordinal, .num_sharers = 1, .timeout_seconds = TIMEOUT_SECONDS};
    char why[256];
    *out = NULL;
    if (bsw_device_count(why, sizeof why) == 0)
        return bsw_fail(err, BSW_ERROR_USAGE, "bench tune: no GPU: %s", why);
    BSW_TRY(bsw_allocate_zero(&tuner, 1, sizeof *tuner, "tuner", err));
    tuner->settings.rows = options->rows;
    tuner->settings.queries = options->rows; // tiny ones are for the emulator
    tuner->settings.repeat = options->repeat;
    tuner->settings.seconds = options->seconds;
    tuner->settings.gpu = (uint64_t)options->ordinal;
    tuner->settings.common.level = options->level;
    tuner->settings.common.threads = (uint64_t)options->num_threads;
    tuner->bench.settings = &tuner->settings;
    enum bsw_status status = bsw_device_open(&device, &tuner->bench.device, err);
    if (status == BSW_OK) status = set_up(tuner, err);
    if (status != BSW_OK) bsw_device_tuner_close(&tuner);
    *out = tuner;
    return status;
}

void bsw_device_tuner_close(struct bsw_device_tuner **address)
{
    struct bsw_device_tuner *tuner = *address;
    if (!tuner) return;
    if (tuner->bench.device) {
        device_bench_codes_free(&tuner->bench);
        bsw_device_free(tuner->bench.device, &tuner->bench.flush);
        for (int i = 0; i < 2; i++) device_bench_event_free(&tuner->bench.events[i]);
    }
    bsw_device_close(&tuner->bench.device);
    bsw_free(address);
}

const char *bsw_device_tuner_name(const struct bsw_device_tuner *tuner)
{
    return bsw_device_name(tuner->bench.device);
}

const struct bsw_device_tuning *bsw_device_tuner_row(const struct bsw_device_tuner *tuner)
{
    return &tuner->row;
}

enum bsw_status bsw_device_tuner_run(struct bsw_device_tuner *tuner, struct bsw_facts *facts,
                                     struct bsw_error *err)
{
    tuner->facts = facts;
    bsw_facts_open_list(facts, "points");
    enum bsw_status status = tune_matrix_scans(tuner, err);
    if (status == BSW_OK) status = tune_crossing(tuner, err);
    if (status == BSW_OK) status = tune_lists(tuner, err);
    if (status == BSW_OK) status = tune_graphs(tuner, err);
    if (status == BSW_OK) status = tune_progressive(tuner, err);
    if (status == BSW_OK) status = tune_gpu_lists(tuner, err);
    if (status == BSW_OK) status = tune_screen(tuner, err);
    if (status == BSW_OK) status = tune_list_pairs(tuner, err);
    bsw_facts_close(facts);
    return status;
}
