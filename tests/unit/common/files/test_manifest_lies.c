// SPDX-License-Identifier: Apache-2.0
// Manifests with a right digest that say what cannot be: each lie is refused in its own words.
#include "manifest_cases.h"

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
LIE(version_7, m->format_version = 7)
LIE(version_5, m->format_version = 5)
LIE(code_rule, m->code_rule = 1)
LIE(newer_rule, (m->code_rule = 1000, m->format_version = 4))
LIE(version_2, m->format_version = 2)
LIE(version_0, m->format_version = 0)
LIE(metric, set_text(&m->metric, "hamming"))
LIE(no_metric, set_text(&m->metric, ""))
LIE(codec, set_text(&m->codec, "lsh"))
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
    {lie_version_2, "format version 2, but its content is that of version 1"},
    {lie_version_7, "format version 7, this program reads 1 to 6: it was made by a newer bitsweep"},
    {lie_version_5, "format version 5, but its content is that of version 1"},
    {lie_code_rule, "format version 1, but its content is that of version 4"},
    {lie_newer_rule, "codes by a rule that only a newer bitsweep knows"},
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

// Changes the codec's own message inside the manifest's.
#define PART_LIE(name, Message, message, field, statements)                                 \
    static void lie_##name(Bsw__Manifest *m)                                                \
    {                                                                                       \
        Bsw__##Message *part = bsw__##message##__unpack(NULL, m->field.len, m->field.data); \
        statements;                                                                         \
        free(m->field.data);                                                                \
        m->field.data = malloc(bsw__##message##__get_packed_size(part) + 1);                \
        m->field.len = bsw__##message##__pack(part, m->field.data);                         \
        bsw__##message##__free_unpacked(part, NULL);                                        \
    }
#define FRAME_LIE(name, statements) PART_LIE(name, Frame, frame, frame, statements)
#define RBE_LIE(name, statements)   PART_LIE(name, Learned, learned, learned, statements)

LIE(no_frame, m->frame.len = 0)
LIE(frame_noise, memset(m->frame.data, 0xff, m->frame.len))
FRAME_LIE(mean_short, part->mean.len--)
FRAME_LIE(mean_less, part->mean.len -= 4)
FRAME_LIE(mean_none, part->mean.len = 0)
FRAME_LIE(rotation_less, part->rotation.len -= 4)
FRAME_LIE(rotation_short, part->rotation.len--)
FRAME_LIE(steps_less, part->n_steps--)
FRAME_LIE(mean_nan, set_float(&part->mean, 39, NAN))
FRAME_LIE(mean_inf, set_float(&part->mean, 0, INFINITY))
FRAME_LIE(rotation_nan, set_float(&part->rotation, 40 * 40 - 1, NAN))
FRAME_LIE(rotation_inf, set_float(&part->rotation, 0, -INFINITY))
FRAME_LIE(step_nan, part->steps[1] = NAN)
FRAME_LIE(step_zero, part->steps[0] = 0)
FRAME_LIE(step_negative, part->steps[0] = -1)
FRAME_LIE(step_inf, part->steps[1] = INFINITY)
FRAME_LIE(stage_zero, part->stage_dims = 0)
FRAME_LIE(stage_beyond, part->stage_dims = 41)
FRAME_LIE(scale_exponent, part->scale_exponent = 127)
FRAME_LIE(scale_exponent_low, part->scale_exponent = INT32_MIN)
FRAME_LIE(tail_exponent, part->tail_exponent = -127)

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} frame_lies[] = {
    {lie_no_frame, "does not fit dims and segments"},
    {lie_frame_noise, "frame"},
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

LIE(scale_zero, m->codec_number = 0)
LIE(scale_nan, m->codec_number = NAN)
LIE(scale_inf, m->codec_number = INFINITY)
LIE(scale_negative, m->codec_number = -1)
LIE(plain_l2, set_text(&m->metric, "l2"))
LIE(plain_ip, set_text(&m->metric, "ip"))
LIE(plain_as_saq, set_text(&m->codec, "saq"))
LIE(no_rotation, (m->code_rule = 1, m->format_version = 4))

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
    {lie_no_rotation, "the rotation does not fit the dims"},
};

#define ROTATED_LIE(name, statements) PART_LIE(name, Rotation, rotation, part, statements)

LIE(rotated_as_plain, (m->code_rule = 0, m->format_version = 1))
LIE(rotated_noise, memset(m->part.data, 0xff, m->part.len))
ROTATED_LIE(matrix_short, part->matrix.len--)
ROTATED_LIE(matrix_less, part->matrix.len -= 4)
ROTATED_LIE(matrix_none, part->matrix.len = 0)
ROTATED_LIE(matrix_nan, set_float(&part->matrix, 47 * 47 - 1, NAN))
ROTATED_LIE(matrix_inf, set_float(&part->matrix, 0, -INFINITY))
ROTATED_LIE(matrix_large, set_float(&part->matrix, 1, 2.5f))

static const struct {
    void (*lie)(Bsw__Manifest *message);
    const char *clause;
} rotated_lies[] = {
    {lie_nothing, NULL},
    {lie_rotated_as_plain, "a rotation of codes without one"},
    {lie_rotated_noise, "rotation"},
    {lie_matrix_short, "does not fit the dims"},
    {lie_matrix_less, "does not fit the dims"},
    {lie_matrix_none, "does not fit the dims"},
    {lie_matrix_nan, "out of range"},
    {lie_matrix_inf, "out of range"},
    {lie_matrix_large, "out of range"},
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
LIE(rbe_nothing, m->learned.len = 0)
RBE_LIE(rbe_rows, part->row_dims = 0)
RBE_LIE(rbe_wide_rows, part->row_dims = BSW_RBE_MAX_DIMS + 1)
RBE_LIE(rbe_planes, part->query_planes = 0)
RBE_LIE(rbe_many_planes, part->query_planes = BSW_MAX_QUERY_BITS + 1)
RBE_LIE(rbe_exponent, part->scale_exponent = 127)
RBE_LIE(rbe_digest, part->model_digest++)

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

UNIT_TEST(rotations_that_lie_are_refused)
{
    struct bsw_manifest rotated;
    struct bsw_buffer bytes = {0};
    make_rotated(&rotated);
    pack(&rotated, &bytes);
    for (size_t i = 0; i < sizeof rotated_lies / sizeof rotated_lies[0]; i++)
        check_lie(&bytes, rotated_lies[i].lie, rotated_lies[i].clause);
    bsw_buffer_deinit(&bytes);
    bsw_manifest_deinit(&rotated);
}

UNIT_TEST(manifests_that_lie_are_refused)
{
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
UNIT_TEST(too_many_parts_are_refused)
{
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
UNIT_TEST(noise_with_a_right_digest_is_refused)
{
    unsigned char data[64 + 9];
    for (uint64_t trial = 0; trial < 20000; trial++) {
        size_t bytes = 1 + bsw_hash2(5, trial) % 64;
        for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)bsw_hash2(trial, i);
        seal(data, bytes);
        assert_refused(data, bytes + 9, "");
    }
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
