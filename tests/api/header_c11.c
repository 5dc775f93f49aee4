// SPDX-License-Identifier: MIT
// The public header as C11.
#include "every_function.h"

int main(void)
{
    return use_the_library();
}
