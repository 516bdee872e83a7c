// SPDX-License-Identifier: Apache-2.0
// The journal of a long command: which parts of its output are done, so that a run that was stopped
// or killed goes on where it was.
//
// An append-only file, numbers little-endian:
//   header   magic, format version, number of fields, run id, bytes of the header; then the fields,
//            name and value of each (uint16 bytes, text); then XXH3 of all before it
//   records  uint32 bytes of the payload, uint32 0, uint64 sequence number from 0 on, payload, XXH3
//            of all of the record before it, seeded with the run id
// Fields say what the output is a function of (digests of inputs, parameters, version); a journal
// whose fields differ is refused. A payload is whatever the command makes of it, usually a struct.
//
// The order that makes it right: write output, append its record, commit. append only keeps the
// record in memory. commit first makes the output durable (options.sync), then writes the records
// and syncs the journal; a command commits when one is due, every BSW_JOURNAL_SECONDS. The file
// appears with the first commit, whole: a short run has no journal.
//
// A reader takes all records up to the first that is not whole and right, and cuts the rest, torn
// or not: what they said is done again. A header that is damaged is an error, since no crash makes
// one.
//
// append, commit and commit_if_due may be called by any number of threads at once.
#ifndef BITSWEEP_COMMON_JOURNAL_H
#define BITSWEEP_COMMON_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/status.h"

#define BSW_JOURNAL_SECONDS \
    5.0 // or what BITSWEEP_JOURNAL_SECONDS says: 0 commits always, for tests
#define BSW_JOURNAL_MAX_FIELDS  40
#define BSW_JOURNAL_NAME_BYTES  32  // with the 0 at the end
#define BSW_JOURNAL_VALUE_BYTES 160 // the same; longer values are cut and end with their digest
// A GiB of centroids, and what a manifest has besides.
#define BSW_JOURNAL_MAX_PAYLOAD  (((size_t)1 << 30) + ((size_t)1 << 28))
#define BSW_JOURNAL_RECORD_BYTES 24                  // beside the payload
#define BSW_JOURNAL_MAX_BYTES    ((uint64_t)1 << 33) // of a file that is read

// ---- fields: {0}, then one call each; names must stay; more than the most are an error of open
// ----

struct bsw_journal_field {
    char name[BSW_JOURNAL_NAME_BYTES];
    char value[BSW_JOURNAL_VALUE_BYTES];
};
struct bsw_journal_fields {
    size_t count;
    struct bsw_journal_field fields[BSW_JOURNAL_MAX_FIELDS];
};
void bsw_journal_field_text(struct bsw_journal_fields *fields, const char *name, const char *value);
void bsw_journal_field_count(struct bsw_journal_fields *fields, const char *name, uint64_t value);
void bsw_journal_field_number(struct bsw_journal_fields *fields, const char *name, double value);
void bsw_journal_field_digest(struct bsw_journal_fields *fields, const char *name, uint64_t value);

// ---- parsing, from memory ----

// Gets every good record in order. payload is borrowed and not aligned. An error ends the replay
// and is returned; a payload of a wrong size should be BSW_ERROR_BAD_DATA.
typedef enum bsw_status (*bsw_journal_replay_fn)(void *context, const void *payload, size_t bytes,
                                                 struct bsw_error *err);

struct bsw_journal_facts {
    uint64_t run_id;
    uint64_t num_records; // good ones
    uint64_t good_bytes;  // header and good records; what follows is to be cut
};

// name: for messages. expected: NULL accepts any fields. replay: may be NULL. Other fields are
// BSW_ERROR_USAGE naming the first that differs and both values; damage of the header or another
// format version is BSW_ERROR_BAD_DATA. Allocates nothing.
enum bsw_status bsw_journal_parse(const char *name, const void *data, size_t bytes,
                                  const struct bsw_journal_fields *expected,
                                  bsw_journal_replay_fn replay, void *context,
                                  struct bsw_journal_facts *out, struct bsw_error *err);
