// SPDX-License-Identifier: Apache-2.0
// All cases. One that follows another with the same layout uses its codes.
#include "bench/device/device_bench.h"

#define SWEPT .is_swept = 1
// One batch of so many queries, of so many bits a dimension, of which so many candidates are kept.
#define BATCH(bits, num, kept) BATCHES(bits, num, num, kept)
#define BATCHES(bits, num, each, kept) \
    .query_bits = (bits), .queries = (num), .batch = (each), .keep = (kept)
// Scales and biases, or integer keys.
#define FLOATS(codes)   .layout = (codes), .has_affine = 1
#define INTEGERS(codes) .layout = (codes)
#define BY(scan)        .kind = BSW_SCAN_##scan
// A kernel alone, of the matrix scan.
#define ALONE(family, num) \
    FLOATS("96x3"), BY(MATRIX), BATCH(4, num, 100), .kernel = DEVICE_BENCH_##family
#define HITS(num, hits) FLOATS("96x3"), BY(MATRIX), BATCH(4, num, hits)
#define STEP(name, num, list, kept) \
    .step = DEVICE_BENCH_##name, .queries = (num), .items = (list), .keep = (kept)
// 48 parts of 8 bits, 10^7 rows at most.
#define TABLES(numbers)                                                             \
    INTEGERS("384x1"), BATCH(1, 1000, 100), .most_rows = 10000000, .table_bits = 8, \
                                            .table = BSW_TABLE_##numbers
// So many queries over at most 10^7 rows of a saq code of 128 dimensions, lists of 1,216 rows.
#define OVER_LISTS(num)                                                                     \
    FLOATS("32x5,32x3,64x2"), BATCH(6, num, 50), .most_rows = 10000000, .list_bundles = 38, \
                                                 .probe = 32
// RBE's: 256 rows a thread, a queue of one row each, four GPUs.
#define RBEGIR(bits) \
    FLOATS("64x2"), BY(PLANES), BATCH(bits, 1, 1000), .queue = {256, 1}, .num_parts = 4
// Codec raw, 128 dimensions.
#define BYTES(num)                                                               \
    {                                                                            \
        "raw-" #num, #num " queries over rows of bytes (raw), the kernel alone", \
            device_bench_bytes,                                                  \
        {                                                                        \
            INTEGERS("128x8"), .queries = (num), .batch = (num)                  \
        }                                                                        \
    }

