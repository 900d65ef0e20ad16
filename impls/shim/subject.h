/* SPDX-License-Identifier: Apache-2.0
 *
 * The contracts between the suite and the code under test.
 *
 * LEAF: one body of code that computes a cipher, alone or fused with modes. A leaf is a table of functions
 * (struct subject_leaf) that its getter returns. Rules that every leaf keeps:
 *   - dst == src is always allowed, other overlap never reaches a leaf;
 *   - a function touches exactly the bytes it is given: no read and no write beyond, at any alignment of key, iv,
 *     src and dst; only the context is aligned, to ctx_align and no better;
 *   - no allocation, no libc beyond memcpy, memset and memcmp, no global state that changes, no pointer into the
 *     context inside the context: a context may be copied byte for byte and used elsewhere;
 *   - setkey refuses a key before it writes anything; the other functions cannot fail;
 *   - fused functions take byte lengths, own their tails, and leave in iv what the mode's table says;
 *   - the getter has the name of cipher and folder (sm4_x86_64_aesni_avx); every other symbol is static.
 *
 * SESSION: the life of one context, which adapters for whole libraries implement (struct subject_session). The
 * shim turns any leaf into a session with the portable mode code (struct subject_mode).
 */
#ifndef CROSSLANE_SUBJECT_H
#define CROSSLANE_SUBJECT_H

#include <stddef.h>
#include <stdint.h>

#include "subject_bytes.h"
#include "subject_path.h"

#define SUBJECT_CONTRACT 1u
#define SUBJECT_MAX_BLOCK_LEN 16u

/* What a call answers. Everything but SUBJECT_OK is a refusal: nothing was written. */
enum subject_status {
    SUBJECT_OK = 0,
    SUBJECT_BAD_KEY_LEN = 1,  /* no key of the cipher has this length */
    SUBJECT_WEAK_KEY = 2,     /* refused by the policy that the case asked for */
    SUBJECT_BAD_IV_LEN = 3,   /* no iv, nonce or index of the mode has this length */
    SUBJECT_BAD_TAG_LEN = 4,  /* no tag of the mode has this length */
    SUBJECT_BAD_DATA_LEN = 5, /* not a whole block, shorter than the mode's least, or not as announced */
    SUBJECT_BAD_AAD_LEN = 6,  /* the mode takes no such associated data */
    SUBJECT_BAD_ORDER = 7,    /* an operation that may not come here */
    SUBJECT_OVERLAP = 8,      /* buffers overlap other than exactly */
    SUBJECT_BAD_TAG = 9,      /* authentication failed: no plaintext */
    SUBJECT_UNSUPPORTED = 10  /* outside the declared domain */
};

/* Key-refusal policies, a bit set; the default 0 accepts every key of a legal length. */
enum subject_policy {
    SUBJECT_POLICY_DEGENERATE = 1, /* 3DES: K1 = K2 or K2 = K3 */
    SUBJECT_POLICY_WEAK_SUBKEY = 2 /* 3DES: DES weak and semi-weak keys */
};

/* CPU features, detected in C in the process that runs, less what the case's lane hides. */
#define SUBJECT_X86_SSSE3 (UINT64_C(1) << 0)
#define SUBJECT_X86_SSE41 (UINT64_C(1) << 1)
#define SUBJECT_X86_AES (UINT64_C(1) << 2)
#define SUBJECT_X86_PCLMUL (UINT64_C(1) << 3)
#define SUBJECT_X86_AVX (UINT64_C(1) << 4)  /* with the operating system's ymm state */
#define SUBJECT_X86_AVX2 (UINT64_C(1) << 5) /* likewise */
#define SUBJECT_X86_VAES (UINT64_C(1) << 6) /* likewise */
#define SUBJECT_X86_VPCLMUL (UINT64_C(1) << 7)
#define SUBJECT_X86_GFNI (UINT64_C(1) << 8)
#define SUBJECT_X86_BMI2 (UINT64_C(1) << 9)
#define SUBJECT_ARM_NEON (UINT64_C(1) << 32)
#define SUBJECT_ARM_AES (UINT64_C(1) << 33)
#define SUBJECT_ARM_PMULL (UINT64_C(1) << 34)
#define SUBJECT_ARM_SM4 (UINT64_C(1) << 35)
#define SUBJECT_ARM_SHA3 (UINT64_C(1) << 36)

