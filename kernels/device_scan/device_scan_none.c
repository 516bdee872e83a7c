// A build without CUDA: nothing to launch. No device can be open (common/device_none.c), so nobody
// calls these.
#include "kernels/device_scan/device_scan.h"
#include "kernels/device_scan/device_tuning.h"

enum { NO_DEVICE = 100 }; // cudaErrorNoDevice

int bsw_device_plane_scan(const struct bsw_device_codes *codes, const struct bsw_device_part *part,
                          const struct bsw_device_queries *queries,
                          const struct bsw_device_lists *lists, bsw_stream stream)
{
    (void)codes, (void)part, (void)queries, (void)lists, (void)stream;
    return NO_DEVICE;
}

int bsw_device_matrix_scan(const struct bsw_device_codes *codes, const struct bsw_device_part *part,
                           const struct bsw_device_queries *queries,
                           const struct bsw_device_lists *lists, bsw_stream stream)
{
    (void)codes, (void)part, (void)queries, (void)lists, (void)stream;
    return NO_DEVICE;
}

int bsw_device_matrix_scan_mma(const struct bsw_device_codes *codes,
                               const struct bsw_device_part *part,
                               const struct bsw_device_queries *queries,
                               const struct bsw_device_lists *lists, bsw_stream stream)
{
    return bsw_device_matrix_scan(codes, part, queries, lists, stream);
}

int bsw_device_row_queues_clear(const struct bsw_device_lists *lists, bsw_stream stream)
{
    (void)lists, (void)stream;
    return NO_DEVICE;
}

int bsw_device_row_queues_take(const struct bsw_device_lists *lists, uint32_t num_blocks,
                               bsw_stream stream)
{
    (void)lists, (void)num_blocks, (void)stream;
    return NO_DEVICE;
}

int bsw_device_progressive_scan(const struct bsw_device_codes *codes,
                                const struct bsw_device_stage *stage,
                                const struct bsw_device_part *part,
                                const struct bsw_device_queries *queries,
                                const struct bsw_device_lists *lists, bsw_stream stream)
{
    (void)codes, (void)stage, (void)part, (void)queries, (void)lists, (void)stream;
    return NO_DEVICE;
}

int bsw_device_stage_queries(const struct bsw_code_layout *layout, uint32_t stage_dims,
                             double tail_unit, const struct bsw_device_queries *queries,
                             int32_t *constants, float *reaches, bsw_stream stream)
{
    (void)layout, (void)stage_dims, (void)tail_unit, (void)queries;
    (void)constants, (void)reaches, (void)stream;
    return NO_DEVICE;
}

int bsw_device_unpack_queries(const struct bsw_code_layout *layout, uint32_t num_queries,
                              uint32_t query_bits, uint32_t query_words, const uint32_t *words,
                              int8_t *components, int32_t *constants, bsw_stream stream)
{
    (void)layout, (void)num_queries, (void)query_bits, (void)query_words, (void)words;
    (void)components, (void)constants, (void)stream;
    return NO_DEVICE;
}

int bsw_device_cut(const struct bsw_device_lists *lists, uint32_t keep, bsw_stream stream)
{
    (void)lists, (void)keep, (void)stream;
    return NO_DEVICE;
}

int bsw_device_limit(const struct bsw_device_lists *lists, uint32_t keep, bsw_stream stream)
{
    (void)lists, (void)keep, (void)stream;
    return NO_DEVICE;
}

int bsw_device_sort(const struct bsw_device_lists *lists, void *scratch, bsw_stream stream)
{
    (void)lists, (void)scratch, (void)stream;
    return NO_DEVICE;
}

const struct bsw_device_tuning *bsw_device_tuning_current(void)
{
    return bsw_device_tunings;
}
