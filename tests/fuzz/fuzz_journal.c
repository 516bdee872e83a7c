// SPDX-License-Identifier: Apache-2.0
// Journals. The first byte of an input picks the way:
//   0  the rest is the file
//   1  a good journal, with the rest as changes of it: uint16 place, uint8 what is added; its last
//      two bytes say where it is cut
//   2  the rest says what header and records hold, whose checksums all fit, as who means harm does:
//      it is known here which of them are good
// What is read is compared with what is known; one of 16 inputs is also opened as a file, gone on
// with and read again.
#include <sys/stat.h>

#include "common/base/file.h"
#include "tests/fuzz/journal_image.h"

enum { MAX_RECORDS = 64, NUM_GOOD = 6 };

// Good records as they are expected, and as they are replayed.
struct known {
    struct bsw_journal_fields fields;
    size_t num_records, num_seen;
    size_t places[MAX_RECORDS], bytes[MAX_RECORDS]; // of payloads in the file
    const unsigned char *file;
    int is_any; // not known: only seen are counted
};

static struct bsw_buffer file;

static enum bsw_status replay(void *context, const void *payload, size_t bytes,
                              struct bsw_error *err)
{
    struct known *known = context;
    (void)err;
    size_t i = known->num_seen++;
    if (known->is_any) return BSW_OK;
    FUZZ_REQUIRE(i < known->num_records && bytes == known->bytes[i]);
    FUZZ_REQUIRE(bytes == 0 || memcmp(payload, known->file + known->places[i], bytes) == 0);
    return BSW_OK;
}

#define REFUSALS (FUZZ_BIT(BSW_ERROR_BAD_DATA) | FUZZ_BIT(BSW_ERROR_USAGE))

// 1 if it is taken. fields: NULL for any.
static int is_parsed(const void *data, size_t bytes, const struct bsw_journal_fields *fields,
                     struct known *known, struct bsw_journal_facts *facts)
{
    struct bsw_error err;
    known->num_seen = 0;
    enum bsw_status status =
        bsw_journal_parse("j", data, bytes, fields, replay, known, facts, &err);
    if (!fuzz_is_ok(status, &err, REFUSALS)) {
        FUZZ_REQUIRE(facts->num_records == 0 && facts->good_bytes == 0 && known->num_seen == 0);
        FUZZ_REQUIRE(fields || status == BSW_ERROR_BAD_DATA);
        return 0;
    }
    FUZZ_REQUIRE(facts->num_records == known->num_seen && facts->good_bytes <= bytes);
    FUZZ_REQUIRE(facts->good_bytes >=
                 JOURNAL_HEAD_BYTES + 8 + facts->num_records * JOURNAL_RECORD_BYTES);
    return 1;
}

static uint64_t bytes_of(const char *path)
{
    struct stat now;
    FUZZ_REQUIRE(stat(path, &now) == 0);
    return (uint64_t)now.st_size;
}

// Opens the file to go on with it, which cuts it, and adds a record.
static void go_on(const char *path, struct known *known, const struct bsw_journal_facts *facts)
{
    struct bsw_error err;
    bsw_journal *journal;
    const struct bsw_journal_options options = {.path = path,
                                                .mode = BSW_JOURNAL_RESUME,
                                                .fields = &known->fields,
                                                .replay = replay,
                                                .replay_context = known};
    known->num_seen = 0;
    FUZZ_REQUIRE(bsw_journal_open(&options, &journal, &err) == BSW_OK);
    FUZZ_REQUIRE(known->num_seen == facts->num_records && bytes_of(path) == facts->good_bytes);
    FUZZ_REQUIRE(bsw_journal_run_id(journal) == facts->run_id && bsw_journal_is_stored(journal));
    FUZZ_REQUIRE(bsw_journal_append(journal, "more", 4, &err) == BSW_OK);
    FUZZ_REQUIRE(bsw_journal_commit(journal, &err) == BSW_OK);
    bsw_journal_close(&journal);
    FUZZ_REQUIRE(bytes_of(path) == facts->good_bytes + JOURNAL_RECORD_BYTES + 4);
}

