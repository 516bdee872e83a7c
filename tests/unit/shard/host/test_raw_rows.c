// SPDX-License-Identifier: Apache-2.0
// Raw rows behind an index: those of the source, and every damaged bit and changed source is found
// and named.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shard/codecs/codec.h"
#include "small_shards.h"

#include "common/files/list_order.h"
#include "shard/host/raw_rows.h"
#include "shard/host/resident_shard.h"

static const struct bsw_list_order no_lists = {0};

// The digests of a shard's bundles, as resident shards hold them.
static void load_digests(const struct bsw_manifest *manifest, uint32_t shard, uint64_t digests[2])
{
    struct bsw_resident_shard resident;
    assert_ok(bsw_resident_shard_load(manifest, temporary_folder, shard, 0, &resident, &err), &err);
    memcpy(digests, resident.arrays.row_digests, 2 * sizeof *digests);
    bsw_resident_shard_unload(&resident);
}

static enum bsw_status get_row(const struct bsw_manifest *manifest, uint32_t shard, uint32_t row,
                               const uint64_t *digests, float out[DIMS])
{
    struct bsw_raw_rows rows;
    float scratch[DIMS];
    const void *found;
    err.message[0] = '\0';
    BSW_TRY(bsw_raw_rows_open(manifest, temporary_folder, shard, &no_lists, &rows, &err));
    enum bsw_status status = bsw_raw_rows_get(&rows, row, digests, scratch, &found, &err);
    if (status == BSW_OK) memcpy(out, found, DIMS * sizeof(float));
    bsw_raw_rows_close(&rows);
    return status;
}

// From the source, from the copy and generated again: the same rows.
UNIT_TEST(raw_rows_are_those_of_the_source)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 3, .clusters = 5};
    for (int kind = 0; kind < 3; kind++) {
        struct bsw_manifest manifest;
        struct small_index what = small(&bsw_codec_xfbq);
        what.copies_vectors = kind == 1;
        if (kind == 2) what.source = "synth:count=70,dims=17,seed=3,clusters=5";
        make_small_index(&what, temporary_folder, &manifest);
        for (uint32_t row = 0; row < ROWS; row++) {
            uint64_t digests[2];
            float expected[DIMS], found[DIMS];
            load_digests(&manifest, row / 35, digests);
            assert_ok(get_row(&manifest, row / 35, row % 35, digests, found), &err);
            bsw_synth_rows(&synth, row, 1, expected);
            assert_memory_equal(found, expected, sizeof found);
        }
        bsw_manifest_deinit(&manifest);
    }
}

// A flipped bit at byte `at` of `path`, seen by verify on the open map and by a fresh get.
static void check_raw_bit(const struct bsw_manifest *manifest, const struct bsw_raw_rows *rows,
                          const uint64_t *digests, const char *path, size_t head, size_t bit,
                          unsigned char byte)
{
    size_t at = bit / 8, row = (at - head) / (DIMS * 4), bundle = row / 32;
    uint64_t first = rows->shard_first_row + bundle * 32;
    float scratch[DIMS];
    char clause[64];
    snprintf(clause, sizeof clause, "rows %llu to %llu are not those", (unsigned long long)first,
             (unsigned long long)(bundle == 0 ? first + 31 : first + 2));
    write_byte(path, at, (unsigned char)(byte ^ 1u << bit % 8));
    for (size_t b = 0; b < 2; b++) {
        enum bsw_status status = bsw_raw_rows_verify(rows, b, digests[b], scratch, &err);
        if (b == bundle)
            assert_bad(status, path, clause);
        else
            assert_int_equal(status, BSW_OK);
    }
    if (bit % 61 == 0) { // any row of the bundle, not only the damaged one
        uint32_t last = bundle == 0 ? 31 : 34;
        assert_bad(get_row(manifest, rows->shard_first_row / 35, last, digests, scratch), path,
                   clause);
        assert_ok(
            get_row(manifest, rows->shard_first_row / 35, bundle == 0 ? 32 : 0, digests, scratch),
            &err);
    }
    write_byte(path, at, byte);
}

