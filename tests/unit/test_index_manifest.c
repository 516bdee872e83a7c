// The manifest: every field comes back, every damaged bit is found, and one that lies with a right
// digest is refused for what it says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <xxhash.h>

#include "bitsweep.pb-c.h"
#include "common/index_manifest.h"
#include "common/integer_hash.h"
#include "common/result_order.h"
#include "temporary_folder.h"

static struct bsw_error err;

static void *allocate(size_t count, size_t size)
{
    void *memory;
    if (bsw_allocate_zero(&memory, count, size, "test", NULL) != BSW_OK) abort();
    return memory;
}

static float random_float(uint64_t index)
{
    return (float)((double)(int64_t)bsw_hash2(1, index) * 0x1p-63);
}

// ---- manifests made by hand ----

static void cut_into_shards(struct bsw_manifest *manifest, uint32_t num_shards)
{
    manifest->num_shards = num_shards;
    manifest->shards = allocate(num_shards, sizeof *manifest->shards);
    manifest->dropped_rows = 0;
    for (uint32_t i = 0; i < num_shards; i++) {
        struct bsw_shard_entry *entry = &manifest->shards[i];
        entry->first_row = manifest->first_row + manifest->num_rows * i / num_shards;
        entry->num_rows =
            manifest->first_row + manifest->num_rows * (i + 1) / num_shards - entry->first_row;
        entry->codes_bytes = bsw_hash2(2, i) >> 8;
        entry->codes_digest = bsw_hash2(3, i);
        entry->vectors_bytes = bsw_hash2(4, i) >> 8;
        entry->dropped_rows = i;
        manifest->dropped_rows += i;
    }
}

// Rows are those of the shard, scores fall.
static void make_known(struct bsw_manifest *manifest, uint32_t num_queries)
{
    assert_int_equal(bsw_manifest_reserve_known(manifest, num_queries, &err), BSW_OK);
    for (uint32_t i = 0; i < manifest->num_shards; i++) {
        const struct bsw_known_answers known = bsw_manifest_known(manifest, i);
        uint64_t *list = manifest->known + manifest->shards[i].first_known;
        assert_int_equal(known.num_queries, num_queries);
        assert_ptr_equal(known.best, list);
        for (uint32_t place = 0; place < num_queries * known.num_rows; place++)
            list[place] = bsw_candidate_pack(UINT32_MAX - 1000 * i - place,
                                             place * 7 % (uint32_t)manifest->shards[i].num_rows);
    }
}

static void make_common(struct bsw_manifest *manifest)
{
    *manifest = (struct bsw_manifest){.build_digest = 0x123456789abcdef0,
                                      .first_row = 1000,
                                      .num_rows = 5003,
                                      .metric = BSW_METRIC_COSINE,
                                      .bits = 3,
                                      .source_path = "../vectors/base.i8bin",
                                      .source_type = BSW_VECTOR_INT8,
                                      .source_file_bytes = 777777,
                                      .source_rows = 9000,
                                      .source_digest = 0xfedcba9876543210};
    cut_into_shards(manifest, 4);
    make_known(manifest, 3);
}

static void make_plain(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("47x3", 47, &manifest->layout, &err), BSW_OK);
    manifest->codec = BSW_CODEC_XFBQ;
    manifest->xfbq_scale = 3.25f;
    manifest->stage_dims = 47;
}

static void make_raw(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("47x8", 47, &manifest->layout, &err), BSW_OK);
    manifest->codec = BSW_CODEC_RAW;
    manifest->metric = BSW_METRIC_L2;
    manifest->bits = 8;
    manifest->stage_dims = 47;
    for (uint32_t i = 0; i < manifest->num_shards; i++) manifest->shards[i].dropped_rows = 0;
    manifest->dropped_rows = 0;
}

static void make_rbe(struct bsw_manifest *manifest)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse("64x2", 64, &manifest->layout, &err), BSW_OK);
    manifest->codec = BSW_CODEC_RBE;
    manifest->bits = 2;
    manifest->stage_dims = 64;
    manifest->model_digest = 0xabcdef;
    manifest->row_dims = 200;
    manifest->query_planes = 3;
    manifest->scale_exponent = -11;
}

