// Which instruction sets the kernels may use, found at run time, with a mask to turn levels off.
#ifndef BITSWEEP_COMMON_CPU_LEVEL_H
#define BITSWEEP_COMMON_CPU_LEVEL_H

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

enum bsw_cpu_level {
    BSW_CPU_REFERENCE, // plain C, always there
    BSW_CPU_AVX2,      // AVX2, FMA, F16C, POPCNT, BMI2 (Haswell and later)
    BSW_CPU_AVX512, // F, BW, DQ, VL, VBMI, VNNI, BITALG, VPOPCNTDQ (Ice Lake and later, Zen 4 and
                    // later)
    BSW_CPU_NUM_LEVELS
};

const char *bsw_cpu_level_name(enum bsw_cpu_level level); // "reference", "avx2", "avx512"

// The highest level of this CPU. Pure: asks the CPU each time, thread-safe.
enum bsw_cpu_level bsw_cpu_level_detect(void);

// Parses a level's name, or "auto" for the highest one; a level this CPU lacks is BSW_ERROR_USAGE.
enum bsw_status bsw_cpu_level_parse(const char *text, enum bsw_cpu_level *out,
                                    struct bsw_error *err);

BSW_C_END
#endif
