// SPDX-License-Identifier: Apache-2.0
#include "coordinator/plan/cluster_model.h"

#include <math.h>

#include "common/net/transport_inbox.h"
#include "kernels/merge/merge.h"
#include "shard/shard_service.h"

// ---- what the cut leaves ----

uint64_t bsw_cluster_ladder_places(uint64_t count)
{
    uint64_t places = count > 0;
    for (uint64_t place = 1; place < count; place *= 2) places++;
    return places;
}

// E of the largest power of two up to a Poisson n of mean m, 0 for n = 0: the sum over powers of
// what each adds times P(n >= power). Numbers more than 12 deviations off do not count.
static double expected_count(double mean)
{
    double reach = 12 * sqrt(mean) + 20, first = floor(fmax(0, mean - reach)), below = 0, sum = 0;
    double term = exp(first * log(mean) - mean - lgamma(first + 1)); // P(n = i)
    double power = 1;
    for (double i = first; i <= mean + reach; i++) {
        for (; power <= i; power *= 2) sum += (power == 1 ? 1 : power / 2) * (1 - below);
        below += term;
        term *= mean / (i + 1);
    }
    return sum;
}

double bsw_cluster_survivors(uint64_t keep, uint64_t num_shards)
{
    double share = (double)keep / (double)num_shards, low = share, high = 2 * share;
    if (num_shards <= 1) return (double)keep;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (expected_count(middle) < share)
            low = middle;
        else
            high = middle;
    }
    return (double)num_shards * high;
}

// ---- speeds ----

static double per_rate(double amount, double rate)
{
    return rate > 0 ? amount / rate : 0;
}

static double ranks_of_host(const struct bsw_cluster_job *job)
{
    return fmin((double)job->ranks_a_host, (double)job->num_ranks);
}

static double crowd_of(const struct bsw_cluster_job *job)
{
    return fmax(1, ranks_of_host(job) * (double)job->threads / (double)job->cores);
}

static double core_share(const struct bsw_model_rates *rates, double busy, uint64_t cores)
{
    double share = rates->busy_core_share;
    if (share <= 0 || cores <= 1) return 1;
    return 1 - (1 - share) * (busy - 1) / (double)(cores - 1);
}

static double speed_of(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job)
{
    double threads = (double)job->threads, measured = (double)rates->threads;
    double cores = (double)job->cores, busy = fmin(ranks_of_host(job) * threads, cores);
    return threads / measured * core_share(rates, busy, job->cores) /
           core_share(rates, fmin(measured, cores), job->cores) / crowd_of(job);
}

static double root_speed(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job)
{
    return fmin((double)job->threads, (double)job->cores) / (double)rates->threads;
}

// ---- messages ----

static double tree(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job,
                   double bytes)
{
    double levels = bsw_tree_depth((uint32_t)job->num_ranks);
    if (job->num_ranks == 1) return 0;
    levels = fmax(levels, (ranks_of_host(job) - 1) / (double)job->cores);
    return levels *
           (rates->alpha_seconds + rates->beta_seconds_per_byte * bytes + BSW_CLUSTER_NAP_SECONDS);
}

static double inward(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job,
                     double bytes)
{
    if (job->num_ranks == 1) return 0;
    return (double)(job->num_ranks - 1) * rates->alpha_seconds +
           rates->beta_seconds_per_byte * bytes + BSW_CLUSTER_NAP_SECONDS;
}

static double agreement(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job)
{
    double bytes = sizeof(struct bsw_outcome);
    return inward(rates, job, bytes * (double)(job->num_ranks - 1)) + tree(rates, job, bytes);
}

// ---- phases ----

static double listed_of(const struct bsw_cluster_job *job)
{
    uint64_t count = job->keep < job->shard_rows ? job->keep : job->shard_rows;
    return (double)(job->is_ladder ? bsw_cluster_ladder_places(count) : count);
}

// Queries that a rank scans and refines for: a slice of the batch.
static double slice_of(const struct bsw_cluster_job *job)
{
    return (double)((job->batch + job->num_replicas - 1) / job->num_replicas);
}

// The share of all shards that the rank with most of them has (assignment.h).
static double busiest_of(const struct bsw_cluster_job *job)
{
    uint64_t most = (job->num_shards + job->num_ranks - 1) / job->num_ranks;
    return (double)most / (double)job->num_shards;
}

static void count_bytes(const struct bsw_cluster_job *job, double listed, double survivors,
                        struct bsw_cluster_times *out)
{
    double batch = (double)job->batch, shards = (double)job->num_shards;
    double others = (double)(job->num_ranks - 1) / (double)job->num_ranks;
    out->batch_bytes = (double)job->batch_bytes;
    out->candidates_bytes =
        others * batch * shards * (sizeof(uint64_t) + sizeof(struct bsw_ranked) * listed);
    out->cuts_bytes = batch * sizeof(struct bsw_cut);
    out->answers_bytes =
        others * batch * (sizeof(uint64_t) * shards + sizeof(struct bsw_survivor) * survivors);
}

