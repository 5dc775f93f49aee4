// SPDX-License-Identifier: MIT
// base/number.h: numbers as text that does not depend on the host's locale: the decimal point is a point.
//
// A program that embeds the library may have called setlocale(LC_ALL, ""), after which strtod stops at the point of
// "0.75" and printf writes "0,75". tools/check.c refuses both in src/; code that prints fractions calls these
// functions.
#pragma once
#include "base/status.h"

#include <stdarg.h>
#include <stddef.h>

// Reads [sign] digits [. digits] [e [sign] digits] at the start of n bytes, correctly rounded. Returns the number of
// bytes read; 0 where no number starts. Numbers that are too large become infinity, numbers that are too small 0.
// Spaces, hexadecimal digits, inf and nan are not read.
size_t frit_parse_double(const char *text, size_t n, double *out);

// Reads a number of bytes: "500M" -> 500000000 (K, M and G are powers of 1000), "4096". False for anything else, 0, and
// numbers above 1e18.
bool frit_parse_size(const char *text, uint64_t *out);

// vsnprintf and snprintf as in the C locale.
int frit_vformat(char *out, size_t size, const char *format, va_list args) FRIT_PRINTF(3, 0);
int frit_format(char *out, size_t size, const char *format, ...) FRIT_PRINTF(3, 4);
