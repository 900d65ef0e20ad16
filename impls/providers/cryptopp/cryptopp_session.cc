// SPDX-License-Identifier: Apache-2.0
// Sessions over the base classes of Crypto++. A key goes into a new object, which takes the old one's place only when the
// library accepts it.

#include <cryptopp/algparam.h>
#include <cryptopp/argnames.h>

#include <vector>

#include "cryptopp_session.h"

namespace
{

using CryptoPP::AuthenticatedSymmetricCipher;
using CryptoPP::ConstByteArrayParameter;
using CryptoPP::MakeParameters;
using CryptoPP::MessageAuthenticationCode;
using CryptoPP::SymmetricCipher;

/* An object with an iv wants one with its key. */
const uint8_t zeros[SUBJECT_MAX_BLOCK_LEN] = {0};

class CipherSession final : public adapter::Session
{
  public:
    CipherSession(cryptopp::Make<SymmetricCipher> *make, cryptopp::Manner manner, size_t block_len, bool has_iv)
        : make_(make), manner_(manner), block_len_(block_len), has_iv_(has_iv)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh = make_();
        if (has_iv_) {
            fresh->SetKeyWithIV(key, key_len, zeros, block_len_);
        } else {
            fresh->SetKey(key, key_len);
        }
        object_ = std::move(fresh);
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &) override
    {
        if (has_iv_) {
            object_->Resynchronize(iv, static_cast<int>(iv_len));
        }
        return has_iv_ || iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool) override
    {
        const size_t last = last_len(len);
        if (manner_ == cryptopp::Manner::blocks && len % block_len_ != 0) {
            return SUBJECT_UNSUPPORTED; /* it is told so, and relies on it */
        }
        object_->ProcessData(dst, src, len - last);
        if (last > 0 || len == 0) {
            return finish(dst + (len - last), src + (len - last), last);
        }
        return SUBJECT_OK;
    }

    int reinit() override
    {
        return SUBJECT_OK; /* the next iv begins anew */
    }

  private:
    bool steals() const
    {
        return manner_ == cryptopp::Manner::all_last || manner_ == cryptopp::Manner::odd_last;
    }

    /* Bytes that are for ProcessLastBlock. */
    size_t last_len(size_t len) const
    {
        if (!steals() || (manner_ == cryptopp::Manner::odd_last && len > 0 && len % block_len_ == 0)) {
            return 0;
        }
        return len <= 2 * block_len_ ? len : block_len_ + (len - 1) % block_len_ + 1;
    }

    int finish(uint8_t *dst, const uint8_t *src, size_t len)
    {
        if (!steals()) {
            return SUBJECT_OK;
        }
        if (len < object_->MinLastBlockSize()) {
            return SUBJECT_BAD_DATA_LEN; /* what its own filters ask before they call it */
        }
        return object_->ProcessLastBlock(dst, len, src, len) == len ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }

    cryptopp::Make<SymmetricCipher> *const make_;
    const cryptopp::Manner manner_;
    const size_t block_len_;
    const bool has_iv_;
    std::unique_ptr<SymmetricCipher> object_;
};

class Mac final : public adapter::Session
{
  public:
    explicit Mac(cryptopp::Make<MessageAuthenticationCode> *make) : make_(make)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh = make_();
        fresh->SetKey(key, key_len);
        object_ = std::move(fresh);
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *, size_t iv_len, const subject_lengths &) override
    {
        object_->Restart();
        return iv_len == 0 ? SUBJECT_OK : SUBJECT_UNSUPPORTED;
    }

    int update(uint8_t *, const uint8_t *src, size_t len, bool) override
    {
        object_->Update(src, len);
        return SUBJECT_OK;
    }

    int tag(uint8_t *bytes, size_t len) override
    {
        if (len != object_->DigestSize()) {
            return SUBJECT_UNSUPPORTED;
        }
        object_->Final(bytes);
        return SUBJECT_OK;
    }

    int reinit() override
    {
        object_->Restart();
        return SUBJECT_OK;
    }

  private:
    cryptopp::Make<MessageAuthenticationCode> *const make_;
    std::unique_ptr<MessageAuthenticationCode> object_;
};