static void check_raw_bits(int copies_vectors, uint32_t shard)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_saq);
    struct bsw_raw_rows rows;
    uint64_t digests[2];
    what.copies_vectors = copies_vectors;
    make_small_index(&what, temporary_folder, &manifest);
    const char *path = copies_vectors ? numbered(".vectors", shard, 2) : what.source;
    size_t head = copies_vectors ? BSW_SHARD_HEADER_BYTES : 8 + shard * 35 * DIMS * 4;
    unsigned char *bytes;
    read_file(path, &bytes);
    load_digests(&manifest, shard, digests);
    assert_ok(bsw_raw_rows_open(&manifest, temporary_folder, shard, &no_lists, &rows, &err), &err);
    path = rows.path; // the source is named as seen from the index
    for (size_t bit = head * 8; bit < (head + 35 * DIMS * 4) * 8; bit++)
        check_raw_bit(&manifest, &rows, digests, path, head, bit, bytes[bit / 8]);
    bsw_raw_rows_close(&rows);
    bsw_free(&bytes);
    bsw_manifest_deinit(&manifest);
}

UNIT_TEST(every_damaged_bit_of_raw_rows_is_found)
{
    for (uint32_t shard = 0; shard < 2; shard++) {
        check_raw_bits(0, shard);
        check_raw_bits(1, shard);
    }
}

// ---- in the order of lists ----

enum { LISTS = 3, DROPPED = 11 };

// The rows of shard 0 as copies in the order of lists, one of them dropped.
struct ordered_rows {
    struct bsw_manifest manifest;
    struct bsw_list_order order;
    struct bsw_raw_rows rows;
    uint64_t digests[2 * LISTS]; // of bundles
    uint32_t num_bundles;
};

static void write_ordered(struct ordered_rows *out, const float *vectors)
{
    static const float zeros[DIMS];
    const char *path = numbered(".vectors", 0, 2);
    int fd;
    assert_ok(bsw_file_open_write(path, &fd, &err), &err);
    for (uint32_t p = 0; p < out->order.num_places; p++) {
        uint32_t row = out->order.rows[p];
        const float *from = row == BSW_NO_ROW ? zeros : vectors + row * DIMS;
        assert_ok(bsw_file_write_at(fd, path, BSW_SHARD_HEADER_BYTES + p * sizeof zeros, from,
                                    sizeof zeros, &err),
                  &err);
        if (row != BSW_NO_ROW) out->digests[p / 32] += bsw_row_digest(from, sizeof zeros, row);
    }
    bsw_file_close(&fd);
}

static void open_ordered(struct ordered_rows *out, float *vectors)
{
    const struct bsw_synth synth = {.count = ROWS, .dims = DIMS, .seed = 3, .clusters = 5};
    struct small_index what = small(&bsw_codec_xfbq);
    uint32_t lists[35];
    uint64_t num_places;
    memset(out, 0, sizeof *out);
    what.copies_vectors = 1;
    make_small_index(&what, temporary_folder, &out->manifest);
    for (uint32_t r = 0; r < 35; r++) lists[r] = r == DROPPED ? BSW_NO_LIST : (r * 7 + 1) % LISTS;
    assert_ok(bsw_list_order_count(lists, 35, LISTS, &num_places, &err), &err);
    assert_ok(bsw_list_order_make(lists, 35, LISTS, num_places, &out->order, &err), &err);
    out->num_bundles = (uint32_t)bsw_num_bundles((size_t)num_places);
    assert_true(out->num_bundles <= 2 * LISTS);
    out->manifest.lists.count = LISTS;
    out->manifest.lists.has_ordered_vectors = 1;
    out->manifest.shards[0].num_places = num_places;
    out->manifest.shards[0].vectors_bytes =
        BSW_SHARD_HEADER_BYTES + num_places * DIMS * sizeof(float);
    bsw_synth_rows(&synth, 0, 35, vectors);
    write_ordered(out, vectors);
    assert_ok(bsw_raw_rows_open(&out->manifest, temporary_folder, 0, &out->order, &out->rows, &err),
              &err);
}

static void close_ordered(struct ordered_rows *ordered)
{
    bsw_raw_rows_close(&ordered->rows);
    bsw_list_order_deinit(&ordered->order);
    bsw_manifest_deinit(&ordered->manifest);
}

