// Constants of OpenSSL's headers. netopt finds OpenSSL's functions at run time in the library that libcurl
// uses, so this module links nothing. Swift imports only some forms of macros, so each constant that netopt
// uses has a name here.
#pragma once
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/prov_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

// The major version of the headers. The loaded library must have the same major version, because constants
// and structures may differ in another one.
static const int netopt_openssl_major = OPENSSL_VERSION_MAJOR;

// Commands of SSL_CTX_ctrl(3) and some of their values: SSL_CTX_set_mode(3), SSL_CTX_clear_mode(3),
// SSL_CTX_set_read_ahead(3), SSL_CTX_set_max_cert_list(3), SSL_CTX_set1_verify_cert_store(3).
static const int netopt_ctrl_set_mode = SSL_CTRL_MODE;
static const long netopt_mode_moving_write_buffer = SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER;
static const int netopt_ctrl_clear_mode = SSL_CTRL_CLEAR_MODE;
static const int netopt_ctrl_set_read_ahead = SSL_CTRL_SET_READ_AHEAD;
static const long netopt_mode_release_buffers = SSL_MODE_RELEASE_BUFFERS;
static const int netopt_ctrl_set_max_cert_list = SSL_CTRL_SET_MAX_CERT_LIST;
static const int netopt_ctrl_set_verify_store = SSL_CTRL_SET_VERIFY_CERT_STORE;
// The option that refuses compressed certificates (RFC 8879): SSL_CTX_set_options(3). It exists since OpenSSL
// 3.2. Older releases ignore its bit.
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
static const uint64_t netopt_no_certificate_compression = SSL_OP_NO_RX_CERTIFICATE_COMPRESSION;
#else
static const uint64_t netopt_no_certificate_compression = (uint64_t)1 << 33;
#endif

// Events that SSL_CTX_set_info_callback(3) reports, and the alert close_notify.
static const int netopt_state_change = SSL_CB_CONNECT_LOOP;
static const int netopt_handshake_start = SSL_CB_HANDSHAKE_START;
static const int netopt_handshake_done = SSL_CB_HANDSHAKE_DONE;
static const int netopt_read_alert = SSL_CB_READ_ALERT;
static const int netopt_close_notify = SSL_AD_CLOSE_NOTIFY;

// Kinds of data that SSL_CTX_set_msg_callback(3) reports, types of records and messages, the length of the
// header of a handshake message in bytes, and the version TLS 1.3.
static const int netopt_record_header = SSL3_RT_HEADER;
static const int netopt_record_inner_type = SSL3_RT_INNER_CONTENT_TYPE;
static const uint8_t netopt_record_application_data = SSL3_RT_APPLICATION_DATA;
static const int netopt_record_handshake = SSL3_RT_HANDSHAKE;
static const uint8_t netopt_message_certificate = SSL3_MT_CERTIFICATE;
static const int netopt_message_head_length = SSL3_HM_HEADER_LENGTH;
static const int netopt_tls_1_3 = TLS1_3_VERSION;

// Operations of SSL_CTX_set_security_callback(3). For netopt_operation_temporary_group, the object of the
// operation is an EVP_PKEY. netopt_operations_of_curves is the upper half of an operation whose object is the
// two bytes of a group's number.
static const int netopt_operation_temporary_group = SSL_SECOP_TMP_DH;
static const int netopt_operations_of_curves = SSL_SECOP_OTHER_CURVE >> 16;

// The library and the reason of two errors, "explicit params not supported" and "excessive message size", as
// ERR_GET_LIB(3) and ERR_GET_REASON return them; and a result of SSL_get_error(3).
static const int netopt_error_library_curves = ERR_LIB_EC;
static const int netopt_error_explicit_parameters = EC_R_EXPLICIT_PARAMS_NOT_SUPPORTED;
static const int netopt_error_library_tls = ERR_LIB_SSL;
static const int netopt_error_message_size = SSL_R_EXCESSIVE_MESSAGE_SIZE;
static const int netopt_ssl_error_want_read = SSL_ERROR_WANT_READ;

// The classes of objects that can keep ex data: SSL and SSL_CTX (CRYPTO_get_ex_new_index(3)).
static const int netopt_ex_index_connection = CRYPTO_EX_INDEX_SSL;
static const int netopt_ex_index_context = CRYPTO_EX_INDEX_SSL_CTX;

// The format in which libcurl prints the names of certificates, X509_NAME_print_ex(3), and the number of the
// extension with the alternative names, X509_get_ext_by_NID(3).
static const unsigned long netopt_name_on_one_line = XN_FLAG_ONELINE;
static const int netopt_nid_alternative_names = NID_subject_alt_name;

// The type of filter BIOs, BIO_meth_new(3); commands of BIO_ctrl(3); and flags of a BIO, BIO_set_flags(3).
static const int netopt_bio_type_filter = BIO_TYPE_FILTER;
static const int netopt_bio_info = BIO_CTRL_INFO;
static const int netopt_bio_push = BIO_CTRL_PUSH;
static const int netopt_bio_pop = BIO_CTRL_POP;
static const int netopt_bio_get_ktls_receive = BIO_CTRL_GET_KTLS_RECV;
static const int netopt_bio_read = BIO_FLAGS_READ;
static const int netopt_bio_should_retry = BIO_FLAGS_SHOULD_RETRY;
static const int netopt_bio_retry_flags = BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY;

// The library and the reason of the error with which PEM_read_bio_X509_AUX(3) ends at the end of a text, and
// those of an error code (ERR_get_error(3)).
static const int netopt_error_library_pem = ERR_LIB_PEM;
static const int netopt_error_no_start_line = PEM_R_NO_START_LINE;
static inline int netopt_error_library(unsigned long code) { return ERR_GET_LIB(code); }
static inline int netopt_error_reason(unsigned long code) { return ERR_GET_REASON(code); }

// Flags of X509_STORE_set_flags(3).
static const unsigned long netopt_trusted_first = X509_V_FLAG_TRUSTED_FIRST;
static const unsigned long netopt_partial_chain = X509_V_FLAG_PARTIAL_CHAIN;
static const unsigned long netopt_check_revocation = X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
