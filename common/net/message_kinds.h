// SPDX-License-Identifier: Apache-2.0
// What messages between ranks are (struct bsw_message, transport.h), all in one list: no two are
// mistaken for each other, whichever follow one another in a run. Ranks of a job are one build, so
// the numbers may change.
#ifndef BITSWEEP_COMMON_MESSAGE_KINDS_H
#define BITSWEEP_COMMON_MESSAGE_KINDS_H

enum bsw_message_kind {
    // The start: devices, links between them, the same input and call everywhere.
    BSW_MESSAGE_DEVICES = 1,
    BSW_MESSAGE_DEVICE_VERDICT,
    BSW_MESSAGE_LINK_FACTS,
    BSW_MESSAGE_LINK_VERDICT,
    BSW_MESSAGE_DEVICE_MEMORY,
    BSW_MESSAGE_INPUT,
    BSW_MESSAGE_CALL,
    // encode
    BSW_MESSAGE_MANIFEST,
    BSW_MESSAGE_MODEL,
    BSW_MESSAGE_RECORDED,
    BSW_MESSAGE_BLOCKS,
    BSW_MESSAGE_ANSWERS,
    // search: which rank answers for what; the exchanges of a batch, one for each enum
    // bsw_exchange, and what comes after
    BSW_MESSAGE_ASSIGNMENT,
    BSW_MESSAGE_MISSING,
    BSW_MESSAGE_FILTER,
    BSW_MESSAGE_FIRST_EXCHANGE = 16,
    BSW_MESSAGE_STATISTICS = 32,
    // groundtruth
    BSW_MESSAGE_NEIGHBOURS,
    BSW_MESSAGE_RESUMED_ROWS,
    BSW_MESSAGE_DROPPED_ROWS,
    BSW_MESSAGE_SCREENED_PAIRS,
    BSW_MESSAGE_QUERY_SHAPE,
    BSW_MESSAGE_QUERY_ROWS,
    // train
    BSW_MESSAGE_CHECKPOINT,
    BSW_MESSAGE_NEIGHBOUR_PART,
    BSW_MESSAGE_NEIGHBOUR_ALL,
    BSW_MESSAGE_START,
    BSW_MESSAGE_GRADIENT,
    BSW_MESSAGE_PARAMETERS,
    BSW_MESSAGE_LOSS,
    BSW_MESSAGE_STOP,
    // lists
    BSW_MESSAGE_LISTS,
    BSW_MESSAGE_LIST_PLAN,
    BSW_MESSAGE_LIST_ROWS,
    BSW_MESSAGE_CALIBRATE_ROWS,
    BSW_MESSAGE_CALIBRATE_STEPS,
    BSW_MESSAGE_CALIBRATE_GOES_ON,
    // verify, sweep
    BSW_MESSAGE_DIGESTS,
    BSW_MESSAGE_STEP,
    // bench
    BSW_MESSAGE_BENCH_RECORD,
    BSW_MESSAGE_BENCH_END,
    BSW_MESSAGE_BENCH_CORPUS,
    BSW_MESSAGE_BENCH_FORTH,
    BSW_MESSAGE_BENCH_BACK,
    BSW_MESSAGE_BENCH_REPORT,
};

#endif
