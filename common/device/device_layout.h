// Where arrays lie in one piece of memory: one after the other, each aligned.
#ifndef BITSWEEP_COMMON_DEVICE_LAYOUT_H
#define BITSWEEP_COMMON_DEVICE_LAYOUT_H

#include <stddef.h>

static inline size_t bsw_align_size(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

// The offset of an array of so many bytes at the end of what is there, *total, which grows by it.
static inline size_t bsw_place_array(size_t bytes, size_t alignment, size_t *total)
{
    size_t at = *total;
    *total += bsw_align_size(bytes, alignment);
    return at;
}

#endif
