// SPDX-License-Identifier: MIT
// The public header as C++17.
#include "every_function.h"

int main()
{
    return use_the_library();
}