const struct device_bench_case device_bench_cases[] = {
    {"agree",
     "both scans find the same, the host agrees on every score",
     device_bench_agree,
     {FLOATS("96x3"), BATCH(4, 4, 1000)}},
    {"agree-integer",
     "the same with integer keys",
     device_bench_agree,
     {INTEGERS("96x3"), BATCH(4, 4, 1000)}},
    {"planes-1-integer",
     "one query over the planes, integer keys (xfbq)",
     device_bench_scan,
     {INTEGERS("96x3"), SWEPT, BY(PLANES), BATCH(4, 1, 1000)}},
    {"planes-1",
     "one query over the planes, scales and biases (saq)",
     device_bench_scan,
     {FLOATS("96x3"), SWEPT, BY(PLANES), BATCH(4, 1, 1000)}},
    {"planes-2",
     "two: where the families cross",
     device_bench_scan,
     {FLOATS("96x3"), BY(PLANES), BATCH(4, 2, 1000)}},
    {"matrix-1",
     "one query on int8 units",
     device_bench_scan,
     {FLOATS("96x3"), SWEPT, BY(MATRIX), BATCH(4, 1, 1000)}},
    {"matrix-2", "two", device_bench_scan, {FLOATS("96x3"), BY(MATRIX), BATCH(4, 2, 1000)}},
    {"matrix-8",
     "8 queries a pass",
     device_bench_scan,
     {FLOATS("96x3"), SWEPT, BY(MATRIX), BATCH(4, 8, 100)}},
    {"matrix-64", "64", device_bench_scan, {FLOATS("96x3"), SWEPT, BY(MATRIX), BATCH(4, 64, 100)}},
    {"matrix-256",
     "256",
     device_bench_scan,
     {FLOATS("96x3"), SWEPT, BY(MATRIX), BATCH(4, 256, 100)}},
    {"kernels-32",
     "32 queries, each kernel of the matrix scan alone",
     device_bench_kernel_alone,
     {ALONE(ROW, 32)}},
    {"kernels-64", "64", device_bench_kernel_alone, {ALONE(ROW, 64)}},
    {"kernels-128", "128", device_bench_kernel_alone, {ALONE(ROW, 128)}},
    {"kernels-256", "256", device_bench_kernel_alone, {ALONE(ROW, 256)}},
    {"kernels-384", "384", device_bench_kernel_alone, {ALONE(ROW, 384)}},
    {"hits-64-100", "64, 100 rows each reach the limit", device_bench_hits, {HITS(64, 100)}},
    {"hits-64-10000", "10,000 each", device_bench_hits, {HITS(64, 10000)}},
    {"hits-256-100", "256 queries, 100 rows each", device_bench_hits, {HITS(256, 100)}},
    {"hits-256-1000", "1,000 each", device_bench_hits, {HITS(256, 1000)}},
    {"hits-256-10000", "10,000 each", device_bench_hits, {HITS(256, 10000)}},
    {"hits-384-1000", "384 queries, 1,000 each", device_bench_hits, {HITS(384, 1000)}},
    {"lists-mma-16",
     "16 queries, lists of 48 bundles, mma",
     device_bench_kernel_alone,
     {ALONE(MMA, 16), .list_bundles = 48}},
    {"lists-hopper-16",
     "the same by wgmma",
     device_bench_kernel_alone,
     {ALONE(HOPPER, 16), .list_bundles = 48}},
    {"lists-mma-64", "64 queries", device_bench_kernel_alone, {ALONE(MMA, 64), .list_bundles = 48}},
    {"lists-hopper-64",
     "64, wgmma",
     device_bench_kernel_alone,
     {ALONE(HOPPER, 64), .list_bundles = 48}},
    {"lists-mma-256",
     "256 queries",
     device_bench_kernel_alone,
     {ALONE(MMA, 256), .list_bundles = 48}},
    {"lists-hopper-256",
     "256, wgmma",
     device_bench_kernel_alone,
     {ALONE(HOPPER, 256), .list_bundles = 48}},
    {"short-mma-256",
     "256, lists of 5 bundles",
     device_bench_kernel_alone,
     {ALONE(MMA, 256), .list_bundles = 5}},
    {"short-hopper-256",
     "the same by wgmma",
     device_bench_kernel_alone,
     {ALONE(HOPPER, 256), .list_bundles = 5}},
    {"batches",
     "10,000 queries in batches of 1000",
     device_bench_scan,
     {FLOATS("96x3"), BY(MATRIX), BATCHES(6, 10000, 1000, 100)}},
    {"stream-8",
     "8 queries, most codes in host memory",
     device_bench_stream,
     {FLOATS("96x3"), BY(MATRIX), BATCH(4, 8, 100)}},
    {"saq-96-1",
     "one query of 6 bits over what saq makes of 96 dims",
     device_bench_scan,
     {FLOATS("32x5,64x2"), SWEPT, BATCH(6, 1, 100)}},
    {"saq-96-8", "8 queries", device_bench_scan, {FLOATS("32x5,64x2"), BATCH(6, 8, 100)}},
    {"saq-96-1000", "1000", device_bench_scan, {FLOATS("32x5,64x2"), BATCH(6, 1000, 100)}},
    {"saq-768-1",
     "one over 768 dims",
     device_bench_scan,
     {FLOATS("32x7,32x5,128x4,256x3,320x2"), BATCH(6, 1, 100)}},
    {"saq-768-1000",
     "1000",
     device_bench_scan,
     {FLOATS("32x7,32x5,128x4,256x3,320x2"), BATCH(6, 1000, 100)}},
    {"saq-1536-1",
     "one over 1,536 dims",
     device_bench_scan,
     {FLOATS("32x8,32x6,96x5,256x4,480x3,576x2,64x1"), BATCH(6, 1, 100)}},
    {"saq-1536-1000",
     "1000",
     device_bench_scan,
     {FLOATS("32x8,32x6,96x5,256x4,480x3,576x2,64x1"), BATCH(6, 1000, 100)}},
    {"lists-10k",
     "10,000 queries over lists, phase by phase",
     device_bench_lists,
     {OVER_LISTS(10000)}},
    {"lists-1k", "1000", device_bench_lists, {OVER_LISTS(1000)}},
    {"lists-1", "one", device_bench_lists, {OVER_LISTS(1)}},
    {"gpu-lists-10k",
     "10,000 queries, and the device makes work items",
     device_bench_lists,
     {OVER_LISTS(10000), .has_gpu_lists = 1}},
    {"gpu-lists-1k", "1000", device_bench_lists, {OVER_LISTS(1000), .has_gpu_lists = 1}},
    {"table-float32",
     "product codes, 48 x 8 bits, by tables of float32",
     device_bench_tables,
     {TABLES(FLOAT32)}},
    {"table-float16", "float16", device_bench_tables, {TABLES(FLOAT16)}},
    {"table-e5m3", "floats of 8 bits, 5 of exponent", device_bench_tables, {TABLES(E5M3)}},
    {"table-e4m4", "4 of exponent", device_bench_tables, {TABLES(E4M4)}},
    {"progressive",
     "1000 queries, the full scan and the progressive one",
     device_bench_progressive,
     {FLOATS("32x4,32x2,64x1"), BY(MATRIX), BATCH(6, 1000, 100), .stage_dims = 64}},
    {"rbegir",
     "rbeGIR's case: norms, queues, four parts, merge; queries of 3 bits",
     device_bench_rbegir,
     {RBEGIR(3)}},
    {"rbegir-2", "the same, queries of 2 bits", device_bench_rbegir, {RBEGIR(2)}},
    {"select-rank",
     "selection alone: limits by rank, of samples of 16,384 rows",
     device_bench_select,
     {STEP(RANK, 256, 16384, 9)}},
    {"select-limit",
     "the 100th best of 16,384",
     device_bench_select,
     {STEP(LIMIT, 256, 16384, 100)}},
    {"select-cut", "cut of 16,384 to 100", device_bench_select, {STEP(CUT, 256, 16384, 100)}},
    {"select-sort", "sort of 1024", device_bench_select, {STEP(SORT, 256, 1024, 1)}},
    {"select-last",
     "last step: the best 100 of 1024 in order",
     device_bench_select,
     {STEP(LAST, 256, 1024, 100)}},
    {"select-last-1000",
     "the best 1000 of 4096",
     device_bench_select,
     {STEP(LAST, 256, 4096, 1000)}},
    {"select-last-1",
     "one query: the best 100 of 1024",
     device_bench_select,
     {STEP(LAST, 1, 1024, 100)}},
    {"encode-xfbq", "float32 rows to xfbq codes", device_bench_encode, {INTEGERS("96x3")}},
    {"encode-saq",
     "float32 rows to saq codes: center, project, quantize",
     device_bench_encode,
     {FLOATS("128x3")}},
    {"refine", "exact values of random pairs, uint8", device_bench_refine, {INTEGERS("")}},
    {"exact-u8", "of all rows against 1000 queries, uint8", device_bench_exact_u8, {INTEGERS("")}},
    {"exact-float", "the same, float32", device_bench_exact_float, {INTEGERS("")}},
    {"exact-screen",
     "float32, screened by products of halves",
     device_bench_exact_screen,
     {INTEGERS("")}},
    {"exact-hits",
     "the same, one row in 1000 reaches a limit",
     device_bench_exact_screen_hits,
     {INTEGERS("")}},
    {"assign", "65,536 rows of bytes to 8,192 centroids", device_bench_assign, {INTEGERS("")}},
    BYTES(1),
    BYTES(8),
    BYTES(64),
    BYTES(1000),
};

const size_t device_bench_num_cases = sizeof device_bench_cases / sizeof device_bench_cases[0];
