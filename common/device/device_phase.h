// SPDX-License-Identifier: Apache-2.0
// Names for the phases of a batch, as NVTX ranges of the calling thread: profilers show them over
// what they launch and wait for. Without CUDA, or where its toolkit has no NVTX, they are nothing.
#ifndef BITSWEEP_COMMON_DEVICE_PHASE_H
#define BITSWEEP_COMMON_DEVICE_PHASE_H

#include "common/base/c_linkage.h"

// X(PHASE, name)
#define BSW_DEVICE_PHASES(X)          \
    X(LOAD, "load")                   \
    X(STAGE_QUERIES, "stage queries") \
    X(SCAN, "scan")                   \
    X(CUT, "cut")                     \
    X(SORT, "sort")                   \
    X(LISTS, "lists")                 \
    X(MERGE, "merge")                 \
    X(REFINE, "refine")

#define BSW_PHASE_VALUE(phase, name) BSW_PHASE_##phase,
enum bsw_device_phase { BSW_DEVICE_PHASES(BSW_PHASE_VALUE) };
#undef BSW_PHASE_VALUE

#if !defined(BITSWEEP_WITHOUT_DEVICES) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

static inline int bsw_device_phase_begin(enum bsw_device_phase phase)
{
#define BSW_PHASE_NAME(phase, name) name,
    static const char *const names[] = {BSW_DEVICE_PHASES(BSW_PHASE_NAME)};
#undef BSW_PHASE_NAME
    return nvtxRangePushA(names[phase]);
}

static inline void bsw_device_phase_end(const int *level)
{
    (void)level;
    nvtxRangePop();
}

// A declaration: from here to the end of the block, whichever way it is left, the phase goes on.
#define BSW_DEVICE_PHASE(phase)                                            \
    const int phase_level __attribute__((cleanup(bsw_device_phase_end))) = \
        bsw_device_phase_begin(BSW_PHASE_##phase)
#else
#define BSW_DEVICE_PHASE(phase) ((void)BSW_PHASE_##phase)
#endif

#endif
