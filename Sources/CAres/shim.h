// Constants and small wrappers for c-ares. c-ares passes its status codes to callbacks as int. They are
// macros in old versions of c-ares and an enumeration in new ones, so each code that netopt uses has a
// constant here.
#pragma once
#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

// Constants of the C library under names of their own. The C library defines each of them as a macro and as
// an enumerator, and several C modules contain both. Swift may find the constant of a module that the Swift
// file does not import. Which one it finds depends on the order in which the compiler reads the files.
static const int netopt_ares_stream = SOCK_STREAM;
static const int netopt_ares_socket_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
static const int netopt_ares_no_signal = MSG_NOSIGNAL;
static const int netopt_ares_tcp = IPPROTO_TCP;

// Status codes of c-ares: ares_init_options(3), ares_getaddrinfo(3).
static const int netopt_ares_success = ARES_SUCCESS;
static const int netopt_ares_no_data = ARES_ENODATA;
static const int netopt_ares_name_not_found = ARES_ENOTFOUND;
static const int netopt_ares_bad_name = ARES_EBADNAME;
static const int netopt_ares_timeout = ARES_ETIMEOUT;
static const int netopt_ares_connection_refused = ARES_ECONNREFUSED;
static const int netopt_ares_server_failure = ARES_ESERVFAIL;
static const int netopt_ares_refused = ARES_EREFUSED;
static const int netopt_ares_destruction = ARES_EDESTRUCTION;
static const int netopt_ares_cancelled = ARES_ECANCELLED;

// Sets the functions with which c-ares opens, reads, writes and closes sockets. argument: passed to each of
// these functions. ares_set_socket_functions is deprecated since 1.34, but its replacement does not exist in
// older versions.
static inline void netopt_ares_set_socket_functions(ares_channel channel, const struct ares_socket_functions *functions,
                                                    void *argument) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ares_set_socket_functions(channel, functions, argument);
#pragma GCC diagnostic pop
}

// Turns off host aliases, and keeps EDNS on. With aliases, c-ares reads the file that the environment
// variable HOSTALIASES names, whatever its length, on the thread of the lookup. Since 1.22, c-ares turns EDNS
// on by default only if no flags are given, so this function sets the flag for EDNS too. Returns the bit that
// tells ares_init_options to read the flags.
static inline int netopt_ares_without_aliases(struct ares_options *options) {
  int version = 0;
  ares_version(&version);
  options->flags = ARES_FLAG_NOALIASES | (version >= 0x011600 ? ARES_FLAG_EDNS : 0);
  return ARES_OPT_FLAGS;
}

// Turns off c-ares's cache, because netopt has a DNS cache itself. c-ares has a cache since 1.31. It is on by
// default and has no size limit. Returns the bit that tells ares_init_options to read the cache option; 0
// when these headers know no cache.
static inline int netopt_ares_without_cache(struct ares_options *options) {
#ifdef ARES_OPT_QUERY_CACHE
  options->qcache_max_ttl = 0;
  return ARES_OPT_QUERY_CACHE;
#else
  (void)options;
  return 0;
#endif
}
