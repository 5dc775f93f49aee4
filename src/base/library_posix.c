// SPDX-License-Identifier: MIT
// Shared libraries by dlopen.
#include "base/library.h"

#include <dlfcn.h>
#include <stddef.h>

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
