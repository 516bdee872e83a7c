// SPDX-License-Identifier: Apache-2.0
// The screen of device_neighbours.h: rows and queries of a group as kernels/gpu_screen takes them,
// and whether a block is worth it.
//
// It begins where limits leave few rows. A block in which survivors had no room, so that all of it
// got exact values, has cost both ways: the next ones go without a screen, 1, 2, 4 ... 16 of them,
// until one does again.
#ifndef BITSWEEP_SHARD_DEVICE_SCREEN_H
#define BITSWEEP_SHARD_DEVICE_SCREEN_H

#include <stddef.h>
#include <stdint.h>

#include "common/device/device.h"
#include "kernels/gpu_screen/gpu_screen.h"

// Pairs that went through it, those of them that got an exact value, and scans whose survivors had
// no room.
struct bsw_screen_figures {
    uint64_t pairs, survivors, overflows;
};

struct bsw_device_screen {
    int is_on; // else nothing is laid out, and nothing else here is called
    enum bsw_metric metric;
    uint32_t dims, padded_dims;
    uint64_t capacity; // of survivors
    struct {
        size_t counts; // uploaded as 0 for every group
        size_t halves, units, terms, worst_error, pairs;
    } at; // offsets into the memory of queries
    struct {
        size_t halves, terms;
    } block_at;
    struct bsw_screen_counts *counts; // host: as after the last scan
    int takes_block;                  // the one that is scanned
    unsigned pause_left, pause_last;  // blocks without: still to come, after the last failure
    uint64_t overflows;               // of this group, until the last block
    struct bsw_screen_figures figures;
};

// For so many queries and lists of so many items in all; *total grows.
void bsw_device_screen_lay_out_upload(struct bsw_device_screen *screen, size_t *total);
void bsw_device_screen_lay_out_queries(struct bsw_device_screen *screen, size_t num_queries,
                                       size_t num_items, size_t *total);
void bsw_device_screen_lay_out_block(struct bsw_device_screen *screen, size_t num_rows,
                                     size_t *total);

// Host memory; close accepts what was not opened.
enum bsw_status bsw_device_screen_open(struct bsw_device_screen *screen, bsw_device *device,
                                       struct bsw_error *err);
void bsw_device_screen_close(struct bsw_device_screen *screen, bsw_device *device);

// What a scan is of; memory: of queries and of the block.
struct bsw_device_screen_scan {
    bsw_device *device;
    unsigned char *memory, *block;
    const struct bsw_device_exact_rows *rows;
    const struct bsw_device_raw_rows *raw;
    const struct bsw_device_vectors *queries;
};

// All queue on BSW_QUEUE_SCAN. Queries of a group, once they are there; a block, once its masks
// are; a part of it; and, once the block's last scan was waited for, what became of it.
enum bsw_status bsw_device_screen_put_queries(struct bsw_device_screen *screen,
                                              const struct bsw_device_screen_scan *scan,
                                              struct bsw_error *err);
enum bsw_status bsw_device_screen_put_block(struct bsw_device_screen *screen,
                                            const struct bsw_device_screen_scan *scan,
                                            struct bsw_error *err);
enum bsw_status bsw_device_screen_run(struct bsw_device_screen *screen,
                                      const struct bsw_device_screen_scan *scan,
                                      const struct bsw_device_part *part,
                                      const struct bsw_device_exact_lists *lists,
                                      struct bsw_error *err);
void bsw_device_screen_judge_block(struct bsw_device_screen *screen);
// Once a group's last block is judged: the figures have it.
void bsw_device_screen_end_group(struct bsw_device_screen *screen);

#endif