typedef int subject_setkey_fn(void *ctx, const uint8_t *key, size_t key_len, uint32_t policy);
typedef void subject_blocks_fn(const void *ctx, uint8_t *dst, const uint8_t *src, size_t num_blocks);
/* len in bytes; iv is read and written back (block_len bytes; NULL for ecb). */
typedef void subject_crypt_fn(const void *ctx, uint8_t *dst, const uint8_t *src, size_t len, uint8_t *iv);
/* xts: the tweak is encrypted with tweak_ctx (also when decrypting); iv holds the data-unit tweak, 16 bytes. */
typedef void subject_xts_fn(const void *ctx, const void *tweak_ctx, uint8_t *dst, const uint8_t *src, size_t len,
                            const uint8_t *iv);
/* lrw: key2 is the 16-byte tweak key, index is read and written back (128 bits, big-endian). */
typedef void subject_lrw_fn(const void *ctx, const uint8_t *key2, uint8_t *dst, const uint8_t *src, size_t len,
                            uint8_t *index);
/* CBC-MAC chaining over whole blocks: mac = E(mac xor block) for each block. */
typedef void subject_mac_fn(const void *ctx, uint8_t *mac, const uint8_t *src, size_t num_blocks);
/* y = (y xor block) * h for each 16-byte block, in GCM's bit order. */
typedef void subject_ghash_fn(const uint8_t *h, uint8_t *y, const uint8_t *src, size_t num_blocks);

struct subject_crypt {
    subject_crypt_fn *encrypt;
    subject_crypt_fn *decrypt;
};

struct subject_leaf {
    uint32_t contract;  /* SUBJECT_CONTRACT */
    uint32_t block_len; /* bytes: 8 or 16 */
    uint32_t ways;      /* blocks handled side by side by the widest path */
    uint32_t ctx_len;   /* bytes */
    uint32_t ctx_align; /* bytes, a power of two */
    uint32_t reserved;  /* 0 */

    /* From here on function pointers only: the shim puts a thunk into every slot that is not NULL. */
    subject_setkey_fn *setkey;
    subject_blocks_fn *encrypt_blocks;
    subject_blocks_fn *decrypt_blocks;
    /* Optional, NULL where the portable mode code composes the mode over the block functions. */
    struct subject_crypt ecb, cbc, cfb, ofb, ctr, cts_cbc;
    subject_xts_fn *xts_encrypt, *xts_decrypt;
    subject_xts_fn *xts_gb_encrypt, *xts_gb_decrypt;
    subject_lrw_fn *lrw_encrypt, *lrw_decrypt;
    subject_mac_fn *mac_update;
    subject_ghash_fn *ghash;
};

/* The getter: NULL where a CPU with just these features cannot run the implementation. */
typedef const struct subject_leaf *subject_getter_fn(uint64_t features);

struct subject_lengths {
    uint64_t aad_len;  /* of the whole message, announced before it (ccm) */
    uint64_t data_len; /* likewise */
    uint32_t tag_len;  /* 0 where the mode has no tag */
};

/* What one session of the portable mode code carries besides the leaf's contexts: plain bytes, free to copy. */
struct subject_state {
    uint8_t iv[SUBJECT_MAX_BLOCK_LEN];        /* running iv, counter or index where the mode has one */
    uint8_t keystream[SUBJECT_MAX_BLOCK_LEN]; /* cfb, ofb, ctr: block of which `used` bytes are spent */
    uint32_t used;
    uint32_t decrypting;
    struct subject_lengths lengths;
    uint64_t extra[128]; /* the mode's own: subkeys, accumulators, buffered bytes */
};

/* One context of a mode over a leaf. `iv` is where the running iv lies during a call (the shim moves it about);
 * ctx has leaf->ctx_len bytes for the cipher key, ctx2 as many for modes with a second key. */
