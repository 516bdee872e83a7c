// SPDX-License-Identifier: Apache-2.0
#include "common/job/journal.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/file.h"
#include "common/base/memory.h"

#define FORMAT_VERSION 1
#define INSTEAD        "--force without --resume starts again"

static const char magic[8] = "BSWJRNL";

struct file_head {
    char magic[8];
    uint32_t version;
    uint32_t num_fields;
    uint64_t run_id;
    uint64_t bytes; // of the whole header, its digest included
};
_Static_assert(sizeof(struct file_head) == 32, "no padding in the file");

struct record_head {
    uint32_t bytes; // of the payload
    uint32_t zero;
    uint64_t sequence;
};
_Static_assert(sizeof(struct record_head) == 16, "no padding in the file");
_Static_assert(sizeof(struct record_head) + sizeof(uint64_t) == BSW_JOURNAL_RECORD_BYTES,
               "a head and a digest");

// ---- fields ----

// The next field, or NULL where there is no room: count then passes the most, which open refuses.
static struct bsw_journal_field *next_field(struct bsw_journal_fields *fields, const char *name)
{
    if (fields->count++ >= BSW_JOURNAL_MAX_FIELDS) return NULL;
    struct bsw_journal_field *field = &fields->fields[fields->count - 1];
    snprintf(field->name, sizeof field->name, "%s", name);
    return field;
}

void bsw_journal_field_text(struct bsw_journal_fields *fields, const char *name, const char *value)
{
    struct bsw_journal_field *field = next_field(fields, name);
    if (!field) return;
    size_t bytes = strlen(value);
    if (bytes < sizeof field->value) {
        memcpy(field->value, value, bytes + 1);
        return;
    }
    enum { ROOM = sizeof field->value - 20 };
    snprintf(field->value, sizeof field->value, "%.*s...%016llx", ROOM, value,
             (unsigned long long)XXH3_64bits(value, bytes));
}

void bsw_journal_field_count(struct bsw_journal_fields *fields, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    bsw_journal_field_text(fields, name, text);
}

void bsw_journal_field_number(struct bsw_journal_fields *fields, const char *name, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    bsw_journal_field_text(fields, name, text);
}

void bsw_journal_field_digest(struct bsw_journal_fields *fields, const char *name, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    bsw_journal_field_text(fields, name, text);
}

// ---- parsing ----

struct reader {
    const unsigned char *data;
    size_t bytes, at;
};

static int take(struct reader *reader, void *out, size_t bytes)
{
    if (bytes > reader->bytes - reader->at) return 0;
    memcpy(out, reader->data + reader->at, bytes);
    reader->at += bytes;
    return 1;
}

// A text of less than `capacity` bytes, terminated.
static int take_text(struct reader *reader, char *out, size_t capacity)
{
    uint16_t bytes;
    if (!take(reader, &bytes, sizeof bytes) || bytes >= capacity) return 0;
    if (!take(reader, out, bytes) || memchr(out, 0, bytes)) return 0;
    out[bytes] = '\0';
    return 1;
}

static enum bsw_status fail_field(const char *name, const char *field, const char *theirs,
                                  const char *ours, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE, "%s: begun with %s %s, now it is %s; " INSTEAD, name,
                    field, theirs, ours);
}

// reader stands at the fields, and ends with them.
static enum bsw_status check_fields(const char *name, struct reader *reader, uint32_t num_fields,
                                    const struct bsw_journal_fields *expected,
                                    struct bsw_error *err)
{
    struct bsw_journal_field field;
    for (uint32_t i = 0; i < num_fields; i++) {
        if (!take_text(reader, field.name, sizeof field.name) ||
            !take_text(reader, field.value, sizeof field.value))
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: header is corrupt; " INSTEAD, name);
        if (!expected) continue;
        const struct bsw_journal_field *ours = i < expected->count ? &expected->fields[i] : NULL;
        if (!ours || strcmp(ours->name, field.name) != 0)
            return fail_field(name, field.name, field.value, "not known", err);
        if (strcmp(ours->value, field.value) != 0)
            return fail_field(name, field.name, field.value, ours->value, err);
    }
    if (expected && expected->count > num_fields) {
        const struct bsw_journal_field *ours = &expected->fields[num_fields];
        return fail_field(name, ours->name, "not known", ours->value, err);
    }
    if (reader->at != reader->bytes)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: header is corrupt; " INSTEAD, name);
    return BSW_OK;
}

