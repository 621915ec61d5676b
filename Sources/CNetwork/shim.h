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
