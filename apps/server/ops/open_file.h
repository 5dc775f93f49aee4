// SPDX-License-Identifier: MIT
// server/ops/open_file.h: a word about files with secrets that others may change or read.
#pragma once
#include <stdbool.h>

// Says it on stderr. is_secret: reading it does harm, too.
void server_warn_open_file(const char *option, const char *path, bool is_secret);
