// OpenSSL's libcrypto, version 3 or later. Swift does not import macros that are strings, such as the names
// of libcrypto's parameters, so the macros that netopt uses have constants here.
#pragma once
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

// The number of the key type Ed25519, for EVP_PKEY_new_raw_private_key(3).
static const int netopt_pkey_ed25519 = EVP_PKEY_ED25519;
// The name of the parameter that selects the digest of an HMAC: EVP_MAC(3).
static const char *const netopt_mac_digest = OSSL_MAC_PARAM_DIGEST;
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/decoder.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

// Makes a number from big-endian bytes: BN_bin2bn(3). The caller frees the number. Returns NULL when there is
// no memory.
static inline BIGNUM *netopt_bn_read(const unsigned char *bytes, int count) { return BN_bin2bn(bytes, count, NULL); }
// The form of the bytes that a decoder reads: OSSL_DECODER_CTX_new_for_pkey(3).
static const char *const netopt_form_der = "DER";
// The values that ask a decoder for a public key, and for a private key: OSSL_DECODER_CTX_new_for_pkey(3).
static const int netopt_select_public_key = EVP_PKEY_PUBLIC_KEY;
static const int netopt_select_key_pair = EVP_PKEY_KEYPAIR;
// Sets the tag that the decryption must match: EVP_EncryptInit(3), GCM. count: the length of the tag in
// bytes. Returns 1 for success.
static inline int netopt_gcm_set_tag(EVP_CIPHER_CTX *context, int count, const void *tag) {
  return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, count, (void *)tag);
}
// Copies the tag of an encryption to `tag`: EVP_EncryptInit(3), GCM. count: the length of the tag in bytes.
// Returns 1 for success.
static inline int netopt_gcm_get_tag(EVP_CIPHER_CTX *context, int count, void *tag) {
  return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, count, tag);
}
