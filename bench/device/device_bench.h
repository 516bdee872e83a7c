// SPDX-License-Identifier: Apache-2.0
// What the parts of `bitsweep-bench device` share: the machine's limits, codes made on the device,
// timed work and the records that come of it.
//
// A case is a row of the table in device_bench_cases.c with a function in a device_bench_*.c; it
// measures, compares what came out with plain code on the host, and hands records to
// device_bench_report. Kernels that only this bench needs are in the device_bench_*.cu, built by
// nvcc or for the emulator of tests/emulation.
#ifndef BITSWEEP_BENCH_DEVICE_BENCH_H
#define BITSWEEP_BENCH_DEVICE_BENCH_H

#include <stddef.h>
#include <stdint.h>

#include "bench/report/bench_report.h"
#include "common/base/memory.h"
#include "common/device/device.h"
#include "kernels/device_scan/device_scan.h"
#include "kernels/device_scan/scan_kernels.h"
#include "shard/host/shard_scan.h"

BSW_C_BEGIN

#define DEVICE_BENCH_MOST_REPEATS 99

struct device_bench_settings {
    struct bsw_common_options common;
    struct bsw_bench_options bench; // of the report; nothing of it is asked
    uint64_t rows;                  // of the largest corpus
    uint64_t queries;               // in batches, and at most in a pass
    uint64_t repeat;                // 1 .. DEVICE_BENCH_MOST_REPEATS
    uint64_t bytes;                 // of buffers that limits are measured with
    uint64_t host_bytes;            // of codes in host memory, at most
    uint64_t steps;                 // of the loops that keep the units busy
    uint64_t product;               // rows and columns of the large product
    uint64_t gpu;
    double seconds; // no further repetition of a case's measurement after these
    const char *pattern, *save_path, *cublas_path;
    int is_list;
};

// Rates of the machine a second, measured before anything else; 0: not measured.
enum device_limit {
    DEVICE_LIMIT_READ,     // bytes read from device memory
    DEVICE_LIMIT_COPY,     // bytes copied from pinned host memory
    DEVICE_LIMIT_CUBLAS,   // int8 multiplications and additions of a large product by cuBLAS
    DEVICE_LIMIT_MMA,      // the same of mma.sync from registers
    DEVICE_LIMIT_POPCOUNT, // of 32-bit words
    DEVICE_LIMIT_FLOAT32,  // multiplications and additions of fused float32 multiply-adds
    DEVICE_LIMIT_FLOAT64,  // the same of float64
    DEVICE_NUM_LIMITS
};

struct device_times {
    double median, least, most; // seconds
    size_t count;
};

typedef struct CUevent_st *device_bench_event; // what cudaEvent_t is

// Codes on the device; a case uses as many of the first bundles as it wants.
struct device_bench_codes {
    struct bsw_device_buffer memory;
    struct bsw_device_codes codes; // with scales and biases
    uint64_t num_rows;
    char layout_text[64];
    double tail_unit; // of codes with tails: in units of a row's scale
};

struct device_bench {
    const struct device_bench_settings *settings;
    struct bsw_bench_report report;
    bsw_device *device;
    double limits[DEVICE_NUM_LIMITS];
    struct bsw_device_buffer flush; // is written between repetitions, so that caches are cold
    device_bench_event events[2];
    struct device_bench_codes codes; // of the last case that asked for some
};

// Which kernel alone: as the tuning says, of lists mma or wgmma, or a row of scan_kernels.h.
enum device_bench_kernel {
    DEVICE_BENCH_BY_KIND,
    DEVICE_BENCH_MMA,
    DEVICE_BENCH_HOPPER,
    DEVICE_BENCH_ROW
};
// Steps of kernels/gpu_select.
enum device_bench_step {
    DEVICE_BENCH_RANK,
    DEVICE_BENCH_LIMIT,
    DEVICE_BENCH_CUT,
    DEVICE_BENCH_SORT,
    DEVICE_BENCH_LAST
};

