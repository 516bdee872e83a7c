// SPDX-License-Identifier: Apache-2.0
#include "kernels/device_scan/device_tuning.h"

#include <pthread.h>
#include <stdlib.h>

// The assembler takes it in; CMakeLists.txt says where it is.
__asm__(".pushsection .rodata\n"
        ".global bsw_device_tuning_text\nbsw_device_tuning_text:\n"
        ".incbin \"kernels/device_scan/device_tuning.txt\"\n"
        ".byte 0\n"
        ".popsection");
extern const char bsw_device_tuning_text[];

static struct bsw_device_tunings built_in, of_user; // of_user.num 0: there is no such file

static void make_built_in(void)
{
    if (bsw_device_tuning_parse("device_tuning.txt", bsw_device_tuning_text, &built_in, NULL) !=
        BSW_OK)
        abort(); // a test reads it
}

const struct bsw_device_tunings *bsw_device_tuning_built_in(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_built_in);
    return &built_in;
}

enum bsw_status bsw_device_tuning_take(const char *name, const char *text, struct bsw_error *err)
{
    struct bsw_device_tunings changed = *bsw_device_tuning_built_in();
    of_user.num = 0;
    BSW_TRY(bsw_device_tuning_parse(name, text, &changed, err));
    of_user = changed;
    return BSW_OK;
}

const struct bsw_device_tuning *bsw_device_tuning_find(int major, int minor)
{
    const struct bsw_device_tunings *own = bsw_device_tuning_built_in();
    const struct bsw_device_tunings *from = of_user.num > 0 ? &of_user : own;
    const struct bsw_device_tuning *found = from->rows;
    for (size_t i = 1; i < from->num; i++) {
        const struct bsw_device_tuning *row = &from->rows[i];
        if (row->major < major || (row->major == major && row->minor <= minor)) found = row;
    }
    return found;
}

int bsw_device_lists_take_hopper(const struct bsw_device_tuning *tuning, uint32_t num_items,
                                 uint64_t num_bundles, uint32_t tile)
{
    if (tuning->list_kernel != BSW_DEVICE_LISTS_HOPPER || tile >= BSW_LIST_TILES) return 0;
    uint32_t least = tuning->hopper_list_bundles[tile];
    return least != UINT32_MAX && num_bundles >= (uint64_t)least * num_items;
}
