// Functions that replace functions of nghttp2. Include after defining _GNU_SOURCE, which declares RTLD_NEXT of
// dlsym(3).
#pragma once
#include <dlfcn.h>
#include <stdatomic.h>

// ld.so(8) finds each function marked with INTERPOSED before nghttp2's function with the same name, so libcurl
// calls this module's function. The functions are weak, so that a program with a statically linked nghttp2
// still links. The module then has no effect in that program.
#define INTERPOSED __attribute__((weak, visibility("default")))

// Returns nghttp2's function with this name, which exists because this module is linked with nghttp2. known:
// keeps the function for later calls.
static inline void *next(const char *name, _Atomic(void *) *known) {
  void *function = atomic_load(known);
  if (!function) {
    function = dlsym(RTLD_NEXT, name);
    atomic_store(known, function);
  }
  return function;
}
