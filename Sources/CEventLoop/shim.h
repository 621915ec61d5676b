// epoll, eventfd and thread names, which Swift's Glibc module lacks.
#pragma once
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// A GNU extension, declared here. To define _GNU_SOURCE instead would make other types (fd_set) differ from
// those of the Glibc module.
extern int pthread_setname_np(pthread_t thread, const char *name);

static inline void netopt_set_thread_name(const char *name) {
  pthread_setname_np(pthread_self(), name);
}
