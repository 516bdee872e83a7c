# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Several ranks on one GPU over NCCL: what they want in the environment, and whether NCCL is here.

export NCCL_MULTI_RANK_GPU_ENABLE=1 NCCL_MAX_CTAS=8 # several ranks a GPU; blocks that they all have room for
if [[ -n ${QUICK:-} ]]; then export BITSWEEP_EMULATOR_NCCL_VERSION=23000; fi

has_nccl() {
    [[ -z ${BITSWEEP_EMULATOR_NCCL:-} ]] || return 0
    [[ $(ldconfig -p 2>/dev/null || true) != *libnccl.so.2* ]] || return 0
    local IFS=: path
    for path in ${LD_LIBRARY_PATH:-}; do [[ ! -e $path/libnccl.so.2 ]] || return 0; done
    return 1
}