// The file is as it was up to where it was cut, and has one record more.
static void check_file(const void *data, size_t bytes, struct known *known,
                       const struct bsw_journal_facts *facts)
{
    struct bsw_journal_facts now;
    struct bsw_buffer longer = {0};
    const char *path = fuzz_file("j", data, bytes);
    go_on(path, known, facts);
    FUZZ_REQUIRE(bsw_file_read_all(path, 1 << 20, &longer, NULL) == BSW_OK);
    FUZZ_REQUIRE(memcmp(longer.data, data, (size_t)facts->good_bytes) == 0);
    known->is_any = 1;
    FUZZ_REQUIRE(is_parsed(longer.data, longer.bytes, &known->fields, known, &now));
    FUZZ_REQUIRE(now.num_records == facts->num_records + 1 && now.good_bytes == longer.bytes);
    bsw_buffer_deinit(&longer);
}

static struct bsw_journal_fields make_fields(void)
{
    struct bsw_journal_fields fields = {0};
    bsw_journal_field_digest(&fields, "queries", 0x1234);
    bsw_journal_field_count(&fields, "k", 10);
    bsw_journal_field_text(&fields, "metric", "l2");
    return fields;
}

// The good journal, into `file`.
static void make_good(struct known *known)
{
    unsigned char payload[NUM_GOOD * 5];
    for (size_t i = 0; i < sizeof payload; i++) payload[i] = (unsigned char)(7 * i);
    *known = (struct known){.fields = make_fields()};
    journal_begin(&file);
    journal_add_fields(&file, &known->fields);
    for (size_t i = 0; i < NUM_GOOD; i++) {
        known->places[i] = file.bytes + 16;
        known->bytes[i] = i * 5;
        journal_add_record(&file, i, 0, (uint32_t)(i * 5), payload, i * 5);
    }
    known->num_records = NUM_GOOD;
    known->file = file.data;
}

// A change in a record or a cut ends what is good before it, one in the header is an error.
static void take_changed(const uint8_t *data, size_t bytes)
{
    struct known known;
    struct bsw_journal_facts facts;
    make_good(&known);
    size_t header = known.places[0] - 16, end = file.bytes, first = end;
    static struct bsw_buffer changed;
    changed.bytes = 0;
    journal_add(&changed, file.data, file.bytes);
    if (bytes % 3 == 2) end = (size_t)(data[bytes - 2] | data[bytes - 1] << 8) % (file.bytes + 1);
    for (; bytes >= 3; data += 3, bytes -= 3) {
        size_t place = (size_t)(data[0] | data[1] << 8) % file.bytes;
        changed.data[place] = (unsigned char)(changed.data[place] + data[2]);
    }
    for (size_t i = 0; i < end && first > i; i++)
        if (changed.data[i] != file.data[i]) first = i;
    if (first > end) first = end;
    while (known.num_records > 0 &&
           known.places[known.num_records - 1] + known.bytes[known.num_records - 1] + 8 > first)
        known.num_records--;
    unsigned char *exact = fuzz_exact(changed.data, end);
    int is_taken = is_parsed(exact, end, &known.fields, &known, &facts);
    FUZZ_REQUIRE(is_taken == (first >= header));
    if (is_taken) FUZZ_REQUIRE(facts.num_records == known.num_records);
    if (is_taken && (first + end) % 16 == 0) check_file(exact, end, &known, &facts);
    bsw_free(&exact);
}

// ---- header and records with checksums that fit ----

// Up to so many bytes.
static struct fuzz_input next_bytes(struct fuzz_input *input, size_t most)
{
    struct fuzz_input out = {input->data, most < input->bytes ? most : input->bytes};
    input->data += out.bytes;
    input->bytes -= out.bytes;
    return out;
}

// 0 if a reader must refuse it; so it must a text that ends before it says, where the input does.
static int add_text(struct fuzz_input *input, char *copy, size_t capacity)
{
    uint16_t length = fuzz_next_byte(input);
    struct fuzz_input text = next_bytes(input, length);
    journal_add(&file, &length, sizeof length);
    journal_add(&file, text.data, text.bytes);
    if (text.bytes < length || length >= capacity) return 0;
    if (length > 0 && memchr(text.data, 0, length)) return 0;
    if (length > 0) memcpy(copy, text.data, length);
    copy[length] = '\0';
    return 1;
}

static int make_head(struct fuzz_input *input, struct known *known)
{
    struct bsw_journal_field field;
    uint8_t shape = fuzz_next_byte(input);
    uint32_t num_fields = shape % 48, claimed = num_fields;
    int is_good = num_fields <= BSW_JOURNAL_MAX_FIELDS;
    journal_begin(&file);
    for (uint32_t i = 0; i < num_fields; i++) {
        if (!add_text(input, field.name, sizeof field.name)) is_good = 0;
        if (!add_text(input, field.value, sizeof field.value)) is_good = 0;
        if (is_good) known->fields.fields[known->fields.count++] = field;
    }
    if (shape / 48 == 4) claimed += fuzz_next_byte(input);
    if (shape / 48 == 3 && claimed > 0) claimed--;
    journal_end_head(&file, claimed);
    return is_good && claimed == num_fields;
}