static enum bsw_status parse_header(const char *name, const unsigned char *data, size_t bytes,
                                    const struct bsw_journal_fields *expected,
                                    struct bsw_journal_facts *out, struct bsw_error *err)
{
    struct file_head head;
    uint64_t digest;
    if (bytes < sizeof head || memcmp(data, magic, sizeof magic) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: no bitsweep journal; " INSTEAD, name);
    memcpy(&head, data, sizeof head);
    if (head.version != FORMAT_VERSION) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA,
                        "%s: journal of format version %u, this program reads %d; " INSTEAD, name,
                        head.version, FORMAT_VERSION);
    }
    if (head.bytes < sizeof head + sizeof digest || head.bytes > bytes ||
        head.num_fields > BSW_JOURNAL_MAX_FIELDS)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: header is corrupt; " INSTEAD, name);
    size_t before = (size_t)head.bytes - sizeof digest;
    memcpy(&digest, data + before, sizeof digest);
    if (digest != XXH3_64bits(data, before))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%s: header is corrupt; " INSTEAD, name);
    struct reader reader = {data, before, sizeof head};
    BSW_TRY(check_fields(name, &reader, head.num_fields, expected, err));
    *out = (struct bsw_journal_facts){.run_id = head.run_id, .good_bytes = head.bytes};
    return BSW_OK;
}

// The payload of the record at the end of what is good; NULL where none follows.
static const unsigned char *next_record(const unsigned char *data, size_t bytes,
                                        const struct bsw_journal_facts *facts,
                                        struct record_head *head)
{
    uint64_t digest;
    size_t left = bytes - (size_t)facts->good_bytes;
    const unsigned char *record = data + facts->good_bytes;
    if (left < sizeof *head + sizeof digest) return NULL;
    memcpy(head, record, sizeof *head);
    if (head->bytes > left - sizeof *head - sizeof digest || head->zero != 0) return NULL;
    size_t before = sizeof *head + head->bytes;
    memcpy(&digest, record + before, sizeof digest);
    if (head->sequence != facts->num_records ||
        digest != XXH3_64bits_withSeed(record, before, facts->run_id))
        return NULL;
    return record + sizeof *head;
}

enum bsw_status bsw_journal_parse(const char *name, const void *data, size_t bytes,
                                  const struct bsw_journal_fields *expected,
                                  bsw_journal_replay_fn replay, void *context,
                                  struct bsw_journal_facts *out, struct bsw_error *err)
{
    struct bsw_journal_facts facts;
    struct record_head head;
    const unsigned char *payload;
    *out = (struct bsw_journal_facts){0};
    BSW_TRY(parse_header(name, data, bytes, expected, &facts, err));
    while ((payload = next_record(data, bytes, &facts, &head)) != NULL) {
        if (replay) {
            enum bsw_status status = replay(context, payload, head.bytes, err);
            if (status != BSW_OK) {
                return bsw_prefix(err, status, "%s: record %llu: ", name,
                                  (unsigned long long)head.sequence);
            }
        }
        facts.num_records++;
        facts.good_bytes += sizeof head + head.bytes + sizeof(uint64_t);
    }
    *out = facts;
    return BSW_OK;
}

enum bsw_status bsw_journal_read(const char *path, const struct bsw_journal_fields *expected,
                                 bsw_journal_replay_fn replay, void *context,
                                 struct bsw_journal_facts *out, struct bsw_error *err)
{
    struct bsw_buffer file = {0};
    enum bsw_status status = bsw_file_read_all(path, BSW_JOURNAL_MAX_BYTES, &file, err);
    if (status == BSW_OK)
        status =
            bsw_journal_parse(path, file.data, file.bytes, expected, replay, context, out, err);
    bsw_buffer_deinit(&file);
    return status;
}

enum bsw_status bsw_journal_refuse(const char *path, struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "%s: left by a run that did not finish: --resume goes on, --force starts again",
                    path);
}

// ---- in use ----