// Padding columns hold what must not come back.
static void make_saq(struct bsw_manifest *manifest, const char *segments, uint32_t dims)
{
    make_common(manifest);
    assert_int_equal(bsw_code_layout_parse(segments, dims, &manifest->layout, &err), BSW_OK);
    size_t weights = (size_t)dims * manifest->layout.padded_dims;
    manifest->codec = BSW_CODEC_SAQ;
    manifest->metric = BSW_METRIC_L2;
    manifest->bits = 2.25;
    manifest->mean = allocate(dims, sizeof(float));
    manifest->rotation = allocate(weights, sizeof(float));
    for (uint32_t i = 0; i < dims; i++) manifest->mean[i] = random_float(i);
    for (size_t i = 0; i < weights; i++) manifest->rotation[i] = random_float(1000 + i);
    for (uint32_t s = 0; s < manifest->layout.num_segments; s++)
        manifest->steps[s] = 0.5f + (float)s;
    manifest->scale_exponent = -17;
    manifest->tail_exponent = 5;
    manifest->stage_dims = dims > 32 ? 32 : dims;
    manifest->source_is_copied = 1;
    strcpy(manifest->axes, "principal");
}

static void pack(const struct bsw_manifest *manifest, struct bsw_buffer *buffer)
{
    assert_int_equal(bsw_manifest_pack(manifest, buffer, &err), BSW_OK);
}

// ---- round trips ----

static void assert_same_facts(const struct bsw_manifest *a, const struct bsw_manifest *b)
{
    assert_true(a->build_digest == b->build_digest && a->first_row == b->first_row);
    assert_true(a->num_rows == b->num_rows && a->dropped_rows == b->dropped_rows);
    assert_true(a->metric == b->metric && a->codec == b->codec && a->bits == b->bits);
    assert_memory_equal(&a->layout, &b->layout, sizeof a->layout);
    assert_true(a->xfbq_scale == b->xfbq_scale && a->stage_dims == b->stage_dims);
    assert_memory_equal(a->steps, b->steps, sizeof a->steps);
    assert_true(a->scale_exponent == b->scale_exponent && a->tail_exponent == b->tail_exponent);
    assert_string_equal(a->axes, b->axes);
    assert_true(a->model_digest == b->model_digest && a->row_dims == b->row_dims);
    assert_true(a->query_planes == b->query_planes);
    assert_true(bsw_manifest_row_dims(a) == bsw_manifest_row_dims(b));
    assert_int_equal(a->num_shards, b->num_shards);
    assert_memory_equal(a->shards, b->shards, a->num_shards * sizeof *a->shards);
    assert_int_equal(a->num_known, b->num_known);
    for (uint32_t i = 0; i < a->num_shards; i++) {
        const struct bsw_known_answers one = bsw_manifest_known(a, i);
        const struct bsw_known_answers other = bsw_manifest_known(b, i);
        assert_int_equal(one.num_rows, other.num_rows);
        assert_memory_equal(one.best, other.best,
                            one.num_queries * one.num_rows * sizeof *one.best);
    }
    assert_string_equal(a->source_path, b->source_path);
    assert_true(a->source_type == b->source_type && a->source_rows == b->source_rows);
    assert_true(a->source_file_bytes == b->source_file_bytes);
    assert_true(a->source_digest == b->source_digest);
    assert_int_equal(a->source_is_copied, b->source_is_copied);
}

// Columns of padding are 0 after parsing, whatever they were.
static void assert_same_frame(const struct bsw_manifest *in, const struct bsw_manifest *out)
{
    const struct bsw_code_layout *layout = &in->layout;
    assert_memory_equal(in->mean, out->mean, layout->dims * sizeof(float));
    for (uint32_t j = 0; j < layout->dims; j++) {
        for (uint32_t s = 0; s < layout->num_segments; s++) {
            const struct bsw_segment *segment = &layout->segments[s];
            const size_t at = (size_t)j * layout->padded_dims + segment->padded_dim;
            assert_memory_equal(in->rotation + at, out->rotation + at,
                                segment->dims * sizeof(float));
            for (uint32_t i = segment->dims; i < segment->words * 32; i++)
                assert_true(out->rotation[at + i] == 0.0f && !signbit(out->rotation[at + i]));
        }
    }
}

