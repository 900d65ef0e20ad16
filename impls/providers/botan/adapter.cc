// SPDX-License-Identifier: Apache-2.0
// Botan 2 or 3 through its C++ interface, which alone switches features of the CPU off in Botan 2.

#include <botan/version.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "botan_session.h"

#if BOTAN_VERSION_MAJOR < 3
#include <botan/cpuid.h>
#endif

namespace
{

const botan::Cipher ciphers[] = {
    {"aes", "AES-", 16, 16, true},         {"cast5", "CAST-128", 16, 8, false}, {"des3_ede", "TripleDES", 24, 8, false},
    {"serpent", "Serpent", 16, 16, false}, {"sm4", "SM4", 16, 16, false},       {"twofish", "Twofish", 16, 16, false},
};

const struct Mode {
    const char *name;
    botan::Open *open;
    size_t num_keys;
} modes[] = {
    {"ecb", botan::open_ecb, 1}, {"cbc", botan::open_cbc, 1},   {"cfb", botan::open_cfb, 1},
    {"ofb", botan::open_ofb, 1}, {"ctr", botan::open_ctr, 1},   {"cts_cbc", botan::open_cts_cbc, 1},
    {"xts", botan::open_xts, 2}, {"cmac", botan::open_cmac, 1}, {"cbcmac", botan::open_cbcmac, 1},
    {"gcm", botan::open_gcm, 1}, {"ccm", botan::open_ccm, 1},
};

#if BOTAN_VERSION_MAJOR < 3
#if defined(__aarch64__)
const char clear_variable[] = "CROSSLANE_BOTAN_CLEAR_ARM";
#else
const char clear_variable[] = "CROSSLANE_BOTAN_CLEAR_X86";
#endif
#endif

/* Takes the features that the variable of this architecture names, with commas between, from what Botan 2 believes of the
 * CPU. Botan 3 has BOTAN_CLEAR_CPUID for that. A switch that is not one must not pass for one that changes nothing. */
void clear_features()
{
#if BOTAN_VERSION_MAJOR < 3
    const char *value = std::getenv(clear_variable);
    std::string rest = value == nullptr ? "" : value;
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string name = rest.substr(0, comma);
        const auto bits = Botan::CPUID::bit_from_string(name);
        if (bits.empty()) {
            std::fprintf(stderr, "%s has '%s', which is no feature that Botan knows\n", clear_variable, name.c_str());
            std::abort();
        }
        for (const auto bit : bits) {
            Botan::CPUID::clear_cpuid_bit(bit);
        }
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
#endif
}

const Mode *mode_named(const char *name)
{
    return static_cast<const Mode *>(ADAPTER_ENTRY(modes, name));
}

const botan::Cipher *cipher_named(const char *name)
{
    return static_cast<const botan::Cipher *>(ADAPTER_ENTRY(ciphers, name));
}

const char *version()
{
    return Botan::short_version_cstr();
}

/* Whether this build of the library has the mode of the cipher shows when one is given a key. */
size_t block_len(const char *mode, const char *cipher)
{
    static const uint8_t key[64] = {0};
    static bool started;
    const Mode *m = mode_named(mode);
    const botan::Cipher *c = cipher_named(cipher);
    if (!started) {
        started = true;
        clear_features();
    }
    if (m == nullptr || c == nullptr) {
        return 0;
    }
    return adapter::made_or(size_t{0}, [&]() -> size_t {
        return m->open(*c, false)->setkey(key, c->usual_key_len * m->num_keys) == SUBJECT_OK ? c->block_len : 0;
    });
}

void *open_session(const char *mode, const char *cipher, int decrypting)
{
    return adapter::made_or(static_cast<adapter::Session *>(nullptr),
                            [&] { return mode_named(mode)->open(*cipher_named(cipher), decrypting != 0).release(); });
}

} // namespace

const struct subject_session PROVIDER_SESSION = {ADAPTER_CXX_FUNCTIONS};