struct bsw_journal {
    char path[BSW_PATH_BYTES];
    enum bsw_status (*sync)(void *context, struct bsw_error *err);
    void *context;
    uint64_t run_id;
    pthread_mutex_t append_lock; // of pending and num_records
    struct bsw_buffer pending;   // header, where there is no file, and records to come
    uint64_t num_records;
    uint64_t appended_bytes;     // of the file, once all is stored
    int has_records;             // in pending
    pthread_mutex_t commit_lock; // of all below; taken before append_lock
    struct bsw_buffer written;   // pending's storage during a commit
    int fd;                      // -1: no file yet
    uint64_t file_bytes;
    double committed_at, seconds;
    enum bsw_status failed;
    uint64_t marked_bytes, trusted_bytes; // 0: nothing to keep
};

static enum bsw_status append_text(struct bsw_buffer *out, const char *text, struct bsw_error *err)
{
    uint16_t bytes = (uint16_t)strlen(text);
    BSW_TRY(bsw_buffer_append(out, &bytes, sizeof bytes, err));
    return bsw_buffer_append(out, text, bytes, err);
}

static enum bsw_status make_header(const struct bsw_journal_fields *fields, uint64_t run_id,
                                   struct bsw_buffer *out, struct bsw_error *err)
{
    struct file_head head = {
        .version = FORMAT_VERSION, .num_fields = (uint32_t)fields->count, .run_id = run_id};
    memcpy(head.magic, magic, sizeof head.magic);
    BSW_TRY(bsw_buffer_append(out, &head, sizeof head, err));
    for (size_t i = 0; i < fields->count; i++) {
        BSW_TRY(append_text(out, fields->fields[i].name, err));
        BSW_TRY(append_text(out, fields->fields[i].value, err));
    }
    head.bytes = out->bytes + sizeof(uint64_t);
    memcpy(out->data, &head, sizeof head);
    uint64_t digest = XXH3_64bits(out->data, out->bytes);
    return bsw_buffer_append(out, &digest, sizeof digest, err);
}

static enum bsw_status begin(bsw_journal *journal, const struct bsw_journal_fields *fields,
                             struct bsw_error *err)
{
    if (getentropy(&journal->run_id, sizeof journal->run_id) != 0) {
        return bsw_fail(err, BSW_ERROR_IO, "%s: no random number: %s", journal->path,
                        strerror(errno));
    }
    BSW_TRY(make_header(fields, journal->run_id, &journal->pending, err));
    journal->appended_bytes = journal->pending.bytes;
    return BSW_OK;
}

static enum bsw_status go_on(bsw_journal *journal, const struct bsw_journal_options *options,
                             struct bsw_error *err)
{
    struct bsw_journal_facts facts;
    BSW_TRY(bsw_journal_read(journal->path, options->fields, options->replay,
                             options->replay_context, &facts, err));
    journal->run_id = facts.run_id;
    journal->num_records = facts.num_records;
    journal->file_bytes = journal->appended_bytes = facts.good_bytes;
    journal->trusted_bytes = facts.num_records > 0 ? facts.good_bytes : 0;
    BSW_TRY(bsw_file_open_write(journal->path, &journal->fd, err));
    if (BSW_FAULT(WRITE, -1, ftruncate(journal->fd, (off_t)facts.good_bytes)) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "%s: cannot cut its torn end: %s", journal->path,
                    strerror(errno));
}

static enum bsw_status open_file(bsw_journal *journal, const struct bsw_journal_options *options,
                                 struct bsw_error *err)
{
    if (options->fields->count > BSW_JOURNAL_MAX_FIELDS || strlen(options->path) >= BSW_PATH_BYTES)
        return bsw_fail(err, BSW_ERROR_USAGE, "journal: too many fields, or too long a path");
    memcpy(journal->path, options->path, strlen(options->path) + 1);
    if (bsw_file_exists(journal->path)) {
        if (options->mode == BSW_JOURNAL_RESUME) return go_on(journal, options, err);
        if (options->mode == BSW_JOURNAL_NEW) return bsw_journal_refuse(journal->path, err);
        BSW_TRY(bsw_file_remove(journal->path, err));
    }
    return begin(journal, options->fields, err);
}

