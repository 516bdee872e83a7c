// A build without code for sm_90a: no device is a Hopper GPU.
#include "kernels/device_scan/device_scan.h"

enum { INVALID_VALUE = 1 }; // cudaErrorInvalidValue

int bsw_device_has_hopper(const struct bsw_code_layout *layout)
{
    (void)layout;
    return 0;
}

int bsw_device_matrix_scan_hopper(const struct bsw_device_codes *codes,
                                  const struct bsw_device_part *part,
                                  const struct bsw_device_queries *queries,
                                  const struct bsw_device_lists *lists, bsw_stream stream)
{
    (void)codes, (void)part, (void)queries, (void)lists, (void)stream;
    return INVALID_VALUE;
}
