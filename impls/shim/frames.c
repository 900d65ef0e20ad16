/* SPDX-License-Identifier: Apache-2.0
 * Signal frames by architecture. Kernels say whether a fault was a write where the processor does; emulators often do
 * not, so that the instruction itself is looked at. Encodings are those of the architectures' manuals. */
#define _GNU_SOURCE
#include "frames.h"

#include "shim.h"

#if defined(__x86_64__) || defined(__i386__)

#if defined(__x86_64__)
#define PC_REGISTER REG_RIP
#else
#define PC_REGISTER REG_EIP
#endif

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[PC_REGISTER];
}

uintptr_t frame_trap_place(const ucontext_t *u)
{
    return frame_pc(u) - 1;
}

void frame_resume_at(ucontext_t *u, uintptr_t pc)
{
    u->uc_mcontext.gregs[PC_REGISTER] = (greg_t)pc;
}

/* Intel SDM vol. 3, 4.7: bit 1 of a page fault's error code is set for a write. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    (void)address;
    return (u->uc_mcontext.gregs[REG_ERR] & 2) != 0;
}

#elif defined(__aarch64__)

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.pc;
}

uintptr_t frame_trap_place(const ucontext_t *u)
{
    return frame_pc(u);
}

void frame_resume_at(ucontext_t *u, uintptr_t pc)
{
    u->uc_mcontext.pc = pc;
}

#define ESR_CONTEXT_MAGIC 0x45535201u

/* ESR_ELx.ISS.WnR (bit 6) where the kernel hands it over; else the instruction says it: in the loads-and-stores group
 * bit 22 is set for loads, and bit 23 alone marks the 128-bit load of a SIMD register. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    const uint8_t *p = (const uint8_t *)u->uc_mcontext.__reserved;
    const uint8_t *end = p + sizeof u->uc_mcontext.__reserved;
    (void)address;
    while (p + 16 <= end) {
        uint32_t magic = load_le32(p), size = load_le32(p + 4);
        if (magic == ESR_CONTEXT_MAGIC) {
            return (int)((load_le64(p + 8) >> 6) & 1u);
        }
        if (magic == 0 || size < 16) {
            break;
        }
        p += size;
    }
    uint32_t word;
    memcpy(&word, (const void *)(uintptr_t)u->uc_mcontext.pc, sizeof word);
    if ((word & 0x1e000000u) == 0x04000000u) { /* SVE, as in the C library's memcpy: 111 begins its stores */
        return word >> 29 == 7u;
    }
    int load = (int)((word >> 22) & 1u);
    if ((word & 0x3b000000u) == 0x39000000u || (word & 0x3b200000u) == 0x38000000u) {
        load |= (int)((word >> 23) & 1u);
    }
    return !load;
}

#else /* portable lanes: nothing of theirs is trapped */

uintptr_t frame_trap_place(const ucontext_t *u)
{
    return frame_pc(u);
}

void frame_resume_at(ucontext_t *u, uintptr_t pc)
{
    (void)u;
    (void)pc;
}

#if defined(__s390x__)

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.psw.addr;
}

/* The instructions that compilers use for stores, by first byte, and those of two bytes whose second one is the last
 * of six. z/Architecture Principles of Operation, appendix B. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    static const uint8_t one_byte[] = {0x40, 0x42, 0x50, 0x60, 0x70, 0x90, 0x92}; /* STH STC ST STD STE STM MVI */
    static const uint8_t e3[] = {0x24, 0x2f, 0x3e, 0x3f, 0x50, 0x70, 0x72}; /* STG STRVG STRV STRVH STY STHY STCY */
    static const uint8_t eb[] = {0x24, 0x26, 0x2c, 0x52, 0x90};             /* STMG STMH STCMH MVIY STMY */
    const uint8_t *code = (const uint8_t *)frame_pc(u);
    const uint8_t *list = one_byte;
    size_t num = sizeof one_byte;
    uint8_t op = code[0];
    if (op >= 0xd1 && op <= 0xd7) { /* MVN MVC MVZ NC CLC OC XC: the first operand is written, except by CLC */
        unsigned base = code[2] >> 4;
        uintptr_t first =
            (base == 0 ? 0 : (uintptr_t)u->uc_mcontext.gregs[base]) + (((uintptr_t)code[2] & 15u) << 8) + code[3];
        uintptr_t page = address & ~(uintptr_t)(page_len() - 1);
        return op != 0xd5 && first + code[1] >= page && first < page + page_len();
    }
    if (op == 0xe5) { /* MVHHI 44, MVGHI 48, MVHI 4c */
        return code[1] == 0x44 || code[1] == 0x48 || code[1] == 0x4c;
    }
    if (op == 0xe3 || op == 0xeb) {
        list = op == 0xe3 ? e3 : eb;
        num = op == 0xe3 ? sizeof e3 : sizeof eb;
        op = code[5];
    } else if (op == 0xe7) { /* VST 0e, VSTM 3e, VSTL 3f, VSTEB to VSTEF 08 to 0b */
        return code[5] == 0x0e || code[5] == 0x3e || code[5] == 0x3f || (code[5] >= 0x08 && code[5] <= 0x0b);
    }
    return memchr(list, op, num) != NULL;
}

