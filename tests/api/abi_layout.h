// SPDX-License-Identifier: MIT
// api/abi_layout.h: the rows of abi_layout.c, which is compiled with each version of the headers.
#pragma once

typedef struct layout_row {
    const char *name;           // of a type, a field of it or an enumerator
    unsigned long long value;   // size, offset or value
} layout_row;

extern const layout_row abi_layout_0_2[], abi_layout_today[];   // end with a name of NULL
