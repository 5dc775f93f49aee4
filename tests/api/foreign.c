// SPDX-License-Identifier: MIT
// Stands for another library that is linked into libfrit.so: a function with default visibility.
int foreign_function(void);

int foreign_function(void)
{
    return 0;
}