// A row is found at its place, and one that was dropped is zeros.
UNIT_TEST(rows_in_the_order_of_lists_are_those_of_the_source)
{
    struct ordered_rows ordered;
    float vectors[35 * DIMS], scratch[DIMS];
    open_ordered(&ordered, vectors);
    memset(vectors + DROPPED * DIMS, 0, sizeof scratch);
    for (uint32_t row = 0; row < 35; row++) {
        const void *found;
        assert_ok(bsw_raw_rows_get(&ordered.rows, row, ordered.digests, scratch, &found, &err),
                  &err);
        assert_memory_equal(found, vectors + row * DIMS, sizeof scratch);
    }
    close_ordered(&ordered);
}

// A bundle with a changed row gives no row, and the message says its places.
UNIT_TEST(damaged_rows_in_the_order_of_lists_are_found)
{
    struct ordered_rows ordered;
    float vectors[35 * DIMS], scratch[DIMS];
    open_ordered(&ordered, vectors);
    const char *path = numbered(".vectors", 0, 2);
    unsigned char *bytes;
    read_file(path, &bytes);
    for (uint32_t p = 0; p < ordered.order.num_places; p++) {
        size_t at = BSW_SHARD_HEADER_BYTES + p * sizeof scratch + p % sizeof scratch;
        uint32_t row = ordered.order.rows[p];
        char clause[64];
        snprintf(clause, sizeof clause, "rows at places %u to %u are not those", p / 32 * 32,
                 p / 32 * 32 + 31);
        write_byte(path, at, bytes[at] ^ 1);
        for (uint32_t b = 0; b < ordered.num_bundles; b++) {
            enum bsw_status status =
                bsw_raw_rows_verify(&ordered.rows, b, ordered.digests[b], scratch, &err);
            if (b == p / 32 && row != BSW_NO_ROW)
                assert_bad(status, ordered.rows.path, clause);
            else
                assert_int_equal(status, BSW_OK); // a place without a row may hold anything
        }
        write_byte(path, at, bytes[at]);
    }
    bsw_free(&bytes);
    close_ordered(&ordered);
}

// ---- a source that changed ----

static void assert_changed(const struct bsw_manifest *manifest, const char *what)
{
    uint64_t digests[2] = {0};
    float row[DIMS];
    assert_int_equal(get_row(manifest, 0, 0, digests, row), BSW_ERROR_BAD_DATA);
    if (!strstr(err.message, what)) fail_msg("'%s' lacks '%s'", err.message, what);
}

static void write_head_and_zeros(const char *name, const void *head, size_t head_bytes,
                                 size_t bytes)
{
    unsigned char *all = allocate_or_fail(bytes, 1);
    memcpy(all, head, head_bytes);
    write_test_file(name, all, bytes);
    bsw_free(&all);
}

UNIT_TEST(a_changed_source_is_found)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_xfbq);
    write_source("moving.fbin", 64, 2);
    what.source = path_of("moving.fbin");
    make_small_index(&what, temporary_folder, &manifest);
    write_source("moving.fbin", 65, 2);
    assert_changed(&manifest, "changed since the index was made: its size");
    write_source("moving.fbin", 2, 64);
    assert_changed(&manifest, "changed since the index was made: its dims");
    const uint64_t wide[2] = {63, 2}; // the 16-byte head takes the place of a row
    write_head_and_zeros("moving.fbin", wide, sizeof wide, 8 + 64 * 2 * 4);
    assert_changed(&manifest, "changed since the index was made: its number of rows");
    const uint32_t narrow[2] = {64, 2}; // other numbers in the same shape
    write_head_and_zeros("moving.fbin", narrow, sizeof narrow, 8 + 64 * 2 * 4);
    assert_changed(&manifest, "rows 0 to 31 are not those the index was made from");
    write_test_file("moving.fbin", "", 0);
    assert_changed(&manifest, "moving.fbin");
    unlink(path_of("moving.fbin"));
    uint64_t digests[2] = {0};
    float row[DIMS];
    assert_int_equal(get_row(&manifest, 0, 0, digests, row), BSW_ERROR_IO);
    assert_non_null(strstr(err.message, "moving.fbin"));
    bsw_manifest_deinit(&manifest);
}

