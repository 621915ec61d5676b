// epoll, eventfd and thread names, which Swift's Glibc module lacks.
#pragma once
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

// pthread_setname_np(3). glibc's header declares this GNU extension only with _GNU_SOURCE, which would make
// other types (fd_set) differ from those of Swift's Glibc module. So it is declared here.
extern int pthread_setname_np(pthread_t thread, const char *name);

// Sets the name of the calling thread. glibc refuses a name of more than 15 bytes, and the function ignores
// the error.
static inline void netopt_set_thread_name(const char *name) {
  pthread_setname_np(pthread_self(), name);
}
