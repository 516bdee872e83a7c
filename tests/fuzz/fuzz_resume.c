// SPDX-License-Identifier: Apache-2.0
// What a run that goes on reads: journals whose header and checksums fit, with records of any
// content, and the files beside them. The first byte of an input picks which:
//   0  a search's journal and FILE.partial. Gone on with to its end: the result is what it would be
//      undisturbed, but for recorded queries whose bytes are as recorded, which stay
//   1  a ground truth's journal and its lists
//   2  an encode's plan and two journals of blocks
// Bytes that follow are records, then what lies in the file beside them.
#include <stdio.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/codes/metric.h"
#include "coordinator/job/encode_journal.h"
#include "coordinator/search/result_journal.h"
#include "coordinator/truth/truth_journal.h"
#include "tests/fuzz/journal_image.h"

#define REFUSALS (FUZZ_BIT(BSW_ERROR_BAD_DATA) | FUZZ_BIT(BSW_ERROR_USAGE))

enum { MAX_RECORDS = 12, MAX_FILE = 4096 };

static struct bsw_buffer file;

// Seven of eight records have the size they should; the digest of one that says so fits.
struct flags {
    int is_short, fits;
};

static struct flags next_flags(struct fuzz_input *input)
{
    uint8_t byte = fuzz_next_byte(input);
    return (struct flags){byte % 8 == 7, byte >= 128};
}

static struct bsw_journal_fields make_fields(void)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_count(&fields, "k", 10);
    return fields;
}

static void begin_journal(void)
{
    const struct bsw_journal_fields fields = make_fields();
    journal_begin(&file);
    journal_add_fields(&file, &fields);
}

static void add_record(uint64_t sequence, const void *payload, size_t bytes, int is_short)
{
    size_t length = bytes - (is_short ? 1 : 0);
    journal_add_record(&file, sequence, 0, (uint32_t)length, payload, length);
}

static const char *file_path(const char *name, char out[BSW_PATH_BYTES])
{
    FUZZ_REQUIRE(bsw_path_join(out, fuzz_folder(), name, NULL) == BSW_OK);
    return out;
}

// ---- search ----

enum { NUM_QUERIES = 12, K = 2, RESULT_BYTES = 8 + NUM_QUERIES * K * 8 };

struct batch_record {
    uint64_t first, count, digest;
};

// The bytes of queries [first, first + count) of a result: `ids`, else values.
static unsigned char *places_of(unsigned char *result, uint64_t first, int are_ids)
{
    return result + 8 + (are_ids ? 0 : NUM_QUERIES * K * 4) + first * K * 4;
}

static uint64_t digest_of(unsigned char *result, uint64_t first, uint64_t count)
{
    uint64_t ids = XXH3_64bits_withSeed(places_of(result, first, 1), count * K * 4, 0);
    return XXH3_64bits_withSeed(places_of(result, first, 0), count * K * 4, ids);
}

static void right_answers(uint64_t first, uint64_t count, int64_t *ids, float *values)
{
    for (uint64_t i = 0; i < count * K; i++) {
        ids[i] = (int64_t)(1000 + first * K + i);
        values[i] = 0.5f * (float)(first * K + i);
    }
}

static void right_result(unsigned char *out)
{
    const uint32_t head[2] = {NUM_QUERIES, K};
    int64_t ids[NUM_QUERIES * K];
    right_answers(0, NUM_QUERIES, ids, (float *)(void *)(places_of(out, 0, 0)));
    memcpy(out, head, sizeof head);
    for (size_t i = 0; i < NUM_QUERIES * K; i++) {
        int32_t id = (int32_t)ids[i];
        memcpy(out + 8 + i * 4, &id, sizeof id);
    }
}

