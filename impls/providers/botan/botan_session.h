/* SPDX-License-Identifier: Apache-2.0
 * The sessions of Botan by kind of object: block and stream ciphers and MACs (botan_simple.cc), modes and authenticated
 * modes (botan_modes.cc). The same sources are for Botan 2 and 3. */
#ifndef CROSSLANE_BOTAN_SESSION_H
#define CROSSLANE_BOTAN_SESSION_H

#include <botan/cipher_mode.h>
#include <botan/version.h>

#include <memory>
#include <string>

#include "adapter_cxx.h"

#if BOTAN_VERSION_MAJOR >= 3
#define BOTAN_ENCRYPTION Botan::Cipher_Dir::Encryption
#define BOTAN_DECRYPTION Botan::Cipher_Dir::Decryption
#else
#define BOTAN_ENCRYPTION Botan::ENCRYPTION
#define BOTAN_DECRYPTION Botan::DECRYPTION
#endif

namespace botan
{

/* What the sessions know of a cipher. */
struct Cipher {
    const char *name;
    const char *botan;
    size_t usual_key_len; /* bytes */
    size_t block_len;
    bool key_len_in_name;

    /* Botan's name of the cipher for keys of a length; one for which it has no cipher gives a name that it refuses. */
    std::string named(size_t key_len) const
    {
        return key_len_in_name ? botan + std::to_string(8 * key_len) : botan;
    }
};

using Open = std::unique_ptr<adapter::Session>(const Cipher &cipher, bool decrypting);

Open open_ecb, open_ofb, open_ctr, open_cmac, open_cbcmac;           /* botan_simple.cc */
Open open_cbc, open_cts_cbc, open_cfb, open_xts, open_gcm, open_ccm; /* botan_modes.cc */

} // namespace botan

#endif