static void check_round_trip(struct bsw_manifest *in)
{
    struct bsw_buffer first = {0}, second = {0};
    struct bsw_manifest out;
    pack(in, &first);
    assert_int_equal(bsw_manifest_parse("m", first.data, first.bytes, &out, &err), BSW_OK);
    assert_same_facts(in, &out);
    if (in->codec == BSW_CODEC_SAQ) assert_same_frame(in, &out);
    pack(&out, &second); // the same bytes again
    assert_int_equal(first.bytes, second.bytes);
    assert_memory_equal(first.data, second.data, first.bytes);
    assert_int_equal(bsw_manifest_write(in, temporary_folder, &err), BSW_OK);
    bsw_manifest_deinit(&out);
    assert_int_equal(bsw_manifest_read(temporary_folder, &out, &err), BSW_OK);
    assert_same_facts(in, &out);
    bsw_manifest_deinit(&out);
    bsw_buffer_deinit(&first);
    bsw_buffer_deinit(&second);
    bsw_manifest_deinit(in);
}

static void manifests_come_back(void **state)
{
    (void)state;
    static const struct {
        const char *segments;
        uint32_t dims;
    } layouts[] = {{"138x4", 138}, {"33x3,5x2,100x1", 138}, {"1x8", 1}, {"32x8,32x1", 64}};
    struct bsw_manifest manifest;
    make_plain(&manifest);
    check_round_trip(&manifest);
    make_raw(&manifest);
    check_round_trip(&manifest);
    make_rbe(&manifest);
    check_round_trip(&manifest);
    make_rbe(&manifest); // of a program that knew none
    bsw_free(&manifest.known);
    manifest.num_known = 0;
    for (uint32_t i = 0; i < manifest.num_shards; i++) manifest.shards[i].first_known = 0;
    check_round_trip(&manifest);
    make_plain(&manifest); // shorter lists, and none
    manifest.shards[1].dropped_rows = manifest.shards[1].num_rows - 31;
    manifest.shards[2].dropped_rows = manifest.shards[2].num_rows;
    manifest.dropped_rows = 0;
    for (uint32_t i = 0; i < manifest.num_shards; i++)
        manifest.dropped_rows += manifest.shards[i].dropped_rows;
    make_known(&manifest, BSW_KNOWN_QUERIES);
    assert_int_equal(bsw_manifest_known(&manifest, 1).num_rows, 31);
    assert_int_equal(bsw_manifest_known(&manifest, 2).num_rows, 0);
    check_round_trip(&manifest);
    for (size_t i = 0; i < 4; i++) {
        make_saq(&manifest, layouts[i].segments, layouts[i].dims);
        check_round_trip(&manifest);
    }
}

static void a_missing_manifest_is_a_fault_of_the_system(void **state)
{
    (void)state;
    struct bsw_manifest manifest;
    assert_int_equal(bsw_manifest_read(path_of("nowhere"), &manifest, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "nowhere/manifest.pb"));
    bsw_manifest_deinit(&manifest);
}

// ---- damage ----

static void assert_refused(const unsigned char *data, size_t bytes, const char *clause)
{
    struct bsw_manifest out;
    err.message[0] = '\0';
    assert_int_equal(bsw_manifest_parse("m", data, bytes, &out, &err), BSW_ERROR_BAD_DATA);
    assert_ptr_equal(strstr(err.message, "m: "), err.message);
    if (!strstr(err.message, clause)) fail_msg("'%s' lacks '%s'", err.message, clause);
    assert_null(out.mean);
    assert_null(out.rotation);
    assert_null(out.shards);
    assert_null(out.known);
}

static void check_damage(struct bsw_manifest *manifest)
{
    struct bsw_buffer buffer = {0};
    pack(manifest, &buffer);
    for (size_t bit = 0; bit < buffer.bytes * 8; bit++) {
        buffer.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        int is_tag = bit / 8 == buffer.bytes - 9;
        assert_refused(buffer.data, buffer.bytes, is_tag ? "truncated" : "checksum");
        buffer.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t bytes = 0; bytes < buffer.bytes; bytes++) assert_refused(buffer.data, bytes, "");
    unsigned char *longer = allocate(buffer.bytes + 64, 1);
    memcpy(longer, buffer.data, buffer.bytes);
    for (size_t more = 1; more <= 64; more++) assert_refused(longer, buffer.bytes + more, "");
    bsw_free(&longer);
    bsw_buffer_deinit(&buffer);
    bsw_manifest_deinit(manifest);
}

static void every_damaged_bit_and_truncation_is_found(void **state)
{
    (void)state;
    struct bsw_manifest manifest;
    make_plain(&manifest);
    check_damage(&manifest);
    make_saq(&manifest, "7x3,33x1", 40);
    check_damage(&manifest);
}

// ---- lies with a right digest ----

