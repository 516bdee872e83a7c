// SPDX-License-Identifier: Apache-2.0
// Compiles .cu files as ordinary C++ and runs them on the CPU. kernels/cuda_switch.cuh includes
// this where the compiler is not nvcc; README.md says what it finds and what it cannot.
#ifndef BITSWEEP_EMULATION_CUDA_EMULATOR_HPP
#define BITSWEEP_EMULATION_CUDA_EMULATOR_HPP

#include "emulated_arithmetic.hpp"
#include "emulated_banks.hpp"
#include "emulated_collectives.hpp"
#include "emulated_copies.hpp"
#include "emulated_runtime.hpp"
#include "emulated_thread.hpp"
#include "emulated_types.hpp"

#endif
