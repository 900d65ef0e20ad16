/* SPDX-License-Identifier: Apache-2.0
 * GCM, SP 800-38D section 7: counter mode with a 32-bit counter, and GHASH over the associated data and the ciphertext.
 *
 * In GCM's bit order the first bit of a block is the coefficient of x^0. A block is held as two 64-bit words loaded
 * big-endian, so multiplication by x is a shift to the right, and x^128 = 1 + x + x^2 + x^7 is 0xe1 in the first byte. */
#include "mode_auth.h"
#include "mode_overlap.h"

extern const struct subject_mode subject_mode_gcm;

struct gcm_extra {
    uint64_t table[16][2]; /* H times each polynomial of degree below 4; bit 3 of the index is the coefficient of x^0 */
    uint64_t aad_len;
    uint64_t data_len;
    uint64_t data_begun;
    uint64_t used; /* bytes in pending */
    uint8_t h[16];
    uint8_t pending[16];
    uint8_t counter[16];
    uint8_t tag[16]; /* E_K(J_0); from final on the tag */
};
MODE_EXTRA_FITS(struct gcm_extra);

static struct gcm_extra *extra_of(const struct subject_message *m)
{
    return (struct gcm_extra *)(void *)m->state->extra;
}

/* ---- GHASH, section 6.4 ----------------------------------------------------------------------------------- */

static void make_table(uint64_t table[16][2], const uint8_t *h)
{
    uint64_t high = load_be64(h), low = load_be64(h + 8);
    table[0][0] = table[0][1] = 0;
    for (unsigned i = 8; i > 0; i >>= 1) {
        table[i][0] = high;
        table[i][1] = low;
        uint64_t out = 0 - (low & 1);
        low = low >> 1 | high << 63;
        high = high >> 1 ^ (out & UINT64_C(0xe1) << 56);
    }
    for (unsigned i = 2; i < 16; i <<= 1) {
        for (unsigned j = 1; j < i; j++) {
            table[i + j][0] = table[i][0] ^ table[j][0];
            table[i + j][1] = table[i][1] ^ table[j][1];
        }
    }
}

/* block = block * H by Horner's rule in x^4, from the last nibble to the first. */
static void multiply(const uint64_t table[16][2], uint8_t *block)
{
    /* The four coefficients that a shift by x^4 pushes out, reduced: the first two bytes of (bits) * x^128. */
    static const uint16_t reduced[16] = {0x0000, 0x1c20, 0x3840, 0x2460, 0x7080, 0x6ca0, 0x48c0, 0x54e0,
                                         0xe100, 0xfd20, 0xd940, 0xc560, 0x9180, 0x8da0, 0xa9c0, 0xb5e0};
    uint64_t high = 0, low = 0;
    for (unsigned i = 32; i-- > 0;) {
        unsigned nibble = (i % 2 == 0 ? (unsigned)block[i / 2] >> 4 : block[i / 2]) & 15u;
        unsigned out = (unsigned)low & 15u;
        low = low >> 4 | high << 60;
        high = high >> 4 ^ (uint64_t)reduced[out] << 48;
        high ^= table[nibble][0];
        low ^= table[nibble][1];
    }
    store_be64(block, high);
    store_be64(block + 8, low);
}

static void ghash_blocks(struct subject_message *m, const uint8_t *src, size_t num_blocks)
{
    const struct gcm_extra *x = extra_of(m);
    if (m->leaf->ghash != NULL) {
        m->leaf->ghash(x->h, m->iv, src, num_blocks);
        return;
    }
    for (size_t i = 0; i < num_blocks; i++) {
        xor_bytes(m->iv, m->iv, src + 16 * i, 16);
        multiply(x->table, m->iv);
    }
}

static void ghash_update(struct subject_message *m, const uint8_t *src, size_t len)
{
    struct gcm_extra *x = extra_of(m);
    size_t used = (size_t)x->used;
    if (used > 0) {
        size_t n = len < 16 - used ? len : 16 - used;
        memcpy(x->pending + used, src, n);
        used += n;
        src += n;
        len -= n;
        if (used < 16) {
            x->used = used;
            return;
        }
        ghash_blocks(m, x->pending, 1);
    }
    ghash_blocks(m, src, len / 16);
    x->used = len % 16;
    memcpy(x->pending, src + len / 16 * 16, len % 16);
}