static double scan_seconds(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job)
{
    double pairs = (double)job->rows * slice_of(job);
    double by_pairs = per_rate(pairs, rates->scan_pairs_per_second);
    double by_bytes = per_rate((double)job->scanned_bytes, rates->scan_bytes_per_second);
    return fmax(by_pairs, by_bytes) / (rates->scans_on_device ? 1 : speed_of(rates, job));
}

static void add_up(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job,
                   struct bsw_cluster_times *out)
{
    double beside = out->encode + out->finish;
    double rest = out->broadcast + out->scan + out->candidates + out->merge + out->cuts +
                  out->refine + out->answers;
    // A core to spare goes to a thread of its own for both (batch_pipeline.h).
    out->is_overlapped = ranks_of_host(job) * (double)job->threads < (double)job->cores;
    if (out->is_overlapped)
        out->total = fmax(rest, beside * root_speed(rates, job) * (double)rates->threads);
    else
        out->total = rest + beside;
    out->queries_per_second = per_rate((double)job->batch, out->total);
}

void bsw_cluster_times_of(const struct bsw_model_rates *rates, const struct bsw_cluster_job *job,
                          struct bsw_cluster_times *out)
{
    double batch = (double)job->batch;
    double listed = listed_of(job), root = root_speed(rates, job);
    double survivors =
        job->is_ladder ? bsw_cluster_survivors(job->keep, job->num_shards) : (double)job->keep;
    *out = (struct bsw_cluster_times){.crowd = crowd_of(job)};
    count_bytes(job, listed, survivors, out);
    out->encode = per_rate(batch, rates->encode_queries_per_second * root);
    out->broadcast = tree(rates, job, out->batch_bytes);
    out->scan = scan_seconds(rates, job);
    out->candidates = agreement(rates, job) + inward(rates, job, out->candidates_bytes);
    out->merge = per_rate(batch * (double)job->num_shards * listed,
                          rates->merge_candidates_per_second * root);
    out->cuts = agreement(rates, job) + tree(rates, job, out->cuts_bytes);
    if (job->is_refined) {
        out->refine = per_rate(slice_of(job) * survivors * busiest_of(job),
                               rates->refine_rows_per_second * speed_of(rates, job));
    }
    out->answers = agreement(rates, job) + inward(rates, job, out->answers_bytes);
    out->finish =
        per_rate(batch * survivors / (double)job->keep, rates->finish_queries_per_second * root);
    add_up(rates, job, out);
}

// ---- fit ----------------------------------------------------------------------------------------

static double worst_error(const struct bsw_network_fit *fit, const double *bytes,
                          const double *seconds, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double model = fit->alpha_seconds + bytes[i] * fit->beta_seconds_per_byte;
        worst = fmax(worst, fabs(model - seconds[i]) / seconds[i]);
    }
    return worst;
}

// With x_i = 1 / t_i and y_i = n_i / t_i: the sum of (alpha x_i + beta y_i - 1)^2. Where a number
// would be negative it is 0 and the other alone fits best: the sum is convex.
int bsw_network_fit_make(const double *bytes, const double *seconds, size_t count,
                         struct bsw_network_fit *out)
{
    double xx = 0, xy = 0, yy = 0, x1 = 0, y1 = 0;
    int differ = 0;
    for (size_t i = 0; i < count; i++) {
        double x = 1 / seconds[i], y = bytes[i] / seconds[i];
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
        differ |= bytes[i] != bytes[0];
    }
    if (!differ) return 0;
    double determinant = xx * yy - xy * xy;
    double alpha = (x1 * yy - y1 * xy) / determinant, beta = (y1 * xx - x1 * xy) / determinant;
    if (alpha < 0) {
        alpha = 0;
        beta = y1 / yy;
    } else if (beta < 0) {
        alpha = x1 / xx;
        beta = 0;
    }
    *out = (struct bsw_network_fit){.alpha_seconds = alpha, .beta_seconds_per_byte = beta};
    out->worst = worst_error(out, bytes, seconds, count);
    return 1;
}

uint32_t bsw_tree_depth(uint32_t num_ranks)
{
    uint32_t depth = 0;
    while (depth < 31 && (1u << depth) < num_ranks) depth++;
    return depth;
}

double bsw_network_broadcast_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                     double bytes)
{
    return bsw_tree_depth(num_ranks) * (fit->alpha_seconds + bytes * fit->beta_seconds_per_byte);
}

double bsw_network_gather_seconds(const struct bsw_network_fit *fit, uint32_t num_ranks,
                                  double bytes)
{
    return num_ranks > 1 ? fit->alpha_seconds + bytes * fit->beta_seconds_per_byte : 0;
}
