// SPDX-License-Identifier: Apache-2.0
// encode: makes an index of codes from a vector file (coordinator/encode/encode_index.h).
#include <string.h>

#include "common/base/process.h"
#include "common/files/row_ids.h"
#include "coordinator/calibrate/calibrate.h"
#include "coordinator/job/command.h"
#include "coordinator/job/command_files.h"
#include "coordinator/job/facts.h"
#include "coordinator/job/index_facts.h"
#include "shard/codecs/codec.h"

struct encode_options {
    struct bsw_common_options common;
    const char *codec, *axes, *scale, *stage, *entries, *check, *ids, *tags;
    struct bsw_encode_settings settings;
    struct bsw_calibrate_settings calibration;
    int is_calibrated;
};

#define CALIBRATE_OFF             UINT64_MAX
#define OPTION(name, member, ...) BSW_OPTION(struct encode_options, name, member, __VA_ARGS__)

static const struct bsw_option option_rows[] = {
    OPTION("base", settings.base, .value_name = "FILE", .is_required = 1,
           .help = "vectors, or synth:count=N,dims=D,..."),
    OPTION("index", settings.index, .value_name = "FOLDER", .is_required = 1,
           .help = "index to make"),
    OPTION("codec", codec, .choices = BSW_CODEC_NAMES, .default_text = "saq",
           .help = "plain, adaptive or learned codes, uint8 and int8 rows as they are, a byte a "
                   "dimension, or product codes"),
    OPTION("bits", settings.code.bits, .value_name = "B", .min = BSW_ENCODE_MIN_BITS,
           .max = BSW_ENCODE_MAX_BITS,
           .help = "bits a dimension, for saq also 2.25 and the like; pq: 4 or 8 a subspace [3; "
                   "raw, sq8, pq: 8]"),
    OPTION("subspaces", settings.code.parts, .value_name = "M", .min = 1, .max = BSW_MAX_DIMS,
           .help = "pq: parts that a row is cut into, each a code [2 bits a dimension]"),
    OPTION("rotation", settings.code.rotation, .choices = "opq|random|none",
           .help = "of rows before they are coded: pq: learned, random or none [opq]; xfbq: random "
                   "or none [the better one by a sample]"),
    OPTION("entries", entries, .choices = "all|radius", .default_text = "all",
           .help = "pq: radius: subspaces of 2 dims and what search --entries radius needs"),
    OPTION("metric", settings.metric, .choices = BSW_METRIC_NAMES,
           .help = BSW_METRIC_HELP "; xfbq and rbe know cosine alone"),
    OPTION("segments", settings.code.segments, .value_name = "auto|32x4,96x2",
           .help = "saq: dims x bits of each segment; 0 bits leave the last axes out [auto]"),
    OPTION("axes", axes, .choices = "principal|random", .default_text = "principal",
           .help = "saq: axes of the frame"),
    OPTION("scale", scale, .value_name = "auto|X", .default_text = "auto",
           .help = "xfbq: scale before quantizing"),
    OPTION("stage", stage, .value_name = "auto|DIMS",
           .help = "saq: dimensions a progressive scan looks at first; 0: none [auto]"),
    OPTION("model", settings.code.model, .value_name = "PATH",
           .help = "saq, pq: take codebooks and lists of this index; rbe: the model, of bitsweep "
                   "train"),
    OPTION("shards", settings.shards, .value_name = "P", .default_text = "1", .min = 1,
           .max = BSW_MAX_SHARDS, .help = "shard files"),
    OPTION("lists", settings.lists, .value_name = "N|auto", .default_text = "0", .max = 1e18,
           .word = "auto", .word_count = BSW_LISTS_AUTO,
           .help = "order rows by the nearest of N centroids, so that a search can look at a part "
                   "of them; auto: by the number of rows"),
    OPTION("residual", settings.residuals, .choices = "auto|yes|no", .default_text = "auto",
           .help = "with lists: code rows less their centroids; auto: pq; saq below 2.5 bits if "
                   "rows of a sample find more so"),
    OPTION("calibrate", calibration.num_rows, .value_name = "N|off", .min = 1,
           .max = BSW_CALIBRATE_MOST_ROWS, .word = "off", .word_count = CALIBRATE_OFF,
           .help = "with lists: N rows as queries, for the table that search --recall takes its "
                   "settings from [1000, or a tenth of the rows]"),
    OPTION("calibrate-queries", calibration.queries, .value_name = "FILE",
           .help = "the table from these queries, not from rows"),
    OPTION("check", check, .choices = "auto|off", .default_text = "auto",
           .help =
               "auto: search rows of a sample by their codes first, and warn where these are too "
               "few bits or fit them badly"),
    BSW_OPTION_GROUP(struct encode_options, settings.device, bsw_device_option_group),
    OPTION("rows", settings.rows, .value_name = "A:B",
           .help = "only these rows; ids stay those of the file"),
    OPTION("ids", ids, .value_name = "FILE",
           .help = "ids of the rows, .npy of integers or text: what searches answer"),
    OPTION("tags", tags, .value_name = "FILE.spmat",
           .help = "tags of the rows, big-ann's sparse matrix, for search --query-tags"),
    OPTION("seed", settings.code.seed, .value_name = "S", .default_text = "1", .max = 9e15,
           .help = "seed of rotations and of lists"),
    OPTION("copy-vectors", settings.copy_vectors,
           .help = "keep the raw rows in the index, not a reference to their file"),
    OPTION("drop-bad-rows", settings.drop_bad_rows,
           .help = "count and skip rows with NaN, Inf, squared norms above 1e37, (cosine) zeros"),
    OPTION("force", settings.force,
           .help = "replace an existing index, begin an unfinished one anew"),
    OPTION("resume", settings.resume, .help = "go on with an unfinished index; without one begin"),
    BSW_OPTION_GROUP(struct encode_options, common, bsw_common_option_group),
};

