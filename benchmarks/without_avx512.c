/* Hides AVX-512 and AMX from a program, so that all its libraries compute as on a processor with AVX2:
 *
 *     gcc -O2 -shared -fPIC benchmarks/without_avx512.c -o without_avx512.so
 *     GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW LD_PRELOAD=./without_avx512.so COMMAND
 *
 * Linux on x86-64 processors with "cpuid_fault" (lscpu): the instruction CPUID then raises a signal, and its answer
 * is changed. XLA's own option (--xla_cpu_max_isa=AVX2) does not reach the library that multiplies its matrices.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define ARCH_CPUID_SET 0x1012
#define BIT(n) (1u << (n))

static long cpuid_allowed(unsigned long allowed) { return syscall(SYS_arch_prctl, ARCH_CPUID_SET, allowed); }

static void answer(int number, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint8_t *code = (uint8_t *)registers[REG_RIP];
    if (code[0] != 0x0f || code[1] != 0xa2) { /* not CPUID, but an error of the program */
        signal(SIGSEGV, SIG_DFL);
        return;
    }
    uint32_t leaf = registers[REG_RAX], part = registers[REG_RCX], a = leaf, b, c = part, d;
    cpuid_allowed(1);
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    cpuid_allowed(0);
    if (leaf == 7 && part == 0) {
        b &= ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));
        c &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));
        d &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));
    }
    if (leaf == 7 && part == 1) {
        a &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));
        d &= ~(BIT(4) | BIT(5) | BIT(10) | BIT(19));
    }
    if (leaf == 13 && part == 0)
        a &= ~(BIT(5) | BIT(6) | BIT(7) | BIT(17) | BIT(18));
    registers[REG_RAX] = a, registers[REG_RBX] = b, registers[REG_RCX] = c, registers[REG_RDX] = d;
    registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = answer;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    if (cpuid_allowed(0))
        fprintf(stderr, "this processor cannot hide AVX-512\n");
}