static void seal(unsigned char *data, size_t bytes)
{
    uint64_t digest = XXH3_64bits(data, bytes);
    data[bytes] = 0x79; // fixed64 digest = 15
    for (int i = 0; i < 8; i++) data[bytes + 1 + (size_t)i] = (unsigned char)(digest >> (8 * i));
}

// Lets `lie` change the message, seals it; the parser must say the clause (NULL: must accept).
static void check_lie(const struct bsw_buffer *truth, void (*lie)(Bsw__Manifest *message),
                      const char *clause)
{
    Bsw__Manifest *message = bsw__manifest__unpack(NULL, truth->bytes, truth->data);
    assert_non_null(message);
    message->digest = 0;
    lie(message);
    size_t bytes = bsw__manifest__get_packed_size(message);
    unsigned char *data = allocate(bytes + 9, 1);
    assert_int_equal(bsw__manifest__pack(message, data), bytes);
    seal(data, bytes);
    if (clause) {
        assert_refused(data, bytes + 9, clause);
    } else {
        struct bsw_manifest out;
        assert_int_equal(bsw_manifest_parse("m", data, bytes + 9, &out, &err), BSW_OK);
        bsw_manifest_deinit(&out);
    }
    bsw_free(&data);
    bsw__manifest__free_unpacked(message, NULL);
}

// Makes a lie of one or more statements on the message m.
#define LIE(name, statements)                \
    static void lie_##name(Bsw__Manifest *m) \
    {                                        \
        statements;                          \
    }

// Texts of a message are freed with it: replace them by copies.
static void set_text(char **text, const char *value)
{
    free(*text);
    *text = strdup(value);
}

static void set_float(const ProtobufCBinaryData *field, size_t index, float value)
{
    memcpy(field->data + index * sizeof value, &value, sizeof value);
}

static void drop_last_shard(Bsw__Manifest *m)
{
    bsw__shard__free_unpacked(m->shards[--m->n_shards], NULL);
}

static void drop_segments(Bsw__Manifest *m, size_t left)
{
    while (m->n_segments > left) bsw__segment__free_unpacked(m->segments[--m->n_segments], NULL);
}

LIE(nothing, (void)m)
LIE(other_rule, m->known_rule = BSW_KNOWN_RULE + 1)
LIE(known_none, m->known_queries = 0)
LIE(known_many, m->known_queries = BSW_KNOWN_QUERIES + 1)
LIE(known_fewer, m->known_queries--)
LIE(known_short, m->shards[3]->n_known_answers--)
LIE(known_row, m->shards[1]->known_answers[0] &= ~(uint64_t)UINT32_MAX)
LIE(known_order, m->shards[1]->known_answers[33] = m->shards[1]->known_answers[32])
LIE(known_lists, m->shards[1]->known_answers[32] = UINT64_MAX)
LIE(version_2, m->format_version = 2)
LIE(version_0, m->format_version = 0)
LIE(metric, set_text(&m->metric, "hamming"))
LIE(no_metric, set_text(&m->metric, ""))
LIE(codec, set_text(&m->codec, "pq"))
LIE(no_rows, m->num_rows = 0)
LIE(rows_2_63, m->num_rows = (uint64_t)1 << 63)
LIE(rows_2_64, m->num_rows = UINT64_MAX)
LIE(rows_wrap, m->first_row = (uint64_t)INT64_MAX - 100)
LIE(dims_less, m->dims--)
LIE(dims_zero, m->dims = 0)
LIE(dims_more, m->segments[0]->dims++)
LIE(dims_huge, m->segments[0]->dims = UINT32_MAX)
LIE(bits_9, m->segments[0]->bits = 9)
LIE(bits_0, m->segments[0]->bits = 0)
LIE(no_segments, drop_segments(m, 0))
LIE(no_shards, while (m->n_shards) drop_last_shard(m))
LIE(shard_missing, drop_last_shard(m))
LIE(shards_overlap, m->shards[1]->first_row--)
LIE(shards_gap, m->shards[1]->first_row++)
LIE(shards_short, m->shards[3]->num_rows--)
LIE(shards_long, m->shards[3]->num_rows++)
// Its rows go to the shard before, so that nothing else is wrong.
LIE(shard_empty, m->shards[2]->num_rows += m->shards[3]->num_rows;
    m->shards[3]->first_row += m->shards[3]->num_rows; m->shards[3]->num_rows = 0;
    m->dropped_rows -= m->shards[3]->dropped_rows; m->shards[3]->dropped_rows = 0)
