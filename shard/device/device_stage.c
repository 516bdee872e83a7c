// SPDX-License-Identifier: Apache-2.0
#include "shard/device/device_stage.h"

// Issue slots of a quarter of a multiprocessor for 128 pairs, counted from machine code. An H200
// took 0.90 times as long for the full scan as for one with a stage of 64 of 128 dimensions, which
// these costs prefer. A word is one mma and its operands.
static const struct {
    double word, full, staged, pair_word; // pair_word: a survivor's word, unpacked for it alone
} costs = {6.5, 20, 18, 1.75};

// Parts double their rows, so this many are a large part of a scan.
#define REST_LAUNCHES 1
// A part so many times as long as all that went well is tried on this part of it first: where all
// pairs go on, a staged scan takes some twenty times as long as a full one.
#define LONG_PART   4
#define TRIED_PART  64
#define LEAST_TRIED 64 // bundles

int bsw_device_stage_pays(uint32_t words, uint32_t stage_words, double share)
{
    double full = costs.full + costs.word * words;
    double staged = costs.staged + costs.word * stage_words;
    return staged + 128 * share * costs.pair_word * words < full;
}

static uint64_t num_bundles(const struct bsw_device_part *part)
{
    return ((uint64_t)part->last - part->first + part->step - 1) / part->step;
}

enum bsw_device_stage_step bsw_device_stage_next(struct bsw_device_stage_run *run,
                                                 const struct bsw_device_part *part,
                                                 struct bsw_device_part *beginning)
{
    uint64_t bundles = num_bundles(part), count = bundles / TRIED_PART;
    if (run->num_launches++ == 0) return BSW_STAGE_FULL;
    if (run->resting > 0) {
        run->resting--;
        return BSW_STAGE_FULL;
    }
    if (count < LEAST_TRIED) count = LEAST_TRIED;
    if (run->is_always || bundles / LONG_PART <= run->tried || bundles <= 2 * count)
        return BSW_STAGE_STAGED;
    *beginning = *part;
    beginning->last = part->first + (uint32_t)(count * part->step);
    return BSW_STAGE_BEGINNING;
}

void bsw_device_stage_launched(struct bsw_device_stage_run *run, const struct bsw_device_part *part,
                               size_t num_queries)
{
    run->tried += num_bundles(part);
    run->pending_pairs = num_bundles(part) * BSW_BUNDLE_ROWS * num_queries;
}

void bsw_device_stage_settle(struct bsw_device_stage_run *run, uint64_t survivors)
{
    if (run->pending_pairs == 0) return;
    uint64_t new = survivors - run->seen;
    double share = (double)new / (double)run->pending_pairs;
    run->part_stopped += run->pending_pairs - new;
    if (!run->is_always && !bsw_device_stage_pays(run->words, run->stage_words, share)) {
        run->resting = REST_LAUNCHES;
        run->tried = 0;
    }
    run->seen = survivors;
    run->pending_pairs = 0;
}

void bsw_device_stage_end_part(struct bsw_device_stage_run *run, uint64_t num_overflows)
{
    if (num_overflows == run->num_overflows) run->stopped += run->part_stopped;
    run->part_stopped = 0;
    run->num_overflows = num_overflows;
}
