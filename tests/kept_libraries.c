// SPDX-License-Identifier: Apache-2.0
// Under sanitizers every program has this. A library that is unloaded takes along what still points
// at its memory, and the names in its stacks: all of Open MPI's modules would look like leaks, each
// of which costs a search for its name. Libraries have to see it.
__attribute__((visibility("default"))) int dlclose(void *library);

int dlclose(void *library)
{
    (void)library;
    return 0;
}

// Open MPI keeps some of what it allocates as it starts. It does so in libraries without frame
// pointers, and whole stacks of all allocations, to tell its leaks from ours, took half of the time
// of a start.
#if defined(BITSWEEP_HAVE_MPI)
#include <mpi.h>

// Defined by the sanitizers that look for leaks, and by no others.
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

int MPI_Init_thread(int *num_arguments, char ***arguments, int wanted, int *given)
{
    if (__lsan_disable) __lsan_disable();
    int code = PMPI_Init_thread(num_arguments, arguments, wanted, given);
    if (__lsan_enable) __lsan_enable();
    return code;
}
#endif
