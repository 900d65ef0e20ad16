/* SPDX-License-Identifier: Apache-2.0
 * The sessions of Crypto++ by kind of object. The library has a class for each mode of each cipher, all with the same
 * few base classes: adapter.cc names the classes, cryptopp_session.cc works with the base classes. */
#ifndef CROSSLANE_CRYPTOPP_SESSION_H
#define CROSSLANE_CRYPTOPP_SESSION_H

#include <cryptopp/cryptlib.h>

#include <memory>

#include "adapter_cxx.h"

namespace cryptopp
{

/* How a mode takes a message. */
enum class Manner {
    blocks,   /* whole blocks: ecb and cbc */
    bytes,    /* any cut: cfb, ofb and ctr */
    all_last, /* cts_cbc: at least a block and a byte, of which the last call has up to two blocks */
    odd_last  /* xts: likewise, where the last block is none */
};

template <class Object> using Make = std::unique_ptr<Object>();

std::unique_ptr<adapter::Session> open_cipher(Make<CryptoPP::SymmetricCipher> *make, Manner manner, size_t block_len,
                                              bool has_iv);
std::unique_ptr<adapter::Session> open_mac(Make<CryptoPP::MessageAuthenticationCode> *make);
std::unique_ptr<adapter::Session> open_aead(Make<CryptoPP::AuthenticatedSymmetricCipher> *make, bool decrypting,
                                            bool ccm);

} // namespace cryptopp

#endif
