// SPDX-License-Identifier: Apache-2.0
#include "coordinator/job/encode_journal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/file.h"
#include "common/job/stop_signal.h"
#include "common/net/message_kinds.h"
#include "common/net/transport.h"
#include "shard/codecs/codec.h"

#define PLAN_NAME  "encode.plan"
#define LISTS_NAME "encode.lists"
#define TABLE_NAME "encode.table"

// ---- names ----

static int is_block_journal(const char *name)
{
    unsigned rank;
    int end = -1;
    return sscanf(name, "encode-%5u.journal%n", &rank, &end) == 1 && end >= 0 && name[end] == '\0';
}

int bsw_encode_journal_makes(const char *name)
{
    return strcmp(name, PLAN_NAME) == 0 || strcmp(name, LISTS_NAME) == 0 ||
           strcmp(name, TABLE_NAME) == 0 || is_block_journal(name);
}

static int exists(const char *folder, const char *name)
{
    char path[BSW_PATH_BYTES];
    return bsw_path_join(path, folder, name, NULL) == BSW_OK && bsw_file_exists(path);
}

static enum bsw_status remove_name(const char *folder, const char *name, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(bsw_path_join(path, folder, name, err));
    return bsw_file_remove(path, err);
}

// ---- a table to be made ----

// A journal appears with its first record.
enum bsw_status bsw_encode_table_note(const char *folder, const struct bsw_journal_fields *fields,
                                      struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    bsw_journal *note;
    BSW_TRY(bsw_path_join(path, folder, TABLE_NAME, err));
    const struct bsw_journal_options options = {
        .path = path, .mode = BSW_JOURNAL_FORCE, .fields = fields};
    BSW_TRY(bsw_journal_open(&options, &note, err));
    enum bsw_status status = bsw_journal_append(note, "", 1, err);
    if (status == BSW_OK) status = bsw_journal_commit(note, err);
    bsw_journal_close(&note);
    return status;
}

int bsw_encode_lacks_table(const char *folder)
{
    return exists(folder, TABLE_NAME) && exists(folder, "manifest.pb") &&
           !bsw_encode_plan_exists(folder);
}

enum bsw_status bsw_encode_table_check(const char *folder, const struct bsw_journal_fields *fields,
                                       struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_journal_facts facts;
    BSW_TRY(bsw_path_join(path, folder, TABLE_NAME, err));
    enum bsw_status status = bsw_journal_read(path, fields, NULL, NULL, &facts, err);
    if (status != BSW_ERROR_USAGE) return status;
    return bsw_prefix(err, status, "the index only lacks its table, which calibrate makes, too: ");
}

// ---- rank 0: what there is ----

static void block_fields(const struct bsw_encode_journal *journal, struct bsw_journal_fields *out)
{
    *out = (struct bsw_journal_fields){0};
    bsw_journal_field_digest(out, "run", journal->run_id);
}

static enum bsw_status take_manifest(void *context, const void *payload, size_t bytes,
                                     struct bsw_error *err)
{
    struct bsw_encode_journal *journal = context;
    journal->manifest.bytes = 0;
    return bsw_buffer_append(&journal->manifest, payload, bytes, err);
}

static enum bsw_status take_block(void *context, const void *payload, size_t bytes,
                                  struct bsw_error *err)
{
    struct bsw_encode_journal *journal = context;
    if (bytes != sizeof(struct bsw_encode_block))
        return bsw_fail(err, BSW_ERROR_BAD_DATA, "%zu bytes", bytes);
    return bsw_buffer_append(&journal->recorded, payload, bytes, err);
}

// One that is not of this run, or not readable, is of no use: its blocks are coded again.
static enum bsw_status read_one(struct bsw_encode_journal *journal, const char *path,
                                struct bsw_error *err)
{
    struct bsw_journal_facts facts;
    struct bsw_journal_fields fields;
    block_fields(journal, &fields);
    enum bsw_status status = bsw_journal_read(path, &fields, take_block, journal, &facts, err);
    int is_useless = status == BSW_ERROR_USAGE || status == BSW_ERROR_BAD_DATA;
    return is_useless ? bsw_file_remove(path, err) : status;
}

