// SPDX-License-Identifier: Apache-2.0
// For test builds only: CMakeLists.txt leaves this file out of the program.
#include "shard/self_check.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/arithmetic.h"
#include "common/codes/metric.h"
#include "shard/device/device_backend.h"
#include "shard/shard_service.h"

// What BITSWEEP_DAMAGE asks for, of one kind.
struct damage {
    int is_asked;
    unsigned long long number, seed;
};

static struct damage asked_for(const char *kind)
{
    const char *text = getenv("BITSWEEP_DAMAGE");
    size_t length = strlen(kind);
    struct damage damage = {0};
    char *end;
    if (!text || strncmp(text, kind, length) != 0 || text[length] != ':') return damage;
    damage.is_asked = 1;
    damage.number = strtoull(text + length + 1, &end, 10);
    if (*end == ':') damage.seed = strtoull(end + 1, NULL, 10);
    return damage;
}

// ---- codes ----

struct array {
    void *at; // in host or device memory
    size_t bytes;
};

#define MOST_ARRAYS (BSW_MAX_CODE_ARRAYS + 1)

// codes: of the device; NULL: those of the host.
static size_t list_arrays(const struct bsw_unit *unit, const struct bsw_device_codes *codes,
                          struct array *arrays)
{
    const struct bsw_resident_shard *host = &unit->resident;
    const struct bsw_code_arrays all = codes ? bsw_device_code_arrays(codes) : host->arrays;
    const struct bsw_code_array_list list = bsw_code_arrays_list(&host->shape);
    size_t count = 0, bundles = codes ? codes->num_bundles : host->num_bundles;
    for (size_t i = 0; i < list.count; i++) {
        void *at = bsw_code_array_at(&all, &list.items[i], 0);
        if (at) arrays[count++] = (struct array){at, bundles * list.items[i].bundle_bytes};
    }
    if (!codes && host->most)
        arrays[count++] = (struct array){host->most, bundles * sizeof *host->most};
    return count;
}

static void flip(bsw_device *device, unsigned char *at, unsigned bit)
{
    unsigned char byte;
    if (!device) {
        *at ^= (unsigned char)(1u << bit);
        return;
    }
    bsw_device_download(device, BSW_QUEUE_COPY, &byte, at, 1, NULL);
    bsw_device_wait(device, BSW_QUEUE_COPY, "damage", NULL);
    byte ^= (unsigned char)(1u << bit);
    bsw_device_upload(device, BSW_QUEUE_COPY, at, &byte, 1, NULL);
    bsw_device_wait(device, BSW_QUEUE_COPY, "damage", NULL);
}

void bsw_damage_codes(struct bsw_shard_service *service)
{
    static unsigned long long num_batches;
    const struct damage damage = asked_for("codes");
    struct array arrays[MOST_ARRAYS];
    if (!damage.is_asked || ++num_batches != damage.number || service->num_units == 0) return;
    uint64_t unit_draw = bsw_hash2(damage.seed, 0), place = bsw_hash2(damage.seed, 1);
    const struct bsw_unit *unit = &service->units[unit_draw % service->num_units];
    const struct bsw_device_unit *own = unit->loaded.own;
    int on_device = own && own->codes.resident.num_bundles > 0;
    size_t count = list_arrays(unit, on_device ? &own->codes.resident : NULL, arrays), total = 0,
           i = 0;
    for (size_t a = 0; a < count; a++) total += arrays[a].bytes;
    for (place %= total; place >= arrays[i].bytes; i++) place -= arrays[i].bytes;
    flip(on_device ? service->settings.device : NULL, (unsigned char *)arrays[i].at + place,
         (unsigned)(bsw_hash2(damage.seed, 2) % 8));
}

// ---- scores ----

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return first < second ? 1 : first > second ? -1 : 0;
}

// Whether keys of the scan under way are damaged.
static int is_scan_damaged(struct damage *damage, unsigned long long *num_scans)
{
    static unsigned long long num;
    *damage = asked_for("scores");
    if (!damage->is_asked || ++num < damage->number) return 0;
    *num_scans = num;
    return 1;
}

// The bit of a key that changes; 0: none does.
static uint32_t damaged_bit(const struct damage *damage, unsigned long long num_scans,
                            uint64_t place)
{
    const char *share = getenv("BITSWEEP_DAMAGE_SHARE");
    uint64_t one_in = share ? strtoull(share, NULL, 10) : 4,
             draw = bsw_hash2(bsw_hash2(damage->seed, num_scans), place);
    return draw % one_in == 0 ? UINT32_C(1) << (draw >> 32) % 31 : 0;
}

// One bit of a key; the list is then in the order that the wrong keys have.
void bsw_damage_scores(struct bsw_candidate_lists *lists)
{
    struct damage damage;
    unsigned long long num_scans;
    if (!is_scan_damaged(&damage, &num_scans)) return;
    for (size_t q = 0; q < lists->num_queries; q++) {
        size_t count;
        uint64_t *list = bsw_candidate_list(lists, q, &count);
        for (size_t i = 0; i < count; i++)
            list[i] ^= (uint64_t)damaged_bit(&damage, num_scans, q * 1000003 + i) << 32;
        qsort(list, count, sizeof *list, compare);
    }
}

void bsw_damage_survivors(struct bsw_survivor *survivors, size_t count)
{
    struct damage damage;
    unsigned long long num_scans;
    if (!is_scan_damaged(&damage, &num_scans)) return;
    for (size_t i = 0; i < count; i++) survivors[i].score ^= damaged_bit(&damage, num_scans, i);
}
