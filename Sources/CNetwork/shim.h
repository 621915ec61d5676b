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

// Constants of the C library under names of their own. The C library defines each of them as a macro and as
// an enumerator, and several C modules contain both. Swift may find the constant of a module that the Swift
// file does not import. Which one it finds depends on the order in which the compiler reads the files.
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

// Makes a raw ICMPv6 socket receive only echo replies: ICMP6_FILTER, RFC 3542, section 3.2. The macros that
// set the bits of the filter contain code, so Swift does not import them. Returns 0 for success, like
// setsockopt(2).
static inline int netopt_only_echo_replies_v6(int descriptor) {
  struct icmp6_filter filter;
  ICMP6_FILTER_SETBLOCKALL(&filter);
  ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
  return setsockopt(descriptor, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
}

// Makes a raw ICMP socket receive only echo replies: ICMP_FILTER, raw(7). A bit that is set blocks the
// message type with this number. Returns 0 for success, like setsockopt(2).
static inline int netopt_only_echo_replies_v4(int descriptor) {
  struct icmp_filter filter = {~(1u << ICMP_ECHOREPLY)};
  return setsockopt(descriptor, SOL_RAW, ICMP_FILTER, &filter, sizeof filter);
}
