#include "kernelcheck.h"

#include <string.h>

#include "kernels/plane_scan/plane_scan.h"

enum { RANDOM, ZEROS, ONES, ALTERNATING, DENSE_PADDING, NUM_FILLS };

static const size_t bundle_counts[] = {1, 2, 3, 65};
#define NUM_BUNDLE_COUNTS (sizeof bundle_counts / sizeof bundle_counts[0])

static struct bsw_segment make_segment(uint32_t dims, uint32_t bits)
{
    return (struct bsw_segment){.dims = dims, .bits = bits, .words = (dims + 31) / 32};
}

static uint32_t fill_word(const struct kernelcheck *check, int fill, uint64_t stream, size_t at)
{
    switch (fill) {
    case ZEROS:
        return 0;
    case ONES:
        return 0xffffffffu;
    case ALTERNATING:
        return at % 2 ? 0xaaaaaaaau : 0x0f0ff0f0u;
    default:
        return (uint32_t)kernelcheck_random(check, stream, at);
    }
}

// planes: [num_planes][words][lanes]. Padding is 0, but for DENSE_PADDING: no kernel may depend on
// it in another way than the reference does.
static void fill_planes(const struct kernelcheck *check, int fill, uint64_t stream, uint32_t dims,
                        size_t num_planes, size_t lanes, uint32_t *planes)
{
    size_t words = (dims + 31) / 32;
    for (size_t at = 0; at < num_planes * words * lanes; at++) {
        int is_last = at / lanes % words == words - 1;
        uint32_t valid = is_last && dims % 32 != 0 ? (1u << (dims % 32)) - 1u : 0xffffffffu;
        if (fill == DENSE_PADDING) valid = 0xffffffffu;
        planes[at] = fill_word(check, fill, stream, at) & valid;
    }
}

static void check_case(struct kernelcheck *check, struct bsw_segment segment, size_t num_bundles,
                       unsigned query_bits, int accumulate, int fill)
{
    const struct bsw_plane_scan_table *table = bsw_plane_scan_table_get(check->level);
    size_t dots_bytes = num_bundles * BSW_BUNDLE_ROWS * sizeof(int32_t);
    size_t codes_words = bsw_segment_bundle_words(&segment) * num_bundles;
    uint32_t *codes = kernelcheck_allocate(codes_words * sizeof *codes);
    uint32_t *query = kernelcheck_allocate(query_bits * segment.words * sizeof *query);
    int32_t *expected = kernelcheck_allocate(dots_bytes), *dots = kernelcheck_allocate(dots_bytes);
    int query_fill = fill == ONES ? ZEROS : fill == ZEROS ? ONES : fill; // the largest distance
    fill_planes(check, fill, 1, segment.dims, num_bundles * segment.bits, 32, codes);
    fill_planes(check, query_fill, 2, segment.dims, query_bits, 1, query);
    for (size_t i = 0; i < num_bundles * BSW_BUNDLE_ROWS; i++) {
        expected[i] = (int32_t)(kernelcheck_random(check, 3, i) % 2000001) - 1000000;
    }
    memcpy(dots, expected, dots_bytes);
    bsw_plane_scan_reference.dots(&segment, bsw_all_words(&segment), codes, num_bundles, query,
                                  query_bits, accumulate, expected);
    table->dots(&segment, bsw_all_words(&segment), codes, num_bundles, query, query_bits,
                accumulate, dots);
    kernelcheck_compare(check, "dots", expected, dots, dots_bytes,
                        "%u dims, %u x %u bits, %zu bundles, accumulate %d, fill %d", segment.dims,
                        query_bits, segment.bits, num_bundles, accumulate, fill);
    kernelcheck_free(dots);
    kernelcheck_free(expected);
    kernelcheck_free(query);
    kernelcheck_free(codes);
}

// Every pair of bits; bundle counts, fills and accumulation take turns.
static void check_dims(struct kernelcheck *check, uint32_t dims)
{
    size_t turn = 0;
    for (uint32_t bits = 1; bits <= BSW_MAX_CODE_BITS; bits++) {
        for (unsigned query_bits = 1; query_bits <= BSW_MAX_QUERY_BITS; query_bits++) {
            struct bsw_segment segment = make_segment(dims, bits);
            for (int fill = 0; fill < NUM_FILLS; fill++, turn++) {
                check_case(check, segment, bundle_counts[turn % 3], query_bits, turn % 2, fill);
            }
            check_case(check, segment, bundle_counts[NUM_BUNDLE_COUNTS - 1], query_bits, 0, RANDOM);
        }
    }
}

// More words than a kernel may keep tables for at a time.
static void check_long_rows(struct kernelcheck *check)
{
    static const uint32_t dims[] = {1024, 1025, 2080};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        for (int fill = 0; fill < NUM_FILLS; fill++) {
            check_case(check, make_segment(dims[i], 3), 2, 6, fill % 2, fill);
            check_case(check, make_segment(dims[i], 8), 3, 7, fill % 2, fill);
        }
    }
}

struct bench_case {
    const struct bsw_plane_scan_table *table;
    struct bsw_segment segment;
    size_t num_bundles;
    unsigned query_bits;
    const uint32_t *codes, *query;
    int32_t *dots;
};

static void run_table(const struct bench_case *bench, const struct bsw_plane_scan_table *table)
{
    table->dots(&bench->segment, bsw_all_words(&bench->segment), bench->codes, bench->num_bundles,
                bench->query, bench->query_bits, 0, bench->dots);
}

static void run_reference(void *context)
{
    run_table(context, &bsw_plane_scan_reference);
}

static void run_candidate(void *context)
{
    const struct bench_case *bench = context;
    run_table(bench, bench->table);
}

static void time_case(struct kernelcheck *check, uint32_t dims, uint32_t bits, unsigned query_bits,
                      const char *shape)
{
    struct bench_case bench = {.table = bsw_plane_scan_table_get(check->level),
                               .segment = make_segment(dims, bits),
                               .num_bundles = 64,
                               .query_bits = query_bits};
    size_t code_words = bsw_segment_bundle_words(&bench.segment) * bench.num_bundles;
    uint32_t *codes = kernelcheck_allocate(code_words * sizeof *codes);
    uint32_t *query = kernelcheck_allocate(query_bits * bench.segment.words * sizeof *query);
    fill_planes(check, RANDOM, 1, dims, bench.num_bundles * bits, 32, codes);
    fill_planes(check, RANDOM, 2, dims, query_bits, 1, query);
    bench.codes = codes;
    bench.query = query;
    bench.dots = kernelcheck_allocate(bench.num_bundles * BSW_BUNDLE_ROWS * sizeof(int32_t));
    kernelcheck_time(check, "dots", shape, run_reference, run_candidate, &bench,
                     (double)bench.num_bundles * BSW_BUNDLE_ROWS, "documents");
    kernelcheck_free(bench.dots);
    kernelcheck_free(query);
    kernelcheck_free(codes);
}

void check_plane_scan(struct kernelcheck *check)
{
    for (size_t i = 0; i < kernelcheck_num_dims; i++) check_dims(check, kernelcheck_dims[i]);
    check_long_rows(check);
    if (!check->bench) return;
    time_case(check, 96, 1, 1, "96-d, 1 x 1 bits");
    time_case(check, 96, 3, 4, "96-d, 3 x 4 bits");
    time_case(check, 96, 3, 6, "96-d, 3 x 6 bits");
    time_case(check, 96, 3, 7, "96-d, 3 x 7 bits");
    time_case(check, 1000, 3, 6, "1000-d, 3 x 6 bits");
}