// Flags of a record: another sequence, no zero, another size, another digest.
static void make_records(struct fuzz_input *input, struct known *known)
{
    int is_good = 1;
    for (uint64_t i = 0; i < MAX_RECORDS && input->bytes > 0; i++) {
        uint8_t flags = fuzz_next_byte(input), length = fuzz_next_byte(input);
        struct fuzz_input payload = next_bytes(input, length);
        uint64_t sequence = i + (flags % 16 == 1);
        uint32_t zero = flags % 16 == 2, claimed = (uint32_t)payload.bytes;
        if (flags % 16 == 3) claimed += 1u << flags / 16;
        size_t place = file.bytes + 16;
        journal_add_record(&file, sequence, zero, claimed, payload.data, payload.bytes);
        if (flags % 16 == 4) file.data[file.bytes - 1 - flags / 16 % 8]++;
        if (flags % 16 >= 1 && flags % 16 <= 4) is_good = 0;
        if (!is_good) continue;
        known->places[known->num_records] = place;
        known->bytes[known->num_records++] = payload.bytes;
    }
}

static void take_sealed(const uint8_t *data, size_t bytes)
{
    struct known known = {.num_records = 0};
    struct bsw_journal_facts facts;
    struct fuzz_input input = {data, bytes};
    int is_good = make_head(&input, &known);
    make_records(&input, &known);
    unsigned char *exact = fuzz_exact(file.data, file.bytes);
    known.file = exact;
    FUZZ_REQUIRE(is_parsed(exact, file.bytes, NULL, &known, &facts) == is_good);
    if (is_good) {
        FUZZ_REQUIRE(facts.num_records == known.num_records && facts.run_id == JOURNAL_RUN_ID);
        FUZZ_REQUIRE(is_parsed(exact, file.bytes, &known.fields, &known, &facts));
        if (bytes % 16 == 0) check_file(exact, file.bytes, &known, &facts);
    }
    bsw_free(&exact);
}

static void take_any(const uint8_t *data, size_t bytes)
{
    const struct bsw_journal_fields fields = make_fields();
    struct known known = {.is_any = 1};
    struct bsw_journal_facts facts, again;
    if (is_parsed(data, bytes, NULL, &known, &facts)) {
        size_t good = (size_t)facts.good_bytes;
        FUZZ_REQUIRE(is_parsed(data, good, NULL, &known, &again));
        FUZZ_REQUIRE(again.num_records == facts.num_records && again.good_bytes == good);
    }
    (void)is_parsed(data, bytes, &fields, &known, &facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (bytes < 1) return 0;
    if (data[0] % 3 == 0)
        take_any(data + 1, bytes - 1);
    else if (data[0] % 3 == 1)
        take_changed(data + 1, bytes - 1);
    else
        take_sealed(data + 1, bytes - 1);
    return 0;
}

void fuzz_make_seeds(fuzz_put_fn put, void *context)
{
    static const char *const seeds[] = {
        "\x01",
        "\x01\x20\x01\x05",
        "\x01\x30\x01",
        "\x01\x01\x01",
        // One field and records of 3, 1 and 4 bytes; a wrong sequence number, then a good record.
        "\x02\x01\x01k\x02"
        "10\x05\x03"
        "abc\x05\x01"
        "d\x05\x04"
        "efgh",
        "\x02\x01\x01k\x02"
        "10\x05\x01"
        "a\x01\x01"
        "b\x05\x01"
        "c",
        // More fields than there are, fewer, a value that ends before it says.
        "\x02\xc1\x01k\x01v\x01",
        "\x02\x91\x01k\x01v",
        "\x02\x01\x01k\x7fvalue",
    };
    struct known known;
    struct bsw_buffer seed = {0};
    make_good(&known);
    journal_add(&seed, "\3", 1);
    journal_add(&seed, file.data, file.bytes);
    put(context, seed.data, seed.bytes);
    put(context, seed.data, seed.bytes - 3);
    put(context, "\2", 2); // no field, no record
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        put(context, seeds[i], strlen(seeds[i]));
    bsw_buffer_deinit(&seed);
}
