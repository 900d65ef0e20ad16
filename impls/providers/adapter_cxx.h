/* SPDX-License-Identifier: Apache-2.0
 * What adapters in C++ have alike. An adapter derives classes from adapter::Session, and defines version, block_len and
 * open_session beside the table. No exception leaves it: what a library throws is its refusal. */
#ifndef CROSSLANE_ADAPTER_CXX_H
#define CROSSLANE_ADAPTER_CXX_H

#include <exception>
#include <new>
#include <utility>

#include "adapter.h"

namespace adapter
{

/* One context. What a function may answer besides SUBJECT_OK says subject.h; an exception is the refusal that its table
 * entry below names. */
class Session
{
  public:
    Session() = default;
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;
    virtual ~Session() = default;

    virtual int setkey(const uint8_t *key, size_t key_len) = 0;
    virtual int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &lengths) = 0;
    virtual int update(uint8_t *dst, const uint8_t *src, size_t len, bool last) = 0;
    virtual int reinit() = 0;

    virtual int expect(const uint8_t *, size_t)
    {
        return SUBJECT_OK;
    }

    virtual int aad(const uint8_t *, size_t)
    {
        return SUBJECT_BAD_AAD_LEN;
    }

    virtual int final()
    {
        return SUBJECT_OK;
    }

    virtual int tag(uint8_t *, size_t)
    {
        return SUBJECT_UNSUPPORTED;
    }
};

/* The answer of a call, or `refused` where the library threw. */
template <class Call> int guarded(int refused, Call call) noexcept
{
    try {
        return call();
    } catch (const std::bad_alloc &) {
        return SUBJECT_UNSUPPORTED;
    } catch (const std::exception &) {
        return refused;
    } catch (...) {
        return SUBJECT_UNSUPPORTED;
    }
}

/* What a function makes, or `otherwise` where it throws. */
template <class Make, class Made> Made made_or(Made otherwise, Make make) noexcept
{
    try {
        return make();
    } catch (...) {
        return otherwise;
    }
}

inline Session *of(void *session)
{
    return static_cast<Session *>(session);
}

inline int setkey(void *s, const uint8_t *key, size_t key_len, uint32_t)
{
    return guarded(SUBJECT_BAD_KEY_LEN, [&] { return of(s)->setkey(key, key_len); });
}

inline int setiv(void *s, const uint8_t *iv, size_t iv_len, const struct subject_lengths *lengths)
{
    return guarded(SUBJECT_BAD_IV_LEN, [&] { return of(s)->setiv(iv, iv_len, *lengths); });
}

inline int expect(void *s, const uint8_t *tag, size_t tag_len)
{
    return guarded(SUBJECT_BAD_TAG_LEN, [&] { return of(s)->expect(tag, tag_len); });
}

inline int aad(void *s, const uint8_t *data, size_t len)
{
    return guarded(SUBJECT_BAD_AAD_LEN, [&] { return of(s)->aad(data, len); });
}

inline int update(void *s, uint8_t *dst, const uint8_t *src, size_t len, int last)
{
    return guarded(SUBJECT_BAD_DATA_LEN, [&] { return of(s)->update(dst, src, len, last != 0); });
}

inline int final(void *s)
{
    return guarded(SUBJECT_BAD_DATA_LEN, [&] { return of(s)->final(); });
}

inline int tag(void *s, uint8_t *bytes, size_t len)
{
    return guarded(SUBJECT_BAD_TAG_LEN, [&] { return of(s)->tag(bytes, len); });
}

/* No library in C++ shows the running iv. */
inline size_t iv_out(void *, uint8_t *)
{
    return 0;
}

inline int reinit(void *s)
{
    return guarded(SUBJECT_UNSUPPORTED, [&] { return of(s)->reinit(); });
}

inline void close_session(void *s)
{
    delete of(s);
}

} // namespace adapter

/* In the order of struct subject_session, as C++ asks; nothing is cloned. */
#define ADAPTER_CXX_FUNCTIONS                                                                            \
    .contract = SUBJECT_CONTRACT, .driver = PROVIDER_NAME, .version = version, .block_len = block_len,   \
    .open = open_session, .setkey = adapter::setkey, .setiv = adapter::setiv, .expect = adapter::expect, \
    .aad = adapter::aad, .update = adapter::update, .final = adapter::final, .tag = adapter::tag,        \
    .iv_out = adapter::iv_out, .reinit = adapter::reinit, .close = adapter::close_session,               \
    .contexts = PROVIDER_CONTEXTS, .wipes = PROVIDER_WIPES

#endif