LIE(shard_wraps, m->shards[0]->num_rows = UINT64_MAX)
LIE(shard_before, m->shards[0]->first_row = 0)
LIE(shard_drops_all, m->shards[0]->dropped_rows = m->shards[0]->num_rows + 1)
LIE(dropped, m->dropped_rows++)
LIE(rows_more, m->num_rows++)
LIE(no_source, bsw__source__free_unpacked(m->source, NULL); m->source = NULL)
LIE(source_type, set_text(&m->source->type, "int32"))
LIE(source_no_type, set_text(&m->source->type, ""))
LIE(source_rows, m->source->num_rows = m->first_row + m->num_rows - 1)
LIE(source_long, char path[BSW_PATH_BYTES + 1]; memset(path, 'a', sizeof path);
    path[BSW_PATH_BYTES] = '\0'; set_text(&m->source->path, path))

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} common_lies[] = {
    {lie_other_rule, NULL}, // left out
    {lie_known_none, "number of known answers"},
    {lie_known_many, "number of known answers"},
    {lie_known_fewer, "known answers do not fit"},
    {lie_known_short, "known answers do not fit"},
    {lie_known_row, "known answers do not fit"},
    {lie_known_order, "known answers do not fit"},
    {lie_known_lists, NULL}, // each list has an order of its own
    {lie_nothing, NULL},
    {lie_version_2, "format version 2, this program reads 1"},
    {lie_version_0, "format version 0"},
    {lie_metric, "unknown metric"},
    {lie_no_metric, "unknown metric"},
    {lie_codec, "unknown codec"},
    {lie_no_rows, "number of rows is out of range"},
    {lie_rows_2_63, "number of rows is out of range"},
    {lie_rows_2_64, "number of rows is out of range"},
    {lie_rows_wrap, "number of rows is out of range"},
    {lie_dims_less, "dims of the segments do not add up"},
    {lie_dims_zero, "dims of the segments do not add up"},
    {lie_dims_more, "dims of the segments do not add up"},
    {lie_dims_huge, "a segment is out of range"},
    {lie_bits_9, "a segment is out of range"},
    {lie_bits_0, "a segment is out of range"},
    {lie_no_segments, "no segments"},
    {lie_no_shards, "number of shards"},
    {lie_shard_missing, "do not add up"},
    {lie_shards_overlap, "do not follow each other"},
    {lie_shards_gap, "do not follow each other"},
    {lie_shards_short, "do not add up"},
    {lie_shards_long, "do not follow each other"},
    {lie_shard_empty, "do not follow each other"},
    {lie_shard_wraps, "do not follow each other"},
    {lie_shard_before, "do not follow each other"},
    {lie_shard_drops_all, "do not follow each other"},
    {lie_dropped, "do not add up"},
    {lie_rows_more, "do not add up"},
    {lie_no_source, "no source"},
    {lie_source_type, "type is unknown"},
    {lie_source_no_type, "type is unknown"},
    {lie_source_rows, "more rows than the source has"},
    {lie_source_long, "no source"},
};

LIE(no_frame, bsw__frame__free_unpacked(m->frame, NULL); m->frame = NULL)
LIE(mean_short, m->frame->mean.len--)
LIE(mean_less, m->frame->mean.len -= 4)
LIE(mean_none, m->frame->mean.len = 0)
LIE(rotation_less, m->frame->rotation.len -= 4)
LIE(rotation_short, m->frame->rotation.len--)
LIE(steps_less, m->frame->n_steps--)
LIE(mean_nan, set_float(&m->frame->mean, 39, NAN))
LIE(mean_inf, set_float(&m->frame->mean, 0, INFINITY))
LIE(rotation_nan, set_float(&m->frame->rotation, 40 * 40 - 1, NAN))
LIE(rotation_inf, set_float(&m->frame->rotation, 0, -INFINITY))
LIE(step_nan, m->frame->steps[1] = NAN)
LIE(step_zero, m->frame->steps[0] = 0)
LIE(step_negative, m->frame->steps[0] = -1)
LIE(step_inf, m->frame->steps[1] = INFINITY)
LIE(stage_zero, m->frame->stage_dims = 0)
LIE(stage_beyond, m->frame->stage_dims = 41)
LIE(scale_exponent, m->frame->scale_exponent = 127)
LIE(scale_exponent_low, m->frame->scale_exponent = INT32_MIN)
LIE(tail_exponent, m->frame->tail_exponent = -127)

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} frame_lies[] = {
    {lie_no_frame, "does not fit dims and segments"},
    {lie_mean_short, "does not fit dims and segments"},
    {lie_mean_less, "does not fit dims and segments"},
    {lie_mean_none, "does not fit dims and segments"},
    {lie_rotation_less, "does not fit dims and segments"},
    {lie_rotation_short, "does not fit dims and segments"},
    {lie_steps_less, "does not fit dims and segments"},
    {lie_mean_nan, "not finite"},
    {lie_mean_inf, "not finite"},
    {lie_rotation_nan, "not finite"},
    {lie_rotation_inf, "not finite"},
    {lie_step_nan, "not finite"},
    {lie_step_zero, "not finite"},
    {lie_step_negative, "not finite"},
    {lie_step_inf, "not finite"},
    {lie_stage_zero, "out of range"},
    {lie_stage_beyond, "out of range"},
    {lie_scale_exponent, "out of range"},
    {lie_scale_exponent_low, "out of range"},
    {lie_tail_exponent, "out of range"},
};

