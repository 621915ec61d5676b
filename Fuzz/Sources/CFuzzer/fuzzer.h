// libFuzzer's main function, for programs that have one of their own:
// https://llvm.org/docs/LibFuzzer.html#using-libfuzzer-as-a-library
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*target)(const uint8_t *data, size_t size));

// libFuzzer's own change of an input of `size` bytes, for LLVMFuzzerCustomMutator. Returns its new size.
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
