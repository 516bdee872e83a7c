// SPDX-License-Identifier: Apache-2.0
// Bank conflicts of shared memory, counted on demand.
//
// Shared memory has 32 banks of 4-byte words, word w in bank w mod 32. A load of a warp takes as
// many transactions as the bank with the most different words has of them; the same word is there
// for all lanes at once. Loads of 8 bytes go by halves of a warp, of 16 by quarters. So much NVIDIA
// says of its devices; what else happens in time is not modelled.
//
// Lanes of a warp run one after another here: loads are put together by their number, the n-th of
// each lane being one instruction. That is right where all lanes make the same loads, as
// bsw::load_counted asks for.
#ifndef BITSWEEP_EMULATION_EMULATED_BANKS_HPP
#define BITSWEEP_EMULATION_EMULATED_BANKS_HPP

#include <cstddef>
#include <cstdint>

namespace emulation
{

struct bank_figures {
    uint64_t loads;        // instructions of a warp
    uint64_t transactions; // that they took
    uint64_t most;         // of one of them
};

// Figures of blocks that ran since counting was switched on; off unless it was.
extern bank_figures counted_banks;
void count_banks(bool is_on); // off and on: from 0

extern bool is_counting_banks;
void keep_shared_load(const void *place, size_t bytes);

inline void note_shared_load(const void *place, size_t bytes)
{
    if (__builtin_expect(is_counting_banks, false)) keep_shared_load(place, bytes);
}

} // namespace emulation

#endif