LIE(scale_zero, m->xfbq_scale = 0)
LIE(scale_nan, m->xfbq_scale = NAN)
LIE(scale_inf, m->xfbq_scale = INFINITY)
LIE(scale_negative, m->xfbq_scale = -1)
LIE(plain_l2, set_text(&m->metric, "l2"))
LIE(plain_ip, set_text(&m->metric, "ip"))
LIE(plain_as_saq, set_text(&m->codec, "saq"))

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} plain_lies[] = {
    {lie_scale_zero, "the scale is out of range"},
    {lie_scale_nan, "the scale is out of range"},
    {lie_scale_inf, "the scale is out of range"},
    {lie_scale_negative, "the scale is out of range"},
    {lie_plain_l2, "no plain code"},
    {lie_plain_ip, "no plain code"},
    {lie_plain_as_saq, "does not fit dims and segments"},
};

LIE(raw_cosine, set_text(&m->metric, "cosine"))
LIE(raw_bits, m->segments[0]->bits = 7)
LIE(raw_average, m->bits = 7)
LIE(raw_dims, m->dims = m->segments[0]->dims = BSW_RAW_MAX_DIMS + 1)
LIE(raw_widest, m->dims = m->segments[0]->dims = BSW_RAW_MAX_DIMS)
LIE(raw_floats, set_text(&m->source->type, "float32"))
LIE(raw_ip, set_text(&m->metric, "ip"); set_text(&m->source->type, "uint8"))
LIE(raw_dropped, m->shards[1]->dropped_rows = m->dropped_rows = 1)
LIE(raw_as_plain, set_text(&m->codec, "xfbq"))

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} raw_lies[] = {
    {lie_raw_cosine, "no raw rows"},
    {lie_raw_bits, "no raw rows"},
    {lie_raw_average, "no raw rows"},
    {lie_raw_dims, "no raw rows"},
    {lie_raw_widest, NULL},
    {lie_raw_floats, "no raw rows"},
    {lie_raw_ip, NULL},
    {lie_raw_dropped, "no raw rows"},
    {lie_raw_as_plain, "the scale is out of range"},
};

LIE(rbe_l2, set_text(&m->metric, "l2"))
LIE(rbe_bits, m->bits = 3)
LIE(rbe_nothing, bsw__learned__free_unpacked(m->learned, NULL); m->learned = NULL)
LIE(rbe_rows, m->learned->row_dims = 0)
LIE(rbe_wide_rows, m->learned->row_dims = BSW_RBE_MAX_ROW_DIMS + 1)
LIE(rbe_planes, m->learned->query_planes = 0)
LIE(rbe_many_planes, m->learned->query_planes = BSW_MAX_QUERY_BITS + 1)
LIE(rbe_exponent, m->learned->scale_exponent = 127)
LIE(rbe_digest, m->learned->model_digest++)

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} rbe_lies[] = {
    {lie_rbe_l2, "no learned code"},
    {lie_rbe_bits, "no learned code"},
    {lie_rbe_nothing, "out of range"},
    {lie_rbe_rows, "out of range"},
    {lie_rbe_wide_rows, "out of range"},
    {lie_rbe_planes, "out of range"},
    {lie_rbe_many_planes, "out of range"},
    {lie_rbe_exponent, "out of range"},
    {lie_rbe_digest, NULL}, // found when the model is opened
};

