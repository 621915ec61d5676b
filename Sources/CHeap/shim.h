// glibc's heap: malloc_trim(3), malloc_usable_size(3) and mallinfo(3), which Swift's Glibc module lacks.
#pragma once
#include <malloc.h>

// Returns the number of bytes that the program has allocated with malloc(3), in all arenas and in mapped
// blocks.
static inline size_t netopt_heap_used(void) {
#if __GLIBC_PREREQ(2, 33)
  struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
#else
  struct mallinfo heap = mallinfo();
  return (size_t)(unsigned int)heap.uordblks + (unsigned int)heap.hblkhd;
#endif
}

// Returns the number of bytes that glibc's heap holds but the program has not allocated.
static inline size_t netopt_heap_free(void) {
#if __GLIBC_PREREQ(2, 33)
  return mallinfo2().fordblks;
#else
  return (unsigned int)mallinfo().fordblks;
#endif
}
