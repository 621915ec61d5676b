// zstd's streaming decoder needs no wrapper: https://facebook.github.io/zstd/zstd_manual.html.
#pragma once
#include <zstd.h>
