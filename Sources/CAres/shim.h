// c-ares. Its status codes are macros in old versions and an enumeration in new ones. Callbacks pass them as
// int.
#pragma once
#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

// Constants that exist both as an enumerator and as a macro, in several C modules. Which module's constant
// Swift finds depends on the order in which the compiler reads the files of a module, and a file may import
// another module than that one.
static const int netopt_ares_stream = SOCK_STREAM;
static const int netopt_ares_socket_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
static const int netopt_ares_no_signal = MSG_NOSIGNAL;
static const int netopt_ares_tcp = IPPROTO_TCP;

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

// Deprecated since 1.34. The replacement does not exist in older versions.
static inline void netopt_ares_set_socket_functions(ares_channel channel, const struct ares_socket_functions *functions,
                                                    void *argument) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  ares_set_socket_functions(channel, functions, argument);
#pragma GCC diagnostic pop
}

// Turns off aliases. With aliases, c-ares reads the file that the environment variable HOSTALIASES names,
// whatever its length, on the thread of the lookup. c-ares turns EDNS on by default since 1.22, but only if
// no flags are given. Returns the bit for the options of ares_init_options.
static inline int netopt_ares_without_aliases(struct ares_options *options) {
  int version = 0;
  ares_version(&version);
  options->flags = ARES_FLAG_NOALIASES | (version >= 0x011600 ? ARES_FLAG_EDNS : 0);
  return ARES_OPT_FLAGS;
}

// Turns off c-ares's cache, because netopt has a cache of its own. c-ares has a cache since 1.31. It is on by
// default and has no size limit. Returns the bit for the options of ares_init_options.
static inline int netopt_ares_without_cache(struct ares_options *options) {
#ifdef ARES_OPT_QUERY_CACHE
  options->qcache_max_ttl = 0;
  return ARES_OPT_QUERY_CACHE;
#else
  (void)options;
  return 0;
#endif
}
