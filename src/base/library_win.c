// SPDX-License-Identifier: MIT
// Shared libraries by LoadLibrary.
#include "base/library.h"

#include <stdio.h>
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

bool frit_folder_beside(const char *name, char *path, size_t path_bytes)
{
    static const char here = 0;
    HMODULE module = NULL;
    char file[MAX_PATH];
    if (!GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                            &here, &module))
        return false;
    const DWORD n_file = GetModuleFileNameA(module, file, sizeof file);
    if (n_file == 0 || n_file == sizeof file) return false;
    char *slash = strrchr(file, '\\');
    if (slash) *slash = '\0';
    const int n = snprintf(path, path_bytes, "%s/%s", file, name);
    const DWORD kind = n > 0 && (size_t)n < path_bytes ? GetFileAttributesA(path) : INVALID_FILE_ATTRIBUTES;
    return kind != INVALID_FILE_ATTRIBUTES && (kind & FILE_ATTRIBUTE_DIRECTORY);
}
