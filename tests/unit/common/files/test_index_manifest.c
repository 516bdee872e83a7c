// SPDX-License-Identifier: Apache-2.0
// The manifest: every field comes back, every damaged bit is found, and one that lies with a right
// digest is refused for what it says.
#include "manifest_cases.h"

// ---- round trips ----

static void assert_same_facts(const struct bsw_manifest *a, const struct bsw_manifest *b)
{
    assert_true(a->build_digest == b->build_digest && a->first_row == b->first_row);
    assert_true(a->num_rows == b->num_rows && a->dropped_rows == b->dropped_rows);
    assert_true(a->metric == b->metric && a->codec == b->codec && a->bits == b->bits);
    assert_memory_equal(&a->layout, &b->layout, sizeof a->layout);
    assert_true(a->codec_number == b->codec_number && a->stage_dims == b->stage_dims);
    assert_true(a->scale_exponent == b->scale_exponent && a->tail_exponent == b->tail_exponent);
    assert_int_equal(a->row_dims, b->row_dims);
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
static void assert_same_frame(const struct bsw_manifest *a, const struct bsw_manifest *b)
{
    const struct bsw_code_layout *layout = &a->layout;
    const struct bsw_saq_part *in = bsw_saq_part_of(a), *out = bsw_saq_part_of(b);
    assert_memory_equal(in->steps, out->steps, sizeof in->steps);
    assert_string_equal(in->axes, out->axes);
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

// For rule 1 alone.
static void assert_same_rotation(const struct bsw_manifest *a, const struct bsw_manifest *b)
{
    size_t dims = a->layout.dims, padded = a->layout.padded_dims;
    assert_int_equal(a->code_rule, b->code_rule);
    assert_int_equal(bsw_manifest_format_version(b), b->code_rule ? 4 : 1);
    assert_int_equal(b->part != NULL, b->code_rule == 1);
    if (!b->part) return;
    for (size_t j = 0; j < dims; j++) {
        const float *row = bsw_xfbq_part_of(b)->rotation + j * padded;
        assert_memory_equal(bsw_xfbq_part_of(a)->rotation + j * padded, row, dims * sizeof *row);
        for (size_t i = dims; i < padded; i++) assert_true(row[i] == 0.0f);
        assert_true(bsw_xfbq_part_of(b)->mean[j] == 0.0f);
    }
}

static void check_round_trip(struct bsw_manifest *in)
{
    struct bsw_buffer first = {0}, second = {0};
    struct bsw_manifest out;
    pack(in, &first);
    assert_int_equal(bsw_manifest_parse("m", first.data, first.bytes, &out, &err), BSW_OK);
    assert_same_facts(in, &out);
    if (in->codec == &bsw_codec_saq) assert_same_frame(in, &out);
    if (in->codec == &bsw_codec_xfbq) assert_same_rotation(in, &out);
    if (in->codec == &bsw_codec_rbe) {
        assert_true(bsw_rbe_part_of(in)->model_digest == bsw_rbe_part_of(&out)->model_digest);
        assert_int_equal(bsw_rbe_part_of(in)->query_planes, bsw_rbe_part_of(&out)->query_planes);
    }
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

UNIT_TEST(manifests_come_back)
{
    static const struct {
        const char *segments;
        uint32_t dims;
    } layouts[] = {{"138x4", 138}, {"33x3,5x2,100x1", 138}, {"1x8", 1}, {"32x8,32x1", 64}};
    struct bsw_manifest manifest;
    make_plain(&manifest);
    check_round_trip(&manifest);
    make_rotated(&manifest);
    check_round_trip(&manifest);
    make_raw(&manifest);
    check_round_trip(&manifest);
    make_rbe(&manifest);
    check_round_trip(&manifest);
    make_rbe(&manifest); // of a program that knew none
    bsw_free(&manifest.known);
    manifest.num_known = 0;
    for (uint32_t i = 0; i < manifest.num_shards; i++)
        manifest.shards[i].first_known = manifest.shards[i].num_known_rows = 0;
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

UNIT_TEST(a_missing_manifest_is_a_fault_of_the_system)
{
    struct bsw_manifest manifest;
    assert_int_equal(bsw_manifest_read(path_of("nowhere"), &manifest, &err), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "nowhere/manifest.pb"));
    bsw_manifest_deinit(&manifest);
}

// A file of zeros, which are no manifest, whatever their number: one with a GiB of centroids may be
// so large.
UNIT_TEST(a_manifest_may_be_as_large_as_its_centroids)
{
    struct bsw_manifest manifest;
    write_test_file("manifest.pb", "", 0);
    assert_int_equal(truncate(path_of("manifest.pb"), (257 << 20)), 0);
    assert_int_equal(bsw_manifest_read(temporary_folder, &manifest, &err), BSW_ERROR_BAD_DATA);
    assert_null(strstr(err.message, "more than"));
    assert_int_equal(truncate(path_of("manifest.pb"), ((off_t)5 << 28) + 1), 0);
    assert_int_equal(bsw_manifest_read(temporary_folder, &manifest, &err), BSW_ERROR_BAD_DATA);
    assert_non_null(strstr(err.message, "manifest.pb: 1342177281 bytes, more than"));
    assert_int_equal(unlink(path_of("manifest.pb")), 0);
}

// ---- damage ----

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

UNIT_TEST(every_damaged_bit_and_truncation_is_found)
{
    struct bsw_manifest manifest;
    make_plain(&manifest);
    check_damage(&manifest);
    make_saq(&manifest, "7x3,33x1", 40);
    check_damage(&manifest);
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

UNIT_TEST(build_digest_depends_on_every_parameter)
{
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
    CHANGE(m.codec_number = 1)
    CHANGE(bsw_saq_part_of(&m)->mean[39] = nextafterf(bsw_saq_part_of(&m)->mean[39], 9))
    CHANGE(bsw_saq_part_of(&m)->rotation[39 * 96 + 64] =
               nextafterf(bsw_saq_part_of(&m)->rotation[39 * 96 + 64], 9))
    CHANGE(bsw_saq_part_of(&m)->steps[1] = nextafterf(bsw_saq_part_of(&m)->steps[1], 9))
    CHANGE(m.scale_exponent++)
    CHANGE(m.tail_exponent++)
    CHANGE(m.stage_dims = 40)
    CHANGE(strcpy(bsw_saq_part_of(&m)->axes, "random"))
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
    CHANGE(bsw_codec_saq.free_part(m.part); m.part = NULL; m.codec = &bsw_codec_xfbq)
    assert_true(count == 31);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (digests[i] == digests[j]) fail_msg("changes %zu and %zu give one digest", j, i);
    m.build_digest++; // not of itself, and not of what the shards' content gives
    m.shards[2].codes_digest++;
    assert_true(digest_of(&m) == digests[0]);
    bsw_manifest_deinit(&m);
}

// By rule 1 rbe has no biases: 4 bytes of a row and 128 of a bundle less.
UNIT_TEST(rules_decide_whether_there_are_biases)
{
    struct bsw_manifest m;
    struct bsw_shard_shape with, without;
    make_rbe(&m);
    double row_bytes = bsw_manifest_row_bytes(&m);
    bsw_shard_shape_init(&with, &m, 0);
    assert_true(with.has_affine && with.has_biases);
    m.code_rule = 1;
    assert_true(bsw_manifest_row_bytes(&m) == row_bytes - 4);
    bsw_shard_shape_init(&without, &m, 0);
    assert_true(without.has_affine && !without.has_biases);
    assert_int_equal(without.bundle_bytes, with.bundle_bytes - BSW_BUNDLE_ROWS * sizeof(float));
    assert_int_equal(bsw_manifest_format_version(&m), 4);
    check_round_trip(&m);
    make_saq(&m, "7x3,33x1", 40);
    m.code_rule = 1; // which it does not have, so that it says nothing of biases
    assert_true(bsw_manifest_has_biases(&m));
    bsw_manifest_deinit(&m);
    make_plain(&m);
    assert_false(bsw_manifest_has_biases(&m));
    bsw_manifest_deinit(&m);
}

UNIT_TEST(build_digest_depends_on_the_rotation)
{
    struct bsw_manifest m;
    uint64_t digests[3];
    make_plain(&m);
    digests[0] = digest_of(&m);
    bsw_manifest_deinit(&m);
    make_rotated(&m);
    digests[1] = digest_of(&m);
    bsw_xfbq_part_of(&m)->rotation[46 * 64 + 46] += 0.5f;
    digests[2] = digest_of(&m);
    assert_true(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2]);
    bsw_manifest_deinit(&m);
}

UNIT_TEST(build_digest_depends_on_what_was_learned)
{
    struct bsw_manifest m;
    uint64_t digests[5];
    make_rbe(&m);
    digests[0] = digest_of(&m);
    bsw_rbe_part_of(&m)->model_digest++;
    digests[1] = digest_of(&m);
    m.row_dims++;
    digests[2] = digest_of(&m);
    bsw_rbe_part_of(&m)->query_planes++;
    digests[3] = digest_of(&m);
    m.scale_exponent++;
    digests[4] = digest_of(&m);
    for (int i = 1; i < 5; i++) assert_true(digests[i] != digests[i - 1]);
    bsw_manifest_deinit(&m);
}

int main(void)
{
    return run_unit_tests(make_temporary_folder, remove_temporary_folder);
}
