// SPDX-License-Identifier: Apache-2.0
// Botan's modes of a class of their own. They work in place, on multiples of update_granularity until the last call,
// which takes the rest and at least minimum_final_size. So the adapter gives them a message in up to three calls: one
// granule, more of them, and what is left.

#include <botan/aead.h>
#include <botan/exceptn.h>

#include <algorithm>
#include <vector>

#include "botan_session.h"

namespace
{

Botan::Cipher_Dir direction(bool decrypting)
{
    return decrypting ? BOTAN_DECRYPTION : BOTAN_ENCRYPTION;
}

/* Bytes of a message's last call that go before what finish takes: none where there are few. */
size_t lead_len(const Botan::Cipher_Mode &object, size_t len)
{
    const size_t granule = object.update_granularity(), rest = std::max(granule, object.minimum_final_size());
    return len < granule + rest ? 0 : (len - rest) / granule * granule;
}

/* Whole granules in place; false where the mode keeps them to itself. */
bool process(Botan::Cipher_Mode &object, uint8_t *data, size_t len)
{
    const size_t first = std::min(len, object.update_granularity());
    const size_t done = first == 0 ? 0 : object.process(data, first);
    return done == first && (first == len || object.process(data + first, len - first) == len - first);
}

class Plain final : public adapter::Session
{
  public:
    /* `needs_data`: a message without data is none. */
    Plain(const botan::Cipher &cipher, const char *suffix, size_t num_keys, bool decrypting, bool needs_data)
        : cipher_(cipher), suffix_(suffix), num_keys_(num_keys), decrypting_(decrypting), needs_data_(needs_data)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        auto fresh = Botan::Cipher_Mode::create(cipher_.named(key_len / num_keys_) + suffix_, direction(decrypting_));
        if (!fresh) {
            return SUBJECT_BAD_KEY_LEN;
        }
        fresh->set_key(key, key_len);
        object_ = std::move(fresh);
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &) override
    {
        if (iv_len == 0 && object_->valid_nonce_length(0)) {
            return SUBJECT_UNSUPPORTED; /* it goes on from the message before */
        }
        object_->reset();
        object_->start(iv, iv_len);
        return SUBJECT_OK;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool last) override
    {
        if (dst != src) {
            std::copy_n(src, len, dst);
        }
        if (!last && len % object_->update_granularity() != 0) {
            return SUBJECT_UNSUPPORTED;
        }
        const size_t lead = last ? lead_len(*object_, len) : len;
        if (!process(*object_, dst, lead)) {
            return SUBJECT_UNSUPPORTED;
        }
        if (last && (len > 0 || needs_data_)) {
            Botan::secure_vector<uint8_t> rest(dst + lead, dst + len);
            object_->finish(rest);
            if (rest.size() != len - lead) {
                return SUBJECT_UNSUPPORTED;
            }
            std::copy(rest.begin(), rest.end(), dst + lead);
        }
        return SUBJECT_OK;
    }

    int reinit() override
    {
        object_->reset();
        return SUBJECT_OK;
    }

  private:
    const botan::Cipher &cipher_;
    const std::string suffix_;
    const size_t num_keys_;
    const bool decrypting_, needs_data_;
    std::unique_ptr<Botan::Cipher_Mode> object_;
};

/* gcm and ccm. Their names tell the lengths of tag and nonce, so that the key is given to a new object where a message
 * has others. Associated data comes before the nonce and in one call; decryption ends with the tag behind the data. */
class Authenticated final : public adapter::Session
{
  public:
    Authenticated(const botan::Cipher &cipher, bool decrypting, bool ccm)
        : cipher_(cipher), decrypting_(decrypting), ccm_(ccm)
    {
    }

    int setkey(const uint8_t *key, size_t key_len) override
    {
        std::vector<uint8_t> copy(key, key + key_len);
        auto fresh = keyed(copy, "16", "3");
        if (!fresh) {
            return SUBJECT_BAD_KEY_LEN;
        }
        key_.swap(copy);
        object_ = std::move(fresh);
        lengths_ = ccm_ ? "16,3" : "16";
        return SUBJECT_OK;
    }

    int setiv(const uint8_t *iv, size_t iv_len, const subject_lengths &lengths) override
    {
        const int status = fit(iv_len, lengths.tag_len);
        if (status != SUBJECT_OK) {
            return status;
        }
        if (!object_->valid_nonce_length(iv_len)) {
            return SUBJECT_BAD_IV_LEN;
        }
        object_->reset();
        iv_.assign(iv, iv + iv_len);
        tag_len_ = lengths.tag_len;
        aad_.clear();
        tag_.clear();
        begun_ = done_ = wrong_ = false;
        return SUBJECT_OK;
    }

    int expect(const uint8_t *tag, size_t tag_len) override
    {
        tag_.assign(tag, tag + tag_len);
        return SUBJECT_OK;
    }

    int aad(const uint8_t *data, size_t len) override
    {
        aad_.insert(aad_.end(), data, data + len);
        return SUBJECT_OK;
    }