// What a case measures, and with what.
struct device_bench_shape {
    const char *layout; // "96x3", "32x5,64x2"
    int has_affine;     // float keys; else integers
    int is_swept;       // also with a tenth and a hundredth of the rows
    enum bsw_scan_kind kind;
    uint32_t query_bits, queries, batch; // queries of one measurement, of one call
    size_t keep;
    uint32_t stage_dims;             // of codes with a spectrum, which have tails; else 0
    enum device_bench_kernel kernel; // of cases that time the kernel alone
    enum bsw_scan_number row;        // of DEVICE_BENCH_ROW
    uint64_t most_rows;              // 0: as many as there are
    uint32_t list_bundles;           // of each list; 0: there are none
    int has_gpu_lists;               // the device makes work items, whatever its tuning says
    uint32_t probe;                  // lists that a query looks at; 0: all queries at all
    uint32_t table_bits;             // of a part of product codes, which the layout's bits are
    enum bsw_table_type table;       // of their queries
    struct bsw_queue_options queue;  // rbeGIR's selection; {0}: thresholds
    uint32_t num_parts;              // shards that the rows are cut into
    size_t items;                    // of a list of candidates, where one is given
    enum device_bench_step step;     // what is done with it
};

struct device_bench_case;
typedef enum bsw_status device_bench_run(struct device_bench *bench,
                                         const struct device_bench_case *this_case,
                                         struct bsw_error *err);

struct device_bench_case {
    const char *name, *what;
    device_bench_run *run;
    struct device_bench_shape shape;
};

extern const struct device_bench_case device_bench_cases[];
extern const size_t device_bench_num_cases;

// kernel_alone: without selection. encode: a layout alone is the shape; with has_affine saq, else
// xfbq; coders: sq8, else pq, of 96 dims. refine and exact have no shape.
device_bench_run device_bench_scan, device_bench_agree, device_bench_stream,
    device_bench_kernel_alone, device_bench_hits, device_bench_select, device_bench_tables,
    device_bench_lists, device_bench_rbegir, device_bench_progressive, device_bench_encode,
    device_bench_coders, device_bench_refine, device_bench_exact_u8, device_bench_exact_float,
    device_bench_exact_screen, device_bench_exact_screen_hits, device_bench_assign,
    device_bench_bytes;

// For bench tune, medians: of a batch over lists as a whole; of so many rows, 65,536 at most, for
// their lists, with what opening takes.
enum bsw_status device_bench_lists_time(struct device_bench *bench,
                                        const struct device_bench_shape *shape, double *seconds,
                                        struct bsw_error *err);
enum bsw_status device_bench_assign_time(struct device_bench *bench, uint64_t rows, int by_host,
                                         uint64_t *pairs, double *seconds, struct bsw_error *err);

// Rows that a case asks for.
static inline uint64_t device_bench_num_rows(const struct device_bench *bench,
                                             const struct device_bench_shape *shape)
{
    uint64_t rows = bench->settings->rows, most = shape->most_rows;
    return most > 0 && most < rows ? most : rows;
}

// Queries that a case measures: those of its shape, or fewer if --queries says so.
static inline uint32_t device_bench_num_queries(const struct device_bench *bench,
                                                const struct device_bench_shape *shape)
{
    uint64_t most = bench->settings->queries;
    return shape->queries < most ? shape->queries : (uint32_t)most;
}

// Queues a kernel; its launcher takes the stream last. `what` is for the error text.
#define DEVICE_BENCH_LAUNCH(bench, what, err, launcher, ...)                                       \
    bsw_device_launched((bench)->device,                                                           \
                        launcher(__VA_ARGS__, bsw_device_stream((bench)->device, BSW_QUEUE_SCAN)), \
                        what, err)

// An array to allocate: the pointer at `address` is set to it.
struct device_bench_array {
    void *address;
    size_t bytes;
};
// All in one buffer, each 256-byte aligned; contents undefined.
enum bsw_status device_bench_allocate(struct device_bench *bench,
                                      const struct device_bench_array *arrays, size_t num_arrays,
                                      struct bsw_device_buffer *memory, struct bsw_error *err);

// ---- time ----

// Queues work on the scan queue of a device; it may also wait for it.
typedef enum bsw_status (*device_bench_work_fn)(void *context, struct bsw_error *err);

