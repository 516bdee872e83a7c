// SPDX-License-Identifier: Apache-2.0
// The coarse step of a search by lists: which lists a query looks at.
//
// Centroids are kept as bytes, and one int8 product of kernels/matrix_scan, with a float bias, says
// how near each is: c - m = step * v, v odd from -127 to 127, m the mean of all centroids, and
//   key = 2 <q - m, step * v> - |c - m|^2   l2:      |q - m|^2 - key is about the squared distance
//       =   <q, step * v>                   cosine (q of unit length), ip
// Queries are rounded to 63 steps a side, or to fewer, 32 at least, where dots then stay below
// BSW_COARSE_NARROW. Keys are functions of centroids and query, the same on
// every machine and rank, and they are the order of lists: better key first, then the smaller list.
//
// A query looks at the best `probe` lists, and with a ratio R at no list whose squared distance is
// more than R times that of the query's BSW_COARSE_RANK-th list (the last one, if there are fewer);
// the nearest list is always looked at. Distances to the nearest list alone vary more than those to
// the 16th, which is why that is the yardstick: the same recall from a quarter fewer rows.
//
// Every rank chooses for all queries of its slice, as a choice is cheaper to make than to send:
// with 4,096 centroids of 128 dimensions a thread takes some 4 us for a query, and its 60 lists are
// 240 bytes, twice that with additions, which would go to rank 0 and from there to all.
#ifndef BITSWEEP_SHARD_COARSE_SEARCH_H
#define BITSWEEP_SHARD_COARSE_SEARCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/cpu_level.h"
#include "common/base/memory.h"
#include "common/files/index_manifest.h"

#define BSW_COARSE_RANK      16
#define BSW_COARSE_LEAST_KEY -3.4e38f // of those that lists have

// What a search looks at.
struct bsw_probe_settings {
    uint32_t probe; // lists a query at most; 0: all rows, and nothing of this file
    double ratio;   // of squared distances, > 0; 0: not asked. Not for ip
    // Padded dimensions that keys are made of, the first ones, up to a segment's end; 0: all.
    uint32_t scan_dims;
};

// Lists of some queries: query q looks at lists [q * most, q * most + counts[q]), the nearest
// first, the others in any order.
struct bsw_list_choice {
    size_t num_queries, most;
    const uint32_t *lists; // NULL: it is put off (bsw_coarse_search_defer)
    const uint32_t *counts;
    // What keys of codes of residuals lack, as lists lie; NULL without residuals.
    const float *additions;
    // Who makes it where it is put off, for which vectors, and its number, which no other has.
    struct bsw_coarse_search *search;
    const float *vectors;
    uint64_t number;
};

// Memory of its own, but for scratch of threads and batches.
uint64_t bsw_coarse_search_bytes(const struct bsw_manifest *manifest);

struct bsw_coarse_search;
struct bsw_matrix_queries;

// Centroids as kernels/coarse_scan takes a tile, with codes of BSW_COARSE_CODE_BITS.
struct bsw_coarse_codes {
    size_t padded_dims, num_lists;
    const uint8_t *bytes; // 0 behind the last list
    const uint16_t *scales;
    const float *biases;
};
#define BSW_COARSE_CODE_BITS  7
#define BSW_COARSE_QUERY_BITS 6 // components are those of so many bits at most, even ones too

// Who finds the best `keep` lists of some queries elsewhere, with the same keys: item i of query q,
// as candidates are packed, the best first, at items[q * keep + i], i < counts[q]; as many as there
// are lists where these are fewer. components end with query num_queries.
typedef enum bsw_status (*bsw_coarse_finder)(void *context,
                                             const struct bsw_matrix_queries *queries, size_t keep,
                                             uint64_t *items, uint32_t *counts,
                                             struct bsw_error *err);

// Copies what it needs of the manifest, which has lists. center: what a codec of residuals centres
// by, [dims], borrowed (shard/codecs/codec.h); else NULL.
enum bsw_status bsw_coarse_search_open(const struct bsw_manifest *manifest,
                                       const struct bsw_probe_settings *settings,
                                       const float *center, enum bsw_cpu_level level,
                                       int num_threads, struct bsw_coarse_search **out,
                                       struct bsw_error *err);
void bsw_coarse_search_close(struct bsw_coarse_search **search); // accepts NULL inside

// Borrowed, until it is closed.
struct bsw_coarse_codes bsw_coarse_search_codes(const struct bsw_coarse_search *search);
// From now on `find` is asked for up to most_kept lists a query where there is more than one query;
// of a query that looks at more, keys are made here.
void bsw_coarse_search_offload(struct bsw_coarse_search *search, bsw_coarse_finder find,
                               void *context, size_t most_kept);

// From now on a call puts off what `find` would be asked for: who takes the choice makes it on a
// device by the same rules, or asks for it.
void bsw_coarse_search_defer(struct bsw_coarse_search *search);
// The choice, if it was put off made on the host as ever: there until the next call.
enum bsw_status bsw_list_choice_complete(const struct bsw_list_choice *choice,
                                         struct bsw_list_choice *out, struct bsw_error *err);

// Also of one that is put off.
int bsw_list_choice_has_additions(const struct bsw_list_choice *choice);

// How lists are chosen, for who does it elsewhere.
struct bsw_coarse_rules {
    size_t dims, most_kept;
    uint32_t probe, rank; // rank: of the list whose distance is the yardstick
    float ratio;          // 0: none
    int is_l2;
    const float *centred; // [lists][dims], which residuals of queries are multiplied with; or NULL
};
struct bsw_coarse_rules bsw_coarse_search_rules(const struct bsw_coarse_search *search);

// Queries as a finder takes them, [num] or [num][dims], memory of the caller's.
struct bsw_coarse_queries {
    int8_t *components; // [num][padded_dims]
    int32_t *constants;
    float *scales, *norms; // norms: squared, of queries less the mean
    float *residuals;      // where the rules have centred, else not written
};
enum bsw_status bsw_coarse_search_prepare(struct bsw_coarse_search *search, const float *vectors,
                                          size_t num, const struct bsw_coarse_queries *out,
                                          struct bsw_error *err);

// vectors [num_queries][dims] as given. *out is there until the next call.
enum bsw_status bsw_coarse_search_run(struct bsw_coarse_search *search, const float *vectors,
                                      size_t num_queries, struct bsw_list_choice *out,
                                      struct bsw_error *err);
// The same addition for one query, as given, and one list; 0 where it was opened without a center.
enum bsw_status bsw_coarse_search_addition(const struct bsw_coarse_search *search,
                                           const float *vector, uint32_t list, float *out,
                                           struct bsw_error *err);
double bsw_coarse_search_seconds(const struct bsw_coarse_search *search);

#endif
