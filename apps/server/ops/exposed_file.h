// SPDX-License-Identifier: MIT
// server/ops/exposed_file.h: warns of files with secrets that other users may change or read.
#pragma once
#include <stdbool.h>

// Prints a warning on stderr. `is_secret`: also if other users may read the file.
void server_warn_exposed_file(const char *option, const char *path, bool is_secret);
