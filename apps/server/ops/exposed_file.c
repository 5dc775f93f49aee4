// SPDX-License-Identifier: MIT
// Warns if other users may change a file with secrets, or read it.
#include "server/ops/exposed_file.h"

#include <stdio.h>
#include <sys/stat.h>

void server_warn_exposed_file(const char *option, const char *path, bool is_secret)
{
    struct stat info;
    if (stat(path, &info) != 0) return;
    const bool is_writable = info.st_mode & (S_IWGRP | S_IWOTH), is_readable = info.st_mode & S_IROTH;
    if (!is_writable && !(is_readable && is_secret)) return;
    fprintf(stderr, "frit: warning: %s %s: other users may %s it (mode %o); expected 600 or 640\n", option, path,
            is_writable ? "change" : "read", (unsigned)(info.st_mode & 0777));
}
