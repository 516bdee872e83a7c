// SPDX-License-Identifier: Apache-2.0
#include "coordinator/truth/truth_journal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/job/stop_signal.h"

#define GROUP_BYTES ((size_t)1 << 20)
// After a commit that took t none begins for this many t: lists of many queries are large.
#define PAUSE_FACTOR 10

#define JOURNAL_END  ".journal"
#define LISTS_END    ".lists"

// ---- names ----

// Whether `name` is `stem`, a dot, five digits or more, `end`.
static int is_of(const char *name, const char *stem, const char *end)
{
    size_t bytes = strlen(stem);
    if (strncmp(name, stem, bytes) != 0 || name[bytes] != '.') return 0;
    size_t digits = strspn(name + bytes + 1, "0123456789");
    return digits >= 5 && strcmp(name + bytes + 1 + digits, end) == 0;
}

// Calls `visit` for the files of all ranks with this end. NULL: they are journals of these fields.
static enum bsw_status for_each_file(const char *out, const char *end,
                                     enum bsw_status (*visit)(const char *path,
                                                              struct bsw_error *err),
                                     const struct bsw_journal_fields *fields, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_journal_facts facts;
    const char *slash = strrchr(out, '/'), *stem = slash ? slash + 1 : out;
    enum bsw_status status = BSW_OK;
    int length = snprintf(path, sizeof path, "%.*s", (int)(stem - out), out);
    if (length < 0 || (size_t)length >= sizeof path)
        return bsw_fail(err, BSW_ERROR_USAGE, "result file: path is too long");
    DIR *handle = opendir(slash ? path : ".");
    if (!handle) return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list: %s", path, strerror(errno));
    for (struct dirent *entry; status == BSW_OK && (entry = readdir(handle));) {
        size_t room = sizeof path - (size_t)length, bytes = strlen(entry->d_name) + 1;
        if (!is_of(entry->d_name, stem, end) || bytes > room) continue;
        memcpy(path + length, entry->d_name, bytes);
        status = visit ? visit(path, err) : bsw_journal_read(path, fields, NULL, NULL, &facts, err);
    }
    closedir(handle);
    return status;
}

// ---- rank 0 ----

int bsw_truth_journals_exist(const char *out)
{
    return for_each_file(out, JOURNAL_END, bsw_journal_refuse, NULL, NULL) == BSW_ERROR_USAGE;
}

// Journals first: lists without one are never read.
enum bsw_status bsw_truth_journals_remove(const char *out, struct bsw_error *err)
{
    BSW_TRY(for_each_file(out, JOURNAL_END, bsw_file_remove, NULL, err));
    return for_each_file(out, LISTS_END, bsw_file_remove, NULL, err);
}

enum bsw_status bsw_truth_journals_take(const char *out, enum bsw_journal_mode mode,
                                        const struct bsw_journal_fields *fields,
                                        struct bsw_error *err)
{
    if (mode == BSW_JOURNAL_RESUME) return for_each_file(out, JOURNAL_END, NULL, fields, err);
    if (mode == BSW_JOURNAL_NEW)
        BSW_TRY(for_each_file(out, JOURNAL_END, bsw_journal_refuse, NULL, err));
    return bsw_truth_journals_remove(out, err);
}

// ---- lists ----

#define ENTRY_BYTES (sizeof(uint64_t) + sizeof(uint32_t)) // a score and a row

// Bytes of the longest list and its count.
static size_t list_bytes(const bsw_neighbour_scan *scan)
{
    return sizeof(uint64_t) + scan->capacity * ENTRY_BYTES;
}

static uint64_t slot_byte(const bsw_neighbour_scan *scan, uint64_t slot)
{
    return slot * scan->num_queries * list_bytes(scan);
}

static size_t queries_left(const struct bsw_truth_journal *journal, size_t first)
{
    size_t left = journal->scan->num_queries - first;
    return left < journal->group_queries ? left : journal->group_queries;
}

// Counts, then scores, then rows of `count` queries, into `group`.
static void pack_group(struct bsw_truth_journal *journal, size_t first, size_t count)
{
    const struct bsw_exact_best *lists = journal->scan->lists + first;
    uint64_t *to = (uint64_t *)(void *)journal->group.data;
    for (size_t q = 0; q < count; q++) *to++ = lists[q].count;
    for (size_t q = 0; q < count; q++) {
        memcpy(to, lists[q].scores, lists[q].count * sizeof *to);
        to += lists[q].count;
    }
    uint32_t *rows = (uint32_t *)(void *)to;
    for (size_t q = 0; q < count; q++) {
        memcpy(rows, lists[q].rows, lists[q].count * sizeof *rows);
        rows += lists[q].count;
    }
    journal->group.bytes = (size_t)((unsigned char *)rows - journal->group.data);
}