    int update(uint8_t *dst, const uint8_t *src, size_t len, bool last) override
    {
        begin();
        if (!last && (ccm_ || len % object_->update_granularity() != 0)) {
            return SUBJECT_UNSUPPORTED;
        }
        if (dst != src) {
            std::copy_n(src, len, dst);
        }
        const size_t lead = ccm_ ? 0 : last ? lead_len(*object_, len) : len;
        if (!process(*object_, dst, lead)) {
            return SUBJECT_UNSUPPORTED;
        }
        return last ? finish(dst + lead, len - lead) : SUBJECT_OK;
    }

    int final() override
    {
        begin();
        return done_ ? SUBJECT_OK : finish(nullptr, 0);
    }

    /* Decryption has found a wrong tag before, and withheld the plaintext. */
    int tag(uint8_t *bytes, size_t len) override
    {
        if (decrypting_) {
            return wrong_ ? SUBJECT_BAD_TAG : SUBJECT_OK;
        }
        if (len != tag_.size()) {
            return SUBJECT_BAD_TAG_LEN;
        }
        std::copy(tag_.begin(), tag_.end(), bytes);
        return SUBJECT_OK;
    }

    int reinit() override
    {
        object_->reset();
        return SUBJECT_OK;
    }

  private:
    std::unique_ptr<Botan::AEAD_Mode> keyed(const std::vector<uint8_t> &key, const std::string &tag,
                                            const std::string &counter) const
    {
        const std::string lengths = ccm_ ? "/CCM(" + tag + "," + counter + ")" : "/GCM(" + tag + ")";
        auto fresh = Botan::AEAD_Mode::create(cipher_.named(key.size()) + lengths, direction(decrypting_));
        if (fresh) {
            fresh->set_key(key.data(), key.size());
        }
        return fresh;
    }

    /* An object for the lengths of a message's nonce and tag. */
    int fit(size_t iv_len, size_t tag_len)
    {
        const std::string tag = std::to_string(tag_len), counter = ccm_ ? std::to_string(15 - (long)iv_len) : "";
        const std::string lengths = ccm_ ? tag + "," + counter : tag;
        if (lengths == lengths_) {
            return SUBJECT_OK;
        }
        if (ccm_ && !adapter::made_or(false, [&] { return keyed(key_, "16", counter) != nullptr; })) {
            return SUBJECT_BAD_IV_LEN;
        }
        std::unique_ptr<Botan::AEAD_Mode> fresh;
        if (!adapter::made_or(false, [&] { return (fresh = keyed(key_, tag, counter)) != nullptr; })) {
            return SUBJECT_BAD_TAG_LEN;
        }
        object_ = std::move(fresh);
        lengths_ = lengths;
        return SUBJECT_OK;
    }

    void begin()
    {
        if (!begun_) {
            object_->set_associated_data(aad_.data(), aad_.size());
            object_->start(iv_.data(), iv_.size());
            begun_ = true;
        }
    }

    int finish(uint8_t *data, size_t len)
    {
        Botan::secure_vector<uint8_t> rest(data, data + len);
        const size_t tag_len = decrypting_ ? 0 : tag_len_;
        if (decrypting_) {
            rest.insert(rest.end(), tag_.begin(), tag_.end());
        }
        done_ = true;
        try {
            object_->finish(rest);
        } catch (const Botan::Invalid_Authentication_Tag &) {
            wrong_ = true;
            return SUBJECT_OK;
        }
        if (rest.size() != len + tag_len) {
            return SUBJECT_UNSUPPORTED;
        }
        const auto end = rest.begin() + static_cast<std::ptrdiff_t>(len);
        std::copy(rest.begin(), end, data);
        if (!decrypting_) {
            tag_.assign(end, rest.end());
        }
        return SUBJECT_OK;
    }

    const botan::Cipher &cipher_;
    const bool decrypting_, ccm_;
    std::unique_ptr<Botan::AEAD_Mode> object_;
    std::string lengths_; /* those in its name */
    std::vector<uint8_t> key_, iv_, aad_, tag_;
    size_t tag_len_ = 0;
    bool begun_ = false, done_ = false, wrong_ = false;
};

} // namespace

namespace botan
{

std::unique_ptr<adapter::Session> open_cbc(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Plain>(cipher, "/CBC/NoPadding", 1, decrypting, false);
}

std::unique_ptr<adapter::Session> open_cts_cbc(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Plain>(cipher, "/CBC/CTS", 1, decrypting, true);
}

std::unique_ptr<adapter::Session> open_cfb(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Plain>(cipher, "/CFB", 1, decrypting, false);
}

std::unique_ptr<adapter::Session> open_xts(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Plain>(cipher, "/XTS", 2, decrypting, true);
}

std::unique_ptr<adapter::Session> open_gcm(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Authenticated>(cipher, decrypting, false);
}

std::unique_ptr<adapter::Session> open_ccm(const Cipher &cipher, bool decrypting)
{
    return std::make_unique<Authenticated>(cipher, decrypting, true);
}

} // namespace botan
