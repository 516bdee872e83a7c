// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // sched_getaffinity
#endif
#include "common/base/process.h"

#include <dirent.h>
#include <errno.h>
#include <hwloc.h>
#include <malloc.h>
#include <omp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base/memory.h"

// Sum of the lines of a file of /proc that begin with one of the names, in bytes.
static uint64_t sum_lines(const char *path, const char *const *names, int num_names)
{
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    char line[256];
    unsigned long long kib, total = 0;
    while (fgets(line, sizeof line, file)) {
        for (int i = 0; i < num_names; i++) {
            size_t length = strlen(names[i]);
            if (strncmp(line, names[i], length) == 0 && sscanf(line + length, " %llu", &kib) == 1)
                total += kib;
        }
    }
    fclose(file);
    return total * 1024;
}

uint64_t bsw_process_memory_bytes(void)
{
    static const char *const names[] = {"RssAnon:", "RssShmem:"};
    return sum_lines("/proc/self/status", names, 2);
}

uint64_t bsw_process_mapped_bytes(void)
{
    static const char *const names[] = {"RssFile:"};
    return sum_lines("/proc/self/status", names, 1);
}

uint64_t bsw_process_peak_bytes(void)
{
    static const char *const names[] = {"VmHWM:"};
    return sum_lines("/proc/self/status", names, 1);
}

void bsw_process_peak_reset(void)
{
    malloc_trim(0);
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file) return;
    fputs("5", file);
    fclose(file);
}

uint64_t bsw_available_memory_bytes(void)
{
    static const char *const names[] = {"MemAvailable:"};
    return sum_lines("/proc/meminfo", names, 1);
}

// ---- open files ---------------------------------------------------------------------------------

static uint64_t count_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (!folder) return 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

enum bsw_status bsw_file_limit_raise(uint64_t more, struct bsw_error *err)
{
    struct rlimit limit;
    uint64_t needed = count_open() + more + BSW_FILES_TO_SPARE;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return bsw_fail(err, BSW_ERROR_IO, "limit of open files: %s", strerror(errno));
    if (limit.rlim_cur >= needed) return BSW_OK; // RLIM_INFINITY is the largest number
    if (limit.rlim_max < needed)
        return bsw_fail(err, BSW_ERROR_IO,
                        "%llu files open at once are needed for the shards, the hard limit of this "
                        "process is %llu: raise it (ulimit -H -n) or take fewer shards",
                        (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    limit.rlim_cur = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_IO, "cannot raise the limit of open files to %llu: %s",
                    (unsigned long long)needed, strerror(errno));
}

// ---- the host's name ----------------------------------------------------------------------------

// Not gethostname, which fails where the name does not fit.
void bsw_host_name(char *out, size_t capacity)
{
    struct utsname facts;
    int has_name = uname(&facts) == 0 && facts.nodename[0];
    snprintf(out, capacity, "%s", has_name ? facts.nodename : "unknown");
}

void bsw_host_id(char *out, size_t capacity)
{
    memset(out, 0, capacity);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file) {
        if (fgets(out, (int)capacity, file)) out[strcspn(out, "\n")] = '\0';
        fclose(file);
    }
    if (!out[0]) bsw_host_name(out, capacity);
}

// ---- threads on cores ----

static enum bsw_status fail_system(struct bsw_error *err, const char *what)
{
    return bsw_fail(err, BSW_ERROR_IO, "--pin cores: cannot %s: %s", what, strerror(errno));
}

// What the process was given, without what the machine does not let it use.
static enum bsw_status find_allowed(hwloc_topology_t topology, hwloc_cpuset_t allowed,
                                    struct bsw_error *err)
{
    if (hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_THREAD) != 0)
        return fail_system(err, "read the CPUs of this process");
    hwloc_bitmap_and(allowed, allowed, hwloc_topology_get_allowed_cpuset(topology));
    return BSW_OK;
}