// Whether there will be a table of recalls, and of which queries.
static enum bsw_status take_calibration(struct encode_options *o, struct bsw_error *err)
{
    struct bsw_calibrate_settings *c = &o->calibration;
    int is_off = c->num_rows == CALIBRATE_OFF;
    o->is_calibrated = o->settings.lists > 0 && !is_off;
    if (c->queries && c->num_rows > 0)
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "--calibrate-queries: --calibrate is for rows as queries");
    if (o->settings.lists == 0 && (c->queries || (c->num_rows > 0 && !is_off)))
        return bsw_fail(err, BSW_ERROR_USAGE, "--calibrate%s: there are no lists without --lists",
                        c->queries ? "-queries" : "");
    c->num_threads = (int)o->common.threads;
    c->pinning = &o->common.pinning;
    return BSW_OK;
}

// The settings that a text says.
static enum bsw_status take_texts(struct encode_options *o, struct bsw_error *err)
{
    struct bsw_encode_settings *s = &o->settings;
    BSW_TRY(bsw_codec_parse(o->codec, &s->codec, err));
    s->code.random_axes = strcmp(o->axes, "random") == 0;
    s->code.has_radii = strcmp(o->entries, "radius") == 0;
    s->code.has_scale = strcmp(o->scale, "auto") != 0;
    if (s->code.has_scale) BSW_TRY(bsw_number_parse("--scale", o->scale, &s->code.scale, err));
    s->checks_codes = strcmp(o->check, "auto") == 0;
    BSW_TRY(take_calibration(o, err));
    if (!o->stage) return BSW_OK;
    s->code.stage = strcmp(o->stage, "auto") == 0 ? BSW_STAGE_AUTO : BSW_STAGE_GIVEN;
    if (s->code.stage == BSW_STAGE_AUTO) return BSW_OK;
    return bsw_count_parse_or("--stage", o->stage, "auto", &s->code.stage_dims, err);
}

static void report_speed(struct bsw_facts *f, const struct bsw_encode_stats *s)
{
    bsw_fact_real(f, "train_seconds", s->train_seconds, "training %.2f s, ");
    bsw_fact_real(f, "encode_seconds", s->encode_seconds, "encoding %.2f s: ");
    bsw_facts_say(f, "%.4g rows/s, ", (double)s->num_rows / s->encode_seconds);
    bsw_fact_real(f, "input_gb_per_second", (double)s->input_bytes / s->encode_seconds * 1e-9,
                  "%.2f GB/s of input\n");
}

static void report_lists(struct bsw_facts *f, const struct encode_options *o,
                         const struct bsw_encode_stats *s)
{
    int has_lists = s->lists.count > 0;
    if (has_lists)
        bsw_list_sizes_facts(f, &s->lists);
    else
        bsw_fact_integer(f, "lists", 0, NULL);
    if (has_lists && o->settings.code.model && !s->codec->table->has_model) {
        bsw_fact_flag(f, "lists_of_model", s->has_model_lists, "; the model's lists");
        if (!s->has_model_lists) bsw_facts_say(f, "; new lists, not the model's");
    }
    bsw_fact_real(f, "lists_seconds", s->lists_seconds, has_lists ? ", made in %.2f s\n" : NULL);
    bsw_residual_facts(f, "residuals: ", s->is_residual, s->residual_recall, s->plain_recall);
}