#elif defined(__powerpc64__)

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gp_regs[32]; /* PT_NIP */
}

/* Power ISA, book I. D-forms: 36 to 39 STW STWU STB STBU, 44, 45, 47 STH STHU STMW, 52 to 55 STFS STFD, 61 STXV and
 * others, 62 STD. X-forms under 31: stores have bit 7 of the extended opcode and not bit 6 (STWX 151, STDX 149), VMX
 * stores likewise 135 to 231 and 487; byte-reversed 660, 662, 918; floating point 663 to 983; VSX from 140 to 972. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    static const uint16_t extended[] = {135, 140, 149, 150, 151, 167, 181, 183, 199, 214,  215, 231, 247,
                                        396, 397, 407, 439, 487, 652, 660, 661, 662, 663,  694, 695, 716,
                                        725, 726, 727, 759, 908, 918, 940, 972, 983, 1004, 1014};
    uint32_t word;
    (void)address;
    memcpy(&word, (const void *)frame_pc(u), sizeof word);
    unsigned primary = word >> 26;
    if (primary != 31) {
        return (primary >= 36 && primary <= 39) || primary == 44 || primary == 45 || primary == 47 ||
               (primary >= 52 && primary <= 55) || primary == 62 || (primary == 61 && (word & 7u) >= 5);
    }
    for (size_t i = 0; i < sizeof extended / sizeof extended[0]; i++) {
        if (((word >> 1) & 0x3ffu) == extended[i]) {
            return 1;
        }
    }
    return 0;
}

#elif defined(__arm__)

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.arm_pc;
}

static int thumb_is_write(const uint8_t *code)
{
    uint16_t half;
    memcpy(&half, code, sizeof half);
    if (half >= 0xe800u) { /* 32 bits: bit 4 of the first half is L, for structures of SIMD elements bit 5 */
        return ((half >> ((half & 0xff00u) == 0xf900u ? 5 : 4)) & 1u) == 0;
    }
    if ((half >> 12) == 5) { /* register offset: 0 to 2 are stores */
        return ((half >> 9) & 7u) <= 2;
    }
    return ((half >> 11) & 1u) == 0;
}

/* Arm Architecture Reference Manual, A5 and A6: bit 20 is L; the extra loads 1101 are LDRD whose bit 20 is 0; structures
 * of SIMD elements have bit 21. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    const uint8_t *code = (const uint8_t *)frame_pc(u);
    uint32_t word;
    (void)address;
    if ((u->uc_mcontext.arm_cpsr & 0x20u) != 0) {
        return thumb_is_write(code);
    }
    memcpy(&word, code, sizeof word);
    if ((word >> 24) == 0xf4u) {
        return ((word >> 21) & 1u) == 0;
    }
    if ((word & 0x0e1000f0u) == 0x000000d0u) {
        return 0;
    }
    return ((word >> 20) & 1u) == 0;
}

#elif defined(__riscv)

uintptr_t frame_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.__gregs[REG_PC];
}

/* RISC-V Unprivileged ISA: major opcodes STORE 0x23, STORE-FP 0x27 and AMO 0x2f but LR; of the compressed quadrants 0
 * and 2, funct3 from 5 on. */
int frame_fault_is_write(const ucontext_t *u, uintptr_t address)
{
    uint16_t half[2];
    (void)address;
    memcpy(half, (const void *)frame_pc(u), sizeof half);
    if ((half[0] & 3u) != 3u) {
        return (half[0] >> 13) >= 5;
    }
    unsigned opcode = half[0] & 0x7fu;
    return opcode == 0x23u || opcode == 0x27u || (opcode == 0x2fu && (half[1] >> 11) != 2);
}

#else
#error "the shim does not know this architecture's signal frames: add them here"
#endif

#endif