// A .npy file of the same size and dims can become one of another type.
static void write_npy(const char *name, const char *descr, unsigned num_rows, unsigned dims)
{
    char head[128];
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(head + 10, ' ', sizeof head - 10);
    int length =
        snprintf(head + 10, 100, "{'descr': '%s', 'fortran_order': False, 'shape': (%u, %u), }",
                 descr, num_rows, dims);
    head[10 + length] = ' ';
    head[127] = '\n';
    unsigned char bytes[128 + 64 * 8];
    memcpy(bytes, head, sizeof head);
    for (size_t i = sizeof head; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i % 16 + 40);
    write_test_file(name, bytes, sizeof bytes);
}

UNIT_TEST(a_source_of_another_type_is_found)
{
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_xfbq);
    write_npy("moving.npy", "<f4", 64, 2);
    what.source = path_of("moving.npy");
    make_small_index(&what, temporary_folder, &manifest);
    write_npy("moving.npy", "<f2", 128, 2);
    assert_changed(&manifest, "changed since the index was made: its type");
    write_npy("moving.npy", "<f4", 32, 4);
    assert_changed(&manifest, "changed since the index was made: its dims");
    bsw_manifest_deinit(&manifest);
}

// More numbers a row than the manifest says would be written where there is no room for them.
UNIT_TEST(a_generated_source_of_another_shape_is_found)
{
    static const char *const others[][2] = {
        {"synth:count=70,dims=65536", "its dims"},
        {"synth:count=70,dims=17,type=uint8", "its type"},
        {"synth:count=71,dims=17", "its number of rows"},
        {"synth:count=70", "no source"},
    };
    struct bsw_manifest manifest;
    struct small_index what = small(&bsw_codec_xfbq);
    what.source = "synth:count=70,dims=17";
    make_small_index(&what, temporary_folder, &manifest);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        strcpy(manifest.source_path, others[i][0]);
        assert_changed(&manifest, others[i][1]);
    }
    bsw_manifest_deinit(&manifest);
}

// ---- reading ahead ----

static uintptr_t advised_from, advised_to; // one range, of several calls
static size_t longest_advice;

// Takes the place of the C library's, for this one purpose.
int madvise(void *address, size_t bytes, int advice)
{
    if (advice != MADV_WILLNEED) return (int)syscall(SYS_madvise, address, bytes, advice);
    if (advised_to != (uintptr_t)address) advised_from = (uintptr_t)address;
    advised_to = (uintptr_t)address + bytes;
    longest_advice = bytes > longest_advice ? bytes : longest_advice;
    return 0;
}

static void expect_advice(const struct bsw_raw_rows *rows, uint64_t first, uint64_t count,
                          size_t from, size_t to)
{
    advised_from = advised_to = 0;
    longest_advice = 0;
    bsw_raw_rows_read_ahead(rows, first, count);
    assert_int_equal(advised_to - advised_from, to - from);
    if (to > from) assert_int_equal(advised_from, (uintptr_t)rows->map + from);
    assert_true(longest_advice <= 128 << 10); // as much as Linux reads at once
}

// The map's pages are asked for in pieces; rows in the order of lists are asked for together alone.
UNIT_TEST(rows_are_asked_for_ahead)
{
    enum { NUM = 1000, SLOTS = 1024, BYTES = 1000, HEAD = 4096 };
    static uint32_t order[SLOTS];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = HEAD + SLOTS * BYTES;
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(map != MAP_FAILED);
    struct bsw_raw_rows rows = {.num_rows = NUM,
                                .row_bytes = BYTES,
                                .map = (const unsigned char *)map,
                                .map_bytes = bytes,
                                .first_byte = HEAD,
                                .stride_bytes = BYTES,
                                .num_slots = NUM};
    expect_advice(&rows, 0, NUM, HEAD / page * page, HEAD + NUM * BYTES);
    expect_advice(&rows, 500, 7, (HEAD + 500 * BYTES) / page * page, HEAD + 507 * BYTES);
    expect_advice(&rows, 500, 0, 0, 0);
    rows.rows_at = rows.places = order;
    rows.num_slots = SLOTS;
    expect_advice(&rows, 0, NUM, HEAD / page * page, HEAD + SLOTS * BYTES);
    expect_advice(&rows, 0, NUM - 1, 0, 0);
    rows.is_synth = 1;
    expect_advice(&rows, 0, NUM, 0, 0);
    munmap(map, bytes);
}

int main(void)
{
    return run_unit_tests(make_files, remove_temporary_folder);
}
