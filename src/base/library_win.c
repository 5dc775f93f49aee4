// SPDX-License-Identifier: MIT
// Shared libraries by LoadLibrary.
#include "base/library.h"

#include <string.h>
#include <windows.h>

frit_library *frit_library_open(const char *name)
{
    return (frit_library *)LoadLibraryA(name);
}

void *frit_library_find(frit_library *library, const char *symbol)
{
    const FARPROC found = GetProcAddress((HMODULE)library, symbol);
    void *address;
    memcpy(&address, &found, sizeof address);
    return address;
}

void frit_library_close(frit_library *library)
{
    if (library) FreeLibrary((HMODULE)library);
}
