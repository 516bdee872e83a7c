// SPDX-License-Identifier: Apache-2.0
// Files that are mapped into memory, and how the process ends where one becomes shorter meanwhile.
//
// Raw rows for refinement alone are mapped (shard/host/raw_rows.c). pread would say by itself that
// a file has ended, as it does for all others, but for single rows it costs a system call each: in
// memory 0.75 us for 128 bytes, against 0.05 us from a mapping, at 50 rows a query. So our programs
// have a handler for SIGBUS, which the kernel sends to a thread that reads a page of a mapping
// behind the end of its file. All that the handler does is to find the file among those noted here,
// wake a thread that was made for this, and put the faulting thread to sleep. That thread ends the
// process as bsw_stop_for does (common/job/stop_signal.h): one line, STATUS.json, exit code 65, and
// the other ranks with it; 74 where the file is as long as before, so that it could not be read.
// SIGBUS of any other address is left to whoever handled it before.
//
// The page in which a file ends now reads as zeros behind that end, without a signal: hence
// bsw_mapped_files_check, between the last read of a batch and its answer.
#ifndef BITSWEEP_COMMON_MAPPED_FILES_H
#define BITSWEEP_COMMON_MAPPED_FILES_H

#include <stddef.h>

#include "common/base/status.h"

// Called by main: from the next file on, with the handler. A program of others that calls our
// library ends as it likes.
void bsw_mapped_files_watch(void);

// `bytes` of the file in fd, from its beginning on, are mapped at `map`; path is copied, for
// messages. The first call in a watched program starts the thread and sets the handler, which must
// come after those of libraries (MPI). From any thread.
enum bsw_status bsw_mapped_file_note(const void *map, size_t bytes, int fd, const char *path,
                                     struct bsw_error *err);
// Before it is unmapped. One that is not noted is ok.
void bsw_mapped_file_forget(const void *map);

// BSW_ERROR_BAD_DATA if one of the files is shorter than its mapping. A file that has another name
// by now, or none, passes. One stat for all mappings of a file that follow each other.
enum bsw_status bsw_mapped_files_check(struct bsw_error *err);

#endif
