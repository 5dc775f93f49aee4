// SPDX-License-Identifier: MIT
// base/library.h: shared libraries that are opened at run time and may be absent.
//
//     frit_library *library = frit_library_open("libcuda.so.1");       // NULL: it cannot be loaded
//     void *address = frit_library_find(library, "cuInit");            // NULL: it has no such function
//     memcpy(&function, &address, sizeof function);
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct frit_library frit_library;

frit_library *frit_library_open(const char *name);   // a path, or a name that the system's loader searches for
void *frit_library_find(frit_library *library, const char *symbol);
void frit_library_close(frit_library *library);   // NULL is fine
// Finds a folder by its path relative to the file that contains this code, a program or a shared library:
// "../share/frit". False if it does not exist, or the path is too long.
bool frit_folder_beside(const char *name, char *path, size_t path_bytes);