// cpus [number of bits in allowed]: all of them, the first of every core before any second one.
// Machines whose cores hwloc cannot see count every CPU as a core. Returns their number.
static int list_cpus(hwloc_topology_t topology, hwloc_const_cpuset_t allowed, hwloc_bitmap_t left,
                     unsigned *cpus)
{
    int depth = hwloc_get_type_depth(topology, HWLOC_OBJ_CORE), count = 0, found = 1;
    if (depth < 0) depth = hwloc_get_type_depth(topology, HWLOC_OBJ_PU);
    hwloc_bitmap_copy(left, allowed);
    while (found) {
        found = 0;
        for (hwloc_obj_t core = hwloc_get_obj_by_depth(topology, depth, 0); core;
             core = core->next_cousin) {
            int cpu = -1;
            while ((cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0) {
                if (!hwloc_bitmap_isset(left, (unsigned)cpu)) continue;
                hwloc_bitmap_clr(left, (unsigned)cpu);
                cpus[count++] = (unsigned)cpu;
                found = 1;
                break;
            }
        }
    }
    return count;
}

// cpus [num_threads]. Each thread binds itself; the error of the lowest one counts.
static enum bsw_status bind_team(hwloc_topology_t topology, const unsigned *cpus, int num_threads,
                                 struct bsw_error *err)
{
    int failed_thread = num_threads, failure = 0, team = 0;
#pragma omp parallel num_threads(num_threads)
    {
        int thread = omp_get_thread_num(), error = 0;
        hwloc_bitmap_t cpu = hwloc_bitmap_alloc();
        if (!cpu || hwloc_bitmap_only(cpu, cpus[thread]) != 0)
            error = ENOMEM;
        else if (hwloc_set_cpubind(topology, cpu, HWLOC_CPUBIND_THREAD) != 0)
            error = errno;
        hwloc_bitmap_free(cpu);
#pragma omp critical(bsw_pinning_error)
        {
            team++;
            if (error && thread < failed_thread) {
                failed_thread = thread;
                failure = error;
            }
        }
    }
    if (failure) {
        return bsw_fail(err, BSW_ERROR_IO, "--pin cores: cannot bind thread %d to CPU %u: %s",
                        failed_thread, cpus[failed_thread], strerror(failure));
    }
    if (team < num_threads) {
        return bsw_fail(err, BSW_ERROR_IO, "--pin cores: OpenMP started %d threads instead of %d",
                        team, num_threads);
    }
    return BSW_OK;
}

struct pinning_job {
    hwloc_topology_t topology;
    hwloc_bitmap_t allowed, left;
    int local_rank, num_local_ranks, num_threads;
};

// The first of this rank's CPUs in the list.
static enum bsw_status find_place(const struct pinning_job *job, int num_cpus, size_t *first,
                                  struct bsw_error *err)
{
    int64_t needed = (int64_t)job->num_local_ranks * job->num_threads;
    *first = (size_t)job->local_rank * (size_t)job->num_threads;
    if (needed <= num_cpus) return BSW_OK;
    return bsw_fail(err, BSW_ERROR_USAGE,
                    "--pin cores: %d ranks x %d threads need %lld CPUs of this host, %d may be "
                    "used",
                    job->num_local_ranks, job->num_threads, (long long)needed, num_cpus);
}

static enum bsw_status pin(const struct pinning_job *job, struct bsw_thread_pinning *out,
                           struct bsw_error *err)
{
    unsigned *cpus;
    size_t first;
    BSW_TRY(find_allowed(job->topology, job->allowed, err));
    if (hwloc_bitmap_nr_ulongs(job->allowed) > BSW_PINNING_WORDS) {
        return bsw_fail(err, BSW_ERROR_TOO_LARGE,
                        "--pin cores: this machine has CPU numbers beyond %zu",
                        sizeof out->allowed * 8);
    }
    size_t most = (size_t)hwloc_bitmap_weight(job->allowed);
    BSW_TRY(bsw_allocate_zero(&cpus, most, sizeof *cpus, "list of CPUs", err));
    int count = list_cpus(job->topology, job->allowed, job->left, cpus);
    enum bsw_status status = find_place(job, count, &first, err);
    if (status == BSW_OK) status = bind_team(job->topology, cpus + first, job->num_threads, err);
    out->is_on = status == BSW_OK;
    hwloc_bitmap_to_ulongs(job->allowed, BSW_PINNING_WORDS, out->allowed);
    bsw_free(&cpus);
    return status;
}

enum bsw_status bsw_threads_pin(int local_rank, int num_local_ranks, int num_threads,
                                struct bsw_thread_pinning *out, struct bsw_error *err)
{
    struct pinning_job job = {
        .local_rank = local_rank, .num_local_ranks = num_local_ranks, .num_threads = num_threads};
    *out = (struct bsw_thread_pinning){0};
    if (hwloc_topology_init(&job.topology) != 0) return fail_system(err, "describe this machine");
    job.allowed = hwloc_bitmap_alloc();
    job.left = hwloc_bitmap_alloc();
    enum bsw_status status;
    if (!job.allowed || !job.left)
        status = bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "--pin cores: no memory for a set of CPUs");
    else if (hwloc_topology_load(job.topology) != 0)
        status = fail_system(err, "describe this machine");
    else
        status = pin(&job, out, err);
    hwloc_bitmap_free(job.allowed);
    hwloc_bitmap_free(job.left);
    hwloc_topology_destroy(job.topology);
    return status;
}

void bsw_thread_unpin(const struct bsw_thread_pinning *pinning)
{
    if (!pinning->is_on) return;
    (void)sched_setaffinity(0, sizeof pinning->allowed,
                            (const cpu_set_t *)(const void *)pinning->allowed);
}

int bsw_num_usable_cpus(const struct bsw_thread_pinning *pinning)
{
    cpu_set_t cpus;
    if (pinning && pinning->is_on) {
        int count = 0;
        for (size_t i = 0; i < BSW_PINNING_WORDS; i++)
            count += __builtin_popcountl(pinning->allowed[i]);
        return count;
    }
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return CPU_COUNT(&cpus);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}