// Records into `file`; the queries that may stay as they are in `stored`, into is_kept. 0 if a
// record cannot be one.
static int make_batches(struct fuzz_input *input, unsigned char *stored, size_t bytes, int *is_kept)
{
    int is_good = 1;
    uint8_t count = fuzz_next_byte(input) % MAX_RECORDS;
    begin_journal();
    for (uint64_t i = 0; i < count; i++) {
        struct flags flags = next_flags(input);
        struct batch_record record = {fuzz_next_byte(input), fuzz_next_byte(input),
                                      fuzz_next_byte(input)};
        int is_inside = record.first + record.count <= NUM_QUERIES;
        if (flags.fits && is_inside) record.digest = digest_of(stored, record.first, record.count);
        if (flags.fits && !is_inside && record.digest >= 128) record.first = UINT64_MAX - 3;
        if (flags.is_short || !is_inside) is_good = 0;
        add_record(i, &record, sizeof record, flags.is_short);
        if (!is_good || !flags.fits) continue;
        size_t end = record.count == 0
                         ? 0
                         : (size_t)(places_of(stored, record.first + record.count, 0) - stored);
        for (uint64_t q = 0; end <= bytes && q < record.count; q++) is_kept[record.first + q] = 1;
    }
    return is_good;
}

static enum bsw_status open_result(const char *path, struct bsw_result_journal *result,
                                   struct bsw_error *err)
{
    const struct bsw_journal_fields fields = make_fields();
    const struct bsw_result_journal_options options = {.path = path,
                                                       .num_queries = NUM_QUERIES,
                                                       .k = K,
                                                       .is_forced = 1,
                                                       .is_resumed = 1,
                                                       .fields = &fields};
    return bsw_result_journal_open(&options, result, err);
}

// The parts left are all queries that are not kept, once each and in order.
static void check_parts(const struct bsw_result_journal *result, const int *is_kept)
{
    uint64_t at = 0, num_left = 0;
    for (size_t i = 0; i < result->left.num_parts; i++) {
        const struct bsw_query_part *part = &result->left.parts[i];
        FUZZ_REQUIRE(part->count > 0 && part->first >= at);
        at = part->first + part->count;
        FUZZ_REQUIRE(at <= NUM_QUERIES);
        for (uint64_t q = part->first; q < at; q++) FUZZ_REQUIRE(!is_kept[q]);
        num_left += part->count;
    }
    for (int q = 0; q < NUM_QUERIES; q++) num_left += (uint64_t)(is_kept[q] != 0);
    FUZZ_REQUIRE(num_left == NUM_QUERIES);
}

static void finish_result(struct bsw_result_journal *result)
{
    const struct bsw_sidecar facts = {.metric = "l2", .refine = "exact", .codec = "saq", .k = K};
    struct bsw_error err;
    int64_t ids[NUM_QUERIES * K];
    float values[NUM_QUERIES * K];
    for (size_t i = 0; i < result->left.num_parts; i++) {
        const struct bsw_query_part *part = &result->left.parts[i];
        right_answers(part->first, part->count, ids, values);
        FUZZ_REQUIRE(bsw_result_journal_put(result, part->first, (size_t)part->count, ids, values,
                                            &err) == BSW_OK);
    }
    FUZZ_REQUIRE(bsw_result_journal_finish(result, &facts, &err) == BSW_OK);
}

static void check_result(const char *path, const unsigned char *stored, const int *is_kept)
{
    unsigned char expected[RESULT_BYTES], *from = (unsigned char *)stored;
    struct bsw_buffer written = {0};
    right_result(expected);
    for (uint64_t q = 0; q < NUM_QUERIES; q++) {
        for (int ids = 0; is_kept[q] && ids < 2; ids++)
            memcpy(places_of(expected, q, ids), places_of(from, q, ids), K * 4);
    }
    FUZZ_REQUIRE(bsw_file_read_all(path, 1 << 20, &written, NULL) == BSW_OK);
    FUZZ_REQUIRE(written.bytes == RESULT_BYTES);
    FUZZ_REQUIRE(memcmp(written.data, expected, RESULT_BYTES) == 0);
    bsw_buffer_deinit(&written);
}

