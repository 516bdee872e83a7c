// A build without CUDA: there is no device, so none is ever open and nothing but opening is called.
#include <stdio.h>

#include "common/device.h"

#define NOT_BUILT "this build has no CUDA"

const char *bsw_device_kind(void)
{
    return "";
}

int bsw_device_count(char *why, size_t capacity)
{
    snprintf(why, capacity, NOT_BUILT);
    return 0;
}

static enum bsw_status refuse(struct bsw_error *err)
{
    return bsw_fail(err, BSW_ERROR_USAGE, NOT_BUILT);
}

enum bsw_status bsw_device_open(const struct bsw_device_options *options, bsw_device **out,
                                struct bsw_error *err)
{
    (void)options;
    *out = NULL;
    return refuse(err);
}

void bsw_device_close(bsw_device **device)
{
    *device = NULL;
}

void bsw_device_give_up(bsw_device *device)
{
    (void)device;
}

const char *bsw_device_label(const bsw_device *device)
{
    (void)device;
    return "";
}

const char *bsw_device_name(const bsw_device *device)
{
    (void)device;
    return "";
}

const char *bsw_device_place(const bsw_device *device)
{
    (void)device;
    return "";
}

enum bsw_status bsw_device_free_bytes(bsw_device *device, size_t *out, struct bsw_error *err)
{
    (void)device;
    *out = 0;
    return refuse(err);
}

size_t bsw_device_used_bytes(const bsw_device *device)
{
    (void)device;
    return 0;
}

uint64_t bsw_device_num_allocations(const bsw_device *device)
{
    (void)device;
    return 0;
}

enum bsw_status bsw_device_allocate(bsw_device *device, size_t bytes, const char *what,
                                    struct bsw_device_buffer *out, struct bsw_error *err)
{
    (void)device, (void)bytes, (void)what;
    *out = (struct bsw_device_buffer){NULL, 0};
    return refuse(err);
}

void bsw_device_free(bsw_device *device, struct bsw_device_buffer *buffer)
{
    (void)device, (void)buffer;
}

enum bsw_status bsw_device_allocate_host(bsw_device *device, size_t bytes, const char *what,
                                         void *out, struct bsw_error *err)
{
    (void)device, (void)bytes, (void)what, (void)out;
    return refuse(err);
}

void bsw_device_free_host(bsw_device *device, void *address_of_pointer)
{
    (void)device, (void)address_of_pointer;
}

int bsw_device_pin(bsw_device *device, void *memory, size_t bytes)
{
    (void)device, (void)memory, (void)bytes;
    return 0;
}

void bsw_device_unpin(bsw_device *device, void *memory)
{
    (void)device, (void)memory;
}

bsw_stream bsw_device_stream(bsw_device *device, enum bsw_device_queue queue)
{
    (void)device, (void)queue;
    return NULL;
}

enum bsw_status bsw_device_launched(bsw_device *device, int code, const char *what,
                                    struct bsw_error *err)
{
    (void)device, (void)code, (void)what;
    return refuse(err);
}

enum bsw_status bsw_device_upload(bsw_device *device, enum bsw_device_queue queue, void *to,
                                  const void *from, size_t bytes, struct bsw_error *err)
{
    (void)device, (void)queue, (void)to, (void)from, (void)bytes;
    return refuse(err);
}

enum bsw_status bsw_device_download(bsw_device *device, enum bsw_device_queue queue, void *to,
                                    const void *from, size_t bytes, struct bsw_error *err)
{
    (void)device, (void)queue, (void)to, (void)from, (void)bytes;
    return refuse(err);
}

enum bsw_status bsw_device_copy(bsw_device *device, enum bsw_device_queue queue, void *to,
                                const void *from, size_t bytes, struct bsw_error *err)
{
    (void)device, (void)queue, (void)to, (void)from, (void)bytes;
    return refuse(err);
}

enum bsw_status bsw_device_download_rows(bsw_device *device, enum bsw_device_queue queue, void *to,
                                         const void *from, const struct bsw_device_rows *rows,
                                         struct bsw_error *err)
{
    (void)device, (void)queue, (void)to, (void)from, (void)rows;
    return refuse(err);
}

enum bsw_status bsw_device_follow(bsw_device *device, enum bsw_device_queue queue,
                                  enum bsw_device_queue other, struct bsw_error *err)
{
    (void)device, (void)queue, (void)other;
    return refuse(err);
}

enum bsw_status bsw_device_poll(bsw_device *device, enum bsw_device_queue queue, const char *what,
                                int *is_empty, struct bsw_error *err)
{
    (void)device, (void)queue, (void)what;
    *is_empty = 0;
    return refuse(err);
}

enum bsw_status bsw_device_wait(bsw_device *device, enum bsw_device_queue queue, const char *what,
                                struct bsw_error *err)
{
    (void)device, (void)queue, (void)what;
    return refuse(err);
}
