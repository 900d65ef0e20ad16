/* SPDX-License-Identifier: Apache-2.0
 *
 * SUBJECT_PATH("8way"): declares a code path. It costs one nop; a record in its own section names the place, and
 * the shim plants a trap there to learn that the path was taken. Where the compiler duplicates the place,
 * each copy is one more record of the same path. The record's fields are relative to themselves, so that it needs
 * no relocation: { place - here, name - here }. The build defines SUBJECT_NAME as the implementation's symbol, a
 * string ("sm4_generic"), and the record's name is symbol:path.
 */
#ifndef CROSSLANE_SUBJECT_PATH_H
#define CROSSLANE_SUBJECT_PATH_H

#if defined(__x86_64__)
#define SUBJECT_PATH(name)                                                             \
    __asm__ volatile("1: nop\n\t"                                                      \
                     ".pushsection crosslane_paths, \"a\", @progbits\n\t"              \
                     ".balign 4\n\t"                                                   \
                     "2: .long 1b - 2b\n\t"                                            \
                     ".long 3f - 2b\n\t"                                               \
                     ".popsection\n\t"                                                 \
                     ".pushsection .rodata.crosslane_path_names, \"a\", @progbits\n\t" \
                     "3: .asciz \"" SUBJECT_NAME ":" name "\"\n\t"                     \
                     ".popsection" ::                                                  \
                         : "memory")
#elif defined(__aarch64__)
#define SUBJECT_PATH(name)                                                              \
    __asm__ volatile("1: nop\n\t"                                                       \
                     ".pushsection crosslane_paths, \"a\", %%progbits\n\t"              \
                     ".balign 4\n\t"                                                    \
                     "2: .word 1b - 2b\n\t"                                             \
                     ".word 3f - 2b\n\t"                                                \
                     ".popsection\n\t"                                                  \
                     ".pushsection .rodata.crosslane_path_names, \"a\", %%progbits\n\t" \
                     "3: .asciz \"" SUBJECT_NAME ":" name "\"\n\t"                      \
                     ".popsection" ::                                                   \
                         : "memory")
#else
#define SUBJECT_PATH(name) ((void)0)
#endif

#endif
