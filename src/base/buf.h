// SPDX-License-Identifier: MIT
// base/buf.h: growable bytes, and slices of bytes.
//
// A buffer is always zero-terminated after its length, so `data` can be printed (it is "" when empty).
// A failed growth sets `failed` and drops the bytes that did not fit: check once at the end.
//
//     frit_buf text = {0};
//     frit_buf_printf(&text, "%d tokens", n);
//     if (text.failed) return frit_fail_memory(text.len, "the report");
//     frit_buf_free(&text);
#pragma once
#include "base/status.h"

#include <stdarg.h>
#include <string.h>

typedef struct frit_buf {
    char *data;
    size_t len, capacity;
    bool failed;
} frit_buf;

bool frit_buf_reserve(frit_buf *buf, size_t n_more);   // space for n_more bytes and the final zero
void frit_buf_append(frit_buf *buf, const void *bytes, size_t n);
void frit_buf_text(frit_buf *buf, const char *text);
void frit_buf_char(frit_buf *buf, char c);
void frit_buf_printf(frit_buf *buf, const char *format, ...) FRIT_PRINTF(2, 3);
void frit_buf_vprintf(frit_buf *buf, const char *format, va_list args) FRIT_PRINTF(2, 0);
void frit_buf_clear(frit_buf *buf);   // keeps the memory
void frit_buf_free(frit_buf *buf);

// Borrowed bytes, not zero-terminated.
typedef struct frit_str {
    const char *ptr;
    size_t len;
} frit_str;

static inline frit_str frit_str_of(const char *text)
{
    return (frit_str){text, strlen(text)};
}

static inline bool frit_str_is(frit_str s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

static inline bool frit_str_starts(frit_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && memcmp(s.ptr, prefix, n) == 0;
}