static void manifests_that_lie_are_refused(void **state)
{
    (void)state;
    struct bsw_manifest plain, saq, raw, rbe;
    struct bsw_buffer plain_bytes = {0}, saq_bytes = {0}, raw_bytes = {0}, rbe_bytes = {0};
    make_rbe(&rbe);
    pack(&rbe, &rbe_bytes);
    for (size_t i = 0; i < sizeof rbe_lies / sizeof rbe_lies[0]; i++)
        check_lie(&rbe_bytes, rbe_lies[i].lie, rbe_lies[i].clause);
    bsw_buffer_deinit(&rbe_bytes);
    bsw_manifest_deinit(&rbe);
    make_plain(&plain);
    make_saq(&saq, "7x3,33x1", 40);
    pack(&plain, &plain_bytes);
    pack(&saq, &saq_bytes);
    make_raw(&raw);
    pack(&raw, &raw_bytes);
    for (size_t i = 0; i < sizeof common_lies / sizeof common_lies[0]; i++) {
        check_lie(&plain_bytes, common_lies[i].lie, common_lies[i].clause);
        check_lie(&saq_bytes, common_lies[i].lie, common_lies[i].clause);
    }
    for (size_t i = 0; i < sizeof frame_lies / sizeof frame_lies[0]; i++)
        check_lie(&saq_bytes, frame_lies[i].lie, frame_lies[i].clause);
    for (size_t i = 0; i < sizeof plain_lies / sizeof plain_lies[0]; i++)
        check_lie(&plain_bytes, plain_lies[i].lie, plain_lies[i].clause);
    for (size_t i = 0; i < sizeof raw_lies / sizeof raw_lies[0]; i++)
        check_lie(&raw_bytes, raw_lies[i].lie, raw_lies[i].clause);
    bsw_buffer_deinit(&raw_bytes);
    bsw_manifest_deinit(&raw);
    bsw_buffer_deinit(&plain_bytes);
    bsw_buffer_deinit(&saq_bytes);
    bsw_manifest_deinit(&plain);
    bsw_manifest_deinit(&saq);
}

// What arrays cannot hold: 33 segments, more shards than there may be, two segments of a plain
// code.
static void too_many_parts_are_refused(void **state)
{
    (void)state;
    struct bsw_manifest manifest;
    struct bsw_buffer buffer = {0};
    Bsw__Segment segment = BSW__SEGMENT__INIT, *segments[33];
    segment.dims = segment.bits = 1;
    for (size_t i = 0; i < 33; i++) segments[i] = &segment;
    make_plain(&manifest);
    bsw_free(&manifest.shards);
    manifest.num_rows = manifest.source_rows = BSW_MAX_SHARDS + 1;
    manifest.first_row = 0;
    cut_into_shards(&manifest, BSW_MAX_SHARDS + 1);
    for (uint32_t i = 0; i <= BSW_MAX_SHARDS; i++) manifest.shards[i].dropped_rows = 0;
    manifest.dropped_rows = 0;
    pack(&manifest, &buffer);
    assert_refused(buffer.data, buffer.bytes, "number of shards");
    bsw_manifest_deinit(&manifest);

    make_plain(&manifest);
    pack(&manifest, &buffer);
    for (size_t count = 2; count <= 33; count += 31) {
        Bsw__Manifest *message = bsw__manifest__unpack(NULL, buffer.bytes, buffer.data);
        Bsw__Segment **own = message->segments;
        size_t num_own = message->n_segments;
        message->digest = 0;
        message->segments = segments;
        message->n_segments = count;
        message->dims = (uint32_t)count;
        size_t bytes = bsw__manifest__get_packed_size(message);
        unsigned char *data = allocate(bytes + 9, 1);
        bsw__manifest__pack(message, data);
        seal(data, bytes);
        assert_refused(data, bytes + 9,
                       count == 33 ? "a segment is out of range" : "no plain code");
        message->segments = own;
        message->n_segments = num_own;
        bsw__manifest__free_unpacked(message, NULL);
        bsw_free(&data);
    }
    bsw_buffer_deinit(&buffer);
    bsw_manifest_deinit(&manifest);
}

// Bytes that are no protobuf, with a right digest.
static void noise_with_a_right_digest_is_refused(void **state)
{
    (void)state;
    unsigned char data[64 + 9];
    for (uint64_t trial = 0; trial < 20000; trial++) {
        size_t bytes = 1 + bsw_hash2(5, trial) % 64;
        for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)bsw_hash2(trial, i);
        seal(data, bytes);
        assert_refused(data, bytes + 9, "");
    }
}

