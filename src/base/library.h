// SPDX-License-Identifier: MIT
// base/library.h: shared libraries that are opened at run time and need not be there.
//
//     frit_library *library = frit_library_open("libcuda.so.1");       // NULL: it cannot be loaded
//     void *address = frit_library_find(library, "cuInit");            // NULL: it has no such function
//     memcpy(&function, &address, sizeof function);
#pragma once

typedef struct frit_library frit_library;

frit_library *frit_library_open(const char *name);   // a path, or a name that the system's loader looks for
void *frit_library_find(frit_library *library, const char *symbol);
void frit_library_close(frit_library *library);   // NULL is fine
