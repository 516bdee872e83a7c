// SPDX-License-Identifier: Apache-2.0
#include "bench/report/bench_environment.h"

#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/base/process.h"
#include "common/net/mpi_library.h"
#include "common/net/nccl_library.h"

#if defined(__SANITIZE_ADDRESS__)
#define BUILD "with sanitizers"
#elif defined(NDEBUG)
#define BUILD "release"
#else
#define BUILD "debug"
#endif
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif
#if !defined(BITSWEEP_CUDA_TOOLKIT) // CMakeLists.txt
#define BITSWEEP_CUDA_TOOLKIT "none"
#endif

#define VERSION_BYTES 256

struct versions {
    char mpi[VERSION_BYTES], nccl[VERSION_BYTES], system[VERSION_BYTES];
};

// For lines and for JSON, which takes UTF-8 alone.
static void keep_printable(char *text)
{
    for (; *text; text++) {
        if (*text < ' ' || *text > '~') *text = '?';
    }
}

void bsw_bench_rank_describe(const struct bsw_common_options *common, const bsw_device *device,
                             struct bsw_bench_rank *out)
{
    memset(out, 0, sizeof *out); // all of it travels
    bsw_host_name(out->host, sizeof out->host);
    bsw_cpu_model_read(out->cpu);
    snprintf(out->level, sizeof out->level, "%s", bsw_cpu_level_name(common->level));
    snprintf(out->device, sizeof out->device, "cpu");
    if (device)
        snprintf(out->device, sizeof out->device, "%s %s", bsw_device_label(device),
                 bsw_device_name(device));
    out->pid = getpid();
    out->usable_cpus = bsw_num_usable_cpus(&common->pinning);
    out->threads = (int64_t)common->threads;
    keep_printable(out->host);
    keep_printable(out->device);
}

// The library that runs, which need not be the one that the build saw.
static void find_mpi(char *out)
{
    snprintf(out, VERSION_BYTES, "none");
#if defined(BITSWEEP_HAVE_MPI)
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    if (bsw_mpi_library_load(NULL) != BSW_OK) return;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return;
    snprintf(out, VERSION_BYTES, "%.*s", (int)strcspn(text, ",\n"), text);
#endif
}

// NCCL is looked for where this rank has a device: nothing else uses it.
static void find_versions(const struct bsw_bench_report_options *options, struct versions *out)
{
    struct bsw_nccl_library library = {0};
    struct utsname system = {0};
    find_mpi(out->mpi);
    snprintf(out->nccl, sizeof out->nccl, "none");
    if (options->device && bsw_nccl_library_load(&library, NULL) == BSW_OK)
        snprintf(out->nccl, sizeof out->nccl, "%s", library.version_text);
    snprintf(out->system, sizeof out->system, "unknown");
    if (uname(&system) == 0)
        snprintf(out->system, sizeof out->system, "%.99s %.99s", system.sysname, system.release);
    keep_printable(out->mpi);
    keep_printable(out->system);
}

// "bitsweep bench memory --max 1M"; a long one is cut.
static void list_words(const struct bsw_bench_report_options *options, char *out, size_t capacity)
{
    int used = snprintf(out, capacity, "bitsweep bench %s", options->name);
    for (int i = 0; i < options->common->num_words && used >= 0 && (size_t)used < capacity; i++) {
        used += snprintf(out + used, capacity - (size_t)used, " %s", options->common->words[i]);
    }
    keep_printable(out);
}

static int widest(const struct bsw_bench_rank *ranks, int num_ranks, size_t offset, int least)
{
    int width = least;
    for (int rank = 0; rank < num_ranks; rank++) {
        int length = (int)strlen((const char *)&ranks[rank] + offset);
        if (length > width) width = length;
    }
    return width;
}

void bsw_bench_environment_print(const struct bsw_bench_report_options *options,
                                 const struct bsw_bench_rank *ranks, int num_ranks, FILE *out)
{
    struct versions versions;
    char words[512];
    find_versions(options, &versions);
    list_words(options, words, sizeof words);
    fprintf(out, "# bitsweep %s, %s build, %s\n", BITSWEEP_VERSION, BUILD, COMPILER);
    fprintf(out, "# MPI: %s; CUDA toolkit: %s; NCCL: %s; %s\n", versions.mpi, BITSWEEP_CUDA_TOOLKIT,
            versions.nccl, versions.system);
    fprintf(out, "# command: %s\n", words);
    int host = widest(ranks, num_ranks, offsetof(struct bsw_bench_rank, host), 4);
    int device = widest(ranks, num_ranks, offsetof(struct bsw_bench_rank, device), 6);
    fprintf(out, "# %4s  %-*s %8s %5s %7s %-9s  %-*s  %s\n", "rank", host, "host", "pid", "cpus",
            "threads", "level", device, "device", "cpu");
    for (int i = 0; i < num_ranks; i++) {
        const struct bsw_bench_rank *rank = &ranks[i];
        fprintf(out, "# %4d  %-*s %8lld %5lld %7lld %-9s  %-*s  %s\n", i, host, rank->host,
                (long long)rank->pid, (long long)rank->usable_cpus, (long long)rank->threads,
                rank->level, device, rank->device, rank->cpu);
    }
}

void bsw_bench_environment_describe(const struct bsw_bench_report_options *options,
                                    const struct bsw_bench_rank *ranks, int num_ranks,
                                    json_t *document)
{
    struct versions versions;
    char words[512];
    json_t *list = json_array();
    find_versions(options, &versions);
    list_words(options, words, sizeof words);
    for (int i = 0; i < num_ranks; i++) {
        const struct bsw_bench_rank *rank = &ranks[i];
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:I, s:I, s:I, s:s, s:s, s:s}", "rank", i, "host",
                            rank->host, "pid", (json_int_t)rank->pid, "usable_cpus",
                            (json_int_t)rank->usable_cpus, "threads", (json_int_t)rank->threads,
                            "level", rank->level, "device", rank->device, "cpu", rank->cpu));
    }
    json_object_set_new(document, "environment",
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "version",
                                  BITSWEEP_VERSION, "build", BUILD, "compiler", COMPILER, "mpi",
                                  versions.mpi, "cuda_toolkit", BITSWEEP_CUDA_TOOLKIT, "nccl",
                                  versions.nccl, "system", versions.system, "command", words));
    json_object_set_new(document, "ranks", list);
}
