// SPDX-License-Identifier: MIT
// Byte order marks.
#include "common/text_file.h"

#include <string.h>

static int begins_with(const char *text, size_t n, const char *mark, size_t n_mark)
{
    return n >= n_mark && memcmp(text, mark, n_mark) == 0;
}

size_t app_mark_bytes(const char *text, size_t n)
{
    return begins_with(text, n, "\xef\xbb\xbf", 3) ? 3 : 0;
}

const char *app_foreign_encoding(const char *text, size_t n)
{
    if (begins_with(text, n, "\xff\xfe\0\0", 4) || begins_with(text, n, "\0\0\xfe\xff", 4)) return "UTF-32";
    if (begins_with(text, n, "\xff\xfe", 2) || begins_with(text, n, "\xfe\xff", 2)) return "UTF-16";
    return NULL;
}
