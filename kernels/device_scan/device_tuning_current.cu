// The tuning of the device that launches go to.
#include "kernels/cuda_switch.cuh"
#include "kernels/device_scan/device_tuning.h"

extern "C" const struct bsw_device_tuning *bsw_device_tuning_current(void)
{
    int device = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (!error) error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (!error) error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    return error ? bsw_device_tunings : bsw_device_tuning_find(major, minor);
}
