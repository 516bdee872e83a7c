// SPDX-License-Identifier: Apache-2.0
#include "shard/host/answer_check.h"

#include "common/codes/metric.h"

struct comparison {
    struct bsw_known_answers known;
    const uint64_t *expected; // [known.num_rows]
    uint64_t first_row;
    uint32_t shard, query;
};

static enum bsw_status fail_place(const struct comparison *c, size_t place, uint64_t found,
                                  struct bsw_error *err)
{
    uint64_t expected = c->expected[place];
    return bsw_fail(
        err, BSW_ERROR_SELF_CHECK,
        "shard %u: known answer %u has row %llu with key %08x at place %zu, found is row "
        "%llu with key %08x",
        c->shard, c->query, (unsigned long long)(c->first_row + bsw_candidate_row(expected)),
        bsw_candidate_score(expected), place + 1,
        (unsigned long long)(c->first_row + bsw_candidate_row(found)), bsw_candidate_score(found));
}

static enum bsw_status fail_count(const struct comparison *c, size_t num, size_t count,
                                  struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_SELF_CHECK,
                    "shard %u: known answer %u has %zu rows, found are %zu", c->shard, c->query,
                    num, count);
}

static enum bsw_status check_all(const struct comparison *c, const uint64_t *found, size_t count,
                                 size_t keep, struct bsw_error *err)
{
    size_t num = keep < c->known.num_rows ? keep : c->known.num_rows;
    for (size_t i = 0; i < count && i < num; i++)
        if (found[i] != c->expected[i]) return fail_place(c, i, found[i], err);
    int is_good = count == num || (count > num && c->known.is_short);
    return is_good ? BSW_OK : fail_count(c, num, count, err);
}

// Every row that is found is either known or worse than all that are, if more may be there.
static enum bsw_status check_some(const struct comparison *c, const uint64_t *found, size_t count,
                                  struct bsw_error *err)
{
    size_t at = 0, num = c->known.num_rows;
    if (count == 0 && num > 0) return fail_count(c, num, count, err);
    for (size_t i = 0; i < count; i++, at++) {
        while (i > 0 && at < num && c->expected[at] > found[i]) at++;
        if (at == num)
            return num == BSW_KNOWN_ROWS || c->known.is_short ? BSW_OK
                                                              : fail_count(c, num, count, err);
        if (found[i] != c->expected[at]) return fail_place(c, at, found[i], err);
    }
    return BSW_OK;
}

enum bsw_status bsw_known_answer_check(const struct bsw_manifest *manifest, uint32_t shard,
                                       uint32_t query, const uint64_t *found, size_t count,
                                       size_t keep, int has_gaps, struct bsw_error *err)
{
    struct comparison c = {.known = bsw_manifest_known(manifest, shard),
                           .first_row = manifest->shards[shard].first_row,
                           .shard = shard,
                           .query = query};
    c.expected = c.known.best + (size_t)query * c.known.num_rows;
    return has_gaps ? check_some(&c, found, count, err) : check_all(&c, found, count, keep, err);
}
