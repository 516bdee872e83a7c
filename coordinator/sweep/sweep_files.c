#include "coordinator/sweep/sweep_files.h"

// The assembler takes them in; CMakeLists.txt says where they are, and what to make anew with them.
#define TAKE_IN(name, file)                            \
    __asm__(".pushsection .rodata\n"                   \
            ".global " #name "\n" #name ":\n"          \
            ".incbin \"coordinator/sweep/" file "\"\n" \
            ".byte 0\n"                                \
            ".popsection")

TAKE_IN(bsw_sweep_script, "sweep_plots.gp");
TAKE_IN(bsw_sweep_template, "sweep_report.html");
