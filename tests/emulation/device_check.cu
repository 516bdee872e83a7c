// SPDX-License-Identifier: Apache-2.0
// device_check [--order ascending|descending|random] [--seed N] [--small]: exit code 0 if all
// holds, 1 if not, 2 for a wrong command line, 77 if there is no GPU.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_check.hpp"

static bool set_order(const char *name)
{
#if defined(CHECKS_GPU)
    (void)name;
    return false;
#else
    if (strcmp(name, "ascending") == 0) {
        emulation::options.order = emulation::order::ascending;
    } else if (strcmp(name, "descending") == 0) {
        emulation::options.order = emulation::order::descending;
    } else if (strcmp(name, "random") == 0) {
        emulation::options.order = emulation::order::random;
    } else {
        return false;
    }
    return true;
#endif
}

static bool parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--small") == 0) {
            checks.small = true;
        } else if (strcmp(argv[i], "--seed") == 0 && has_value) {
            checks.seed = strtoull(argv[++i], nullptr, 10);
        } else if (strcmp(argv[i], "--order") == 0 && has_value) {
            if (!set_order(argv[++i])) return false;
        } else {
            return false;
        }
    }
    return true;
}

static void print_device()
{
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return;
    printf("# device_check on %s, capability %d.%d, seed %llu\n", properties.name, properties.major,
           properties.minor, static_cast<unsigned long long>(checks.seed));
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: device_check [--order ascending|descending|random] [--seed N] [--small]\n"
                "--order is the emulator's\n");
        return 2;
    }
#if !defined(CHECKS_GPU)
    emulation::options.seed = static_cast<unsigned>(checks.seed);
#endif
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
        printf("device_check: no GPU: skipped\n");
        return 77;
    }
    print_device();
    if (!device_turn(on_hopper).is_hopper)
        printf("device_check: not a Hopper GPU, or a build without sm_90a: its kernel skipped\n");
    check_refusals();
    check_switch();
    check_products();
    check_unpacked_queries();
    check_bounds();
    check_scans();
    check_stages();
    check_list_scans();
    check_table_scans();
    check_cuts();
    check_sorts();
    check_ranks();
    check_last_steps();
    check_queues();
    check_merges();
    check_encoders();
    check_coders();
    check_exact();
    check_screens();
    check_bytes();
    check_gpu_lists();
    printf("device_check: %ld checks, %ld failures\n", checks.num_checks, checks.num_failures);
    return checks.num_failures > 0 || checks.num_checks == 0;
}