// ---- build digest ----

static uint64_t digest_of(const struct bsw_manifest *manifest)
{
    uint64_t digest = 0;
    assert_int_equal(bsw_manifest_build_digest(manifest, &digest, &err), BSW_OK);
    return digest;
}

// Statements that change one parameter each.
#define CHANGE(statement)                 \
    {                                     \
        statement;                        \
        digests[count++] = digest_of(&m); \
        bsw_manifest_deinit(&m);          \
        make_saq(&m, "7x3,33x1", 40);     \
    }

static void build_digest_depends_on_every_parameter(void **state)
{
    (void)state;
    struct bsw_manifest m;
    uint64_t digests[64];
    size_t count = 0;
    make_saq(&m, "7x3,33x1", 40);
    digests[count++] = digest_of(&m);
    CHANGE(m.first_row++)
    CHANGE(m.num_rows++)
    CHANGE(m.dropped_rows++)
    CHANGE(m.metric = BSW_METRIC_IP)
    CHANGE(m.metric = BSW_METRIC_COSINE)
    CHANGE(m.layout.segments[1].bits = 2)
    CHANGE(bsw_manifest_deinit(&m); make_saq(&m, "33x1,7x3", 40))
    CHANGE(bsw_manifest_deinit(&m); make_saq(&m, "7x3,34x1", 41))
    CHANGE(m.bits = 2.5)
    CHANGE(m.xfbq_scale = 1)
    CHANGE(m.mean[39] = nextafterf(m.mean[39], 9))
    CHANGE(m.rotation[39 * 96 + 64] = nextafterf(m.rotation[39 * 96 + 64], 9))
    CHANGE(m.steps[1] = nextafterf(m.steps[1], 9))
    CHANGE(m.scale_exponent++)
    CHANGE(m.tail_exponent++)
    CHANGE(m.stage_dims = 40)
    CHANGE(strcpy(m.axes, "random"))
    CHANGE(m.num_shards--)
    CHANGE(m.shards[1].first_row++)
    CHANGE(m.shards[1].num_rows++)
    CHANGE(m.shards[1].codes_bytes++)
    CHANGE(m.shards[1].vectors_bytes++)
    CHANGE(m.shards[1].dropped_rows++)
    CHANGE(strcpy(m.source_path, "base.i8bin"))
    CHANGE(m.source_type = BSW_VECTOR_UINT8)
    CHANGE(m.source_file_bytes++)
    CHANGE(m.source_rows++)
    CHANGE(m.source_digest++)
    CHANGE(m.source_is_copied = 0)
    CHANGE(m.codec = BSW_CODEC_XFBQ)
    assert_true(count == 31);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (digests[i] == digests[j]) fail_msg("changes %zu and %zu give one digest", j, i);
    m.build_digest++; // not of itself, and not of what the shards' content gives
    m.shards[2].codes_digest++;
    assert_true(digest_of(&m) == digests[0]);
    bsw_manifest_deinit(&m);
}

static void build_digest_depends_on_what_was_learned(void **state)
{
    (void)state;
    struct bsw_manifest m;
    uint64_t digests[5];
    make_rbe(&m);
    digests[0] = digest_of(&m);
    m.model_digest++;
    digests[1] = digest_of(&m);
    m.row_dims++;
    digests[2] = digest_of(&m);
    m.query_planes++;
    digests[3] = digest_of(&m);
    m.scale_exponent++;
    digests[4] = digest_of(&m);
    for (int i = 1; i < 5; i++) assert_true(digests[i] != digests[i - 1]);
    bsw_manifest_deinit(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(manifests_come_back),
        cmocka_unit_test(a_missing_manifest_is_a_fault_of_the_system),
        cmocka_unit_test(every_damaged_bit_and_truncation_is_found),
        cmocka_unit_test(manifests_that_lie_are_refused),
        cmocka_unit_test(too_many_parts_are_refused),
        cmocka_unit_test(noise_with_a_right_digest_is_refused),
        cmocka_unit_test(build_digest_depends_on_every_parameter),
        cmocka_unit_test(build_digest_depends_on_what_was_learned),
    };
    return cmocka_run_group_tests_name("index_manifest", tests, make_temporary_folder,
                                       remove_temporary_folder);
}
