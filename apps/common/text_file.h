// SPDX-License-Identifier: MIT
// common/text_file.h: what editors and shells of Windows write before a text. Shared by the commands and the server.
#pragma once
#include <stddef.h>

// Bytes of the UTF-8 byte order mark that a file's text begins with, which are no part of it: 3 or 0.
size_t app_mark_bytes(const char *text, size_t n);
// "UTF-16" or "UTF-32" where a byte order mark says that the text is no UTF-8; else NULL.
const char *app_foreign_encoding(const char *text, size_t n);
