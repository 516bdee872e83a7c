// SPDX-License-Identifier: Apache-2.0
// An MPI that is looked for when it is wanted, as a build with -DBITSWEEP_MPI=LOADED has it,
// beside the one that this program may be linked with.
#ifndef BITSWEEP_MPI_LOADED
#define BITSWEEP_MPI_LOADED 1
#include "common/net/mpi_library.c" // in place of what the library has
#else
#include "common/net/mpi_library.h"
#endif
#include <dlfcn.h>
#include <string.h>

#include "unit_test.h"

static struct bsw_error err;

UNIT_TEST(names_stand_for_what_was_loaded)
{
    assert_int_equal(bsw_mpi_library_load(&err), BSW_OK);
    void *handle = dlopen("libmpi.so.40", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(handle);
    assert_ptr_equal((void *)MPI_COMM_WORLD, dlsym(handle, "ompi_mpi_comm_world"));
    assert_ptr_equal((void *)MPI_REQUEST_NULL, dlsym(handle, "ompi_request_null"));
    dlclose(handle);
    int is_there = 7, length = 0;
    assert_int_equal(MPI_Initialized(&is_there), MPI_SUCCESS);
    assert_int_equal(is_there, 0);
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    assert_int_equal(MPI_Get_library_version(text, &length), MPI_SUCCESS);
    assert_non_null(strstr(text, "Open MPI"));
    assert_int_equal(bsw_mpi_library_load(&err), BSW_OK); // and again
}

UNIT_TEST(what_is_no_mpi_is_refused)
{
    struct bsw_mpi_library library;
    assert_int_equal(bsw_mpi_library_load_file("libnone.so.40", &library, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "MPI cannot be loaded: libnone.so.40: "));
    assert_int_equal(bsw_mpi_library_load_file("libc.so.6", &library, &err), BSW_ERROR_USAGE);
    assert_non_null(strstr(err.message, "libc.so.6 has no MPI_"));
}

int main(void)
{
    return run_unit_tests(NULL, NULL);
}
