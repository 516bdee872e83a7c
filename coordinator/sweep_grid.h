// The grid of a sweep: lists of values, the points they span, and which of those are worth looking
// at.
#ifndef BITSWEEP_COORDINATOR_SWEEP_GRID_H
#define BITSWEEP_COORDINATOR_SWEEP_GRID_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BSW_SWEEP_MAX_VALUES = 32 }; // of an axis

// Words of a choice, whole numbers or numbers in the order given.
struct bsw_sweep_axis {
    size_t count;
    double values[BSW_SWEEP_MAX_VALUES]; // a word: its place in the choices
};

// text: "1,1.5,4". Each in min .. max, none twice: BSW_ERROR_USAGE. what: for messages, "--bits".
enum bsw_status bsw_sweep_axis_numbers(const char *what, const char *text, double min, double max,
                                       int is_whole, struct bsw_sweep_axis *out,
                                       struct bsw_error *err);
// text: "xfbq,saq", of num_choices words.
enum bsw_status bsw_sweep_axis_words(const char *what, const char *text, const char *const *choices,
                                     size_t num_choices, struct bsw_sweep_axis *out,
                                     struct bsw_error *err);

extern const char *const bsw_sweep_codecs[2];  // "xfbq", "saq"
extern const char *const bsw_sweep_selects[2]; // "threshold", "queue"

struct bsw_sweep_grid {
    struct bsw_sweep_axis codecs, bits, query_bits, k, oversamples, selects;
};

struct bsw_sweep_point {
    const char *codec, *select; // static
    double bits, oversample;
    uint32_t query_bits;
    uint64_t k, candidates;
};

// What a point must fit.
struct bsw_sweep_limits {
    uint64_t num_rows, truth_k; // truth_k: neighbours a query that the ground truth has
    int is_cosine;
};

// So many points left out for one reason.
struct bsw_sweep_skip {
    char reason[128];
    uint64_t num_points;
};

struct bsw_sweep_points {
    struct bsw_sweep_point *points; // [num_points], codec outermost, then bits, query_bits, k,
    size_t num_points;              // oversample, select
    struct bsw_sweep_skip *skips;   // [num_skips]
    size_t num_skips;
};

// bsw_sweep_points_deinit frees, after an error too.
enum bsw_status bsw_sweep_grid_expand(const struct bsw_sweep_grid *grid,
                                      const struct bsw_sweep_limits *limits,
                                      struct bsw_sweep_points *out, struct bsw_error *err);
void bsw_sweep_points_deinit(struct bsw_sweep_points *points);

// Whether a leaves b behind: at least as good in recall and rate, and better in one.
int bsw_sweep_is_better(double recall_a, double rate_a, double recall_b, double rate_b);

#ifdef __cplusplus
}
#endif
#endif
