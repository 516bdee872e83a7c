// SPDX-License-Identifier: Apache-2.0
#include "coordinator/bitsweep_fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "coordinator/job/device_choice.h"

#define ADVICE "start processes with spawn, or fork before the first call"

static atomic_int num_calls;            // under way
static atomic_int has_worked, had_team; // this process, or one that it came of
// What a child knows: set while it has one thread.
static int generation, is_child, is_alone, is_cut_off;

static void begin_child(void)
{
    generation++;
    is_child |= atomic_load(&has_worked);
    is_alone |= atomic_load(&had_team);
    is_cut_off |= atomic_load(&num_calls) > 0;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, begin_child);
}

int bsw_fork_generation(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return generation;
}

void bsw_fork_enter(int num_threads)
{
    bsw_fork_generation();
    atomic_fetch_add(&num_calls, 1);
    if (num_threads > 0) atomic_store(&has_worked, 1);
    if (num_threads > 1) atomic_store(&had_team, 1);
}

void bsw_fork_leave(void)
{
    atomic_fetch_sub(&num_calls, 1);
}

int bsw_fork_is_alone(void)
{
    return is_alone;
}

enum bsw_status bsw_fork_check(struct bsw_error *err)
{
    if (!is_cut_off) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "this process was forked while a call of bitsweep was under way, which it "
                    "cannot end: " ADVICE);
}

enum bsw_status bsw_fork_check_own(int of_generation, const char *what, struct bsw_error *err)
{
    if (of_generation == bsw_fork_generation()) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE, "this process was forked after %s: " ADVICE, what);
}

enum bsw_status bsw_fork_choose_device(const char *asked, const char **out, struct bsw_error *err)
{
    *out = asked ? asked : "auto";
    BSW_TRY(bsw_device_choice_check(*out, err));
    if (!is_child || strcmp(*out, "cpu") == 0) return BSW_OK;
    if (strcmp(*out, "auto") == 0) {
        *out = "cpu";
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--device %s: this process was forked after bitsweep had been used, and can "
                    "use no GPU: " ADVICE,
                    *out);
}
