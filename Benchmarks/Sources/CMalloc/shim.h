// malloc_trim(3), which the Glibc module does not have.
#pragma once
#include <malloc.h>
