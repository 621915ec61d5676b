// brotli's decoder needs no wrapper: https://github.com/google/brotli, c/include/brotli/decode.h.
#pragma once
#include <brotli/decode.h>
