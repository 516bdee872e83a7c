// SPDX-License-Identifier: Apache-2.0
// Which instruction sets the kernels may use, found at run time, with a mask to turn levels off.
#ifndef BITSWEEP_COMMON_CPU_LEVEL_H
#define BITSWEEP_COMMON_CPU_LEVEL_H

#include <stdint.h>

#include "common/base/c_linkage.h"
#include "common/base/status.h"

BSW_C_BEGIN

// What is for one architecture alone.
#define BSW_ON_ANY(...) __VA_ARGS__
#if defined(__x86_64__)
#define BSW_ON_X86(...) __VA_ARGS__
#else
#define BSW_ON_X86(...)
#endif
#if defined(__aarch64__)
#define BSW_ON_ARM(...) __VA_ARGS__
#else
#define BSW_ON_ARM(...)
#endif

// Every level of every architecture, better ones later. A further one is a line here, the function
// that finds it in cpu_level.c, its line in kernels/kernel_table.h, and its flags
// in CMakeLists.txt. A CPU need not have all levels below its best one.
//   reference  plain C, always there
//   avx2       AVX2, FMA, F16C, POPCNT, BMI, BMI2: Haswell and later
//   avxvnni    avx2 and AVX-VNNI, dot products of bytes on 256 bits: Alder Lake, Zen 5 and later
//   avx512     F, BW, DQ, VL, VBMI, VNNI, BITALG, VPOPCNTDQ: Ice Lake, Zen 4 and later
//   neon       Advanced SIMD with dot products (DotProd of Armv8.2): Neoverse N1 and later
//   i8mm       neon and I8MM, which multiplies signed by unsigned bytes: Neoverse V1 and later
#define BSW_CPU_LEVELS(LEVEL)               \
    LEVEL(REFERENCE, reference, BSW_ON_ANY) \
    LEVEL(AVX2, avx2, BSW_ON_X86)           \
    LEVEL(AVXVNNI, avxvnni, BSW_ON_X86)     \
    LEVEL(AVX512, avx512, BSW_ON_X86)       \
    LEVEL(NEON, neon, BSW_ON_ARM)           \
    LEVEL(I8MM, i8mm, BSW_ON_ARM)

#define BSW_CPU_LEVEL_VALUE(value, name, on) BSW_CPU_##value,
enum bsw_cpu_level { BSW_CPU_LEVELS(BSW_CPU_LEVEL_VALUE) BSW_CPU_NUM_LEVELS };

// What --level takes on this architecture.
#define BSW_CPU_LEVEL_CHOICE(value, name, on) on("|" #name)
#define BSW_CPU_LEVEL_CHOICES                 "auto" BSW_CPU_LEVELS(BSW_CPU_LEVEL_CHOICE)

const char *bsw_cpu_level_name(enum bsw_cpu_level level); // "reference", "avx2", ...

// 1 if the level is of this architecture, whatever the CPU.
int bsw_cpu_level_is_built(enum bsw_cpu_level level);

// 1 if this CPU has the level. Asks the CPU each time, thread-safe, as are the next two.
int bsw_cpu_has_level(enum bsw_cpu_level level);

// The best level of this CPU.
enum bsw_cpu_level bsw_cpu_level_detect(void);

// The next better level that this CPU has, BSW_CPU_NUM_LEVELS after its best one. All of them:
// for (int level = 0; level < BSW_CPU_NUM_LEVELS; level = bsw_cpu_level_next(level))
int bsw_cpu_level_next(int level);

// Parses a level's name, or "auto" for the best one; a level this CPU lacks is BSW_ERROR_USAGE.
enum bsw_status bsw_cpu_level_parse(const char *text, enum bsw_cpu_level *out,
                                    struct bsw_error *err);

// ---- the CPU's model ----------------------------------------------------------------------------

// What the CPU calls itself.

#define BSW_CPU_MODEL_BYTES 49 // what the CPU itself tells has 48 characters

// The name as Linux tells it, with single blanks and nothing that a comment or a quoted text could
// stumble on; "unknown CPU" where it does not tell. Always terminated.
void bsw_cpu_model_read(char model[BSW_CPU_MODEL_BYTES]);

// The design, which code is tuned for: vendor "GenuineIntel" or "AuthenticAMD" and family, or what
// Linux tells of an Arm CPU, implementer "0x41" and part. "unknown" and 0 where neither is told.
struct bsw_cpu_identity {
    char vendor[16];
    uint32_t family;
};

void bsw_cpu_identity_read(struct bsw_cpu_identity *out);
int bsw_cpu_is_same(const struct bsw_cpu_identity *a, const struct bsw_cpu_identity *b);

BSW_C_END
#endif
