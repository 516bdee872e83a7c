// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/plan_lists.h"

#include <math.h>

#include "common/files/list_order.h"
#include "shard/lists/list_cells.h"
#include "shard/lists/list_training.h"

// ---- places ----

enum { SHAPE = 5 };

// Bundles of a list whose average length is `mean` rows.
static double expected_bundles(double mean)
{
    if (mean > 1000) return mean / BSW_BUNDLE_ROWS + 0.5;
    double chance = 1, share = mean / (SHAPE + mean), sum = 0, bundles = 0;
    for (int i = 0; i < SHAPE; i++) chance *= 1 - share;
    // chance: of n rows
    for (size_t n = 0; sum < 1 - 1e-9 && n < 64 * mean + 256; n++) {
        sum += chance;
        bundles += chance * (double)bsw_num_bundles(n);
        chance *= (double)(n + SHAPE) / (double)(n + 1) * share;
    }
    return bundles;
}

uint64_t bsw_plan_places(uint64_t num_rows, uint32_t num_lists)
{
    if (num_lists == 0) return 0;
    double bundles = num_lists * expected_bundles((double)num_rows / num_lists);
    uint64_t least = bsw_num_bundles((size_t)num_rows), expected = (uint64_t)(bundles + 0.5);
    return (expected > least ? expected : least) * BSW_BUNDLE_ROWS;
}

// ---- making ----

static uint64_t orders_bytes(const struct bsw_manifest *manifest)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < manifest->num_shards; s++)
        bytes += bsw_list_order_memory_bytes(manifest->lists.count, manifest->shards[s].num_rows,
                                             manifest->shards[s].num_places);
    return bytes;
}

// Multiply-adds and bytes of a training, as list_training.h and list_cells.h have them.
static double training_products(double lists, double sample, double dims)
{
    double cells = floor(sqrt(lists)), few = cells * BSW_CELL_SAMPLE_ROWS;
    if (lists <= BSW_FLAT_LISTS) return BSW_LIST_ROUNDS * sample * lists * dims;
    if (few > sample) few = sample;
    return (BSW_LIST_ROUNDS * (few * cells + sample * lists / cells) + sample * cells) * dims;
}

static uint64_t training_bytes(uint64_t lists, uint64_t sample, uint64_t dims, uint64_t row_bytes,
                               uint64_t num_ranks)
{
    uint64_t most = lists > BSW_FLAT_LISTS ? (uint64_t)sqrt((double)lists) : lists;
    return (sample / num_ranks + 1) * (row_bytes + (most < lists ? 36 : 28)) + most * dims * 22;
}

void bsw_plan_lists_make(const struct bsw_plan_settings *settings,
                         const struct bsw_plan_index *index, uint64_t num_ranks, uint64_t threads,
                         double rate, struct bsw_plan_lists *out)
{
    uint64_t count = index->manifest.lists.count, rows = settings->rows,
             sample = count * BSW_LIST_SAMPLE_ROWS, dims = settings->dims;
    if (sample > rows) sample = rows;
    size_t row_bytes = bsw_plan_vector_bytes(settings);
    if (row_bytes == 0) row_bytes = dims * sizeof(float);
    double a_row = (double)count * (double)dims, a_second = rate * (double)(num_ranks * threads);
    *out = (struct bsw_plan_lists){
        .count = (uint32_t)count,
        .rows_a_list = (double)rows / (double)count,
        .sample_rows = sample,
        .sample_bytes = training_bytes(count, sample, dims, row_bytes, num_ranks),
        .rows_bytes = rows * sizeof(uint32_t),
        .orders_bytes = orders_bytes(&index->manifest),
        .rounds = BSW_LIST_ROUNDS,
        .training_products = training_products((double)count, (double)sample, (double)dims),
        .assigning_products = a_row * (double)rows,
        .rate = rate,
        .ranks = num_ranks,
        .threads = threads};
    out->training_seconds = out->training_products / a_second;
    out->assigning_seconds = out->assigning_products / a_second;
}

// ---- what is told ----

static void format_seconds(double seconds, char *text, size_t capacity)
{
    if (seconds < 120)
        snprintf(text, capacity, "%.3g s", seconds);
    else if (seconds < 7200)
        snprintf(text, capacity, "%.3g min", seconds / 60);
    else if (seconds < 172800)
        snprintf(text, capacity, "%.3g h", seconds / 3600);
    else
        snprintf(text, capacity, "%.4g days", seconds / 86400);
}

static void tell_step(struct bsw_facts *facts, const char *name, const char *products_name,
                      double products, const char *seconds_name, double seconds)
{
    char text[32];
    format_seconds(seconds, text, sizeof text);
    bsw_facts_say(facts, "  %-22s", name);
    bsw_fact_real(facts, products_name, products, " %12.3g");
    bsw_fact_real(facts, seconds_name, seconds, NULL);
    bsw_facts_say(facts, " %12s\n", text);
}

void bsw_plan_lists_facts(struct bsw_facts *facts, const struct bsw_plan_lists *lists)
{
    bsw_facts_open_object(facts, "lists");
    bsw_fact_integer(facts, "count", lists->count, "\n%d lists");
    bsw_fact_real(facts, "rows_a_list", lists->rows_a_list, " of %.4g rows on average");
    bsw_fact_integer(facts, "sample_rows", lists->sample_rows,
                     "; a sample of %d rows to make them");
    bsw_facts_say(facts, "\n\n  %-22s %12s\n", "encode, lists", "a rank");
    bsw_fact_bytes(facts, "sample_bytes", lists->sample_bytes, "  sample                 %12s\n");
    bsw_fact_bytes(facts, "rows_bytes", lists->rows_bytes, "  the list of each row   %12s\n");
    bsw_fact_bytes(facts, "orders_bytes", lists->orders_bytes, "  orders, on rank 0      %12s\n");
    bsw_facts_say(facts, "\n  %-22s %12s %12s\n", "", "products", "time");
    bsw_fact_integer(facts, "rounds", lists->rounds, NULL);
    tell_step(facts, "training, all rounds", "training_products", lists->training_products,
              "training_seconds", lists->training_seconds);
    tell_step(facts, "lists of all rows", "assigning_products", lists->assigning_products,
              "assigning_seconds", lists->assigning_seconds);
    bsw_fact_real(facts, "products_per_second", lists->rate,
                  "a model: %.4g multiply-adds of bytes a second and thread");
    bsw_fact_integer(facts, "ranks", lists->ranks, ", %d ranks");
    bsw_fact_integer(facts, "threads", lists->threads,
                     " x %d threads (--list-rate, "
                     "--rank-threads)\n");
    bsw_facts_close(facts);
}