static void take_search(struct fuzz_input *input)
{
    char path[BSW_PATH_BYTES];
    unsigned char stored[RESULT_BYTES];
    int is_kept[NUM_QUERIES] = {0};
    struct bsw_result_journal result;
    struct bsw_error err;
    // What lies in FILE.partial: the right bytes, changed by the first bytes of the input.
    size_t bytes = RESULT_BYTES - fuzz_next_byte(input) % 32;
    right_result(stored);
    for (uint8_t changes = fuzz_next_byte(input) % 8; changes > 0; changes--) {
        size_t place = fuzz_next_byte(input) % RESULT_BYTES;
        stored[place] = fuzz_next_byte(input);
    }
    int is_good = make_batches(input, stored, bytes, is_kept);
    fuzz_file("r.partial", stored, bytes);
    fuzz_file("r.journal", file.data, file.bytes);
    file_path("r", path);
    unlink(path);
    enum bsw_status status = open_result(path, &result, &err);
    FUZZ_REQUIRE(fuzz_is_ok(status, &err, REFUSALS) == is_good);
    if (is_good) {
        check_parts(&result, is_kept);
        finish_result(&result);
        check_result(path, stored, is_kept);
    }
    bsw_result_journal_close(&result, status);
}

// ---- ground truth ----

enum { TRUTH_ROWS = 50, TRUTH_QUERIES = 3, KEEP = 2 };

static bsw_neighbour_scan *new_scan(void)
{
    static bsw_neighbour_scan scan;
    static bsw_vectors *base, *queries;
    if (!base) {
        struct bsw_error err;
        FUZZ_REQUIRE(bsw_vectors_open("synth:count=50,dims=4", BSW_ALL_ROWS, &base, &err) ==
                     BSW_OK);
        FUZZ_REQUIRE(bsw_vectors_open("synth:count=3,dims=4,seed=2", BSW_ALL_ROWS, &queries,
                                      &err) == BSW_OK);
        const struct bsw_neighbour_needs needs = {.metric = BSW_METRIC_L2,
                                                  .level = BSW_CPU_REFERENCE,
                                                  .base = base,
                                                  .queries = queries,
                                                  .num_rows = TRUTH_ROWS,
                                                  .keep = KEEP,
                                                  .block_rows = 8,
                                                  .num_threads = 1};
        FUZZ_REQUIRE(bsw_neighbour_scan_open(&needs, &scan, &err) == BSW_OK);
    }
    for (size_t q = 0; q < scan.num_queries; q++) scan.lists[q].count = 0;
    bsw_neighbour_scan_restore(&scan, 0, 0);
    return &scan;
}

#define ENTRY_BYTES (sizeof(uint64_t) + sizeof(uint32_t)) // a score and a row

static size_t slot_bytes_of(const bsw_neighbour_scan *scan)
{
    return TRUTH_QUERIES * (sizeof(uint64_t) + scan->capacity * ENTRY_BYTES);
}

// Bytes of the lists that begin there, or 0 where there are none that could be read.
static size_t lists_bytes(const unsigned char *lists, size_t bytes, uint64_t capacity)
{
    uint64_t counts[TRUTH_QUERIES], total = sizeof counts;
    if (bytes < sizeof counts) return 0;
    memcpy(counts, lists, sizeof counts);
    for (int q = 0; q < TRUTH_QUERIES; q++) {
        if (counts[q] > capacity) return 0;
        total += counts[q] * ENTRY_BYTES;
    }
    return total <= bytes ? (size_t)total : 0;
}

// Whether all of lists of so many bytes, of which the last third behind the counts is rows, are
// before next_row.
static int are_rows_before(const unsigned char *lists, size_t bytes, uint64_t next_row)
{
    size_t counts = TRUTH_QUERIES * sizeof(uint64_t);
    for (size_t at = counts + (bytes - counts) / 3 * 2; at < bytes; at += sizeof(uint32_t)) {
        uint32_t row;
        memcpy(&row, lists + at, sizeof row);
        if (row >= next_row) return 0;
    }
    return 1;
}

