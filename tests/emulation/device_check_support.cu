// SPDX-License-Identifier: Apache-2.0
// Counting, random numbers and waiting for device_check.
#include <cstdarg>
#include <cstdio>

#include "device_check.hpp"
#include "kernels/device_scan/device_list_scan.h"

device_check checks = {1, false, 0, 0};

uint64_t check_random(uint64_t stream, uint64_t index)
{
    uint64_t x = checks.seed * 0x9e3779b97f4a7c15u + stream * 0xbf58476d1ce4e5b9u + index;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x = (x ^ x >> 31) * 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

void check_that(bool holds, const char *format, ...)
{
    checks.num_checks++;
    if (holds) return;
    checks.num_failures++;
    if (checks.num_failures > 20) return;
    va_list arguments;
    va_start(arguments, format);
    printf("device_check: seed %llu: ", static_cast<unsigned long long>(checks.seed));
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
}

bool check_launch(int error, const std::string &shape)
{
    cudaError_t waited = cudaDeviceSynchronize();
    cudaError_t first = error ? static_cast<cudaError_t>(error) : waited;
    check_that(first == cudaSuccess, "%s: %s", shape.c_str(), cudaGetErrorString(first));
    return first == cudaSuccess;
}

device_turn::device_turn(int special) : earlier_(0)
{
    cudaGetDevice(&earlier_);
#if !defined(CHECKS_GPU)
    cudaSetDevice(special);
#else
    (void)special;
#endif
    bsw_code_layout layout = {};
    is_hopper = bsw_device_has_hopper_lists(&layout) != 0;
}

device_turn::~device_turn()
{
    cudaSetDevice(earlier_);
}
