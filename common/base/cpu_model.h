// SPDX-License-Identifier: Apache-2.0
// What the CPU calls itself.
#ifndef BITSWEEP_COMMON_CPU_MODEL_H
#define BITSWEEP_COMMON_CPU_MODEL_H

#include <stdint.h>

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

#endif
