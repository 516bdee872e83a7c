// What the CPU calls itself.
#ifndef BITSWEEP_COMMON_CPU_MODEL_H
#define BITSWEEP_COMMON_CPU_MODEL_H

#define BSW_CPU_MODEL_BYTES 49 // what the CPU itself tells has 48 characters

// The name as Linux tells it, with single blanks and nothing that a comment or a quoted text could
// stumble on; "unknown CPU" where it does not tell. Always terminated.
void bsw_cpu_model_read(char model[BSW_CPU_MODEL_BYTES]);

#endif
