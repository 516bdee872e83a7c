// What all benches share: option rows, and parsing with a level.
#ifndef BITSWEEP_BENCH_OPTIONS_H
#define BITSWEEP_BENCH_OPTIONS_H

#include <stdio.h>

#include "common/cpu_level.h"
#include "common/option_table.h"

#define BENCH_COUNT(name, target, default_text, low, high, help)                    \
    {                                                                               \
        name, BSW_OPTION_COUNT, target, "N", default_text, 0, low, high, NULL, help \
    }

#define BENCH_LEVEL(target)                                              \
    {                                                                    \
        "level", BSW_OPTION_TEXT, target, "NAME", "auto", 0, 0, 0, NULL, \
            "instruction set: auto, reference, avx2, avx512"             \
    }

// Parses argv; *help is set, and the text printed, after --help.
static inline enum bsw_status bench_parse(const char *name, const char *summary,
                                          const struct bsw_option *options, size_t num_options,
                                          int argc, char **argv, const char *const *level_name,
                                          enum bsw_cpu_level *level, int *help,
                                          struct bsw_error *err)
{
    const struct bsw_option_table table = {name, summary, options, num_options};
    BSW_TRY(bsw_option_table_parse(&table, argc - 1, argv + 1, help, err));
    if (*help) {
        bsw_option_table_print(&table, stdout);
        return BSW_OK;
    }
    return bsw_cpu_level_parse(*level_name, level, err);
}

#endif