// The same of a file, which stays as it is.
enum bsw_status bsw_journal_read(const char *path, const struct bsw_journal_fields *expected,
                                 bsw_journal_replay_fn replay, void *context,
                                 struct bsw_journal_facts *out, struct bsw_error *err);
// BSW_ERROR_USAGE: another run left the journal at path, what may be done.
enum bsw_status bsw_journal_refuse(const char *path, struct bsw_error *err);

// ---- a journal in use ----

typedef struct bsw_journal bsw_journal;

enum bsw_journal_mode {
    BSW_JOURNAL_NEW,    // one that exists already is BSW_ERROR_USAGE: --resume or --force
    BSW_JOURNAL_FORCE,  // one that exists is removed
    BSW_JOURNAL_RESUME, // one that exists is gone on with; none: begins
};
// --force and --resume of a command; both: goes on if there is something to go on with.
static inline enum bsw_journal_mode bsw_journal_mode_of(int is_forced, int is_resumed)
{
    return is_resumed ? BSW_JOURNAL_RESUME : is_forced ? BSW_JOURNAL_FORCE : BSW_JOURNAL_NEW;
}

struct bsw_journal_options {
    const char *path;
    enum bsw_journal_mode mode;
    const struct bsw_journal_fields *fields;
    // Makes all output durable whose record was appended before; at the start of each commit, from
    // the committing thread, never from two at once. NULL: nothing to do.
    enum bsw_status (*sync)(void *context, struct bsw_error *err);
    void *sync_context;
    bsw_journal_replay_fn replay; // BSW_JOURNAL_RESUME: called by open alone; may be NULL
    void *replay_context;
};

// Borrows nothing of options but sync_context. Writes nothing yet, but cuts a torn tail.
enum bsw_status bsw_journal_open(const struct bsw_journal_options *options, bsw_journal **out,
                                 struct bsw_error *err);

enum bsw_status bsw_journal_append(bsw_journal *journal, const void *payload, size_t bytes,
                                   struct bsw_error *err);
// Nothing to do where nothing was appended. After a failure every later commit fails, too: it is
// not known what of the output is durable.
enum bsw_status bsw_journal_commit(bsw_journal *journal, struct bsw_error *err);
// The last commit of a process that is about to end, from any thread: whoever commits after it
// waits for that end, so that what is true now stays true. Returns bsw_journal_is_stored.
int bsw_journal_commit_last(bsw_journal *journal);
// Marks what was appended so far, from one thread: after bsw_journal_trust it is known to be right,
// and survives a failed self-check.
void bsw_journal_mark(bsw_journal *journal);
void bsw_journal_trust(bsw_journal *journal);
// Whether the last commit (or open) is BSW_JOURNAL_SECONDS ago, and no other thread is at one.
int bsw_journal_is_due(bsw_journal *journal);
// Commits if it is due.
enum bsw_status bsw_journal_commit_if_due(bsw_journal *journal, struct bsw_error *err);

// Bytes of the file once all that was appended is stored; more than BSW_JOURNAL_MAX_BYTES are not
// read again.
uint64_t bsw_journal_bytes(bsw_journal *journal);
// Whether there is a file: with one, --resume has something to go on with.
int bsw_journal_is_stored(bsw_journal *journal);
// Random, new with every journal that begins.
uint64_t bsw_journal_run_id(const bsw_journal *journal);

// The output is whole and has its final name: removes the file, closes.
enum bsw_status bsw_journal_remove(bsw_journal **journal, struct bsw_error *err);
// Closes and leaves the file as of the last commit. Accepts NULL inside.
void bsw_journal_close(bsw_journal **journal);
// How a command ends that failed with `status`: commits if it was stopped or lost a rank (exit code
// 75), then keeps the journal if it has a file, to go on from there. After a failed self-check only
// what is trusted can be relied on: records of earlier runs, and those before the mark. The others
// are cut; where none is left the file goes. Closes. Not 0: kept, and so must the output be.
// Accepts NULL inside: 0.
int bsw_journal_abandon(bsw_journal **journal, enum bsw_status status);

#endif
