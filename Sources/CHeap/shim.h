// glibc's heap: malloc_trim(3), malloc_usable_size(3) and mallinfo(3), which Swift's Glibc module lacks.
#pragma once
#include <malloc.h>

// Returns the number of heap bytes in use, in all arenas.
static inline size_t netopt_heap_used(void) {
#if __GLIBC_PREREQ(2, 33)
  struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#else
  struct mallinfo heap = mallinfo();
  return (size_t)(unsigned int)heap.uordblks + (unsigned int)heap.hblkhd;
#endif
}

// Returns the number of free heap bytes.
static inline size_t netopt_heap_free(void) {
#if __GLIBC_PREREQ(2, 33)
  return mallinfo2().fordblks;
#else
  return (unsigned int)mallinfo().fordblks;
#endif
}
