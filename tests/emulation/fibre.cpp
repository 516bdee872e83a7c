// SPDX-License-Identifier: Apache-2.0
// Fibres with a stack switch of our own: saving six registers costs a fifteenth of swapcontext.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

#include "emulator_internal.hpp"

#if !defined(__x86_64__)
#error "the emulator switches stacks on x86-64 alone"
#endif

extern "C" void bsw_switch_stacks(void **save, void *load);
asm(R"(.text
.globl bsw_switch_stacks
.type bsw_switch_stacks,@function
bsw_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size bsw_switch_stacks,.-bsw_switch_stacks
.section .note.GNU-stack,"",@progbits
.text
)");

namespace emulation
{

static constexpr size_t stack_bytes = 256 << 10, guard_bytes = 4096;

static char *make_stack()
{
    void *stack = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard_bytes, PROT_NONE) != 0) {
        perror("emulator: stack of a fibre");
        abort();
    }
    return static_cast<char *>(stack);
}

void prepare_fibre(fibre &f, void (*entry)())
{
    if (!f.stack) f.stack = make_stack();
    f.low = f.stack + guard_bytes;
    f.bytes = stack_bytes - guard_bytes;
#if EMULATOR_ASAN
    f.fake_stack = nullptr;
    // What the last one left there. A function that returns leaves nothing, and to wipe all of it
    // for every block is dear.
    if (!f.has_returned) __asan_unpoison_memory_region(f.low, f.bytes);
    f.has_returned = false;
#endif
    void **top = reinterpret_cast<void **>(f.stack + stack_bytes - 64);
    *--top = nullptr; // a return address that is never used; keeps 16-byte alignment
    *--top = reinterpret_cast<void *>(entry);
    f.stack_pointer = top - 6; // the registers' first values do not matter
}

void switch_fibre(fibre &from, fibre &to, bool dies)
{
    counted.switches++;
#if EMULATOR_ASAN
    __sanitizer_start_switch_fiber(dies ? nullptr : &from.fake_stack, to.low, to.bytes);
#else
    (void)dies;
#endif
    bsw_switch_stacks(&from.stack_pointer, to.stack_pointer);
#if EMULATOR_ASAN
    __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

void enter_fibre(fibre &host)
{
#if EMULATOR_ASAN
    const void *low;
    size_t bytes;
    __sanitizer_finish_switch_fiber(nullptr, &low, &bytes);
    if (!host.low) { // the first switch of a launch comes from the host
        host.low = low;
        host.bytes = bytes;
    }
#else
    (void)host;
#endif
}

} // namespace emulation