static void check_lists(const bsw_neighbour_scan *scan)
{
    for (size_t q = 0; q < scan->num_queries; q++) {
        const struct bsw_exact_best *list = &scan->lists[q];
        FUZZ_REQUIRE(list->count <= scan->capacity);
        for (size_t i = 0; i < list->count; i++) FUZZ_REQUIRE(list->rows[i] < scan->next_row);
    }
}

// Where a run must go on, with records into `file`; UINT64_MAX if it is to refuse them.
static uint64_t make_states(struct fuzz_input *input, const bsw_neighbour_scan *scan)
{
    struct bsw_truth_state states[MAX_RECORDS];
    struct flags flags[MAX_RECORDS];
    uint8_t count = fuzz_next_byte(input) % MAX_RECORDS;
    for (uint8_t i = 0; i < count; i++) {
        flags[i] = next_flags(input);
        states[i] = (struct bsw_truth_state){fuzz_next_byte(input), fuzz_next_byte(input),
                                             fuzz_next_byte(input) % 4, 0};
    }
    // The rest is the lists of slot 0, and of slot 1.
    uint64_t slot_bytes = slot_bytes_of(scan), next_row = 0;
    int is_good = 1;
    begin_journal();
    for (uint8_t i = 0; i < count; i++) {
        uint64_t first = states[i].slot % 2 * slot_bytes;
        size_t left = input->bytes > first ? (size_t)(input->bytes - first) : 0;
        const unsigned char *lists = left > 0 ? input->data + first : input->data;
        size_t bytes = lists_bytes(lists, left, scan->capacity);
        states[i].digest = XXH3_64bits(lists, bytes) + (flags[i].fits ? 0 : 1);
        add_record(i, &states[i], sizeof states[i], flags[i].is_short);
        if (flags[i].is_short || states[i].next_row > TRUTH_ROWS || states[i].slot > 1) is_good = 0;
        next_row = states[i].next_row;
        if (!flags[i].fits || bytes == 0 || !are_rows_before(lists, bytes, next_row)) next_row = 0;
    }
    return is_good ? next_row : UINT64_MAX;
}

static void take_truth(struct fuzz_input *input)
{
    char out[BSW_PATH_BYTES];
    struct bsw_truth_journal journal;
    struct bsw_error err;
    const struct bsw_journal_fields fields = make_fields();
    bsw_neighbour_scan *scan = new_scan();
    uint64_t next_row = make_states(input, scan);
    fuzz_file("t.00000.journal", file.data, file.bytes);
    fuzz_file("t.00000.lists", input->data, input->bytes);
    file_path("t", out);
    enum bsw_status status =
        bsw_truth_journal_open(&journal, out, 0, BSW_JOURNAL_RESUME, &fields, scan, &err);
    FUZZ_REQUIRE(fuzz_is_ok(status, &err, REFUSALS) == (next_row != UINT64_MAX));
    if (status == BSW_OK) {
        FUZZ_REQUIRE(scan->next_row == next_row && journal.num_resumed == next_row);
        check_lists(scan);
    }
    bsw_truth_journal_close(&journal, BSW_ERROR_IO);
}

// ---- encode ----

// A journal of blocks: of the plan's run, or of another.
static size_t write_blocks(struct fuzz_input *input, const char *name)
{
    struct bsw_journal_fields fields = {0};
    uint8_t head = fuzz_next_byte(input);
    size_t num_good = 0;
    int is_good = head < 192;
    bsw_journal_field_digest(&fields, "run", JOURNAL_RUN_ID + (is_good ? 0 : 1));
    journal_begin(&file);
    journal_add_fields(&file, &fields);
    for (uint64_t i = 0; i < head % MAX_RECORDS; i++) {
        struct flags flags = next_flags(input);
        const struct bsw_encode_block block = {.block = fuzz_next_byte(input)};
        add_record(i, &block, sizeof block, flags.is_short);
        if (flags.is_short) is_good = 0;
        if (is_good) num_good++;
    }
    fuzz_file(name, file.data, file.bytes);
    return num_good;
}