// Calls `visit` for every journal of blocks in the folder; NULL: reads it.
static enum bsw_status for_each_journal(struct bsw_encode_journal *journal,
                                        enum bsw_status (*visit)(const char *path,
                                                                 struct bsw_error *err),
                                        struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    enum bsw_status status = BSW_OK;
    DIR *handle = opendir(journal->folder);
    if (!handle) {
        return bsw_fail(err, BSW_ERROR_IO, "%s: cannot list: %s", journal->folder, strerror(errno));
    }
    for (struct dirent *entry; status == BSW_OK && (entry = readdir(handle));) {
        if (!is_block_journal(entry->d_name)) continue;
        status = bsw_path_join(path, journal->folder, entry->d_name, err);
        if (status == BSW_OK) status = visit ? visit(path, err) : read_one(journal, path, err);
    }
    closedir(handle);
    return status;
}

// The plan first: without it nothing is resumed, whatever else a crash leaves.
enum bsw_status bsw_encode_journal_remove(struct bsw_encode_journal *journal, struct bsw_error *err)
{
    BSW_TRY(remove_name(journal->folder, PLAN_NAME, err));
    BSW_TRY(remove_name(journal->folder, LISTS_NAME, err));
    return for_each_journal(journal, bsw_file_remove, err);
}

enum bsw_status bsw_encode_table_forget(const char *folder, struct bsw_error *err)
{
    struct bsw_encode_journal left = {.folder = folder};
    BSW_TRY(remove_name(folder, TABLE_NAME, err));
    return bsw_encode_plan_exists(folder) ? BSW_OK : bsw_encode_journal_remove(&left, err);
}

static int compare_blocks(const void *a, const void *b)
{
    uint64_t block = ((const struct bsw_encode_block *)a)->block,
             other = ((const struct bsw_encode_block *)b)->block;
    return block < other ? -1 : block > other;
}

static enum bsw_status read_journals(struct bsw_encode_journal *journal, struct bsw_error *err)
{
    BSW_TRY(for_each_journal(journal, NULL, err));
    size_t count = journal->recorded.bytes / sizeof(struct bsw_encode_block);
    if (count > 0)
        qsort(journal->recorded.data, count, sizeof(struct bsw_encode_block), compare_blocks);
    return BSW_OK;
}

int bsw_encode_plan_exists(const char *folder)
{
    return exists(folder, PLAN_NAME) || exists(folder, LISTS_NAME);
}

// Whether there may be lists in the plan at path: none where it is no plan, or says so.
static int has_lists(const char *path)
{
    struct bsw_encode_journal plan = {0};
    struct bsw_journal_facts facts;
    struct bsw_manifest manifest;
    enum bsw_status status = bsw_journal_read(path, NULL, take_manifest, &plan, &facts, NULL);
    int has = status == BSW_OK ? plan.manifest.bytes > 0 : status != BSW_ERROR_BAD_DATA;
    if (status == BSW_OK && has &&
        bsw_manifest_parse(path, plan.manifest.data, plan.manifest.bytes, &manifest, NULL) ==
            BSW_OK) {
        has = manifest.lists.count > 0;
        bsw_manifest_deinit(&manifest);
    }
    bsw_buffer_deinit(&plan.manifest);
    return has;
}

enum bsw_status bsw_encode_refuse_loss(const char *folder, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    struct bsw_encode_journal left = {.folder = folder};
    if (bsw_encode_lacks_table(folder))
        return bsw_fail(err, BSW_ERROR_USAGE,
                        "%s: holds an index that only lacks its table of recalls: --resume or "
                        "bitsweep calibrate makes it, --force replaces the index",
                        folder);
    if (exists(folder, PLAN_NAME)) {
        BSW_TRY(for_each_journal(&left, bsw_journal_refuse, err));
        BSW_TRY(bsw_path_join(path, folder, PLAN_NAME, err));
        return has_lists(path) ? bsw_journal_refuse(path, err) : BSW_OK;
    }
    if (!exists(folder, LISTS_NAME)) return BSW_OK;
    BSW_TRY(bsw_path_join(path, folder, LISTS_NAME, err));
    return bsw_journal_refuse(path, err);
}

