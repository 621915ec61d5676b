// zlib. compress2(3) and uncompress(3) need no wrapper.
#pragma once
#include <zlib.h>
