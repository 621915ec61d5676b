// What the Glibc module does not bring: epoll, eventfd and thread names.
#pragma once
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// A GNU extension. Defining _GNU_SOURCE to get it would change other types (fd_set) from what the Glibc module has.
extern int pthread_setname_np(pthread_t thread, const char *name);

static inline void netopt_set_thread_name(const char *name) {
  pthread_setname_np(pthread_self(), name);
}