static enum bsw_status write_lists(struct bsw_truth_journal *journal, uint64_t slot,
                                   uint64_t *digest, struct bsw_error *err)
{
    const struct bsw_buffer *group = &journal->group;
    uint64_t at = slot_byte(journal->scan, slot);
    if (journal->fd < 0) BSW_TRY(bsw_file_create(journal->lists_path, &journal->fd, err));
    *digest = 0;
    for (size_t q = 0; q < journal->scan->num_queries; q += journal->group_queries) {
        pack_group(journal, q, queries_left(journal, q));
        *digest = XXH3_64bits_withSeed(group->data, group->bytes, *digest);
        BSW_TRY(bsw_file_write_at(journal->fd, journal->lists_path, at, group->data, group->bytes,
                                  err));
        at += group->bytes;
    }
    return BSW_OK;
}

// The group at *at into the lists; BSW_ERROR_BAD_DATA where it cannot be one.
static enum bsw_status read_group(struct bsw_truth_journal *journal, size_t first, size_t count,
                                  uint64_t *at, struct bsw_error *err)
{
    const bsw_neighbour_scan *scan = journal->scan;
    struct bsw_buffer *group = &journal->group;
    uint64_t *counts = (uint64_t *)(void *)group->data, *scores = counts + count;
    size_t bytes = count * sizeof *counts, num_items = 0;
    BSW_TRY(bsw_file_read_at(journal->fd, journal->lists_path, *at, counts, bytes, err));
    for (size_t q = 0; q < count; q++) {
        if (counts[q] > scan->capacity) return bsw_fail(err, BSW_ERROR_BAD_DATA, "too long");
        num_items += (size_t)counts[q];
    }
    BSW_TRY(bsw_file_read_at(journal->fd, journal->lists_path, *at + bytes, scores,
                             num_items * ENTRY_BYTES, err));
    const uint32_t *rows = (const uint32_t *)(const void *)(scores + num_items);
    for (size_t i = 0; i < num_items; i++) {
        if (rows[i] >= journal->stored.next_row)
            return bsw_fail(err, BSW_ERROR_BAD_DATA, "a row to come");
    }
    for (size_t q = first; q < first + count; q++) {
        struct bsw_exact_best *list = &scan->lists[q];
        list->count = (size_t)counts[q - first];
        memcpy(list->scores, scores, list->count * sizeof *scores);
        memcpy(list->rows, rows, list->count * sizeof *rows);
        scores += list->count;
        rows += list->count;
    }
    group->bytes = bytes + num_items * ENTRY_BYTES;
    *at += group->bytes;
    return BSW_OK;
}

static enum bsw_status read_lists(struct bsw_truth_journal *journal, struct bsw_error *err)
{
    const struct bsw_buffer *group = &journal->group;
    uint64_t at = slot_byte(journal->scan, journal->stored.slot), digest = 0;
    for (size_t q = 0; q < journal->scan->num_queries; q += journal->group_queries) {
        BSW_TRY(read_group(journal, q, queries_left(journal, q), &at, err));
        digest = XXH3_64bits_withSeed(group->data, group->bytes, digest);
    }
    if (digest == journal->stored.digest) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_BAD_DATA, "not as recorded");
}

// ---- this rank ----

static enum bsw_status replay_state(void *context, const void *payload, size_t bytes,
                                    struct bsw_error *err)
{
    struct bsw_truth_journal *journal = context;
    struct bsw_truth_state state;
    if (bytes != sizeof state)
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%zu bytes, not %zu", bytes, sizeof state);
    memcpy(&state, payload, sizeof state);
    if (state.next_row > journal->scan->needs.num_rows || state.slot > 1) {
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "row %llu of %llu, slot %llu",
                        (unsigned long long)state.next_row,
                        (unsigned long long)journal->scan->needs.num_rows,
                        (unsigned long long)state.slot);
    }
    journal->stored = state;
    return BSW_OK;
}

static enum bsw_status sync_lists(void *context, struct bsw_error *err)
{
    struct bsw_truth_journal *journal = context;
    return bsw_file_sync(journal->fd, journal->lists_path, err);
}

