// SPDX-License-Identifier: Apache-2.0
// Timing, and the machine's limits: what the percentages of the table are percentages of.
#include <stdio.h>

#include "bench/device/device_bench.h"
#include "common/base/arithmetic.h"
#include "common/base/clock.h"

#define MOST_FLUSH_BYTES ((size_t)256 << 20) // more than any cache
#define MOST_COPY_BYTES  ((size_t)1 << 30)
#define LEAST_SECONDS    1e-9 // the emulator's clock may stand still

// ---- time ----

struct timed_work {
    bsw_device *device;
    device_bench_work_fn prepare, run; // prepare: NULL, or what is not counted
    void *context;
};

static enum bsw_status record_event(struct device_bench *bench, const struct timed_work *work,
                                    int i, struct bsw_error *err)
{
    int code = device_bench_event_record(bench->events[i],
                                         bsw_device_stream(work->device, BSW_QUEUE_SCAN));
    return bsw_device_launched(work->device, code, "event", err);
}

static enum bsw_status time_once(struct device_bench *bench, const struct timed_work *work,
                                 double *seconds, struct bsw_error *err)
{
    const enum bsw_device_queue queue = BSW_QUEUE_SCAN;
    struct bsw_device_buffer *flush = &bench->flush;
    bsw_device *device = work->device;
    if (work->prepare) BSW_TRY(work->prepare(work->context, err));
    int code = device_bench_fill(flush->data, flush->bytes, 1, bsw_device_stream(device, queue));
    BSW_TRY(bsw_device_launched(device, code, "flush", err));
    BSW_TRY(bsw_device_wait(device, queue, "flush", err));
    BSW_TRY(record_event(bench, work, 0, err));
    BSW_TRY(work->run(work->context, err));
    BSW_TRY(record_event(bench, work, 1, err));
    BSW_TRY(bsw_device_wait(device, queue, "measurement", err));
    code = device_bench_event_seconds(bench->events[0], bench->events[1], seconds);
    if (*seconds < LEAST_SECONDS) *seconds = LEAST_SECONDS;
    return bsw_device_launched(device, code, "event", err);
}

struct device_times device_bench_times_of(double *seconds, size_t count)
{
    double median = bsw_median(seconds, count); // sorts them
    return (struct device_times){
        .median = median, .least = seconds[0], .most = seconds[count - 1], .count = count};
}

int device_bench_wants_more(const struct device_bench *bench, double started, size_t count)
{
    return count < bench->settings->repeat &&
           (count == 0 || bsw_clock_seconds() - started < bench->settings->seconds);
}

static enum bsw_status time_work(struct device_bench *bench, const struct timed_work *work,
                                 struct device_times *out, struct bsw_error *err)
{
    double values[DEVICE_BENCH_MOST_REPEATS], started = bsw_clock_seconds();
    size_t count = 0;
    int is_warm = 0;
    *out = (struct device_times){.count = 0};
    while (device_bench_wants_more(bench, started, count)) {
        BSW_TRY(time_once(bench, work, &values[count], err));
        if (is_warm || values[count] >= 1) count++;
        is_warm = 1;
    }
    *out = device_bench_times_of(values, count);
    return BSW_OK;
}

enum bsw_status device_bench_time(struct device_bench *bench, bsw_device *device,
                                  device_bench_work_fn work, void *context,
                                  struct device_times *out, struct bsw_error *err)
{
    const struct timed_work timed = {.device = device, .run = work, .context = context};
    return time_work(bench, &timed, out, err);
}

enum bsw_status device_bench_time_prepared(struct device_bench *bench, device_bench_work_fn prepare,
                                           device_bench_work_fn work, void *context,
                                           struct device_times *out, struct bsw_error *err)
{
    const struct timed_work timed = {bench->device, prepare, work, context};
    return time_work(bench, &timed, out, err);
}

// ---- limits ----

struct limit_work {
    struct device_bench *bench;
    enum device_limit limit; // that is measured now
    struct bsw_device_buffer memory;
    void *host;
    uint32_t *sink;
    double work;
};