enum bsw_status bsw_journal_open(const struct bsw_journal_options *options, bsw_journal **out,
                                 struct bsw_error *err)
{
    bsw_journal *journal;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&journal, 1, sizeof *journal, "journal", err));
    journal->fd = -1;
    journal->sync = options->sync;
    journal->context = options->sync_context;
    journal->committed_at = bsw_clock_seconds();
    const char *seconds = getenv("BITSWEEP_JOURNAL_SECONDS");
    journal->seconds = seconds ? strtod(seconds, NULL) : BSW_JOURNAL_SECONDS;
    pthread_mutex_init(&journal->append_lock, NULL);
    pthread_mutex_init(&journal->commit_lock, NULL);
    enum bsw_status status = open_file(journal, options, err);
    if (status != BSW_OK) bsw_journal_close(&journal);
    *out = journal;
    return status;
}

static enum bsw_status append_record(bsw_journal *journal, const void *payload, size_t bytes,
                                     struct bsw_error *err)
{
    struct bsw_buffer *pending = &journal->pending;
    const struct record_head head = {.bytes = (uint32_t)bytes, .sequence = journal->num_records};
    size_t before = pending->bytes, whole = sizeof head + bytes + sizeof(uint64_t);
    // Room first: a record is appended whole or not at all.
    if (pending->capacity < before + whole)
        BSW_TRY(bsw_buffer_reserve(pending, 2 * (before + whole), err));
    unsigned char *to = pending->data + before;
    memcpy(to, &head, sizeof head);
    if (bytes > 0) memcpy(to + sizeof head, payload, bytes);
    uint64_t digest = XXH3_64bits_withSeed(to, sizeof head + bytes, journal->run_id);
    memcpy(to + sizeof head + bytes, &digest, sizeof digest);
    pending->bytes += whole;
    journal->appended_bytes += whole;
    journal->num_records++;
    journal->has_records = 1;
    return BSW_OK;
}

enum bsw_status bsw_journal_append(bsw_journal *journal, const void *payload, size_t bytes,
                                   struct bsw_error *err)
{
    if (bytes > BSW_JOURNAL_MAX_PAYLOAD)
        return bsw_fail(err, BSW_ERROR_TOO_LARGE, "%s: a record of %zu bytes", journal->path,
                        bytes);
    pthread_mutex_lock(&journal->append_lock);
    enum bsw_status status = append_record(journal, payload, bytes, err);
    pthread_mutex_unlock(&journal->append_lock);
    return status;
}

// `written` to the file, which appears whole with the first of them.
static enum bsw_status store(bsw_journal *journal, struct bsw_error *err)
{
    struct bsw_buffer *written = &journal->written;
    if (journal->fd < 0) {
        BSW_TRY(bsw_file_write_atomic(journal->path, written->data, written->bytes, err));
        BSW_TRY(bsw_file_open_write(journal->path, &journal->fd, err));
    } else {
        BSW_TRY(bsw_file_write_at(journal->fd, journal->path, journal->file_bytes, written->data,
                                  written->bytes, err));
        BSW_TRY(bsw_file_sync(journal->fd, journal->path, err));
    }
    journal->file_bytes += written->bytes;
    return BSW_OK;
}

// With commit_lock held. What is appended meanwhile is for the next commit.
static enum bsw_status commit(bsw_journal *journal, struct bsw_error *err)
{
    if (journal->failed != BSW_OK)
        return bsw_fail(err, journal->failed, "%s: failed before", journal->path);
    pthread_mutex_lock(&journal->append_lock);
    int has_records = journal->has_records;
    if (has_records) {
        struct bsw_buffer swap = journal->written;
        journal->written = journal->pending;
        journal->pending = swap;
        journal->pending.bytes = 0;
        journal->has_records = 0;
    }
    pthread_mutex_unlock(&journal->append_lock);
    enum bsw_status status = BSW_OK;
    if (has_records && journal->sync) status = journal->sync(journal->context, err);
    if (has_records && status == BSW_OK) status = store(journal, err);
    journal->committed_at = bsw_clock_seconds();
    journal->failed = status;
    return status;
}

