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