// Blocks without a plan are of no use.
static enum bsw_status open_lists(struct bsw_encode_journal *journal,
                                  const struct bsw_journal_fields *fields, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    BSW_TRY(for_each_journal(journal, bsw_file_remove, err));
    BSW_TRY(bsw_path_join(path, journal->folder, LISTS_NAME, err));
    return bsw_training_journal_open(path, fields, BSW_JOURNAL_MAX_BYTES, &journal->lists, err);
}

enum bsw_status bsw_encode_journal_open(struct bsw_encode_journal *journal, const char *folder,
                                        int is_resumed, int trains_lists,
                                        const struct bsw_journal_fields *fields,
                                        struct bsw_error *err)
{
    char path[BSW_PATH_BYTES];
    journal->folder = folder;
    BSW_TRY(bsw_path_join(path, folder, PLAN_NAME, err));
    if (!is_resumed || !bsw_encode_plan_exists(folder))
        BSW_TRY(bsw_encode_journal_remove(journal, err));
    // Before the plan is opened: one that is refused belongs to another run. So do lists where this
    // run trains none: its fields differ.
    if (!bsw_file_exists(path) && (trains_lists || exists(folder, LISTS_NAME)))
        BSW_TRY(open_lists(journal, fields, err));
    const struct bsw_journal_options options = {.path = path,
                                                .mode = BSW_JOURNAL_RESUME,
                                                .fields = fields,
                                                .replay = take_manifest,
                                                .replay_context = journal};
    BSW_TRY(bsw_journal_open(&options, &journal->plan, err));
    journal->run_id = bsw_journal_run_id(journal->plan);
    journal->is_resumed = journal->manifest.bytes > 0;
    return journal->is_resumed ? read_journals(journal, err) : BSW_OK;
}

static void save_lists(void *context)
{
    bsw_training_journal_commit(((struct bsw_encode_journal *)context)->lists, NULL);
}

void bsw_encode_journal_begin_lists(struct bsw_encode_journal *journal)
{
    bsw_stop_begin(journal->lists ? save_lists : NULL, journal);
}

void bsw_encode_journal_end_lists(void)
{
    bsw_stop_end();
}

enum bsw_status bsw_encode_journal_plan(struct bsw_encode_journal *journal,
                                        const struct bsw_manifest *manifest, struct bsw_error *err)
{
    BSW_TRY(bsw_manifest_pack(manifest, &journal->manifest, err));
    BSW_TRY(
        bsw_journal_append(journal->plan, journal->manifest.data, journal->manifest.bytes, err));
    BSW_TRY(bsw_journal_commit(journal->plan, err));
    bsw_training_journal_close(&journal->lists);
    return remove_name(journal->folder, LISTS_NAME, err);
}

// ---- all ranks ----

// Run id, then the recorded blocks.
static enum bsw_status broadcast(struct bsw_encode_journal *journal,
                                 struct bsw_transport *transport, struct bsw_error *err)
{
    const struct bsw_message message = {.kind = BSW_MESSAGE_RECORDED, .name = "recorded blocks"};
    struct bsw_buffer *recorded = &journal->recorded;
    BSW_TRY(bsw_share_record(transport, &message, &journal->run_id, sizeof journal->run_id, err));
    BSW_TRY(bsw_transport_broadcast(transport, &message, recorded, err));
    if (recorded->bytes % sizeof(struct bsw_encode_block) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_PEER, "rank 0 sent %zu bytes of blocks", recorded->bytes);
}

static void save(void *context)
{
    bsw_journal_commit(((struct bsw_encode_journal *)context)->blocks, NULL);
}

