// What the Glibc module does not bring: rtnetlink(7), the messages of ICMP and those of error queues (ip(7)).
#pragma once
// First: the kernel's headers then leave out what it declares (linux/libc-compat.h).
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>

// Constants that are enumerators as well as macros of the same name. Swift finds them in one of the C modules that have them, and a file may import
// another one: it depends on the order in which the compiler reads the files of a module.
static const int netopt_socket_datagram = SOCK_DGRAM;
static const int netopt_socket_raw = SOCK_RAW;
static const int netopt_socket_close_on_exec = SOCK_CLOEXEC;
static const int netopt_socket_nonblocking = SOCK_NONBLOCK;
static const int netopt_message_no_signal = MSG_NOSIGNAL;
static const int netopt_message_no_wait = MSG_DONTWAIT;
static const int netopt_message_errors = MSG_ERRQUEUE;
static const int netopt_message_whole_length = MSG_TRUNC;
static const int netopt_protocol_ip = IPPROTO_IP;
static const int netopt_protocol_ipv6 = IPPROTO_IPV6;
static const int netopt_protocol_icmp = IPPROTO_ICMP;
static const int netopt_protocol_icmpv6 = IPPROTO_ICMPV6;

// The macros for the bits of struct icmp6_filter are functions.
static inline int netopt_only_echo_replies_v6(int descriptor) {
  struct icmp6_filter filter;
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
  return setsockopt(descriptor, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
}

// raw(7): ICMP_FILTER has a bit for each type that is kept away.
static inline int netopt_only_echo_replies_v4(int descriptor) {
  struct icmp_filter filter = {~(1u << ICMP_ECHOREPLY)};
  return setsockopt(descriptor, SOL_RAW, ICMP_FILTER, &filter, sizeof filter);
}
