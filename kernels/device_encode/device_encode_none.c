// A build without CUDA: nothing to launch. No device can be open (common/device_none.c), so nobody
// calls these.
#include "kernels/device_encode/device_encode.h"

enum { NO_DEVICE = 100 }; // cudaErrorNoDevice

int bsw_device_encode_xfbq(const struct bsw_device_raw_rows *rows, float scale, uint32_t bits,
                           uint32_t *planes, uint8_t *faults, bsw_stream stream)
{
    (void)rows, (void)scale, (void)bits, (void)planes, (void)faults, (void)stream;
    return NO_DEVICE;
}

int bsw_device_saq_center(const struct bsw_device_frame *frame,
                          const struct bsw_device_raw_rows *rows, float *centered, float *mean_dots,
                          uint8_t *faults, bsw_stream stream)
{
    (void)frame, (void)rows, (void)centered, (void)mean_dots, (void)faults, (void)stream;
    return NO_DEVICE;
}

int bsw_device_saq_project(const struct bsw_device_frame *frame, const float *centered,
                           uint32_t num_rows, float *projected, bsw_stream stream)
{
    (void)frame, (void)centered, (void)num_rows, (void)projected, (void)stream;
    return NO_DEVICE;
}

int bsw_device_saq_quantize(const struct bsw_device_frame *frame, const float *projected,
                            uint32_t num_rows, const struct bsw_device_saq_codes *codes,
                            bsw_stream stream)
{
    (void)frame, (void)projected, (void)num_rows, (void)codes, (void)stream;
    return NO_DEVICE;
}