enum bsw_status bsw_journal_commit(bsw_journal *journal, struct bsw_error *err)
{
    pthread_mutex_lock(&journal->commit_lock);
    enum bsw_status status = commit(journal, err);
    pthread_mutex_unlock(&journal->commit_lock);
    return status;
}

// Keeps commit_lock for good.
int bsw_journal_commit_last(bsw_journal *journal)
{
    pthread_mutex_lock(&journal->commit_lock);
    commit(journal, NULL);
    return journal->fd >= 0;
}

void bsw_journal_mark(bsw_journal *journal)
{
    pthread_mutex_lock(&journal->append_lock);
    journal->marked_bytes = journal->num_records > 0 ? journal->appended_bytes : 0;
    pthread_mutex_unlock(&journal->append_lock);
}

void bsw_journal_trust(bsw_journal *journal)
{
    journal->trusted_bytes = journal->marked_bytes;
}

static int is_due(const bsw_journal *journal)
{
    return bsw_clock_seconds() - journal->committed_at >= journal->seconds;
}

int bsw_journal_is_due(bsw_journal *journal)
{
    if (pthread_mutex_trylock(&journal->commit_lock) != 0) return 0;
    int due = is_due(journal);
    pthread_mutex_unlock(&journal->commit_lock);
    return due;
}

enum bsw_status bsw_journal_commit_if_due(bsw_journal *journal, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    if (pthread_mutex_trylock(&journal->commit_lock) != 0) return BSW_OK;
    if (is_due(journal)) status = commit(journal, err);
    pthread_mutex_unlock(&journal->commit_lock);
    return status;
}

uint64_t bsw_journal_bytes(bsw_journal *journal)
{
    pthread_mutex_lock(&journal->append_lock);
    uint64_t bytes = journal->appended_bytes;
    pthread_mutex_unlock(&journal->append_lock);
    return bytes;
}

int bsw_journal_is_stored(bsw_journal *journal)
{
    pthread_mutex_lock(&journal->commit_lock);
    int is_stored = journal->fd >= 0;
    pthread_mutex_unlock(&journal->commit_lock);
    return is_stored;
}

uint64_t bsw_journal_run_id(const bsw_journal *journal)
{
    return journal->run_id;
}

enum bsw_status bsw_journal_remove(bsw_journal **journal, struct bsw_error *err)
{
    enum bsw_status status = BSW_OK;
    if (bsw_journal_is_stored(*journal)) status = bsw_file_remove((*journal)->path, err);
    bsw_journal_close(journal);
    return status;
}

void bsw_journal_close(bsw_journal **journal)
{
    if (!*journal) return;
    bsw_file_close(&(*journal)->fd);
    bsw_buffer_deinit(&(*journal)->pending);
    bsw_buffer_deinit(&(*journal)->written);
    pthread_mutex_destroy(&(*journal)->append_lock);
    pthread_mutex_destroy(&(*journal)->commit_lock);
    bsw_free(journal);
}

// Commits the trusted part of what is not stored yet, and no more.
static void commit_trusted(bsw_journal *journal)
{
    if (journal->trusted_bytes <= journal->file_bytes || journal->failed != BSW_OK) return;
    journal->pending.bytes = (size_t)(journal->trusted_bytes - journal->file_bytes);
    bsw_journal_commit(journal, NULL);
}

// Whether something is left.
static int cut_to_trusted(bsw_journal *journal)
{
    uint64_t bytes = journal->trusted_bytes;
    if (bytes == 0 || bytes >= journal->file_bytes) return bytes > 0;
    return ftruncate(journal->fd, (off_t)bytes) == 0 &&
           bsw_file_sync(journal->fd, journal->path, NULL) == BSW_OK;
}

int bsw_journal_abandon(bsw_journal **journal, enum bsw_status status)
{
    if (!*journal) return 0;
    int is_cut = status == BSW_ERROR_SELF_CHECK;
    if (is_cut) commit_trusted(*journal);
    if (bsw_status_exit_code(status) == 75) bsw_journal_commit(*journal, NULL);
    int is_kept = bsw_journal_is_stored(*journal);
    if (is_kept && is_cut) is_kept = cut_to_trusted(*journal);
    if (is_kept)
        bsw_journal_close(journal);
    else
        bsw_journal_remove(journal, NULL);
    return is_kept;
}
