// SPDX-License-Identifier: Apache-2.0
#include "emulated_banks.hpp"

#include <algorithm>
#include <array>

#include "emulator_internal.hpp"

namespace emulation
{

bank_figures counted_banks;
bool is_counting_banks;

static constexpr unsigned num_banks = 32, bank_bytes = 4;

struct shared_load {
    uintptr_t place;
    size_t bytes;
};

static std::array<std::vector<shared_load>, max_threads> loads; // of the block that runs

void count_banks(bool is_on)
{
    is_counting_banks = is_on;
    if (is_on) counted_banks = {};
    for (auto &own : loads) own.clear();
}

void keep_shared_load(const void *place, size_t bytes)
{
    const size_t thread = static_cast<size_t>(self() - block.threads);
    loads[thread].push_back({reinterpret_cast<uintptr_t>(place), bytes});
}

// Transactions for lanes that are served together.
static uint64_t transactions_of(std::vector<uintptr_t> words)
{
    unsigned num[num_banks] = {};
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (uintptr_t word : words) num[word % num_banks]++;
    return *std::max_element(num, num + num_banks);
}

// The n-th load of a warp.
static void count_load(unsigned first_thread, size_t n)
{
    size_t widest = 0;
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        const auto &own = loads[first_thread + lane];
        if (n < own.size()) widest = std::max(widest, own[n].bytes);
    }
    const unsigned together =
        widest <= bank_bytes ? warp_lanes : static_cast<unsigned>(warp_lanes * bank_bytes / widest);
    uint64_t transactions = 0;
    for (unsigned from = 0; from < warp_lanes; from += together) {
        std::vector<uintptr_t> words;
        for (unsigned lane = from; lane < from + together; lane++) {
            const auto &own = loads[first_thread + lane];
            if (n >= own.size()) continue;
            const uintptr_t last = (own[n].place + own[n].bytes - 1) / bank_bytes;
            for (uintptr_t w = own[n].place / bank_bytes; w <= last; w++) words.push_back(w);
        }
        transactions += words.empty() ? 0 : transactions_of(words);
    }
    counted_banks.loads++;
    counted_banks.transactions += transactions;
    counted_banks.most = std::max(counted_banks.most, transactions);
}

void count_bank_conflicts()
{
    if (!is_counting_banks) return;
    for (unsigned first = 0; first < block.num_threads; first += warp_lanes) {
        size_t most = 0;
        for (unsigned lane = 0; lane < warp_lanes; lane++)
            most = std::max(most, loads[first + lane].size());
        for (size_t n = 0; n < most; n++) count_load(first, n);
    }
    for (auto &own : loads) own.clear();
}

} // namespace emulation