enum bsw_status bsw_encode_journal_share(struct bsw_encode_journal *journal,
                                         struct bsw_transport *transport, const char *folder,
                                         enum bsw_status (*sync)(void *context,
                                                                 struct bsw_error *err),
                                         void *context, struct bsw_error *err)
{
    char path[BSW_PATH_BYTES], name[40];
    struct bsw_journal_fields fields;
    journal->folder = folder;
    journal->rank = transport->rank;
    BSW_TRY(broadcast(journal, transport, err));
    snprintf(name, sizeof name, "encode-%05d.journal", transport->rank);
    BSW_TRY(bsw_path_join(path, folder, name, err));
    block_fields(journal, &fields);
    const struct bsw_journal_options options = {.path = path,
                                                .mode = BSW_JOURNAL_RESUME,
                                                .fields = &fields,
                                                .sync = sync,
                                                .sync_context = context};
    BSW_TRY(bsw_journal_open(&options, &journal->blocks, err));
    bsw_stop_begin(save, journal);
    return BSW_OK;
}

enum bsw_status bsw_encode_journal_put(struct bsw_encode_journal *journal,
                                       const struct bsw_encode_block *block, struct bsw_error *err)
{
    BSW_TRY(bsw_journal_append(journal->blocks, block, sizeof *block, err));
    BSW_TRY(bsw_journal_commit_if_due(journal->blocks, err));
    return bsw_stop_is_asked() ? bsw_stop_fail(err) : BSW_OK;
}

enum bsw_status bsw_encode_block_check(const struct bsw_shard_writer *writer, uint32_t block,
                                       const struct bsw_encode_block *recorded,
                                       const struct bsw_list_order *order, struct bsw_buffer *codes,
                                       int *is_good, struct bsw_error *err)
{
    size_t bytes = bsw_shard_block_bytes(&writer->shape, block);
    uint64_t rows = recorded->source_digest;
    *is_good = 0;
    BSW_TRY(bsw_buffer_reserve(codes, bytes, err));
    BSW_TRY(bsw_shard_writer_read_block(writer, block, codes->data, err));
    if (XXH3_64bits(codes->data, bytes) != recorded->digest) return BSW_OK;
    if (writer->vectors_fd >= 0)
        BSW_TRY(bsw_shard_writer_digest_rows(writer, block, order, &rows, err));
    *is_good = rows == recorded->source_digest;
    return BSW_OK;
}

// ---- the end ----

// Whether what is in the folder is to be resumed: stopped, or a run that begins anew would lose it.
// Lists that are trained, or half, stay where a disk or memory was full, not with a wrong input.
static int is_to_stay(struct bsw_encode_journal *journal, enum bsw_status status)
{
    int code = bsw_status_exit_code(status);
    if (status == BSW_ERROR_SELF_CHECK || !bsw_encode_plan_exists(journal->folder)) return 0;
    if (code == 75 || for_each_journal(journal, bsw_journal_refuse, NULL) != BSW_OK) return 1;
    return code == 74 && journal->rank == 0 && // which alone removes
           bsw_encode_refuse_loss(journal->folder, NULL) != BSW_OK;
}

int bsw_encode_journal_close(struct bsw_encode_journal *journal, enum bsw_status status)
{
    int is_kept = 0;
    if (journal->folder && status == BSW_OK && journal->has_more)
        bsw_stop_begin(NULL, NULL); // with no moment in between that says nothing of --resume
    else if (journal->folder)
        bsw_stop_end();
    if (journal->folder && status != BSW_OK) {
        // A plan that was refused belongs to another run.
        int is_refused =
            journal->rank == 0 && !journal->plan && bsw_encode_plan_exists(journal->folder);
        if (journal->lists && bsw_status_exit_code(status) == 75)
            bsw_training_journal_commit(journal->lists, NULL);
        is_kept = is_refused || is_to_stay(journal, status);
        if (is_kept && journal->blocks && bsw_status_exit_code(status) == 75)
            bsw_journal_commit(journal->blocks, NULL);
        if (!is_kept && journal->rank == 0) bsw_encode_journal_remove(journal, NULL);
    }
    bsw_journal_close(&journal->plan);
    bsw_training_journal_close(&journal->lists);
    bsw_journal_close(&journal->blocks);
    bsw_buffer_deinit(&journal->manifest);
    bsw_buffer_deinit(&journal->recorded);
    return is_kept;
}
