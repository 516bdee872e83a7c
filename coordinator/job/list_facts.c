// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/list_facts.h"

#include <stdlib.h>

#include "common/files/list_order.h"

// ---- sizes ----

static int compare_rows(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void bsw_list_sizes_of(const struct bsw_manifest *manifest, uint32_t *rows,
                       struct bsw_list_sizes *out)
{
    uint32_t count = manifest->lists.count;
    *out = (struct bsw_list_sizes){.count = count};
    if (count == 0) return;
    qsort(rows, count, sizeof *rows, compare_rows);
    out->smallest = rows[0];
    out->median = rows[count / 2];
    out->largest = rows[count - 1];
    out->centroids_bytes = (uint64_t)count * bsw_manifest_row_dims(manifest) * sizeof(float);
    for (uint32_t s = 0; s < manifest->num_shards; s++)
        out->file_bytes += bsw_list_order_file_bytes(count, manifest->shards[s].num_places);
}

static enum bsw_status add_rows(const struct bsw_manifest *manifest, const char *folder,
                                uint32_t *rows, struct bsw_error *err)
{
    for (uint32_t s = 0; s < manifest->num_shards; s++) {
        struct bsw_list_order order;
        BSW_TRY(bsw_list_order_read(manifest, folder, s, &order, err));
        for (uint32_t l = 0; l < order.num_lists; l++) rows[l] += bsw_list_num_rows(&order, l);
        bsw_list_order_deinit(&order);
    }
    return BSW_OK;
}

enum bsw_status bsw_list_sizes_read(const struct bsw_manifest *manifest, const char *folder,
                                    struct bsw_list_sizes *out, struct bsw_error *err)
{
    uint32_t *rows;
    *out = (struct bsw_list_sizes){0};
    if (manifest->lists.count == 0) return BSW_OK;
    BSW_TRY(bsw_allocate_zero(&rows, manifest->lists.count, sizeof *rows, "lists", err));
    enum bsw_status status = add_rows(manifest, folder, rows, err);
    if (status == BSW_OK) bsw_list_sizes_of(manifest, rows, out);
    bsw_free(&rows);
    return status;
}

// ---- what is told ----

void bsw_list_sizes_facts(struct bsw_facts *facts, const struct bsw_list_sizes *sizes)
{
    bsw_fact_integer(facts, "lists", sizes->count, "%d lists");
    bsw_fact_integer(facts, "smallest_list_rows", sizes->smallest, " of %d");
    bsw_fact_integer(facts, "largest_list_rows", sizes->largest, " to %d rows");
    bsw_fact_integer(facts, "median_list_rows", sizes->median, ", median %d");
    bsw_fact_bytes(facts, "centroids_bytes", sizes->centroids_bytes, "; centroids %s");
    bsw_fact_bytes(facts, "lists_files_bytes", sizes->file_bytes, ", .lists files %s");
}

void bsw_residual_facts(struct bsw_facts *facts, const char *begin, int is_residual,
                        double residual_recall, double plain_recall)
{
    int is_measured = residual_recall > 0 || plain_recall > 0;
    bsw_fact_flag(facts, "residual", is_residual, NULL);
    if (!is_residual && !is_measured) return;
    bsw_facts_say(facts, "%s%s", begin, is_residual ? "yes" : "no");
    if (is_measured) {
        bsw_fact_real(facts, "residual_recall", residual_recall,
                      ", recall of the sample %.3f with");
        bsw_fact_real(facts, "plain_recall", plain_recall, ", %.3f without");
    }
    bsw_facts_say(facts, "\n");
}

void bsw_list_facts(struct bsw_facts *facts, const struct bsw_manifest *manifest,
                    const char *folder)
{
    struct bsw_list_sizes sizes;
    struct bsw_error err;
    if (manifest->lists.count == 0) {
        bsw_fact_integer(facts, "lists", 0, NULL);
        return;
    }
    bsw_facts_say(facts, "  lists     ");
    if (bsw_list_sizes_read(manifest, folder, &sizes, &err) == BSW_OK) {
        bsw_list_sizes_facts(facts, &sizes);
    } else {
        bsw_fact_integer(facts, "lists", manifest->lists.count, "%d lists");
        bsw_fact_text(facts, "lists_note", err.message, "; rows unknown: %s");
    }
    bsw_facts_say(facts, "\n");
    bsw_residual_facts(facts, "  residuals ", manifest->lists.is_residual,
                       manifest->lists.residual_recall, manifest->lists.plain_recall);
}
