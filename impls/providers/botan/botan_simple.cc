// SPDX-License-Identifier: Apache-2.0
// Botan's block ciphers (ecb), stream ciphers (ofb and ctr) and MACs. A key goes into a new object, which takes the old
// one's place only when the library accepts it.

#include <botan/block_cipher.h>
#include <botan/mac.h>
#include <botan/stream_cipher.h>

#include "botan_session.h"

namespace
{

/* A new object with a key, or NULL where Botan knows no such name. Throws what Botan throws. */
template <class Object> std::unique_ptr<Object> keyed(const std::string &name, const uint8_t *key, size_t key_len)
{
    std::unique_ptr<Object> object = Object::create(name);
    if (object) {
        object->set_key(key, key_len);
    }
    return object;
}

class Blocks final : public adapter::Session
{
  public:
    Blocks(const botan::Cipher &cipher, bool decrypting) : cipher_(cipher), decrypting_(decrypting)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh = keyed<Botan::BlockCipher>(cipher_.named(key_len), key, key_len);
        if (!fresh) {
            return SUBJECT_BAD_KEY_LEN;
        }
        object_ = std::move(fresh);
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *, size_t iv_len, const subject_lengths &) override
    {
        return iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool) override
    {
        if (len % cipher_.block_len != 0) {
            return SUBJECT_UNSUPPORTED; /* it counts blocks */
        }
        if (decrypting_) {
            object_->decrypt_n(src, dst, len / cipher_.block_len);
        } else {
            object_->encrypt_n(src, dst, len / cipher_.block_len);
        }
        return SUBJECT_OK;
    }

    int reinit() override
    {
        return SUBJECT_OK;
    }

  private:
    const botan::Cipher &cipher_;
    const bool decrypting_;
    std::unique_ptr<Botan::BlockCipher> object_;
};

class Stream final : public adapter::Session
{
  public:
    Stream(const botan::Cipher &cipher, const char *mode) : cipher_(cipher), mode_(mode)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh = keyed<Botan::StreamCipher>(mode_ + ("(" + cipher_.named(key_len) + ")"), key, key_len);
        if (!fresh) {
            return SUBJECT_BAD_KEY_LEN;
        }
        object_ = std::move(fresh);
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &) override
    {
        if (iv_len < cipher_.block_len) {
            return SUBJECT_UNSUPPORTED; /* it fills up with zeros */
        }
        object_->set_iv(iv, iv_len);
        return SUBJECT_OK;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool) override
    {
        object_->cipher(src, dst, len);
        return SUBJECT_OK;
    }

    int reinit() override
    {
        return SUBJECT_OK; /* the next iv begins anew */
    }

  private:
    const botan::Cipher &cipher_;
    const std::string mode_;
    std::unique_ptr<Botan::StreamCipher> object_;
};

class Mac final : public adapter::Session
{
  public:
    Mac(const botan::Cipher &cipher, const char *mode) : cipher_(cipher), mode_(mode)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh =
            keyed<Botan::MessageAuthenticationCode>(mode_ + ("(" + cipher_.named(key_len) + ")"), key, key_len);
        if (!fresh) {
            return SUBJECT_BAD_KEY_LEN;
        }
        object_ = std::move(fresh);
        begun_ = false;
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *, size_t iv_len, const subject_lengths &) override
    {
        abandon();
        object_->start();
        return iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }

    int update(uint8_t *, const uint8_t *src, size_t len, bool) override
    {
        begun_ = true;
        object_->update(src, len);
        return SUBJECT_OK;
    }

    int tag(uint8_t *bytes, size_t len) override
    {
        if (len != object_->output_length()) {
            return SUBJECT_UNSUPPORTED;
        }
        object_->final(bytes);
        begun_ = false;
        return SUBJECT_OK;
    }

    int reinit() override
    {
        abandon();
        return SUBJECT_OK;
    }

  private:
    /* A MAC forgets a message only by ending it, or with its key. */
    void abandon()
    {
        if (begun_) {
            object_->final();
            begun_ = false;
        }
    }

    const botan::Cipher &cipher_;
    const std::string mode_;
    std::unique_ptr<Botan::MessageAuthenticationCode> object_;
    bool begun_ = false;
};

} // namespace

namespace botan
{

std::unique_ptr<adapter::Session> open_ecb(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Blocks>(cipher, decrypting);
}

std::unique_ptr<adapter::Session> open_ofb(const Cipher &cipher, bool)
{
    return std::make_unique<Stream>(cipher, "OFB");
}

std::unique_ptr<adapter::Session> open_ctr(const Cipher &cipher, bool)
{
    return std::make_unique<Stream>(cipher, "CTR-BE");
}

std::unique_ptr<adapter::Session> open_cmac(const Cipher &cipher, bool)
{
    return std::make_unique<Mac>(cipher, "CMAC");
}

std::unique_ptr<adapter::Session> open_cbcmac(const Cipher &cipher, bool)
{
    return std::make_unique<Mac>(cipher, "CBC-MAC");
}

} // namespace botan