static void take_encode(struct fuzz_input *input)
{
    struct bsw_encode_journal journal = {0};
    struct bsw_error err;
    const struct bsw_journal_fields fields = make_fields();
    size_t most = 0;
    for (int rank = 0; rank < 2; rank++)
        most += write_blocks(input, rank ? "encode-00001.journal" : "encode-00000.journal");
    int has_manifest = fuzz_next_byte(input) % 8 != 0;
    begin_journal();
    if (has_manifest) add_record(0, input->data, input->bytes, 0);
    fuzz_file("encode.plan", file.data, file.bytes);
    enum bsw_status status = bsw_encode_journal_open(&journal, fuzz_folder(), 1, 0, &fields, &err);
    FUZZ_REQUIRE(status == BSW_OK && journal.run_id == JOURNAL_RUN_ID);
    FUZZ_REQUIRE(journal.is_resumed == (has_manifest && input->bytes > 0));
    size_t count = journal.recorded.bytes / sizeof(struct bsw_encode_block);
    const struct bsw_encode_block *blocks =
        (const struct bsw_encode_block *)(const void *)journal.recorded.data;
    FUZZ_REQUIRE(journal.recorded.bytes % sizeof *blocks == 0);
    FUZZ_REQUIRE(journal.is_resumed ? count >= most : count == 0);
    for (size_t i = 1; i < count; i++) FUZZ_REQUIRE(blocks[i - 1].block <= blocks[i].block);
    bsw_encode_journal_close(&journal, BSW_ERROR_SELF_CHECK); // nothing stays
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    uint8_t pick = fuzz_next_byte(&input) % 3;
    if (bytes > MAX_FILE) return 0;
    if (pick == 0)
        take_search(&input);
    else if (pick == 1)
        take_truth(&input);
    else
        take_encode(&input);
    return 0;
}

static void put_truth(fuzz_put_fn put, void *context)
{
    unsigned char seed[MAX_FILE] = {1, 1, 0x80, 20, 1, 0};
    const uint64_t numbers[] = {2, 0, 1, 9, 8, 7}; // counts, scores
    const uint32_t rows[] = {3, 4, 19};
    size_t bytes = sizeof numbers + sizeof rows;
    memcpy(seed + 6, numbers, sizeof numbers);
    memcpy(seed + 6 + sizeof numbers, rows, sizeof rows);
    put(context, seed, 6 + bytes);
    seed[3] = 19; // a row to come
    put(context, seed, 6 + bytes);
    seed[2] = 0; // another digest
    put(context, seed, 6 + bytes);
    size_t slot = slot_bytes_of(new_scan());
    seed[2] = 0x80, seed[3] = 50, seed[5] = 1;
    memmove(seed + 6 + slot, seed + 6, bytes);
    put(context, seed, 6 + slot + bytes);
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    // Bytes missing, changes, records: flags, first, count, digest.
    static const unsigned char searches[][32] = {
        {0, 0, 0, 0},
        {0, 0, 0, 2, 0x80, 0, 4, 0, 0x80, 6, 3, 0},
        {0, 0, 0, 2, 0x80, 2, 6, 0, 0x80, 0, 4, 0},
        {0, 5, 0, 1, 0x80, 4, 8, 0},
        {0, 0, 1, 30, 77, 1, 0x80, 0, 12, 0},
        {0, 0, 0, 1, 0, 1, 2, 3},
        {0, 0, 0, 1, 0x80, 5, 0, 0},
        {0, 0, 0, 1, 7, 0, 1, 0},
        {0, 0, 0, 1, 0, 9, 9, 0},
        {0, 0, 0, 1, 0x80, 9, 9, 0xff},
    };
    for (size_t i = 0; i < sizeof searches / sizeof searches[0]; i++)
        put(context, searches[i], sizeof searches[i]);
    put_truth(put, context);
    put(context, "\2\2\0\7\0\3\1\0\5\1manifest", 18);
    put(context, "\2\302\0\7\0\3\1\7\5\1manifest", 18);
    put(context, "\2\1\0\7\0\0", 6);
}
