// SPDX-License-Identifier: MIT
// Decodes base64 (RFC 4648).
#include "server/request/base64.h"

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_space(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

size_t server_base64_bytes(size_t n)
{
    return n / 4 * 3 + 3;
}

bool server_base64_decode(const char *text, size_t n, unsigned char *bytes, size_t *n_bytes, size_t *at)
{
    unsigned bits = 0, n_digits = 0, n_padding = 0;
    *n_bytes = 0;
    for (*at = 0; *at < n; ++*at) {
        const int value = value_of(text[*at]);
        if (is_space(text[*at])) continue;
        if (text[*at] == '=' && n_digits % 4 >= 2 && n_padding < 4 - n_digits % 4) {
            n_padding++;
            continue;
        }
        if (value < 0 || n_padding > 0) return false;
        bits = bits << 6 | (unsigned)value;
        if (++n_digits % 4 == 0) {
            bytes[(*n_bytes)++] = (unsigned char)(bits >> 16);
            bytes[(*n_bytes)++] = (unsigned char)(bits >> 8);
            bytes[(*n_bytes)++] = (unsigned char)bits;
            bits = 0;
        }
    }
    if (n_digits % 4 == 1 || (n_padding > 0 && n_padding != 4 - n_digits % 4)) return false;
    if (n_digits % 4 == 2) bytes[(*n_bytes)++] = (unsigned char)(bits >> 4);
    if (n_digits % 4 == 3) {
        bytes[(*n_bytes)++] = (unsigned char)(bits >> 10);
        bytes[(*n_bytes)++] = (unsigned char)(bits >> 2);
    }
    return true;
}
