// SPDX-License-Identifier: MIT
// The lead byte determines the length and the range of the second byte. This range alone excludes overlong forms,
// surrogates and everything above U+10FFFF (Unicode 15, table 3-7). An invalid sequence ends before the first byte that
// does not fit, so one U+FFFD stands for each maximal part, as in the WHATWG decoder and Python.
#include "base/utf8.h"

#include <string.h>

// The length of the character that starts with `lead`, and the range of its second byte; 0 if no character starts with
// it.
static int lead_length(unsigned char lead, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (lead < 0xc2) return 0;
    if (lead < 0xe0) return 2;
    if (lead < 0xf0) {
        if (lead == 0xe0) *low = 0xa0;
        if (lead == 0xed) *high = 0x9f;
        return 3;
    }
    if (lead > 0xf4) return 0;
    if (lead == 0xf0) *low = 0x90;
    if (lead == 0xf4) *high = 0x8f;
    return 4;
}

int frit_utf8_decode(const char *p, size_t n, uint32_t *code_point)
{
    const unsigned char *s = (const unsigned char *)p;
    if (n == 0) return 0;
    if (s[0] < 0x80) {
        *code_point = s[0];
        return 1;
    }
    unsigned char low, high;
    int length = lead_length(s[0], &low, &high);
    if (length == 0) return -1;
    uint32_t c = s[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i == n) return 0;
        if (s[i] < low || s[i] > high) return -i;
        c = c << 6 | (s[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }
    *code_point = c;
    return length;
}

int frit_utf8_encode(uint32_t code_point, char out[4])
{
    uint32_t c = code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff) ? 0xfffd : code_point;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    int n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xf0) | c);
    return n;
}

size_t frit_utf8_valid_prefix(const char *p, size_t n)
{
    size_t at = 0;
    while (at < n) {
        uint64_t eight;
        if (n - at >= 8 && (memcpy(&eight, p + at, 8), (eight & 0x8080808080808080u) == 0)) {
            at += 8;
            continue;
        }
        uint32_t c;
        int length = frit_utf8_decode(p + at, n - at, &c);
        if (length <= 0) break;
        at += (size_t)length;
    }
    return at;
}
