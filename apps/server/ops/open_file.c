// SPDX-License-Identifier: MIT
// Checks the modes of files with keys.
#include "server/ops/open_file.h"

#include <stdio.h>
#include <sys/stat.h>

void server_warn_open_file(const char *option, const char *path, bool is_secret)
{
    struct stat info;
    if (stat(path, &info) != 0) return;
    const bool is_changed = info.st_mode & (S_IWGRP | S_IWOTH), is_read = info.st_mode & S_IROTH;
    if (!is_changed && !(is_read && is_secret)) return;
    fprintf(stderr, "frit: warning: %s %s: other users may %s it (mode %o); expected 600 or 640\n", option, path,
            is_changed ? "change" : "read", (unsigned)(info.st_mode & 0777));
}
