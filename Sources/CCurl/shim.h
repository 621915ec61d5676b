// libcurl, with typed wrappers for its variadic functions, which Swift does not import.
#pragma once
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// Constants of the C library under names of their own. The C library defines each of them as a macro and as
// an enumerator, and several C modules contain both. Swift may find the constant of a module that the Swift
// file does not import. Which one it finds depends on the order in which the compiler reads the files.
static const int netopt_close_on_exec = SOCK_CLOEXEC;
static const int netopt_peek_nonblocking = MSG_PEEK | MSG_DONTWAIT;
static const int netopt_tcp = IPPROTO_TCP;

// Makes the kernel acknowledge received data at once: TCP_QUICKACK, tcp(7). The function ignores an error,
// because later acknowledgements cost only time.
static inline void netopt_quick_ack(int descriptor) {
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

// With on = 1, makes the kernel collect written bytes. With on = 0, makes it send the collected bytes:
// TCP_CORK, tcp(7). The function ignores an error, because smaller packets cost only speed.
static inline void netopt_cork(int descriptor, int on) {
  setsockopt(descriptor, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
}

// Keeps urgent data at its place in the stream: SO_OOBINLINE, tcp(7), RFC 6093. Otherwise the kernel counts
// unread bytes only up to the urgent byte, and netopt would not see the bytes that a server sent after the
// urgent byte. Returns 0 for success, like setsockopt(2).
static inline int netopt_inline_urgent_data(int descriptor) {
  int on = 1;
  return setsockopt(descriptor, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

// Returns the number of bytes that have arrived on a socket and were not read: FIONREAD, tcp(7). 0 when the
// kernel does not answer.
static inline int netopt_unread_bytes(int descriptor) {
  int count = 0;
  return ioctl(descriptor, FIONREAD, &count) == 0 ? count : 0;
}

// Ends a connection in both directions (shutdown(2)), so that libcurl reads the end of the connection.
// Swift's optimised builds do not find SHUT_RDWR, because Swift's Glibc module and this module both define it
// as an enumerator and as a macro. So this function is in C.
static inline void netopt_shutdown(int descriptor) {
  shutdown(descriptor, SHUT_RDWR);
}

// Wrappers for curl_easy_setopt(3), curl_share_setopt(3), curl_easy_getinfo(3) and curl_multi_setopt(3), one
// for each type of the last argument. Parameters: h, m, s: the easy, multi or share handle; o: the option; i:
// the information; v: the value, or where to store the information; f: the callback.
static inline CURLcode netopt_setopt_long(CURL *h, CURLoption o, long v) {
  return curl_easy_setopt(h, o, v);
}
static inline CURLcode netopt_setopt_off(CURL *h, CURLoption o, curl_off_t v) {
  return curl_easy_setopt(h, o, v);
}
static inline CURLcode netopt_setopt_string(CURL *h, CURLoption o, const char *v) {
  return curl_easy_setopt(h, o, v);
}
static inline CURLcode netopt_setopt_pointer(CURL *h, CURLoption o, void *v) {
  return curl_easy_setopt(h, o, v);
}
static inline CURLcode netopt_setopt_slist(CURL *h, CURLoption o, struct curl_slist *v) {
  return curl_easy_setopt(h, o, v);
}
static inline CURLcode netopt_setopt_curlu(CURL *h, CURLU *v) {
  return curl_easy_setopt(h, CURLOPT_CURLU, v);
}
static inline CURLcode netopt_setopt_ssl_context(CURL *h, CURLcode (*f)(CURL *, void *, void *)) {
  return curl_easy_setopt(h, CURLOPT_SSL_CTX_FUNCTION, f);
}
static inline CURLSHcode netopt_share_sessions(CURLSH *s) {
  return curl_share_setopt(s, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}
static inline CURLcode netopt_setopt_data(
    CURL *h, CURLoption o, size_t (*f)(char *, size_t, size_t, void *)) {
  return curl_easy_setopt(h, o, f);
}
static inline CURLcode netopt_setopt_seek(
    CURL *h, int (*f)(void *, curl_off_t, int)) {
  return curl_easy_setopt(h, CURLOPT_SEEKFUNCTION, f);
}
static inline CURLcode netopt_setopt_prereq(
    CURL *h, int (*f)(void *, char *, char *, int, int)) {
  return curl_easy_setopt(h, CURLOPT_PREREQFUNCTION, f);
}
static inline CURLcode netopt_setopt_debug(
    CURL *h, int (*f)(CURL *, curl_infotype, char *, size_t, void *)) {
  return curl_easy_setopt(h, CURLOPT_DEBUGFUNCTION, f);
}
static inline CURLcode netopt_setopt_progress(
    CURL *h, int (*f)(void *, curl_off_t, curl_off_t, curl_off_t, curl_off_t)) {
  return curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, f);
}
static inline CURLcode netopt_setopt_opensocket(
    CURL *h, curl_socket_t (*f)(void *, curlsocktype, struct curl_sockaddr *)) {
  return curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, f);
}
static inline CURLcode netopt_setopt_closesocket(CURL *h, int (*f)(void *, curl_socket_t)) {
  return curl_easy_setopt(h, CURLOPT_CLOSESOCKETFUNCTION, f);
}
static inline CURLcode netopt_getinfo_long(CURL *h, CURLINFO i, long *v) {
  return curl_easy_getinfo(h, i, v);
}
static inline CURLcode netopt_getinfo_off(CURL *h, CURLINFO i, curl_off_t *v) {
  return curl_easy_getinfo(h, i, v);
}
static inline CURLcode netopt_getinfo_string(CURL *h, CURLINFO i, char **v) {
  return curl_easy_getinfo(h, i, v);
}
static inline CURLcode netopt_getinfo_pointer(CURL *h, CURLINFO i, void **v) {
  return curl_easy_getinfo(h, i, v);
}
static inline CURLcode netopt_getinfo_certinfo(CURL *h, struct curl_certinfo **v) {
  return curl_easy_getinfo(h, CURLINFO_CERTINFO, v);
}
static inline CURLMcode netopt_multi_setopt_long(CURLM *m, CURLMoption o, long v) {
  return curl_multi_setopt(m, o, v);
}
static inline CURLMcode netopt_multi_setopt_pointer(CURLM *m, CURLMoption o, void *v) {
  return curl_multi_setopt(m, o, v);
}
static inline CURLMcode netopt_multi_setopt_socket(
    CURLM *m, int (*f)(CURL *, curl_socket_t, int, void *, void *)) {
  return curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, f);
}
static inline CURLMcode netopt_multi_setopt_timer(CURLM *m, int (*f)(CURLM *, long, void *)) {
  return curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, f);
}
// Returns the versions of libcurl and its libraries at run time: curl_version_info(3). CURLVERSION_NOW says
// which version of the struct these headers describe. Swift does not import it, because it is a macro for an
// enumerator.
static inline curl_version_info_data *netopt_version_info(void) {
  return curl_version_info(CURLVERSION_NOW);
}

#include <netinet/tcp.h>
#include <sys/socket.h>

// Stores the smoothed round-trip time in microseconds, and the number of segments that the connection has
// retransmitted so far: TCP_INFO, tcp(7). Returns 1 for success, and 0 when the kernel does not answer.
static inline int netopt_tcp_info(int descriptor, unsigned *round_trip, unsigned *retransmits) {
  struct tcp_info info;
  socklen_t length = sizeof info;
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return 0;
  *round_trip = info.tcpi_rtt;
  *retransmits = info.tcpi_total_retrans;
  return 1;
}