struct subject_message {
    const struct subject_leaf *leaf;
    void *ctx;
    void *ctx2;
    uint8_t *iv;
    struct subject_state *state;
};

/* Portable mode code: impls/modes/<mode>/<mode>.c defines `const struct subject_mode subject_mode_<mode>`.
 * Functions return enum subject_status; NULL means that the mode has no such operation. */
struct subject_mode {
    const char *name;
    uint32_t num_ctx;    /* leaf contexts: 1, or 2 for modes with a second key */
    uint32_t has_output; /* 0 for a MAC: update writes nothing, dst is NULL */
    uint32_t needs_data; /* 1 where a message without an accepted update is none: the session refuses its final */
    uint32_t keeps_iv;   /* 1 where leaves only read m->iv, so that update leaves it as it is */
    uint32_t key2_at;    /* a second key that leaves are given to read: where it lies in state->extra, in bytes, */
    uint32_t key2_len;   /* and how long it is, at most 16; 0 where there is none. Only setkey writes it */
    int (*setkey)(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy);
    int (*setiv)(struct subject_message *m, const uint8_t *iv, size_t iv_len);
    int (*aad)(struct subject_message *m, const uint8_t *aad, size_t aad_len);
    /* `last`: no further update follows in this message. */
    int (*update)(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last);
    int (*final)(struct subject_message *m);
    /* encrypting and MACs: writes tag_len bytes; decrypting: compares them (SUBJECT_BAD_TAG). */
    int (*tag)(struct subject_message *m, uint8_t *tag, size_t tag_len);
    /* Bytes of m->iv that mean something after the last update, 0 where the mode leaves it undefined. */
    uint32_t (*iv_out_len)(const struct subject_message *m);
};

/* Where a library's contexts lie. */
enum subject_contexts {
    SUBJECT_CONTEXTS_HEAP = 0, /* malloc and its like gave them, each to itself: the shim places and watches them */
    SUBJECT_CONTEXTS_OWN = 1   /* the library's own pools, or parts of other objects: nothing is seen of them */
};

/* Session contract, for adapters: the same operations over the library's own object. The shim refuses what comes out of
 * order before it reaches an adapter, calls open once for each context of a case, and closes every object that it got.
 * What the library refuses the adapter answers with the status that says the same; a setkey that refuses leaves the
 * key before it in force. SUBJECT_UNSUPPORTED is for what lies outside the domain that provider.toml declares. */
struct subject_session {
    uint32_t contract;
    const char *driver;
    /* The library's own name and version, of what is linked now; NULL where the library cannot be initialised. */
    const char *(*version)(void);
    /* Bytes of a block of the cipher, 0 where this library cannot compute the mode of it. */
    size_t (*block_len)(const char *mode, const char *cipher);
    void *(*open)(const char *mode, const char *cipher, int decrypting);
    int (*setkey)(void *s, const uint8_t *key, size_t key_len, uint32_t policy);
    int (*setiv)(void *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths);
    /* NULL, or told the tag that a message to be decrypted will be compared with, between setiv and its data: for
     * libraries that decrypt only against a tag. It is given to tag again. */
    int (*expect)(void *s, const uint8_t *tag, size_t tag_len);
    int (*aad)(void *s, const uint8_t *aad, size_t aad_len);
    /* For a MAC dst is NULL. */
    int (*update)(void *s, uint8_t *dst, const uint8_t *src, size_t len, int last);
    int (*final)(void *s);
    int (*tag)(void *s, uint8_t *tag, size_t tag_len);
    /* Copies the running iv into iv (block_len bytes); returns its length, 0 where it cannot be observed. */
    size_t (*iv_out)(void *s, uint8_t *iv);
    int (*reinit)(void *s);
    /* NULL, or NULL returned, where the library cannot copy a context. */
    void *(*clone)(const void *s);
    void (*close)(void *s);
    uint32_t contexts; /* enum subject_contexts */
    uint32_t wipes;    /* 1: the library's documentation says that a context that is freed holds no key */
};

#endif
