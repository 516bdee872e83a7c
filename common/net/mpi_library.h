// SPDX-License-Identifier: Apache-2.0
// MPI. With -DBITSWEEP_MPI=LOADED (BITSWEEP_MPI_LOADED) programs are not linked with it: it is
// looked for where ranks are, so that one build serves machines with and without. Names of MPI then
// stand for what was loaded; it has to be an Open MPI of the ABI of its mpi.h, libmpi.so.40.
#ifndef BITSWEEP_COMMON_MPI_LIBRARY_H
#define BITSWEEP_COMMON_MPI_LIBRARY_H

#ifdef BITSWEEP_HAVE_MPI
#include <mpi.h>

#include "common/base/status.h"

// Before any other call of MPI. BSW_ERROR_USAGE where it cannot be loaded; what is linked always
// is. What was loaded stays. Thread-safe.
enum bsw_status bsw_mpi_library_load(struct bsw_error *err);

#ifdef BITSWEEP_MPI_LOADED
#ifndef OPEN_MPI
#error "BITSWEEP_MPI=LOADED is for Open MPI"
#endif

// clang-format off
#define BSW_MPI_FUNCTIONS(X)                                                               \
    X(Abort) X(Comm_dup) X(Comm_f2c) X(Comm_free) X(Comm_rank) X(Comm_set_errhandler)      \
    X(Comm_size) X(Comm_split) X(Comm_split_type) X(Error_string) X(Finalize) X(Finalized) \
    X(Get_count) X(Get_library_version) X(Ibarrier) X(Improbe) X(Imrecv) X(Init_thread)    \
    X(Initialized) X(Irecv) X(Isend) X(Query_thread) X(Test)
// What MPI_COMM_WORLD and the like point to.
#define BSW_MPI_OBJECTS(X)                                                     \
    X(mpi_byte) X(mpi_comm_null) X(mpi_comm_world) X(mpi_errors_return)        \
    X(mpi_info_null) X(request_null)
// clang-format on

struct bsw_mpi_library {
#define BSW_MPI_MEMBER(name) __typeof__(&MPI_##name) name;
    BSW_MPI_FUNCTIONS(BSW_MPI_MEMBER)
#undef BSW_MPI_MEMBER
#define BSW_MPI_MEMBER(name) __typeof__(&ompi_##name) name;
    BSW_MPI_OBJECTS(BSW_MPI_MEMBER)
#undef BSW_MPI_MEMBER
};
extern struct bsw_mpi_library bsw_mpi;

// As load, of a file.
enum bsw_status bsw_mpi_library_load_file(const char *name, struct bsw_mpi_library *out,
                                          struct bsw_error *err);

#define MPI_Abort               bsw_mpi.Abort
#define MPI_Comm_dup            bsw_mpi.Comm_dup
#define MPI_Comm_f2c            bsw_mpi.Comm_f2c
#define MPI_Comm_free           bsw_mpi.Comm_free
#define MPI_Comm_rank           bsw_mpi.Comm_rank
#define MPI_Comm_set_errhandler bsw_mpi.Comm_set_errhandler
#define MPI_Comm_size           bsw_mpi.Comm_size
#define MPI_Comm_split          bsw_mpi.Comm_split
#define MPI_Comm_split_type     bsw_mpi.Comm_split_type
#define MPI_Error_string        bsw_mpi.Error_string
#define MPI_Finalize            bsw_mpi.Finalize
#define MPI_Finalized           bsw_mpi.Finalized
#define MPI_Get_count           bsw_mpi.Get_count
#define MPI_Get_library_version bsw_mpi.Get_library_version
#define MPI_Ibarrier            bsw_mpi.Ibarrier
#define MPI_Improbe             bsw_mpi.Improbe
#define MPI_Imrecv              bsw_mpi.Imrecv
#define MPI_Init_thread         bsw_mpi.Init_thread
#define MPI_Initialized         bsw_mpi.Initialized
#define MPI_Irecv               bsw_mpi.Irecv
#define MPI_Isend               bsw_mpi.Isend
#define MPI_Query_thread        bsw_mpi.Query_thread
#define MPI_Test                bsw_mpi.Test
#define ompi_mpi_byte           (*bsw_mpi.mpi_byte)
#define ompi_mpi_comm_null      (*bsw_mpi.mpi_comm_null)
#define ompi_mpi_comm_world     (*bsw_mpi.mpi_comm_world)
#define ompi_mpi_errors_return  (*bsw_mpi.mpi_errors_return)
#define ompi_mpi_info_null      (*bsw_mpi.mpi_info_null)
#define ompi_request_null       (*bsw_mpi.request_null)
#endif // BITSWEEP_MPI_LOADED
#endif // BITSWEEP_HAVE_MPI

#endif
