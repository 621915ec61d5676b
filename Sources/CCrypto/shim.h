// OpenSSL's libcrypto, version 3 or later. Names of parameters are string macros, which Swift does not import.
#pragma once
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

static const int netopt_pkey_ed25519 = EVP_PKEY_ED25519;
static const char *const netopt_mac_digest = OSSL_MAC_PARAM_DIGEST;
