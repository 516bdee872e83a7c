// SPDX-License-Identifier: Apache-2.0
// The one writer of a shard's files: codes, copied raw rows, lists, header and footer. They are
// made beside their final names, which they get when all files of an index are whole.
//
// Rank 0 creates the files in their full size; every rank opens those it has blocks of, puts blocks
// and rows in any order, syncs and closes; rank 0 seals what all have put, and names it. Threads
// may put different blocks and rows at once.
#ifndef BITSWEEP_COMMON_SHARD_WRITER_H
#define BITSWEEP_COMMON_SHARD_WRITER_H

#include "common/files/list_order.h"
#include "common/files/shard_file.h"

struct bsw_shard_writer {
    const struct bsw_manifest *manifest; // borrowed, as the folder
    const char *folder;
    uint32_t shard;
    struct bsw_shard_shape shape;
    size_t row_bytes;         // of a raw row
    int codes_fd, vectors_fd; // -1: not open; without copied rows there is no .vectors file
};

// Whether a file of this name is one of a shard: finished, or as it is being written.
int bsw_shard_file_is_named(const char *name, int is_temporary);

// Touches no file. The manifest has its shards, and everything else by the time of sealing.
void bsw_shard_writer_init(struct bsw_shard_writer *writer, const struct bsw_manifest *manifest,
                           const char *folder, uint32_t shard);

// Files of full size; those that are there stay as they are. Leaves them closed.
enum bsw_status bsw_shard_writer_create(const struct bsw_shard_writer *writer,
                                        struct bsw_error *err);
// Files that were created.
enum bsw_status bsw_shard_writer_open(struct bsw_shard_writer *writer, struct bsw_error *err);

enum bsw_status bsw_shard_writer_put_block(const struct bsw_shard_writer *writer, uint32_t block,
                                           const void *bytes, struct bsw_error *err);
// Rows [first, first + count) of the shard, or at these places, as copies lie. Nothing to do where
// rows are not copied.
enum bsw_status bsw_shard_writer_put_rows(const struct bsw_shard_writer *writer, uint64_t first,
                                          const void *rows, size_t count, struct bsw_error *err);

// What lies there: bytes of a block, and the sum of bsw_row_digest over its rows. order: of the
// shard; may be NULL where copies do not lie at places.
enum bsw_status bsw_shard_writer_read_block(const struct bsw_shard_writer *writer, uint32_t block,
                                            void *out, struct bsw_error *err);
enum bsw_status bsw_shard_writer_digest_rows(const struct bsw_shard_writer *writer, uint32_t block,
                                             const struct bsw_list_order *order, uint64_t *out,
                                             struct bsw_error *err);

// fsync, of what is open. close syncs, too, and closes whatever comes of it.
enum bsw_status bsw_shard_writer_sync(const struct bsw_shard_writer *writer, struct bsw_error *err);
enum bsw_status bsw_shard_writer_close(struct bsw_shard_writer *writer, struct bsw_error *err);

// Header and footer round blocks that are all in place and of block_digests [num_blocks], durably.
// *codes_digest is what the manifest keeps.
enum bsw_status bsw_shard_writer_seal(struct bsw_shard_writer *writer,
                                      const uint64_t *block_digests, uint64_t *codes_digest,
                                      struct bsw_error *err);
// The file of an index with lists, whole and durable, once the manifest has its build digest.
// *digest is what the manifest keeps.
enum bsw_status bsw_shard_writer_put_lists(const struct bsw_shard_writer *writer,
                                           const struct bsw_list_order *order, uint64_t *digest,
                                           struct bsw_error *err);
// Files that are whole get their final names.
enum bsw_status bsw_shard_writer_name(const struct bsw_shard_writer *writer, struct bsw_error *err);
// Removes files that do not have their names yet, if they are there.
void bsw_shard_writer_remove(const struct bsw_shard_writer *writer);

#endif
