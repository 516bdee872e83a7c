// Not a measurement: at full size both scans must find the same candidates, and each candidate must
// have the score that plain code computes on the host. Sizes beyond 2^32 bytes are met nowhere
// else.
#include <string.h>

#include "bench/device/device_bench.h"
#include "common/codes/result_order.h"

static enum bsw_status check_lists(const struct device_bench *bench,
                                   const struct device_bench_shape *shape,
                                   const struct device_bench_pass *pass, struct bsw_error *err)
{
    const struct bsw_candidate_lists *lists = device_bench_pass_lists(pass);
    const struct device_bench_queries *queries = device_bench_pass_queries(pass);
    for (size_t q = 0; q < lists->num_queries; q++) {
        size_t count;
        const uint64_t *items = bsw_candidate_list(lists, q, &count);
        if (count != lists->keep) {
            return bsw_fail(err, BSW_ERROR_SELF_CHECK, "query %zu: %zu candidates instead of %zu",
                            q, count, lists->keep);
        }
        for (size_t i = 0; i < count; i++) {
            uint32_t row = bsw_candidate_row(items[i]), score;
            BSW_TRY(device_bench_score(&bench->codes.codes.layout, shape->has_affine, queries, q,
                                       row, &score, err));
            if (score != bsw_candidate_score(items[i]) || (i > 0 && items[i] >= items[i - 1])) {
                return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                                "query %zu, place %zu, row %u: score %08x, the host has %08x", q, i,
                                row, bsw_candidate_score(items[i]), score);
            }
        }
    }
    return BSW_OK;
}

static enum bsw_status compare(const struct device_bench_pass *planes,
                               const struct device_bench_pass *matrix, struct bsw_error *err)
{
    const struct bsw_candidate_lists *a = device_bench_pass_lists(planes);
    const struct bsw_candidate_lists *b = device_bench_pass_lists(matrix);
    if (memcmp(a->items.data, b->items.data, a->num_queries * a->keep * sizeof(uint64_t)) == 0)
        return BSW_OK;
    return bsw_fail(err, BSW_ERROR_SELF_CHECK, "plane scan and matrix scan found other candidates");
}

static enum bsw_status run_pass(struct device_bench *bench, const struct device_bench_shape *shape,
                                struct device_bench_pass **pass, struct bsw_error *err)
{
    BSW_TRY(device_bench_pass_open(bench, shape, bench->codes.num_rows, pass, err));
    BSW_TRY(device_bench_pass_run(*pass, err));
    return check_lists(bench, shape, *pass, err);
}

enum bsw_status device_bench_agree(struct device_bench *bench, const struct device_bench_case *c,
                                   struct bsw_error *err)
{
    struct device_bench_shape shapes[2] = {c->shape, c->shape};
    struct device_bench_pass *passes[2] = {NULL, NULL};
    shapes[0].kind = BSW_SCAN_PLANES;
    shapes[1].kind = BSW_SCAN_MATRIX;
    BSW_TRY(device_bench_codes_make(bench, c->shape.layout, bench->settings->rows, err));
    enum bsw_status status = run_pass(bench, &shapes[0], &passes[0], err);
    if (status == BSW_OK) status = run_pass(bench, &shapes[1], &passes[1], err);
    if (status == BSW_OK) status = compare(passes[0], passes[1], err);
    for (int i = 0; i < 2; i++) device_bench_pass_close(&passes[i]);
    BSW_TRY(status);
    const struct device_record record = {.name = c->name,
                                         .rows = bench->codes.num_rows,
                                         .queries = device_bench_num_queries(bench, &c->shape),
                                         .keep = c->shape.keep};
    device_bench_report(bench, &record);
    return BSW_OK;
}
