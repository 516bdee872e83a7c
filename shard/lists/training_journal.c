// SPDX-License-Identifier: Apache-2.0
#include "shard/lists/lloyd_rounds.h"

#include <string.h>

#include "common/base/memory.h"

// The head of a record, before its centroids.
struct record_head {
    uint64_t run;
    uint32_t round, is_last;
};

struct bsw_training_journal {
    bsw_journal *records;
    uint64_t most_bytes;
    struct bsw_buffer whole;      // the last records of runs that are whole, one after another
    struct bsw_buffer last[2];    // the last two records of one that is not, the later one first
    struct bsw_buffer payload;    // of a record that is made
    struct bsw_buffer run_starts; // size_t: where each record begins in `whole`
};

static struct record_head head_of(const unsigned char *record)
{
    struct record_head head;
    memcpy(&head, record, sizeof head);
    return head;
}

// ---- reading ----

static enum bsw_status keep_whole(bsw_training_journal *journal, const void *record, size_t bytes,
                                  struct bsw_error *err)
{
    size_t start = journal->whole.bytes;
    BSW_TRY(bsw_buffer_append(&journal->run_starts, &start, sizeof start, err));
    BSW_TRY(bsw_buffer_append(&journal->whole, record, bytes, err));
    journal->last[0].bytes = journal->last[1].bytes = 0;
    return BSW_OK;
}

static enum bsw_status take_record(void *context, const void *payload, size_t bytes,
                                   struct bsw_error *err)
{
    bsw_training_journal *journal = context;
    struct bsw_buffer *last = journal->last;
    if (bytes < sizeof(struct record_head) || bytes % sizeof(float) != 0)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%zu bytes", bytes);
    struct record_head head = head_of(payload);
    if (head.is_last) return keep_whole(journal, payload, bytes, err);
    struct bsw_buffer swap = last[1];
    last[1] = last[0];
    last[0] = swap;
    last[0].bytes = 0;
    if (last[1].bytes > 0 && head_of(last[1].data).run != head.run) last[1].bytes = 0;
    return bsw_buffer_append(&last[0], payload, bytes, err);
}

enum bsw_status bsw_training_journal_open(const char *path, const struct bsw_journal_fields *fields,
                                          uint64_t most_bytes, bsw_training_journal **out,
                                          struct bsw_error *err)
{
    bsw_training_journal *journal;
    *out = NULL;
    BSW_TRY(bsw_allocate_zero(&journal, 1, sizeof *journal, "journal", err));
    journal->most_bytes = most_bytes;
    const struct bsw_journal_options options = {.path = path,
                                                .mode = BSW_JOURNAL_RESUME,
                                                .fields = fields,
                                                .replay = take_record,
                                                .replay_context = journal};
    enum bsw_status status = bsw_journal_open(&options, &journal->records, err);
    if (status != BSW_OK) bsw_training_journal_close(&journal);
    *out = journal;
    return status;
}

void bsw_training_journal_close(bsw_training_journal **journal)
{
    if (!*journal) return;
    bsw_journal_close(&(*journal)->records);
    bsw_buffer_deinit(&(*journal)->whole);
    bsw_buffer_deinit(&(*journal)->last[0]);
    bsw_buffer_deinit(&(*journal)->last[1]);
    bsw_buffer_deinit(&(*journal)->payload);
    bsw_buffer_deinit(&(*journal)->run_starts);
    bsw_free(journal);
}

static const float *centroids_of(const unsigned char *record)
{
    return (const float *)(const void *)(record + sizeof(struct record_head));
}

// The record of a whole run, or NULL.
static const unsigned char *find_whole(const bsw_training_journal *journal, uint64_t run,
                                       size_t bytes)
{
    const size_t *starts = (const size_t *)(const void *)journal->run_starts.data;
    size_t count = journal->run_starts.bytes / sizeof *starts;
    for (size_t i = 0; i < count; i++) {
        size_t end = i + 1 < count ? starts[i + 1] : journal->whole.bytes;
        const unsigned char *record = journal->whole.data + starts[i];
        if (head_of(record).run == run) return end - starts[i] == bytes ? record : NULL;
    }
    return NULL;
}

int bsw_training_journal_find(const bsw_training_journal *journal, uint64_t run, size_t numbers,
                              struct bsw_training_known *out)
{
    const struct bsw_buffer *last = journal->last;
    size_t bytes = sizeof(struct record_head) + numbers * sizeof(float);
    const unsigned char *whole = find_whole(journal, run, bytes);
    if (whole) {
        *out = (struct bsw_training_known){head_of(whole).round, 1, centroids_of(whole), NULL};
        return 1;
    }
    if (last[0].bytes != bytes || last[1].bytes != bytes) return 0;
    struct record_head head = head_of(last[0].data), before = head_of(last[1].data);
    if (head.run != run || before.run != run || head.round != before.round + 1) return 0;
    *out = (struct bsw_training_known){head.round, 0, centroids_of(last[0].data),
                                       centroids_of(last[1].data)};
    return 1;
}

// ---- writing ----

enum bsw_status bsw_training_journal_put(bsw_training_journal *journal, uint64_t run,
                                         uint32_t round, int is_last, const float *centroids,
                                         size_t numbers, struct bsw_error *err)
{
    const struct record_head head = {run, round, is_last != 0};
    uint64_t bytes = BSW_JOURNAL_RECORD_BYTES + sizeof head + numbers * sizeof(float);
    if (bsw_journal_bytes(journal->records) + bytes > journal->most_bytes) return BSW_OK;
    journal->payload.bytes = 0;
    BSW_TRY(bsw_buffer_append(&journal->payload, &head, sizeof head, err));
    BSW_TRY(bsw_buffer_append(&journal->payload, centroids, numbers * sizeof(float), err));
    BSW_TRY(
        bsw_journal_append(journal->records, journal->payload.data, journal->payload.bytes, err));
    return bsw_journal_commit_if_due(journal->records, err);
}

enum bsw_status bsw_training_journal_commit(bsw_training_journal *journal, struct bsw_error *err)
{
    return bsw_journal_commit(journal->records, err);
}