// Seconds between two events round the work, on cold caches: `repeat` times, or as often as
// settings->seconds allow, once at least. The first is not counted if it took less than a second.
enum bsw_status device_bench_time(struct device_bench *bench, bsw_device *device,
                                  device_bench_work_fn work, void *context,
                                  struct device_times *out, struct bsw_error *err);
// The same with what is to be done before each time, and is not counted.
enum bsw_status device_bench_time_prepared(struct device_bench *bench, device_bench_work_fn prepare,
                                           device_bench_work_fn work, void *context,
                                           struct device_times *out, struct bsw_error *err);
// Sums up seconds [count] >= 1, which are sorted.
struct device_times device_bench_times_of(double *seconds, size_t count);
// Whether one more repetition is wanted, of a measurement that began then and has so many.
int device_bench_wants_more(const struct device_bench *bench, double started, size_t count);

// CUDA's error codes; 0 is success. The capability is that of the thread's device.
int device_bench_capability(int *major, int *minor);
int device_bench_event_make(device_bench_event *out);
void device_bench_event_free(device_bench_event *event);
int device_bench_event_record(device_bench_event event, bsw_stream stream);
// Both have passed.
int device_bench_event_seconds(device_bench_event from, device_bench_event to, double *out);

// ---- limits ----

enum bsw_status device_bench_limits_measure(struct device_bench *bench, struct bsw_error *err);
// A large product s8 x s8 -> s32 by cuBLAS, which is loaded at run time: *out 0 and its reason in
// `why` where it is not there or refuses.
enum bsw_status device_bench_cublas_measure(struct device_bench *bench, double *out, char *why,
                                            size_t capacity, struct bsw_error *err);

// Compares two uint64_t, for qsort and bsearch: the largest first.
int device_bench_descending(const void *a, const void *b);

// Launchers; CUDA's error codes. *work: what is done, in the unit of the limit.
int device_bench_fill(void *memory, size_t bytes, uint64_t seed, bsw_stream stream);
int device_bench_read(const void *memory, size_t bytes, uint32_t *sink, bsw_stream stream);
// limit: MMA, POPCOUNT, FLOAT32 or FLOAT64.
int device_bench_run_steps(enum device_limit limit, uint64_t steps, uint32_t *sink, double *work,
                           bsw_stream stream);
// Floats from -1 to 1; whole numbers below 256.
int device_bench_make_floats(float *numbers, size_t count, uint64_t seed, bsw_stream stream);
static inline enum bsw_status device_bench_floats(struct device_bench *bench, float *numbers,
                                                  size_t count, uint64_t seed,
                                                  struct bsw_error *err)
{
    return DEVICE_BENCH_LAUNCH(bench, "rows", err, device_bench_make_floats, numbers, count, seed);
}
int device_bench_make_doubles(double *numbers, uint64_t count, bsw_stream stream);
// Random rows, count / num_queries a query.
struct bsw_device_pair;
int device_bench_make_pairs(struct bsw_device_pair *pairs, uint64_t count, uint32_t num_queries,
                            uint32_t num_rows, bsw_stream stream);
// Candidates of row 0, 1, ... of a list: bsw_candidate_pack of bsw_hash2(seed of the list, row).
#define DEVICE_BENCH_ITEM_SEED(list) (0x7000u + (list))
int device_bench_make_items(uint64_t *items, uint32_t num_lists, uint32_t num_items,
                            bsw_stream stream);

// ---- exact values ----

struct bsw_device_raw_rows;
struct bsw_device_vectors;
// That values [num] of l2 pairs, on the device, are exact: a few of them, of uint8 rows and whole
// queries.
struct device_bench_values {
    const struct bsw_device_raw_rows *rows;
    const struct bsw_device_vectors *queries;
    const struct bsw_device_pair *pairs;
    const double *values;
    size_t num;
};
enum bsw_status device_bench_values_check(const struct device_bench *bench,
                                          const struct device_bench_values *values,
                                          struct bsw_error *err);

// ---- codes and queries ----

// bench->codes become num_rows rows of the layout, or as many as leave a seventh of the free
// memory; kept if they are that already.
enum bsw_status device_bench_codes_make(struct device_bench *bench, const char *layout_text,
                                        uint64_t num_rows, struct bsw_error *err);
