// SPDX-License-Identifier: Apache-2.0
// Copies from global to shared memory that go on while the kernel does (cp.async), and loads of
// matrices by a warp (ldmatrix). A destination is junk from the copy's issue on; the copy is made
// when its thread waits for its group, the last moment that CUDA allows.
#ifndef BITSWEEP_EMULATION_EMULATED_COPIES_HPP
#define BITSWEEP_EMULATION_EMULATED_COPIES_HPP

#include "emulated_collectives.hpp"

namespace emulation
{

struct pending_copy {
    void *to;
    const void *from;
    unsigned bytes, group; // group: of its thread, commits before it
};

void begin_copy(void *to, const void *from, unsigned bytes, call_site site);
void commit_copies();
// The oldest copy of the calling thread that is in none of the last `left` groups; false: none.
bool take_copy(unsigned left, pending_copy *out);
// Shared memory is where ldmatrix and cp.async want it: `what` is for the message.
void check_shared_place(const void *place, unsigned alignment, const char *what, call_site site);

// Reads and writes are here and not in the emulator's own files so that sanitizers and the race
// detector see them.
template <class T> void cp_async(void *to, const void *from, call_site site)
{
    T junk;
    for (unsigned i = 0; i < sizeof(T); i++) reinterpret_cast<unsigned char *>(&junk)[i] = 0xCD;
    begin_copy(to, from, sizeof(T), site);
    *static_cast<T *>(to) = junk;
}

inline void cp_async_wait(unsigned left)
{
    pending_copy copy;
    while (take_copy(left, &copy)) {
        if (copy.bytes == sizeof(uint4))
            *static_cast<uint4 *>(copy.to) = *static_cast<const uint4 *>(copy.from);
        else
            *static_cast<unsigned *>(copy.to) = *static_cast<const unsigned *>(copy.from);
    }
}

// out[j] of lane 4 * g + t: bytes 4 * t .. 4 * t + 3 of the row that lane 8 * j + g points to.
inline void load_matrices(unsigned (&out)[4], const void *row, call_site site)
{
    const int lane = own_lane();
    check_shared_place(row, 16, "ldmatrix", site);
    for (int j = 0; j < 4; j++) {
        const void *from = shuffle_value(~0u, row, 8 * j + lane / 4, site);
        out[j] = static_cast<const unsigned *>(from)[lane % 4];
    }
}

} // namespace emulation

#endif