static void ghash_pad(struct subject_message *m)
{
    static const uint8_t zeros[16];
    size_t used = (size_t)extra_of(m)->used;
    if (used > 0) {
        ghash_update(m, zeros, 16 - used);
    }
}

/* Ends a hash: [bits of first]64 || [bits of second]64. */
static void ghash_lengths(struct subject_message *m, uint64_t first_len, uint64_t second_len)
{
    uint8_t lengths[16];
    store_be64(lengths, 8 * first_len);
    store_be64(lengths + 8, 8 * second_len);
    ghash_blocks(m, lengths, 1);
}

/* ---- the mode ---------------------------------------------------------------------------------------------- */

static int gcm_setkey(struct subject_message *m, const uint8_t *key, size_t key_len, uint32_t policy)
{
    struct gcm_extra *x = extra_of(m);
    int status = m->leaf->setkey(m->ctx, key, key_len, policy);
    if (status != SUBJECT_OK) {
        return status;
    }
    memset(x->h, 0, 16);
    m->leaf->encrypt_blocks(m->ctx, x->h, x->h, 1);
    make_table(x->table, x->h);
    return SUBJECT_OK;
}

/* Section 5.2.1.2: 16 to 12 bytes, and for some applications 8 and 4. */
static int tag_len_allowed(size_t tag_len)
{
    return (tag_len >= 12 && tag_len <= 16) || tag_len == 8 || tag_len == 4;
}

static int gcm_setiv(struct subject_message *m, const uint8_t *iv, size_t iv_len)
{
    struct gcm_extra *x = extra_of(m);
    if (iv_len == 0) {
        return SUBJECT_BAD_IV_LEN;
    }
    if (!tag_len_allowed(m->state->lengths.tag_len)) {
        return SUBJECT_BAD_TAG_LEN;
    }
    x->aad_len = x->data_len = x->data_begun = x->used = 0;
    memset(m->iv, 0, 16);
    /* Section 7.1, step 2: J_0 is IV || 0^31 || 1 for 96 bits, else GHASH of the padded IV and its length. */
    if (iv_len == 12) {
        memcpy(x->counter, iv, 12);
        store_be32(x->counter + 12, 1);
    } else {
        ghash_update(m, iv, iv_len);
        ghash_pad(m);
        ghash_lengths(m, 0, iv_len);
        memcpy(x->counter, m->iv, 16);
        memset(m->iv, 0, 16);
    }
    memset(x->tag, 0, 16);
    mode_counter_blocks(m, x->counter, 4, x->tag, x->tag, 1);
    return SUBJECT_OK;
}

static int gcm_aad(struct subject_message *m, const uint8_t *aad, size_t aad_len)
{
    extra_of(m)->aad_len += aad_len;
    ghash_update(m, aad, aad_len);
    return SUBJECT_OK;
}

static int gcm_update(struct subject_message *m, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    struct gcm_extra *x = extra_of(m);
    subject_crypt_fn *fused = m->state->decrypting ? m->leaf->ctr.decrypt : m->leaf->ctr.encrypt;
    (void)last;
    if (mode_overlaps(dst, src, len)) {
        return SUBJECT_OVERLAP;
    }
    if (!x->data_begun) {
        ghash_pad(m);
        x->data_begun = 1;
    }
    x->data_len += len;
    if (m->state->decrypting) {
        ghash_update(m, src, len);
    }
    mode_counter_crypt(m, x->counter, 4, fused, dst, src, len);
    if (!m->state->decrypting) {
        ghash_update(m, dst, len);
    }
    return SUBJECT_OK;
}

static int gcm_final(struct subject_message *m)
{
    struct gcm_extra *x = extra_of(m);
    ghash_pad(m);
    ghash_lengths(m, x->aad_len, x->data_len);
    xor_bytes(x->tag, x->tag, m->iv, 16);
    return SUBJECT_OK;
}

static int gcm_tag(struct subject_message *m, uint8_t *tag, size_t tag_len)
{
    return mode_aead_tag(m, extra_of(m)->tag, tag, tag_len);
}

const struct subject_mode subject_mode_gcm = {
    .name = "gcm",
    .num_ctx = 1,
    .has_output = 1,
    .key2_at = offsetof(struct gcm_extra, h),
    .key2_len = 16,
    .setkey = gcm_setkey,
    .setiv = gcm_setiv,
    .aad = gcm_aad,
    .update = gcm_update,
    .final = gcm_final,
    .tag = gcm_tag,
    .iv_out_len = mode_auth_iv_out_len,
};
