// SPDX-License-Identifier: MIT
// base/number.h: numbers as text that does not depend on the host's locale: the decimal point is a point.
//
// A program that embeds the library may have called setlocale(LC_ALL, ""), after which strtod stops at the point of
// "0.75" and printf writes "0,75". tools/check.c refuses both in src/; what prints fractions calls these.
#pragma once
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>

// Reads [sign] digits [. digits] [e [sign] digits] at the start of n bytes, correctly rounded. Returns how many bytes
// it took; 0 where no number starts there. Too large a number is an infinity, too small a one 0. No spaces, no
// hexadecimal digits, no inf, no nan.
size_t frit_parse_double(const char *text, size_t n, double *out);

// Bytes: "500M" -> 500000000 (K, M and G are powers of 1000), "4096". False for anything else, 0, and beyond 1e18.
bool frit_parse_size(const char *text, uint64_t *out);

// vsnprintf and snprintf in the C locale.
int frit_vformat(char *out, size_t size, const char *format, va_list args) FRIT_PRINTF(3, 0);
int frit_format(char *out, size_t size, const char *format, ...) FRIT_PRINTF(3, 4);
