// rtnetlink(7), ICMP messages and the messages of error queues (ip(7)), which Swift's Glibc module lacks.
#pragma once
// This header comes first: the kernel's headers then omit what it declares (linux/libc-compat.h).
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h>
#include <linux/icmp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/icmp6.h>

// Constants that exist both as an enumerator and as a macro, in several C modules. Which module's constant
// Swift finds depends on the order in which the compiler reads the files of a module, and a file may import
// another module than that one.
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

// Makes a socket receive only echo replies. The macros for the bits of struct icmp6_filter contain code, so
// they are used in C.
static inline int netopt_only_echo_replies_v6(int descriptor) {
  struct icmp6_filter filter;
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
  return setsockopt(descriptor, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
}

// Makes a socket receive only echo replies: ICMP_FILTER has a bit for each blocked type (raw(7)).
static inline int netopt_only_echo_replies_v4(int descriptor) {
  struct icmp_filter filter = {~(1u << ICMP_ECHOREPLY)};
  return setsockopt(descriptor, SOL_RAW, ICMP_FILTER, &filter, sizeof filter);
}