enum bsw_status device_bench_layout_parse(const char *text, struct bsw_code_layout *out,
                                          struct bsw_error *err);
void device_bench_codes_free(struct device_bench *bench);
// Memory for codes, and bench->codes over it: num_rows rows, or as many as leave a seventh of the
// free memory. What was there is freed. Contents undefined; *out has what there is of them.
enum bsw_status device_bench_codes_allocate(struct device_bench *bench,
                                            const struct bsw_code_layout *layout, int has_tails,
                                            uint64_t num_rows, struct bsw_code_arrays *out,
                                            struct bsw_error *err);
// The first num_rows of them; integer keys without has_affine.
struct bsw_device_codes device_bench_codes_first(const struct device_bench *bench,
                                                 uint64_t num_rows, int has_affine);

// Words of queries on the host, random, and their scales.
struct device_bench_queries {
    struct bsw_query_batch batch; // points into the two below
    uint32_t *words;
    float *scales;
};
enum bsw_status device_bench_queries_make(const struct bsw_code_layout *layout, uint32_t query_bits,
                                          uint32_t num_queries, struct device_bench_queries *out,
                                          struct bsw_error *err);
enum bsw_status device_bench_queries_allocate(const struct bsw_code_layout *layout,
                                              uint32_t query_bits, uint32_t num_queries,
                                              struct device_bench_queries *out,
                                              struct bsw_error *err);
void device_bench_queries_free(struct device_bench_queries *queries);

// One query with one row, whose planes are lane 0 of a bundle's, by the reference.
int32_t device_bench_dot(const struct bsw_code_layout *layout, uint32_t *const *planes,
                         const struct device_bench_queries *queries, size_t query);
// The score of one row and one query, computed plainly on the host.
enum bsw_status device_bench_score(const struct bsw_code_layout *layout, int has_affine,
                                   const struct device_bench_queries *queries, size_t query,
                                   uint32_t row, uint32_t *out, struct bsw_error *err);

// Codes are bsw_hash2 (common/base/arithmetic.h) of such a number and a place: words of a
// segment's array by their index there, a row's scale and bias by the row.
#define DEVICE_BENCH_WORD_SEED(segment) (0x1000u + (segment))
#define DEVICE_BENCH_ROW_SEED           0x2000u
// Fills arrays in device memory: padding bits of planes are 0, rows from num_rows on masked. CUDA's
// error code.
int device_bench_make_codes(const struct bsw_code_layout *layout,
                            const struct bsw_code_arrays *arrays, uint64_t num_bundles,
                            uint64_t num_rows, bsw_stream stream);

// ---- rows with a spectrum ----

// Rows as they are after projection: their energies decay as those of SIFT's principal components
// do, and are level within each 32 dimensions, as a frame's rotation makes them. Number i of a row
// is a sum of hashed integers (bsw_hash2 of the seed and row * dims + i) by weights[i]; then every
// 32 go through butterflies (Walsh-Hadamard).
#define DEVICE_BENCH_SPECTRUM_DIMS 128u
#define DEVICE_BENCH_SPECTRUM_SEED 0x4000u
struct device_bench_weights {
    float weights[DEVICE_BENCH_SPECTRUM_DIMS];
};
int device_bench_spectrum_rows(const struct device_bench_weights *weights, uint64_t first_row,
                               uint32_t num_rows, float *projected, bsw_stream stream);
// What bsw_store_affine of shard/codecs/shard_encode.c does, for l2. units: what a scale and a tail
// are multiplied by.
struct device_bench_affine {
    const float *norms, *scales; // [num_rows]
    const uint32_t *tails;
    uint32_t num_rows;
    float scale_unit, tail_unit;
};
// arrays: of bundles from 0 on; first_row is a bundle's.
int device_bench_spectrum_store(const struct device_bench_affine *from, uint64_t first_row,
                                const struct bsw_code_arrays *arrays, bsw_stream stream);
// bench->codes become those of settings->rows such rows, by saq for l2, with tails.
enum bsw_status device_bench_spectrum_codes(struct device_bench *bench,
                                            const struct device_bench_shape *shape,
                                            struct bsw_error *err);
