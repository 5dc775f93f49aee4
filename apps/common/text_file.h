// SPDX-License-Identifier: MIT
// common/text_file.h: byte order marks at the start of text files. Shared by the commands and the server.
#pragma once
#include <stddef.h>

// The length of a UTF-8 byte order mark at the start of the text: 3, or 0 without one.
size_t app_mark_bytes(const char *text, size_t n);
// "UTF-16" or "UTF-32" if the text begins with a byte order mark of this encoding, else NULL.
const char *app_foreign_encoding(const char *text, size_t n);
