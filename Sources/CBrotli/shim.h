// brotli's decoder imports as it is: https://github.com/google/brotli, c/include/brotli/decode.h.
#pragma once
#include <brotli/decode.h>