static void report(const struct bsw_transport *transport, const struct encode_options *o,
                   const struct bsw_encode_stats *s, const struct bsw_calibrate_stats *calibration)
{
    struct bsw_facts f;
    bsw_facts_begin(&f, bsw_common_facts_form(&o->common), NULL);
    bsw_fact_integer(&f, "rows", s->num_rows, "%d rows");
    bsw_fact_integer(&f, "dims", s->dims, " x %d dims -> ");
    bsw_fact_text(&f, "codec", bsw_codec_name(s->codec), "%s, ");
    bsw_fact_text(&f, "metric", bsw_metric_name(s->metric), "%s, ");
    bsw_fact_text(&f, "segments", s->segments, "%s: ");
    bsw_fact_real(&f, "bits", s->bits,
                  s->codec->has_tables ? "%.4g bits a subspace, " : "%.4g bits a dimension, ");
    bsw_fact_integer(&f, "shards", s->num_shards, "%d shards, ");
    bsw_fact_real(&f, "bytes_per_vector", s->bytes_per_vector, "%g bytes a vector\n");
    report_lists(&f, o, s);
    if (s->has_fewer_bits)
        bsw_facts_say(
            &f, "bits: %.4g a dimension, not %.4g: groups of 32 of the %u dims take whole bits\n",
            s->bits, s->bits_asked, s->code_dims);
    bsw_code_check_facts(&f, &s->check, "");
    if (s->bits_asked > 0) bsw_fact_real(&f, "bits_asked", s->bits_asked, NULL);
    bsw_fact_integer(&f, "dropped_rows", s->num_dropped_rows,
                     s->num_dropped_rows > 0 ? "dropped rows: %d\n" : NULL);
    bsw_fact_integer(&f, "index_bytes", s->index_bytes, NULL);
    bsw_fact_integer(&f, "ranks", (uint64_t)transport->num_ranks, NULL);
    bsw_fact_integer(&f, "threads", o->common.threads, NULL);
    bsw_fact_text(&f, "level", bsw_cpu_level_name(o->common.level), NULL);
    bsw_fact_text(&f, "device", s->device, NULL);
    bsw_fact_text(&f, "device_note", s->device_note[0] ? s->device_note : NULL, "on the CPU: %s\n");
    bsw_fact_real(&f, "xfbq_scale", s->codec_number, NULL);
    if (s->is_found)
        bsw_fact_flag(&f, "index_found", 1, "the index was whole, but for its table\n");
    else
        report_speed(&f, s);
    if (o->is_calibrated) bsw_calibrate_facts(&f, calibration);
    bsw_fact_integer(&f, "peak_memory_bytes", bsw_process_peak_bytes(), NULL);
    bsw_facts_end(&f, BSW_OK);
}

static enum bsw_status run(struct bsw_transport *transport, void *options, struct bsw_error *err)
{
    struct encode_options *o = options;
    struct bsw_encode_settings *settings = &o->settings;
    struct bsw_encode_stats stats;
    struct bsw_calibrate_stats calibration = {0};
    struct bsw_progress progress = {.is_shown = transport->rank == 0 && !o->common.quiet};
    int is_made;
    BSW_TRY(take_texts(o, err));
    settings->level = o->common.level;
    settings->progress = &progress;
    settings->events = &bsw_command_events;
    int64_t *ids = NULL;
    enum bsw_status status = BSW_OK;
    if (o->ids && transport->rank == 0)
        status = bsw_integers_read(o->ids, &ids, &settings->num_ids, err);
    settings->ids = ids;
    struct bsw_number_sets tags = {0};
    if (status == BSW_OK && o->tags && transport->rank == 0)
        status = bsw_row_tags_of_file(o->tags, &tags, err);
    settings->tags = tags.first ? &tags : NULL;
    status = bsw_transport_agree(transport, status, err);
    if (status == BSW_OK)
        status = bsw_encode_calibrated(settings, o->is_calibrated ? &o->calibration : NULL,
                                       transport, &stats, &calibration, &is_made, err);
    bsw_free(&ids);
    bsw_number_sets_deinit(&tags);
    BSW_TRY(status);
    if (transport->rank == 0) report(transport, o, &stats, &calibration);
    return BSW_OK;
}

const struct bsw_command bsw_command_encode = BSW_COMMAND_OFTEN(
    "encode", "make an index of codes from a vector file", struct encode_options, BSW_ALL_RANKS,
    "codec|bits|metric|subspaces|lists|calibrate|shards|"
    "device|rows|copy-vectors|force|resume|threads|json|quiet");
