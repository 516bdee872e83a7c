// SPDX-License-Identifier: Apache-2.0
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/fault_points.h"

// Much memory lies in huge pages where the system has them on demand: a search that looks here and
// there in lists and candidates of thousands of queries misses the address cache for small ones.
#define HUGE_PAGE_BYTES ((size_t)1 << 21)
#define LARGE_BYTES     HUGE_PAGE_BYTES // from here on a huge page is filled

static void *allocate(size_t alignment, size_t bytes)
{
    void *pointer; // any number of bytes, unlike aligned_alloc
    return posix_memalign(&pointer, alignment, bytes) == 0 ? pointer : NULL;
}

enum bsw_status bsw_allocate(void *out, size_t count, size_t size, const char *what,
                             struct bsw_error *err)
{
    void *pointer = NULL;
    memcpy(out, &pointer, sizeof pointer); // *out is a pointer of any type: not to be aliased
    size_t bytes;
    if (!bsw_multiply_size(count, size, &bytes) || bytes > PTRDIFF_MAX - BSW_ALIGNMENT_BYTES) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY,
                        "%s: %zu x %zu bytes is more than an address space holds", what, count,
                        size);
    }
    size_t alignment = bytes < LARGE_BYTES ? BSW_ALIGNMENT_BYTES : HUGE_PAGE_BYTES;
    size_t rounded = bsw_align_size(bytes, BSW_ALIGNMENT_BYTES);
    if (rounded == 0) rounded = BSW_ALIGNMENT_BYTES;
    pointer = BSW_FAULT(ALLOCATE, NULL, allocate(alignment, rounded));
    if (!pointer)
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "%s: no memory for %zu bytes", what, bytes);
    if (alignment == HUGE_PAGE_BYTES) madvise(pointer, rounded, MADV_HUGEPAGE); // or not: no matter
    memcpy(out, &pointer, sizeof pointer);
    return BSW_OK;
}

enum bsw_status bsw_allocate_zero(void *out, size_t count, size_t size, const char *what,
                                  struct bsw_error *err)
{
    void *pointer;
    BSW_TRY(bsw_allocate(out, count, size, what, err));
    memcpy(&pointer, out, sizeof pointer);
    memset(pointer, 0, count * size);
    return BSW_OK;
}

size_t bsw_divide_memory(const struct bsw_memory_part *parts, size_t num_parts, unsigned char *at)
{
    size_t total = 0;
    for (size_t i = 0; i < num_parts; i++) {
        size_t offset = bsw_place_array(parts[i].bytes, BSW_ALIGNMENT_BYTES, &total);
        if (!at) continue;
        unsigned char *place = at + offset;
        memcpy(parts[i].out, &place, sizeof place);
    }
    return total;
}

void bsw_free(void *address_of_pointer)
{
    void *pointer;
    memcpy(&pointer, address_of_pointer, sizeof pointer);
    free(pointer);
    pointer = NULL;
    memcpy(address_of_pointer, &pointer, sizeof pointer);
}

enum bsw_status bsw_buffer_reserve(struct bsw_buffer *buffer, size_t capacity,
                                   struct bsw_error *err)
{
    if (capacity <= buffer->capacity) return BSW_OK;
    if (buffer->bytes > 0 && capacity < buffer->capacity + buffer->capacity / 2) {
        capacity = buffer->capacity + buffer->capacity / 2;
    }
    unsigned char *data;
    BSW_TRY(bsw_allocate(&data, capacity, 1, "buffer", err));
    if (buffer->bytes > 0) memcpy(data, buffer->data, buffer->bytes);
    bsw_free(&buffer->data);
    buffer->data = data;
    buffer->capacity = capacity;
    return BSW_OK;
}

enum bsw_status bsw_buffer_append(struct bsw_buffer *buffer, const void *data, size_t bytes,
                                  struct bsw_error *err)
{
    size_t needed;
    if (!bsw_add_size(buffer->bytes, bytes, &needed)) {
        return bsw_fail(err, BSW_ERROR_OUT_OF_MEMORY, "buffer: size overflow");
    }
    BSW_TRY(bsw_buffer_reserve(buffer, needed, err));
    if (bytes > 0) memcpy(buffer->data + buffer->bytes, data, bytes);
    buffer->bytes = needed;
    return BSW_OK;
}

void bsw_buffer_deinit(struct bsw_buffer *buffer)
{
    bsw_free(&buffer->data);
    buffer->bytes = buffer->capacity = 0;
}
