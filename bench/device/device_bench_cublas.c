// SPDX-License-Identifier: Apache-2.0
// The int8 rate that users know: a large product s8 x s8 -> s32 by cuBLAS. The library is loaded at
// run time, so that the bench builds and runs where it is not installed; what is needed of its
// interface stands here, as cuBLAS 11 to 13 have it.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "bench/device/device_bench.h"

typedef void *cublas_handle;
enum { OP_NONE = 0, OP_TRANSPOSED = 1, TYPE_INT8 = 3, TYPE_INT32 = 10, COMPUTE_INT32 = 72 };
enum { ALGORITHM_DEFAULT = -1 };

typedef int (*create_fn)(cublas_handle *handle);
typedef int (*destroy_fn)(cublas_handle handle);
typedef int (*set_stream_fn)(cublas_handle handle, bsw_stream stream);
typedef int (*product_fn)(cublas_handle handle, int op_a, int op_b, int m, int n, int k,
                          const void *alpha, const void *a, int type_a, int lda, const void *b,
                          int type_b, int ldb, const void *beta, void *c, int type_c, int ldc,
                          int compute_type, int algorithm);

struct cublas {
    struct device_bench *bench;
    void *library;
    cublas_handle handle;
    create_fn create;
    destroy_fn destroy;
    set_stream_fn set_stream;
    product_fn product;
    struct bsw_device_buffer memory;
    int8_t *a, *b;
    int32_t *c;
    int edge, refused; // the library's code
};

static void *open_library(const char *path)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                        "libcublas.so"};
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; !path && !library && i < sizeof names / sizeof names[0]; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

// 1 if it is there.
static int find(struct cublas *cublas, const char *name, void *target)
{
    void *symbol = dlsym(cublas->library, name);
    memcpy(target, &symbol, sizeof symbol);
    return symbol != NULL;
}

static int load(struct cublas *cublas, char *why, size_t capacity)
{
    cublas->library = open_library(cublas->bench->settings->cublas_path);
    if (!cublas->library) {
        snprintf(why, capacity, "%s", dlerror());
        return 0;
    }
    if (find(cublas, "cublasCreate_v2", &cublas->create) &&
        find(cublas, "cublasDestroy_v2", &cublas->destroy) &&
        find(cublas, "cublasSetStream_v2", &cublas->set_stream) &&
        find(cublas, "cublasGemmEx", &cublas->product))
        return 1;
    snprintf(why, capacity, "%s", "libcublas lacks cublasGemmEx");
    return 0;
}

// C = A' * B, both with the summed dimension contiguous, which int8 units want.
static enum bsw_status multiply(void *context, struct bsw_error *err)
{
    struct cublas *cublas = context;
    const int32_t one = 1, zero = 0;
    int n = cublas->edge;
    (void)err;
    if (!cublas->refused) {
        cublas->refused =
            cublas->product(cublas->handle, OP_TRANSPOSED, OP_NONE, n, n, n, &one, cublas->a,
                            TYPE_INT8, n, cublas->b, TYPE_INT8, n, &zero, cublas->c, TYPE_INT32, n,
                            COMPUTE_INT32, ALGORITHM_DEFAULT);
    }
    return BSW_OK;
}

static enum bsw_status allocate(struct cublas *cublas, struct bsw_error *err)
{
    size_t squared = (size_t)cublas->edge * (size_t)cublas->edge;
    const struct device_bench_array arrays[] = {
        {&cublas->a, squared}, {&cublas->b, squared}, {&cublas->c, squared * sizeof(int32_t)}};
    BSW_TRY(device_bench_allocate(cublas->bench, arrays, 3, &cublas->memory, err));
    BSW_TRY(DEVICE_BENCH_LAUNCH(cublas->bench, "operands", err, device_bench_fill, cublas->a,
                                squared, 3));
    return DEVICE_BENCH_LAUNCH(cublas->bench, "operands", err, device_bench_fill, cublas->b,
                               squared, 4);
}

static enum bsw_status measure(struct cublas *cublas, double *out, struct bsw_error *err)
{
    struct device_bench *bench = cublas->bench;
    struct device_times times;
    double edge = cublas->edge;
    BSW_TRY(allocate(cublas, err));
    cublas->refused =
        cublas->set_stream(cublas->handle, bsw_device_stream(bench->device, BSW_QUEUE_SCAN));
    BSW_TRY(device_bench_time(bench, bench->device, multiply, cublas, &times, err));
    if (!cublas->refused) *out = 2 * edge * edge * edge / times.median;
    return BSW_OK;
}

enum bsw_status device_bench_cublas_measure(struct device_bench *bench, double *out, char *why,
                                            size_t capacity, struct bsw_error *err)
{
    struct cublas cublas = {.bench = bench, .edge = (int)(bench->settings->product / 64 * 64)};
    *out = 0;
    if (strcmp(bsw_device_kind(), "cuda") != 0) {
        snprintf(why, capacity, "%s", "no GPU");
        return BSW_OK;
    }
    if (!load(&cublas, why, capacity)) return BSW_OK;
    cublas.refused = cublas.create(&cublas.handle);
    enum bsw_status status = cublas.refused ? BSW_OK : measure(&cublas, out, err);
    if (cublas.refused) snprintf(why, capacity, "cuBLAS refused: code %d", cublas.refused);
    if (cublas.handle) cublas.destroy(cublas.handle);
    bsw_device_free(bench->device, &cublas.memory);
    return status;
}
