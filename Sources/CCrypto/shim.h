// OpenSSL's libcrypto, version 3 or later. The names of its parameters are string macros, which Swift does
// not import.
#pragma once
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

static const int netopt_pkey_ed25519 = EVP_PKEY_ED25519;
static const char *const netopt_mac_digest = OSSL_MAC_PARAM_DIGEST;
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/decoder.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

// Wrappers for macros that Swift does not import, and for functions whose pointer arguments need a cast or
// NULL.
static inline BIGNUM *netopt_bn_read(const unsigned char *bytes, int count) { return BN_bin2bn(bytes, count, NULL); }
static const int netopt_select_public_key = EVP_PKEY_PUBLIC_KEY;
static inline int netopt_gcm_set_tag(EVP_CIPHER_CTX *context, int count, const void *tag) {
  return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, count, (void *)tag);
}
static inline int netopt_gcm_get_tag(EVP_CIPHER_CTX *context, int count, void *tag) {
  return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, count, tag);
}
// Refuses an encrypted PEM file instead of asking for its password on the terminal.
static inline int netopt_no_password(char *buffer, int size, int writing, void *context) {
  (void)buffer; (void)size; (void)writing; (void)context;
  return -1;
}
