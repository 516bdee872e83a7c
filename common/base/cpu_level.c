#include "common/base/cpu_level.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const level_names[BSW_CPU_NUM_LEVELS] = {"reference", "avx2", "avx512"};

const char *bsw_cpu_level_name(enum bsw_cpu_level level)
{
    return level_names[level];
}

enum bsw_cpu_level bsw_cpu_level_detect(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    unsigned a, b, c, d; // clang 14 does not know "f16c" and "bmi" by name
    int f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    int bmi = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_BMI);
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
               __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi2");
    if (!avx2 || !f16c || !bmi) return BSW_CPU_REFERENCE;
    int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                 __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
                 __builtin_cpu_supports("avx512bitalg") &&
                 __builtin_cpu_supports("avx512vpopcntdq");
    return avx512 ? BSW_CPU_AVX512 : BSW_CPU_AVX2;
#else
    return BSW_CPU_REFERENCE;
#endif
}

enum bsw_status bsw_cpu_level_parse(const char *text, enum bsw_cpu_level *out,
                                    struct bsw_error *err)
{
    enum bsw_cpu_level highest = bsw_cpu_level_detect();
    if (strcmp(text, "auto") == 0) {
        *out = highest;
        return BSW_OK;
    }
    for (int level = 0; level < BSW_CPU_NUM_LEVELS; level++) {
        if (strcmp(text, level_names[level]) != 0) continue;
        if (level > (int)highest) {
            return bsw_fail(err, BSW_ERROR_USAGE, "level %s: this CPU reaches %s only", text,
                            level_names[highest]);
        }
        *out = (enum bsw_cpu_level)level;
        return BSW_OK;
    }
    return bsw_fail(err, BSW_ERROR_USAGE, "level '%s' is none of auto, reference, avx2, avx512",
                    text);
}