// Rows that no corpus has, coded as a coordinator does.
enum bsw_status device_bench_spectrum_queries(const struct bsw_code_layout *layout,
                                              uint32_t query_bits, uint32_t num_queries,
                                              struct device_bench_queries *out,
                                              struct bsw_error *err);

// The score of one row and one query, computed plainly on the host.
enum bsw_status device_bench_spectrum_score(const struct bsw_code_layout *layout,
                                            const struct device_bench_queries *queries,
                                            size_t query, uint64_t row, uint32_t *out,
                                            struct bsw_error *err);

// ---- product codes ----

struct bsw_product_codes;
// Codebooks of two dimensions a part for codes of the layout, whose bits are those of all parts.
enum bsw_status device_bench_book_make(const struct device_bench_shape *shape,
                                       const struct bsw_code_layout *layout,
                                       struct bsw_product_codes **out, struct bsw_error *err);
// Queries for them; they hold floats, and point to the codebooks.
enum bsw_status device_bench_table_queries(const struct bsw_product_codes *codes,
                                           enum bsw_table_type type, uint32_t num_queries,
                                           struct device_bench_queries *out, struct bsw_error *err);
enum bsw_status device_bench_table_score(const struct bsw_code_layout *layout,
                                         const struct device_bench_queries *queries, size_t query,
                                         uint32_t row, uint32_t *out, struct bsw_error *err);

// ---- a kernel alone ----

// The shape's kernel over the first rows of bench->codes, in launches of a batch of the queries,
// with limits that nothing reaches.
enum bsw_status device_bench_kernel_time(struct device_bench *bench,
                                         const struct device_bench_shape *shape, uint64_t num_rows,
                                         const struct device_bench_queries *queries,
                                         struct device_times *times, struct bsw_error *err);

// ---- a whole pass ----

// An engine over the first rows of bench->codes. is_streamed: a copy of them, most of it in pinned
// host memory, that is copied block by block while the block before is scanned.
struct device_bench_pass;
enum bsw_status device_bench_pass_open(struct device_bench *bench,
                                       const struct device_bench_shape *shape, uint64_t num_rows,
                                       int is_streamed, struct device_bench_pass **out,
                                       struct bsw_error *err);
void device_bench_pass_close(struct device_bench_pass **pass);
// All queries of the shape, batch by batch; a device_bench_work_fn.
enum bsw_status device_bench_pass_run(void *pass, struct bsw_error *err);
enum bsw_status device_bench_pass_time(struct device_bench *bench, struct device_bench_pass *pass,
                                       struct device_times *out, struct bsw_error *err);
const struct device_bench_queries *device_bench_pass_queries(const struct device_bench_pass *pass);
// Pairs of row and query that the first stage stopped, of all passes so far.
double device_bench_pass_stopped(const struct device_bench_pass *pass);
// Bytes copied from the host, of all passes so far.
uint64_t device_bench_pass_copied(const struct device_bench_pass *pass);
// The last batch's first queries have full lists in order, with scores that the host computes, and
// lack no row that they should have of 4,096 that lie all over the shard.
enum bsw_status device_bench_pass_check(const struct device_bench *bench,
                                        const struct device_bench_pass *pass, size_t num_queries,
                                        struct bsw_error *err);
// Both found the same in the last batch.
enum bsw_status device_bench_pass_compare(const struct device_bench_pass *a,
                                          const struct device_bench_pass *b, struct bsw_error *err);

// ---- report ----

struct device_record {
    const char *name;
    uint64_t rows, queries, keep; // 0: has none
    struct device_times times;
    double bytes, operations;      // done; 0: not counted
    enum device_limit bytes_limit; // that bytes a second are a part of
    enum device_limit operations_limit;
    double scan_seconds; // of `times`, without selection; 0: not measured
    double values;       // made or computed; 0: not counted
    const char *values_name;
    int has_stage;
    double stopped; // share of pairs
    int is_checked; // what came out is what the host computes
};

void device_bench_report_limits(struct device_bench *bench, const char *no_cublas);
// A row of the table.
void device_bench_report(struct device_bench *bench, const struct device_record *record);

BSW_C_END
#endif
