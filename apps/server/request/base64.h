// SPDX-License-Identifier: MIT
// server/request/base64.h: base64 of files in requests.
#pragma once
#include <stdbool.h>
#include <stddef.h>

// An upper bound of the bytes that n characters of base64 stand for.
size_t server_base64_bytes(size_t n);
// Decodes a text into `bytes`, which has room for server_base64_bytes(n). Line ends and spaces are skipped, and the
// padding may be absent. False: *at is the index of the first character that is not base64, or n if the text ends
// within a byte.
bool server_base64_decode(const char *text, size_t n, unsigned char *bytes, size_t *n_bytes, size_t *at);