static enum bsw_status read_memory(void *context, struct bsw_error *err)
{
    struct limit_work *limit = context;
    limit->work = (double)limit->memory.bytes;
    return DEVICE_BENCH_LAUNCH(limit->bench, "read", err, device_bench_read, limit->memory.data,
                               limit->memory.bytes, limit->sink);
}

static enum bsw_status copy_memory(void *context, struct bsw_error *err)
{
    struct limit_work *limit = context;
    size_t bytes = limit->memory.bytes < MOST_COPY_BYTES ? limit->memory.bytes : MOST_COPY_BYTES;
    limit->work = (double)bytes;
    return bsw_device_upload(limit->bench->device, BSW_QUEUE_SCAN, limit->memory.data, limit->host,
                             bytes, err);
}

static enum bsw_status run_steps(void *context, struct bsw_error *err)
{
    struct limit_work *limit = context;
    return DEVICE_BENCH_LAUNCH(limit->bench, "steps", err, device_bench_run_steps, limit->limit,
                               limit->bench->settings->steps, limit->sink, &limit->work);
}

static const struct {
    enum device_limit limit;
    device_bench_work_fn work;
} own_limits[] = {{DEVICE_LIMIT_READ, read_memory},  {DEVICE_LIMIT_COPY, copy_memory},
                  {DEVICE_LIMIT_MMA, run_steps},     {DEVICE_LIMIT_POPCOUNT, run_steps},
                  {DEVICE_LIMIT_FLOAT32, run_steps}, {DEVICE_LIMIT_FLOAT64, run_steps}};

static enum bsw_status measure_own(struct device_bench *bench, struct limit_work *limit,
                                   struct bsw_error *err)
{
    size_t copied = limit->memory.bytes < MOST_COPY_BYTES ? limit->memory.bytes : MOST_COPY_BYTES;
    BSW_TRY(DEVICE_BENCH_LAUNCH(bench, "fill", err, device_bench_fill, limit->memory.data,
                                limit->memory.bytes, 2));
    BSW_TRY(bsw_device_download(bench->device, BSW_QUEUE_SCAN, limit->host, limit->memory.data,
                                copied, err));
    for (size_t i = 0; i < sizeof own_limits / sizeof own_limits[0]; i++) {
        struct device_times times;
        limit->limit = own_limits[i].limit;
        BSW_TRY(device_bench_time(bench, bench->device, own_limits[i].work, limit, &times, err));
        bench->limits[limit->limit] = limit->work / times.median;
    }
    return BSW_OK;
}

static enum bsw_status allocate_and_measure(struct device_bench *bench, size_t bytes,
                                            struct bsw_error *err)
{
    struct limit_work limit = {.bench = bench};
    size_t flush = bytes < MOST_FLUSH_BYTES ? bytes : MOST_FLUSH_BYTES;
    size_t host = bytes < MOST_COPY_BYTES ? bytes : MOST_COPY_BYTES;
    BSW_TRY(bsw_device_allocate(bench->device, flush, "flush", &bench->flush, err));
    enum bsw_status status =
        bsw_device_allocate(bench->device, bytes, "memory to read", &limit.memory, err);
    if (status == BSW_OK)
        status = bsw_device_allocate_host(bench->device, host, "copies", &limit.host, err);
    limit.sink = (uint32_t *)(void *)bench->flush.data;
    if (status == BSW_OK) status = measure_own(bench, &limit, err);
    bsw_device_free_host(bench->device, &limit.host);
    bsw_device_free(bench->device, &limit.memory);
    return status;
}

enum bsw_status device_bench_limits_measure(struct device_bench *bench, struct bsw_error *err)
{
    char why[256] = "";
    size_t free_bytes, bytes = (size_t)bench->settings->bytes;
    BSW_TRY(bsw_device_free_bytes(bench->device, &free_bytes, err));
    if (bytes > free_bytes / 4) bytes = free_bytes / 4;
    BSW_TRY(allocate_and_measure(bench, bytes / 256 * 256, err));
    BSW_TRY(device_bench_cublas_measure(bench, &bench->limits[DEVICE_LIMIT_CUBLAS], why, sizeof why,
                                        err));
    device_bench_report_limits(bench, why);
    return BSW_OK;
}
