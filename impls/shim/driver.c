/* SPDX-License-Identifier: Apache-2.0
 * The two contracts behind one set of calls: a leaf through the portable mode code, or a library's session. */
#include "shim.h"

struct subject subject;

void driver_use_leaf(const struct subject_leaf *leaf)
{
    subject.bare = *leaf;
    subject.leaf = *leaf;
    subject.block_len = leaf->block_len;
    subject.ways = leaf->ways;
    subject.num_ctx = subject.mode->num_ctx;
    if ((subject.watch & WATCH_REGISTERS) != 0) {
        thunks_install(&subject.leaf);
        thunks_for_assembly(subject.win64);
        wipe_watch((subject.watch & WATCH_WIPE) != 0);
    }
}

static int keeps_contract(const struct subject_session *s)
{
    return s->contract == SUBJECT_CONTRACT && s->block_len != NULL && s->open != NULL && s->setkey != NULL &&
           s->setiv != NULL && s->update != NULL && s->final != NULL && s->iv_out != NULL && s->reinit != NULL &&
           s->close != NULL && (subject.mode->aad == NULL || s->aad != NULL) &&
           (subject.mode->tag == NULL || s->tag != NULL);
}

int driver_use_session(const struct subject_session *session, const char *cipher)
{
    size_t block_len = keeps_contract(session) ? session->block_len(subject.mode->name, cipher) : 1;
    if (block_len != 0 && block_len != 8 && block_len != 16) {
        shim_fail(
            "the adapter breaks the contract: see struct subject_session in subject.h (contract 1, block_len 8 or "
            "16, or 0 for what the library lacks, every function but expect and clone present)");
    }
    subject.session = session;
    strncpy(subject.cipher, cipher, sizeof subject.cipher - 1);
    subject.block_len = (uint32_t)block_len;
    subject.ways = 1;
    subject.num_ctx = 0;
    /* A library's registers and code paths are its own; of its contexts and secrets is seen what it allocates. */
    int placed = heap_available() && session->contexts != SUBJECT_CONTEXTS_OWN;
    subject.blind = WATCH_REGISTERS | WATCH_PATHS | (placed ? 0 : WATCH_CONTEXT);
    subject.blind |= session->wipes && !placed ? WATCH_WIPE : 0;
    if (heap_available()) {
        heap_use((subject.watch & WATCH_LAYOUT) != 0, session->wipes && placed && (subject.watch & WATCH_WIPE) != 0);
    }
    subject.watch &= ~(subject.blind | (session->wipes ? 0 : WATCH_WIPE));
    return block_len != 0;
}

void driver_begin(struct held *h, void *ctx, void *ctx2, int decrypting)
{
    driver_end(h);
    if (subject.session != NULL) {
        int was_running = subject_running;
        subject_running = 1;
        h->session = subject.session->open(subject.mode->name, subject.cipher, decrypting);
        subject_running = was_running;
        if (h->session == NULL) {
            shim_fail("the adapter opens no session of an algorithm whose block_len it gave");
        }
        return;
    }
    h->m.leaf = &subject.leaf;
    h->m.ctx = ctx;
    h->m.ctx2 = ctx2;
    h->m.state = &h->state;
}

void driver_end(struct held *h)
{
    if (h->session != NULL) {
        int was_running = subject_running;
        subject_running = 1;
        subject.session->close(h->session);
        subject_running = was_running;
        h->session = NULL;
    }
}

int driver_setkey(struct held *h, const uint8_t *key, size_t key_len, uint32_t policy)
{
    if (subject.session != NULL) {
        return subject.session->setkey(h->session, key, key_len, policy);
    }
    return subject.mode->setkey(&h->m, key, key_len, policy);
}

int driver_setiv(struct held *h, const uint8_t *iv, size_t iv_len)
{
    if (subject.session != NULL) {
        return subject.session->setiv(h->session, iv, iv_len, &h->state.lengths);
    }
    return subject.mode->setiv(&h->m, iv, iv_len);
}

int driver_aad(struct held *h, const uint8_t *aad, size_t aad_len)
{
    return subject.session != NULL ? subject.session->aad(h->session, aad, aad_len)
                                   : subject.mode->aad(&h->m, aad, aad_len);
}

int driver_wants_tag(void)
{
    return subject.session != NULL && subject.session->expect != NULL;
}

int driver_expect(struct held *h, const uint8_t *tag, size_t tag_len)
{
    return subject.session->expect(h->session, tag, tag_len);
}

int driver_update(struct held *h, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    return subject.session != NULL ? subject.session->update(h->session, dst, src, len, last)
                                   : subject.mode->update(&h->m, dst, src, len, last);
}

int driver_final(struct held *h)
{
    return subject.session != NULL ? subject.session->final(h->session) : subject.mode->final(&h->m);
}

int driver_tag(struct held *h, uint8_t *tag, size_t tag_len)
{
    return subject.session != NULL ? subject.session->tag(h->session, tag, tag_len)
                                   : subject.mode->tag(&h->m, tag, tag_len);
}

int driver_iv_out(struct held *h)
{
    size_t len =
        subject.session != NULL ? subject.session->iv_out(h->session, h->m.iv) : subject.mode->iv_out_len(&h->m);
    return len == subject.block_len;
}

int driver_reinit(struct held *h)
{
    return subject.session != NULL ? subject.session->reinit(h->session) : SUBJECT_OK;
}

int driver_clone(struct held *to, const struct held *from)
{
    if (subject.session == NULL) {
        to->state = from->state;
        return SUBJECT_OK;
    }
    void *copy = subject.session->clone != NULL ? subject.session->clone(from->session) : NULL;
    if (copy == NULL) {
        return SUBJECT_UNSUPPORTED;
    }
    driver_end(to);
    to->session = copy;
    return SUBJECT_OK;
}
