// SPDX-License-Identifier: MIT
// Growth by doubling; the byte after `len` is always zero once memory was reserved.
#include "base/buf.h"

#include "base/number.h"

#include <stdlib.h>

bool frit_buf_reserve(frit_buf *buf, size_t n_more)
{
    if (buf->failed) return false;
    if (n_more < buf->capacity - buf->len) return true;
    if (n_more > SIZE_MAX / 4 - buf->len) {
        buf->failed = true;
        return false;
    }
    size_t capacity = buf->capacity ? buf->capacity : 64;
    while (capacity <= buf->len + n_more) capacity *= 2;
    char *data = realloc(buf->data, capacity);
    if (!data) {
        buf->failed = true;
        return false;
    }
    data[buf->len] = 0;
    buf->data = data;
    buf->capacity = capacity;
    return true;
}

void frit_buf_append(frit_buf *buf, const void *bytes, size_t n)
{
    if (!frit_buf_reserve(buf, n)) return;
    if (n > 0) memcpy(buf->data + buf->len, bytes, n);
    buf->len += n;
    buf->data[buf->len] = 0;
}

void frit_buf_text(frit_buf *buf, const char *text)
{
    frit_buf_append(buf, text, strlen(text));
}

void frit_buf_char(frit_buf *buf, char c)
{
    frit_buf_append(buf, &c, 1);
}

void frit_buf_vprintf(frit_buf *buf, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = frit_vformat(NULL, 0, format, args);
    if (n < 0) {
        buf->failed = true;
    } else if (frit_buf_reserve(buf, (size_t)n)) {
        frit_vformat(buf->data + buf->len, (size_t)n + 1, format, again);
        buf->len += (size_t)n;
    }
    va_end(again);
}

void frit_buf_printf(frit_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    frit_buf_vprintf(buf, format, args);
    va_end(args);
}

void frit_buf_clear(frit_buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    if (buf->data) buf->data[0] = 0;
}

void frit_buf_free(frit_buf *buf)
{
    free(buf->data);
    *buf = (frit_buf){0};
}
