// SPDX-License-Identifier: Apache-2.0
// Places where a test build may be told to fail: BITSWEEP_FAIL=KIND:N in the environment makes the
// Nth call of a kind fail, as if the system had refused it; KIND:N:kill ends the process there, as
// if it had been killed. Without BITSWEEP_FAULTS nothing of it is compiled; tests/CMakeLists.txt
// says which program has it, tests/faults/check_faults.sh uses it.
#ifndef BITSWEEP_COMMON_FAULT_POINTS_H
#define BITSWEEP_COMMON_FAULT_POINTS_H

#ifdef BITSWEEP_FAULTS

enum bsw_fault_kind {
    BSW_FAULT_ALLOCATE,
    BSW_FAULT_OPEN,
    BSW_FAULT_READ,
    BSW_FAULT_WRITE,
    BSW_FAULT_FSYNC,
    BSW_FAULT_RENAME,
    BSW_FAULT_SEND,
    BSW_FAULT_FLIP, // of data that a bench is about to check: a bit of it is wrong
    BSW_NUM_FAULT_KINDS
};

// Counts a call; 1 if it is the one to fail, errno then says why. Any thread. The file that
// BITSWEEP_FAULT_LOG names gets a line "reached KIND N" at that moment, and at the end of the
// process one line a kind with how many calls there were: "KIND COUNT".
int bsw_fault_is_due(enum bsw_fault_kind kind);

// The value of `call`, or `failed` where the call is to fail, and is not made.
#define BSW_FAULT(kind, failed, call) (bsw_fault_is_due(BSW_FAULT_##kind) ? (failed) : (call))
#else
#define BSW_FAULT(kind, failed, call) (call)
#endif
#endif
