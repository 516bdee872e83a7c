// SPDX-License-Identifier: Apache-2.0
#include "common/base/cpu_level.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/number_parse.h"

static int has_reference(void)
{
    return 1;
}

#if defined(__x86_64__)

#include <cpuid.h>

static int has_avx2(void)
{
    __builtin_cpu_init();
    unsigned a, b, c, d; // clang 14 does not know "f16c" and "bmi" by name
    int f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    int bmi = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_BMI);
    return f16c && bmi && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi2");
}

// Compilers know it by name only later.
static int has_avxvnni(void)
{
#if defined(BITSWEEP_AVXVNNI_ON_AVX512) // a test of the same kernels
    return has_avx2() && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
#else
    unsigned a, b, c, d;
    return has_avx2() && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
#endif
}

static int has_avx512(void)
{
#if defined(BITSWEEP_EMULATED_AVX512) // a test of the same kernels in portable C
    return has_avx2();
#else
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq");
#endif
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

// Bits of AT_HWCAP and AT_HWCAP2, which <asm/hwcap.h> of older systems lacks.
#define HWCAP_WITH_ASIMD   (1ul << 1)
#define HWCAP_WITH_DOTPROD (1ul << 20)
#define HWCAP2_WITH_I8MM   (1ul << 13)

static int has_neon(void)
{
    const unsigned long needed = HWCAP_WITH_ASIMD | HWCAP_WITH_DOTPROD;
    return (getauxval(AT_HWCAP) & needed) == needed;
}

static int has_i8mm(void)
{
    return has_neon() && (getauxval(AT_HWCAP2) & HWCAP2_WITH_I8MM) != 0;
}

#endif

#define LEVEL(value, word, on) {.name = #word, on(.is_had = has_##word)},
static const struct {
    const char *name;
    int (*is_had)(void); // NULL: of another architecture
} levels[BSW_CPU_NUM_LEVELS] = {BSW_CPU_LEVELS(LEVEL)};

const char *bsw_cpu_level_name(enum bsw_cpu_level level)
{
    return levels[level].name;
}

int bsw_cpu_level_is_built(enum bsw_cpu_level level)
{
    return levels[level].is_had != NULL;
}

int bsw_cpu_has_level(enum bsw_cpu_level level)
{
    return levels[level].is_had && levels[level].is_had();
}

int bsw_cpu_level_next(int level)
{
    do {
        level++;
    } while (level < BSW_CPU_NUM_LEVELS && !bsw_cpu_has_level((enum bsw_cpu_level)level));
    return level;
}

enum bsw_cpu_level bsw_cpu_level_detect(void)
{
    int best = BSW_CPU_NUM_LEVELS - 1;
    while (!bsw_cpu_has_level((enum bsw_cpu_level)best)) best--;
    return (enum bsw_cpu_level)best;
}

enum bsw_status bsw_cpu_level_parse(const char *text, enum bsw_cpu_level *out,
                                    struct bsw_error *err)
{
    enum bsw_cpu_level best = bsw_cpu_level_detect();
    if (strcmp(text, "auto") == 0) {
        *out = best;
        return BSW_OK;
    }
    for (int i = 0; i < BSW_CPU_NUM_LEVELS; i++) {
        enum bsw_cpu_level level = (enum bsw_cpu_level)i;
        if (!bsw_cpu_level_is_built(level) || strcmp(text, levels[i].name) != 0) continue;
        if (!bsw_cpu_has_level(level)) {
            return bsw_fail(err, BSW_ERROR_USAGE, "level %s: this CPU lacks it; its best is %s",
                            text, levels[best].name);
        }
        *out = level;
        return BSW_OK;
    }
    char words[BSW_CHOICES_BYTES];
    return bsw_fail(err, BSW_ERROR_USAGE, "unknown level '%s': use %s", text,
                    bsw_choices_text(BSW_CPU_LEVEL_CHOICES, words));
}

// ---- the CPU's model ----------------------------------------------------------------------------

// What stands behind the colon of the first line of that name; 0: there is none.
static int read_cpuinfo(const char *name, char *out, size_t room)
{
    char line[512];
    const char *from = NULL;
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && !from && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0 && strchr(line, ':'))
            from = strchr(line, ':') + 1;
    }
    if (file) fclose(file);
    if (!from) return 0;
    from += strspn(from, " \t");
    snprintf(out, room, "%.*s", (int)strcspn(from, "\n"), from);
    return 1;
}

void bsw_cpu_model_read(char model[BSW_CPU_MODEL_BYTES])
{
    char text[512];
    size_t length = 0;
    int is_told = read_cpuinfo("model name", text, sizeof text);
    for (const char *from = text; is_told && *from && length < BSW_CPU_MODEL_BYTES - 1; from++) {
        int is_plain = isgraph((unsigned char)*from) && *from != '\\' && *from != '"';
        if (is_plain)
            model[length++] = *from;
        else if (length > 0 && model[length - 1] != ' ')
            model[length++] = ' ';
    }
    while (length > 0 && model[length - 1] == ' ') length--;
    model[length] = '\0';
    if (length == 0) snprintf(model, BSW_CPU_MODEL_BYTES, "unknown CPU");
}

void bsw_cpu_identity_read(struct bsw_cpu_identity *out)
{
    static const char *const names[][2] = {{"vendor_id", "cpu family"},
                                           {"CPU implementer", "CPU part"}};
    char vendor[64], family[64];
    *out = (struct bsw_cpu_identity){.vendor = "unknown"};
    for (int i = 0; i < 2; i++) {
        if (!read_cpuinfo(names[i][0], vendor, sizeof vendor) || vendor[0] == '\0' ||
            strcspn(vendor, " \t#") < strlen(vendor) || strlen(vendor) >= sizeof out->vendor)
            continue;
        memcpy(out->vendor, vendor, strlen(vendor) + 1);
        if (read_cpuinfo(names[i][1], family, sizeof family))
            out->family = (uint32_t)strtoul(family, NULL, 0);
        return;
    }
}

int bsw_cpu_is_same(const struct bsw_cpu_identity *a, const struct bsw_cpu_identity *b)
{
    return a->family == b->family && strcmp(a->vendor, b->vendor) == 0;
}
