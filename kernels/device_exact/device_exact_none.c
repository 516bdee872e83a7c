// A build without CUDA: nothing to launch. No device can be open (common/device_none.c), so nobody
// calls these.
#include "kernels/device_exact/device_exact.h"

enum { NO_DEVICE = 100 }; // cudaErrorNoDevice

int bsw_device_row_norms(const struct bsw_device_raw_rows *rows, double *norms, bsw_stream stream)
{
    (void)rows, (void)norms, (void)stream;
    return NO_DEVICE;
}

int bsw_device_refine(enum bsw_metric metric, const struct bsw_device_raw_rows *rows,
                      const struct bsw_device_vectors *queries, const struct bsw_device_pair *pairs,
                      size_t num_pairs, double *values, bsw_stream stream)
{
    (void)metric, (void)rows, (void)queries, (void)pairs, (void)num_pairs, (void)values,
        (void)stream;
    return NO_DEVICE;
}

int bsw_device_exact_cut(const struct bsw_device_exact_lists *lists, uint32_t keep,
                         bsw_stream stream)
{
    (void)lists, (void)keep, (void)stream;
    return NO_DEVICE;
}

int bsw_device_exact_limit(const struct bsw_device_exact_lists *lists, uint32_t keep,
                           bsw_stream stream)
{
    (void)lists, (void)keep, (void)stream;
    return NO_DEVICE;
}

int bsw_device_exact_scan(enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
                          const struct bsw_device_raw_rows *raw, const struct bsw_device_part *part,
                          const struct bsw_device_vectors *queries,
                          const struct bsw_device_exact_lists *lists, bsw_stream stream)
{
    (void)metric, (void)rows, (void)raw, (void)part, (void)queries, (void)lists, (void)stream;
    return NO_DEVICE;
}

int bsw_device_pack(enum bsw_metric metric, const struct bsw_device_raw_rows *rows, int as_queries,
                    uint8_t *bytes, struct bsw_device_packed_term *terms, bsw_stream stream)
{
    (void)metric, (void)rows, (void)as_queries, (void)bytes, (void)terms, (void)stream;
    return NO_DEVICE;
}

int bsw_device_exact_integer_scan(enum bsw_metric metric, const struct bsw_device_exact_rows *rows,
                                  const struct bsw_device_packed *packed_rows,
                                  const struct bsw_device_part *part,
                                  const struct bsw_device_packed *packed_queries,
                                  const double *query_norms,
                                  const struct bsw_device_exact_lists *lists, bsw_stream stream)
{
    (void)metric, (void)rows, (void)packed_rows, (void)part, (void)packed_queries;
    (void)query_norms, (void)lists, (void)stream;
    return NO_DEVICE;
}
