// SPDX-License-Identifier: Apache-2.0
// NCCL as it is found at run time: the functions used here, of 2.19 or later.
//
// Nothing of NCCL is linked and no header of it is needed: what follows is the part of its binary
// interface that has not changed since 2.19, under names of ours. Where nccl.h is there,
// nccl_interface.c has the compiler compare the two.
//
// A build without CUDA or with BITSWEEP_NCCL=OFF loads none.
#ifndef BITSWEEP_COMMON_NCCL_LIBRARY_H
#define BITSWEEP_COMMON_NCCL_LIBRARY_H

#include <limits.h>
#include <stddef.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"
#include "common/device/device.h"

BSW_C_BEGIN

#define BSW_NCCL_OLDEST_VERSION   21900 // ncclGetVersion's form: 2.19.0
#define BSW_NCCL_SHARING_VERSION  23000 // from here on ranks may share a GPU
#define BSW_NCCL_UNIQUE_ID_BYTES  128
#define BSW_NCCL_CONFIG_MAGIC     0xcafebeefu
#define BSW_NCCL_CONFIG_UNDEFINED INT_MIN
#define BSW_NCCL_UINT8            1

enum { BSW_NCCL_SUCCESS = 0, BSW_NCCL_REMOTE_ERROR = 6, BSW_NCCL_IN_PROGRESS = 7 };

typedef struct ncclComm *bsw_nccl_comm;

struct bsw_nccl_unique_id {
    char bytes[BSW_NCCL_UNIQUE_ID_BYTES];
};

// As 2.19 has it. Later ones take it as theirs of that version: size and version say so.
struct bsw_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking, cga_cluster_size, min_ctas, max_ctas;
    const char *net_name;
    int split_share;
};

// Every function but the first two and the last two may return BSW_NCCL_IN_PROGRESS with a
// communicator that was made with blocking 0; get_async_error tells the outcome. One tenant: the
// library that is found as the program runs, or its stand-in in tests.
struct bsw_nccl_library {
    int (*get_version)(int *version);
    int (*get_unique_id)(struct bsw_nccl_unique_id *id);
    int (*comm_init_rank_config)(bsw_nccl_comm *comm, int num_ranks, struct bsw_nccl_unique_id id,
                                 int rank, struct bsw_nccl_config *config);
    int (*comm_get_async_error)(bsw_nccl_comm comm, int *state);
    int (*comm_finalize)(bsw_nccl_comm comm);
    int (*comm_destroy)(bsw_nccl_comm comm);
    int (*comm_abort)(bsw_nccl_comm comm);
    int (*broadcast)(const void *from, void *to, size_t count, int type, int root,
                     bsw_nccl_comm comm, bsw_stream stream);
    int (*send)(const void *from, size_t count, int type, int peer, bsw_nccl_comm comm,
                bsw_stream stream);
    int (*receive)(void *to, size_t count, int type, int peer, bsw_nccl_comm comm,
                   bsw_stream stream);
    int (*group_start)(void);
    int (*group_end)(void);
    const char *(*get_error_string)(int result);
    const char *(*get_last_error)(bsw_nccl_comm comm);

    int version;
    char version_text[24]; // "2.28.9"
    char path[256];        // of the file that was loaded
};

// Loads it, once a process; it stays loaded, as threads of it may run to the end. Missing, older
// than 2.19, or without one of the functions: BSW_ERROR_USAGE with what was found, and *out has the
// version, 0 if there is none.
enum bsw_status bsw_nccl_library_load(struct bsw_nccl_library *out, struct bsw_error *err);

// The same for a file of any name.
enum bsw_status bsw_nccl_library_load_file(const char *name, struct bsw_nccl_library *out,
                                           struct bsw_error *err);

// "2.28.9" of ncclGetVersion's form.
void bsw_nccl_version_format(int version, char *out, size_t capacity);

BSW_C_END
#endif
