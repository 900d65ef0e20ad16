// SPDX-License-Identifier: Apache-2.0
// Crypto++, which has a C++ interface alone: the class of each mode of each cipher.

#include <cryptopp/aes.h>
#include <cryptopp/cast.h>
#include <cryptopp/cbcmac.h>
#include <cryptopp/ccm.h>
#include <cryptopp/cmac.h>
#include <cryptopp/des.h>
#include <cryptopp/gcm.h>
#include <cryptopp/modes.h>
#include <cryptopp/serpent.h>
#include <cryptopp/sm4.h>
#include <cryptopp/twofish.h>
#include <cryptopp/xts.h>

#include <string>

#include "cryptopp_session.h"

namespace
{

using adapter::Session;
using cryptopp::Manner;
using Opened = std::unique_ptr<Session>;

template <class Object, class Base> std::unique_ptr<Base> make()
{
    return std::make_unique<Object>();
}

/* A mode of a cipher, in its two classes. */
template <class Mode> Opened cipher(bool decrypting, Manner manner, size_t block_len, bool has_iv)
{
    using Base = CryptoPP::SymmetricCipher;
    return cryptopp::open_cipher(decrypting ? make<typename Mode::Decryption, Base>
                                            : make<typename Mode::Encryption, Base>,
                                 manner, block_len, has_iv);
}

template <class Mode> Opened aead(bool decrypting, bool ccm)
{
    using Base = CryptoPP::AuthenticatedSymmetricCipher;
    return cryptopp::open_aead(
        decrypting ? make<typename Mode::Decryption, Base> : make<typename Mode::Encryption, Base>, decrypting, ccm);
}

template <class Mac> Opened mac(bool)
{
    return cryptopp::open_mac(make<Mac, CryptoPP::MessageAuthenticationCode>);
}

template <class C> Opened ecb(bool decrypting)
{
    return cipher<CryptoPP::ECB_Mode<C>>(decrypting, Manner::blocks, C::BLOCKSIZE, false);
}

template <class C> Opened cbc(bool decrypting)
{
    return cipher<CryptoPP::CBC_Mode<C>>(decrypting, Manner::blocks, C::BLOCKSIZE, true);
}

template <class C> Opened cfb(bool decrypting)
{
    return cipher<CryptoPP::CFB_Mode<C>>(decrypting, Manner::bytes, C::BLOCKSIZE, true);
}

template <class C> Opened ofb(bool decrypting)
{
    return cipher<CryptoPP::OFB_Mode<C>>(decrypting, Manner::bytes, C::BLOCKSIZE, true);
}

template <class C> Opened ctr(bool decrypting)
{
    return cipher<CryptoPP::CTR_Mode<C>>(decrypting, Manner::bytes, C::BLOCKSIZE, true);
}

template <class C> Opened cts_cbc(bool decrypting)
{
    return cipher<CryptoPP::CBC_CTS_Mode<C>>(decrypting, Manner::all_last, C::BLOCKSIZE, true);
}

template <class C> Opened xts(bool decrypting)
{
    return cipher<CryptoPP::XTS<C>>(decrypting, Manner::odd_last, C::BLOCKSIZE, true);
}

template <class C> Opened gcm(bool decrypting)
{
    return aead<CryptoPP::GCM<C>>(decrypting, false);
}

template <class C> Opened ccm(bool decrypting)
{
    return aead<CryptoPP::CCM<C>>(decrypting, true);
}

using Open = Opened(bool decrypting);

struct Mode {
    const char *name;
    Open *open;
};

/* Those for ciphers with blocks of 16 bytes alone come last. */
template <class C>
const Mode modes_of[] = {
    {"ecb", ecb<C>},
    {"cbc", cbc<C>},
    {"cfb", cfb<C>},
    {"ofb", ofb<C>},
    {"ctr", ctr<C>},
    {"cts_cbc", cts_cbc<C>},
    {"cmac", mac<CryptoPP::CMAC<C>>},
    {"cbcmac", mac<CryptoPP::CBC_MAC<C>>},
};

template <class C> const Mode wide_modes_of[] = {{"xts", xts<C>}, {"gcm", gcm<C>}, {"ccm", ccm<C>}};

template <class C> Open *mode_of(const char *name)
{
    const void *entry = ADAPTER_ENTRY(modes_of<C>, name);
    if constexpr (C::BLOCKSIZE == 16) {
        entry = entry == nullptr ? ADAPTER_ENTRY(wide_modes_of<C>, name) : entry;
    }
    return entry == nullptr ? nullptr : static_cast<const Mode *>(entry)->open;
}

const struct Cipher {
    const char *name;
    Open *(*mode)(const char *name);
    size_t block_len;
} ciphers[] = {
    {"aes", mode_of<CryptoPP::AES>, 16},          {"cast5", mode_of<CryptoPP::CAST128>, 8},
    {"des3_ede", mode_of<CryptoPP::DES_EDE3>, 8}, {"serpent", mode_of<CryptoPP::Serpent>, 16},
    {"sm4", mode_of<CryptoPP::SM4>, 16},          {"twofish", mode_of<CryptoPP::Twofish>, 16},
};

const Cipher *cipher_named(const char *name)
{
    return static_cast<const Cipher *>(ADAPTER_ENTRY(ciphers, name));
}

/* Of the library that is linked: hundreds, tens and ones. */
const char *version()
{
    static const std::string text = [] {
        const int number = CryptoPP::LibraryVersion();
        return std::to_string(number / 100) + "." + std::to_string(number / 10 % 10) + "." +
               std::to_string(number % 10);
    }();
    return text.c_str();
}

size_t block_len(const char *mode, const char *cipher)
{
    const Cipher *c = cipher_named(cipher);
    return c == nullptr || c->mode(mode) == nullptr ? 0 : c->block_len;
}

void *open_session(const char *mode, const char *cipher, int decrypting)
{
    return adapter::made_or(static_cast<Session *>(nullptr),
                            [&] { return cipher_named(cipher)->mode(mode)(decrypting != 0).release(); });
}

} // namespace

const struct subject_session PROVIDER_SESSION = {ADAPTER_CXX_FUNCTIONS};
