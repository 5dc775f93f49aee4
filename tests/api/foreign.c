// SPDX-License-Identifier: MIT
// Stands for another library that is linked into libfrit.so: a function that everybody could see.
int foreign_function(void);

int foreign_function(void)
{
    return 0;
}
