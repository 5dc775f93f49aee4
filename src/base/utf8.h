// SPDX-License-Identifier: MIT
// base/utf8.h: UTF-8, strictly (RFC 3629: no surrogates, nothing overlong, nothing above U+10FFFF).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Decodes the character at p[0..n). Returns its bytes (1-4); 0 if it is cut off at the end but could still become
// valid; -k if the first k bytes (1-3) are an invalid sequence, to be replaced by one U+FFFD.
int frit_utf8_decode(const char *p, size_t n, uint32_t *code_point);
// Writes 1-4 bytes and returns their number. Surrogates and values above U+10FFFF are written as U+FFFD.
int frit_utf8_encode(uint32_t code_point, char out[4]);
// The length of the valid prefix; the rest is invalid or incomplete.
size_t frit_utf8_valid_prefix(const char *p, size_t n);
