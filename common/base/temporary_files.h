// SPDX-License-Identifier: Apache-2.0
// Files that exist under a temporary name while this process writes them: where a signal ends the
// process (common/job/stop_signal.h), they are removed. Any thread.
#ifndef BITSWEEP_COMMON_TEMPORARY_FILES_H
#define BITSWEEP_COMMON_TEMPORARY_FILES_H

// Before the file, or a folder that stays only if it gets something in it, is created; path is
// copied. Beyond 16 at a time, and without memory, it is not noted and would stay behind.
void bsw_temporary_note(const char *path);
// After it was renamed or removed. A path that is not noted is ok.
void bsw_temporary_forget(const char *path);

// Removes all that are noted, and lets no thread note another one from then on: the process must
// end.
void bsw_temporaries_remove(void);

#endif
