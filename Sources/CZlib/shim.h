// zlib. No function needs a wrapper. For a macro such as deflateInit2, netopt calls the function that the
// macro stands for.
#pragma once
#include <zlib.h>
