/* SPDX-License-Identifier: Apache-2.0
 * CPU features, asked in the process that runs: what the processor has and the operating system keeps. */
#include <stdio.h>

#include "shim.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static const struct {
    uint64_t bit;
    const char *name;
} names[] = {
    {SUBJECT_X86_SSSE3, "ssse3"},   {SUBJECT_X86_SSE41, "sse4_1"},    {SUBJECT_X86_AES, "aes"},
    {SUBJECT_X86_PCLMUL, "pclmul"}, {SUBJECT_X86_AVX, "avx"},         {SUBJECT_X86_AVX2, "avx2"},
    {SUBJECT_X86_VAES, "vaes"},     {SUBJECT_X86_VPCLMUL, "vpclmul"}, {SUBJECT_X86_GFNI, "gfni"},
    {SUBJECT_X86_BMI2, "bmi2"},     {SUBJECT_ARM_NEON, "neon"},       {SUBJECT_ARM_AES, "aes"},
    {SUBJECT_ARM_PMULL, "pmull"},   {SUBJECT_ARM_SM4, "sm4"},         {SUBJECT_ARM_SHA3, "sha3"},
};

#if defined(__x86_64__)

static uint64_t if_set(uint32_t word, unsigned bit, uint64_t feature)
{
    return ((word >> bit) & 1u) != 0 ? feature : 0;
}

/* Intel SDM vol. 1, 14.3: AVX needs CPUID.1:ECX.OSXSAVE and XCR0[2:1] = 11b besides its own bit. */
static int ymm_state_kept(uint32_t ecx)
{
    if (((ecx >> 27) & 1u) == 0) {
        return 0;
    }
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & 6u) == 6u;
}

uint64_t features_detect(void)
{
    uint32_t a, b, c, d;
    uint64_t f = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0) {
        return 0;
    }
    f |= if_set(c, 9, SUBJECT_X86_SSSE3) | if_set(c, 19, SUBJECT_X86_SSE41) | if_set(c, 25, SUBJECT_X86_AES) |
         if_set(c, 1, SUBJECT_X86_PCLMUL);
    int ymm = ymm_state_kept(c);
    uint64_t wide = ymm ? if_set(c, 28, SUBJECT_X86_AVX) : 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) != 0) {
        f |= if_set(b, 8, SUBJECT_X86_BMI2) | if_set(c, 8, SUBJECT_X86_GFNI);
        if (wide != 0) {
            wide |=
                if_set(b, 5, SUBJECT_X86_AVX2) | if_set(c, 9, SUBJECT_X86_VAES) | if_set(c, 10, SUBJECT_X86_VPCLMUL);
        }
    }
    return f | wide;
}

const char *features_arch(void)
{
    return "x86_64";
}

#elif defined(__aarch64__)

/* Bits of AT_HWCAP, from the Linux documentation "ARM64 ELF hwcaps". */
uint64_t features_detect(void)
{
    unsigned long caps = getauxval(AT_HWCAP);
    uint64_t f = 0;
    f |= (caps & (1ul << 1)) != 0 ? SUBJECT_ARM_NEON : 0;
    f |= (caps & (1ul << 3)) != 0 ? SUBJECT_ARM_AES : 0;
    f |= (caps & (1ul << 4)) != 0 ? SUBJECT_ARM_PMULL : 0;
    f |= (caps & (1ul << 17)) != 0 ? SUBJECT_ARM_SHA3 : 0;
    f |= (caps & (1ul << 19)) != 0 ? SUBJECT_ARM_SM4 : 0;
    return f;
}

const char *features_arch(void)
{
    return "aarch64";
}

#else

#if defined(__s390x__)
#define ARCH_NAME "s390x"
#elif defined(__powerpc64__)
#define ARCH_NAME "ppc64"
#elif defined(__i386__)
#define ARCH_NAME "i386"
#elif defined(__arm__)
#define ARCH_NAME "armhf"
#elif defined(__riscv)
#define ARCH_NAME "riscv64"
#else
#error "ci/lanes.toml has no lane for this architecture: add its name here and its signal frames to frames.c"
#endif

/* Portable lanes run portable code, whatever else the processor could do. */
uint64_t features_detect(void)
{
    return 0;
}

const char *features_arch(void)
{
    return ARCH_NAME;
}

#endif

size_t features_print(char *text, size_t capacity)
{
    uint64_t have = features_detect();
    size_t used = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && used < capacity; i++) {
        if ((have & names[i].bit) != 0) {
            used += (size_t)snprintf(text + used, capacity - used, "%s\"%s\"", used == 0 ? "" : ",", names[i].name);
        }
    }
    return used;
}
