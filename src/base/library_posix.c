// SPDX-License-Identifier: MIT
// Shared libraries by dlopen.
#include "base/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

frit_library *frit_library_open(const char *name)
{
    return (frit_library *)dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *frit_library_find(frit_library *library, const char *symbol)
{
    return dlsym(library, symbol);
}

void frit_library_close(frit_library *library)
{
    if (library) dlclose(library);
}

// The dynamic linker knows the path from which it loaded a library. It does not know the path of a program that was
// found by its name alone.
bool frit_folder_beside(const char *name, char *path, size_t path_bytes)
{
    static const char here = 0;
    Dl_info info = {0};
    char file[PATH_MAX];
    const bool is_known = dladdr(&here, &info) && info.dli_fname && strchr(info.dli_fname, '/');
    if (!realpath(is_known ? info.dli_fname : "/proc/self/exe", file)) return false;
    char *slash = strrchr(file, '/');
    if (slash) *slash = '\0';
    const int n = snprintf(path, path_bytes, "%s/%s", file, name);
    struct stat st;
    return n > 0 && (size_t)n < path_bytes && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