/* gcm and ccm. ccm takes the length of its tag with the key, so that the key is given anew where a message has another. */
class Aead final : public adapter::Session
{
  public:
    Aead(cryptopp::Make<AuthenticatedSymmetricCipher> *make, bool decrypting, bool ccm)
        : make_(make), decrypting_(decrypting), ccm_(ccm)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        std::vector<uint8_t> copy(key, key + key_len);
        auto fresh = keyed(copy, 16);
        key_.swap(copy);
        object_ = std::move(fresh);
        tag_len_ = 16;
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &lengths) override
    {
        object_->Resynchronize(iv, static_cast<int>(iv_len));
        if (ccm_ && lengths.tag_len != tag_len_) {
            std::unique_ptr<AuthenticatedSymmetricCipher> fresh;
            if (!adapter::made_or(false, [&] { return (fresh = keyed(key_, lengths.tag_len)) != nullptr; })) {
                return SUBJECT_BAD_TAG_LEN;
            }
            object_ = std::move(fresh);
            object_->Resynchronize(iv, static_cast<int>(iv_len));
            tag_len_ = lengths.tag_len;
        }
        if (object_->NeedsPrespecifiedDataLengths()) {
            object_->SpecifyDataLengths(lengths.aad_len, lengths.data_len);
        }
        return SUBJECT_OK;
    }

    int aad(const uint8_t *data, size_t len) override
    {
        object_->Update(data, len);
        return SUBJECT_OK;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool) override
    {
        object_->ProcessData(dst, src, len);
        return SUBJECT_OK;
    }

    int tag(uint8_t *bytes, size_t len) override
    {
        if (decrypting_) {
            return object_->TruncatedVerify(bytes, len) ? SUBJECT_OK : SUBJECT_BAD_TAG;
        }
        object_->TruncatedFinal(bytes, len);
        return SUBJECT_OK;
    }

    int reinit() override
    {
        object_->Restart();
        return SUBJECT_OK;
    }

  private:
    std::unique_ptr<AuthenticatedSymmetricCipher> keyed(const std::vector<uint8_t> &key, size_t tag_len) const
    {
        auto fresh = make_();
        const ConstByteArrayParameter iv(zeros, fresh->IVSize());
        if (ccm_) {
            const int digest_len = static_cast<int>(tag_len);
            fresh->SetKey(key.data(), key.size(),
                          MakeParameters(CryptoPP::Name::IV(), iv)(CryptoPP::Name::DigestSize(), digest_len));
        } else {
            fresh->SetKey(key.data(), key.size(), MakeParameters(CryptoPP::Name::IV(), iv));
        }
        return fresh;
    }

    cryptopp::Make<AuthenticatedSymmetricCipher> *const make_;
    const bool decrypting_, ccm_;
    std::unique_ptr<AuthenticatedSymmetricCipher> object_;
    std::vector<uint8_t> key_;
    size_t tag_len_ = 0;
};

} // namespace

namespace cryptopp
{

std::unique_ptr<adapter::Session> open_cipher(Make<SymmetricCipher> *make, Manner manner, size_t block_len, bool has_iv)
{
    return std::make_unique<CipherSession>(make, manner, block_len, has_iv);
}

std::unique_ptr<adapter::Session> open_mac(Make<MessageAuthenticationCode> *make)
{
    return std::make_unique<Mac>(make);
}

std::unique_ptr<adapter::Session> open_aead(Make<AuthenticatedSymmetricCipher> *make, bool decrypting, bool ccm)
{
    return std::make_unique<Aead>(make, decrypting, ccm);
}

} // namespace cryptopp