// Runs at a stop. A block may be at work then, and the lists be half of one block, half of another.
static void save(void *context)
{
    struct bsw_truth_journal *journal = context;
    if (!bsw_journal_commit_last(journal->journal)) bsw_temporary_note(journal->lists_path);
}

// The scan to where the last record was. Lists that are lost or damaged are begun anew.
static enum bsw_status go_on(struct bsw_truth_journal *journal, struct bsw_error *err)
{
    bsw_neighbour_scan *scan = journal->scan;
    struct bsw_truth_state *stored = &journal->stored;
    enum bsw_status status = BSW_ERROR_BAD_DATA;
    if (stored->next_row == 0) return BSW_OK;
    if (bsw_file_exists(journal->lists_path)) {
        BSW_TRY(bsw_file_open_write(journal->lists_path, &journal->fd, err));
        status = read_lists(journal, err);
    }
    if (status != BSW_OK && status != BSW_ERROR_BAD_DATA) return status;
    if (status != BSW_OK) {
        for (size_t q = 0; q < scan->num_queries; q++) scan->lists[q].count = 0;
        stored->next_row = stored->dropped_rows = 0;
    }
    bsw_neighbour_scan_restore(scan, stored->next_row, stored->dropped_rows);
    journal->num_resumed = stored->next_row;
    return BSW_OK;
}

enum bsw_status bsw_truth_journal_open(struct bsw_truth_journal *journal, const char *out, int rank,
                                       enum bsw_journal_mode mode,
                                       const struct bsw_journal_fields *fields,
                                       bsw_neighbour_scan *scan, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    size_t bytes = list_bytes(scan);
    *journal = (struct bsw_truth_journal){.scan = scan, .fd = -1};
    journal->group_queries = bytes < GROUP_BYTES ? GROUP_BYTES / bytes : 1;
    if (journal->group_queries > scan->num_queries) journal->group_queries = scan->num_queries;
    BSW_TRY(bsw_buffer_reserve(&journal->group, journal->group_queries * bytes, err));
    BSW_TRY(bsw_path_format(journal->lists_path, err, "%s.%05d" LISTS_END, out, rank));
    BSW_TRY(bsw_path_format(path, err, "%s.%05d" JOURNAL_END, out, rank));
    const struct bsw_journal_options options = {.path = path,
                                                .mode = mode,
                                                .fields = fields,
                                                .sync = sync_lists,
                                                .sync_context = journal,
                                                .replay = replay_state,
                                                .replay_context = journal};
    BSW_TRY(bsw_journal_open(&options, &journal->journal, err));
    BSW_TRY(go_on(journal, err));
    bsw_stop_begin(save, journal);
    return BSW_OK;
}

static enum bsw_status store(struct bsw_truth_journal *journal, struct bsw_error *err)
{
    const bsw_neighbour_scan *scan = journal->scan;
    struct bsw_truth_state state = {.next_row = scan->next_row,
                                    .dropped_rows = scan->dropped_rows,
                                    .slot = 1 - journal->stored.slot};
    if (state.next_row == journal->stored.next_row) return BSW_OK;
    double begin = bsw_clock_seconds();
    BSW_TRY(write_lists(journal, state.slot, &state.digest, err));
    BSW_TRY(bsw_journal_append(journal->journal, &state, sizeof state, err));
    BSW_TRY(bsw_journal_commit(journal->journal, err));
    journal->stored = state;
    double end = bsw_clock_seconds();
    journal->not_before = end + PAUSE_FACTOR * (end - begin);
    return BSW_OK;
}

enum bsw_status bsw_truth_journal_put(struct bsw_truth_journal *journal, struct bsw_error *err)
{
    if (!bsw_journal_is_due(journal->journal) || bsw_clock_seconds() < journal->not_before)
        return BSW_OK;
    return store(journal, err);
}

void bsw_truth_journal_close(struct bsw_truth_journal *journal, enum bsw_status status)
{
    int is_kept = 0;
    if (!journal->scan) return;
    bsw_stop_end();
    if (journal->journal && bsw_status_exit_code(status) == 75) store(journal, NULL);
    if (journal->journal && status == BSW_OK)
        bsw_journal_remove(&journal->journal, NULL);
    else
        is_kept = bsw_journal_abandon(&journal->journal, status);
    if (journal->fd >= 0 && !is_kept) bsw_file_remove(journal->lists_path, NULL);
    bsw_file_close(&journal->fd);
    bsw_buffer_deinit(&journal->group);
    *journal = (struct bsw_truth_journal){0};
}
