// zstd's streaming decoder imports as it is: https://facebook.github.io/zstd/zstd_manual.html.
#pragma once
#include <zstd.h>
