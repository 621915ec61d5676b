// zlib: compress2(3) and uncompress(3) import as they are.
#pragma once
#include <zlib.h>
