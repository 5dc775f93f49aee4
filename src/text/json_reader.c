// SPDX-License-Identifier: MIT
// Parses brackets, strings and numbers in sequence.
#include "text/json_reader.h"

#include "base/number.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

void frit_pull_fail(frit_pull *pull, const char *why)
{
    if (pull->status != FRIT_OK) return;
    int line = 1;
    for (const char *p = pull->begin; p < pull->at && p < pull->end; p++) line += *p == '\n';
    pull->status = frit_fail_file(FRIT_E_FORMAT, "%s: line %d: %s", pull->path, line, why);
}

static bool fail(frit_pull *pull, const char *why)
{
    frit_pull_fail(pull, why);
    return false;
}

static void pass_space(frit_pull *pull)
{
    while (pull->at < pull->end && (*pull->at == ' ' || *pull->at == '\n' || *pull->at == '\r' || *pull->at == '\t'))
        pull->at++;
}

char frit_pull_peek(frit_pull *pull)
{
    pass_space(pull);
    return pull->status == FRIT_OK && pull->at < pull->end ? *pull->at : 0;
}

static bool take(frit_pull *pull, char c)
{
    if (frit_pull_peek(pull) != c) return false;
    pull->at++;
    return true;
}

bool frit_pull_open(frit_pull *pull, char bracket)
{
    if (!take(pull, bracket))
        return fail(pull, bracket == '{' ? "not valid JSON: an object is expected here"
                                         : "not valid JSON: a list is expected here");
    return !take(pull, bracket == '{' ? '}' : ']');
}

bool frit_pull_more(frit_pull *pull, char bracket)
{
    if (pull->status != FRIT_OK) return false;
    if (take(pull, ',')) return true;
    return take(pull, bracket) ? false : fail(pull, "not valid JSON: a comma or the end of a list is expected here");
}

bool frit_pull_key(frit_pull *pull, frit_str *key)
{
    if (!frit_pull_text(pull, key)) return false;
    return take(pull, ':') || fail(pull, "not valid JSON: a colon is expected here");
}

// ------------------------------------------------------------------------------------- strings

static int hex4(const char *p)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p[i] >= '0' && p[i] <= '9'   ? p[i] - '0'
                    : p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10
                    : p[i] >= 'A' && p[i] <= 'F' ? p[i] - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

// Reads \uXXXX at p, or two of them for one character. Returns the number of bytes read, or 0.
static size_t read_unicode(const char *p, const char *end, uint32_t *c)
{
    int first = end - p >= 6 ? hex4(p + 2) : -1;
    if (first < 0) return 0;
    *c = (uint32_t)first;
    if (first < 0xd800 || first > 0xdfff) return 6;
    int second = first < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
    if (second < 0xdc00 || second > 0xdfff) return 0;
    *c = 0x10000u + (((uint32_t)first - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
    return 12;
}

static bool unescape(frit_pull *pull, const char *p, const char *end, frit_str *text)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    char *out = frit_arena_alloc(pull->arena, (size_t)(end - p) + 1, 1);
    if (!out) {
        pull->status = frit_fail_memory((size_t)(end - p), "a string");
        return false;
    }
    size_t n = 0;
    while (p < end) {
        const char *known = *p == '\\' && p + 1 < end && p[1] ? strchr(from, p[1]) : NULL;
        uint32_t c;
        size_t n_read = *p == '\\' && p + 1 < end && p[1] == 'u' ? read_unicode(p, end, &c) : 0;
        if (*p != '\\') {
            out[n++] = *p++;
        } else if (known) {
            out[n++] = to[known - from];
            p += 2;
        } else if (n_read > 0) {
            n += (size_t)frit_utf8_encode(c, out + n);
            p += n_read;
        } else {
            return fail(pull, "not valid JSON: an unknown escape in a string");
        }
    }
    *text = (frit_str){out, n};
    return true;
}

// A mask of the BLOCK bytes at p that equal `byte`: each byte has BITS bits of the result, the first byte the lowest.
// Bits above the first match may be wrong.
#ifdef __SSE2__
enum { BLOCK = 16, BITS = 1 };
static inline uint64_t which(const char *p, char byte)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
    return (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte)));
}
#else
enum { BLOCK = 8, BITS = 8 };
static inline uint64_t which(const char *p, char byte)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t word;
    memcpy(&word, p, BLOCK);
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) word = __builtin_bswap64(word);
    uint64_t zeros = word ^ ones * (unsigned char)byte;
    return (zeros - ones) & ~zeros & ones << 7;
}
#endif

static inline size_t first_of(uint64_t found)
{
    return (size_t)__builtin_ctzll(found) / BITS;
}

// Finds the closing quote of the string that opens at p. *escaped: it contains a backslash.
static const char *find_quote(const char *p, const char *end, bool *escaped)
{
    for (p++;;) {
        uint64_t found = 0;
        while (end - p >= BLOCK && (found = which(p, '"') | which(p, '\\')) == 0) p += BLOCK;
        if (found) p += first_of(found);
        while (p < end && *p != '"' && *p != '\\') p++;
        if (p >= end) return NULL;
        if (*p == '"') return p;
        *escaped = true;
        p += 2;
    }
}

bool frit_pull_text(frit_pull *pull, frit_str *text)
{
    if (frit_pull_peek(pull) != '"') return fail(pull, "not valid JSON: a string is expected here");
    bool escaped = false;
    const char *begin = pull->at + 1, *close = find_quote(pull->at, pull->end, &escaped);
    if (!close) return fail(pull, "not valid JSON: a string without its end");
    if (escaped && !unescape(pull, begin, close, text)) return false;
    if (!escaped) *text = (frit_str){begin, (size_t)(close - begin)};
    pull->at = close + 1;
    return true;
}

// Both texts are usually short, and the first bytes decide.
bool frit_pull_two(frit_pull *pull, frit_str *left, frit_str *right)
{
    bool has_block = frit_pull_peek(pull) == '"' && pull->end - pull->at >= BLOCK + 2;
    const char *begin = pull->at + 1;
    uint64_t quotes = has_block ? which(begin, '"') : 0;
    if (quotes && which(begin, '\\') == 0) {
        frit_str text = {begin, first_of(quotes)};
        uint64_t spaces = which(begin + 1, ' ');
        size_t n_left = spaces ? 1 + first_of(spaces) : text.len;
        if (n_left < text.len) {
            *left = (frit_str){begin, n_left};
            *right = (frit_str){begin + n_left + 1, text.len - n_left - 1};
            pull->at = begin + text.len + 1;
            return true;
        }
    }
    frit_str text;
    if (!frit_pull_text(pull, &text)) return false;
    const char *space = text.len > 1 ? memchr(text.ptr + 1, ' ', text.len - 1) : NULL;
    if (!space) return fail(pull, "a merge lacks the space between two tokens");
    *left = (frit_str){text.ptr, (size_t)(space - text.ptr)};
    *right = (frit_str){space + 1, text.len - left->len - 1};
    return true;
}

// ------------------------------------------------------------------------------------- other values

// Reads digits into *value while they fit. Returns the number of digits read; *n_kept is the number stored.
static size_t read_digits(const char *p, const char *end, uint64_t *value, int *n_kept)
{
    size_t n = 0;
    for (; p + n < end && p[n] >= '0' && p[n] <= '9'; n++) {
        if (*value > (UINT64_MAX - 9) / 10) continue;
        *value = *value * 10 + (uint64_t)(p[n] - '0');
        ++*n_kept;
    }
    return n;
}

// Reads an id or a rank: a few digits and nothing else. False for other numbers, or none.
static bool read_small(frit_pull *pull, double *number)
{
    const char *p = pull->at;
    uint32_t value = 0;
    for (; p < pull->end && p - pull->at < 9 && *p >= '0' && *p <= '9'; p++) value = value * 10 + (uint32_t)(*p - '0');
    bool whole = p > pull->at && p < pull->end && (*p == ',' || *p == '}' || *p == '\n');
    if (!whole) return false;
    *number = value;
    pull->at = p;
    return true;
}

// Reads all digits as one integer, then divides once by a power of ten, as serde_json does, which reads these files for
// the tokenizers library. Sums of scores decide between equal ways to write a text, so the last bit matters.
bool frit_pull_number(frit_pull *pull, double *number)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    bool negative = frit_pull_peek(pull) == '-';
    if (read_small(pull, number)) return true;
    const char *p = pull->at + negative;
    uint64_t value = 0;
    int n_whole = 0, n_fraction = 0;
    size_t n = read_digits(p, pull->end, &value, &n_whole);
    if (n == 0) return fail(pull, "not valid JSON: a number is expected here");
    bool exact = (size_t)n_whole == n;
    p += n;
    if (p < pull->end && *p == '.') p += 1 + read_digits(p + 1, pull->end, &value, &n_fraction);
    bool scaled = p < pull->end && (*p == 'e' || *p == 'E');
    *number = (double)value / powers[n_fraction < 22 ? n_fraction : 22];
    if (negative) *number = -*number;
    if (!exact || scaled || n_fraction > 22)
        p = pull->at + frit_parse_double(pull->at, (size_t)(pull->end - pull->at), number);
    pull->at = p;
    return true;
}

// Bytes at which the end of a value may be.
static const bool is_mark[256] = {['"'] = true, ['{'] = true, ['['] = true, ['}'] = true, [']'] = true};

static const char *skip_word(const char *p, const char *end)
{
    while (p < end && !is_mark[(unsigned char)*p] && *p != ',' && *p != ' ' && *p != '\n' && *p != '\r' && *p != '\t')
        p++;
    return p;
}

static const char *find_mark(const char *p, const char *end)
{
    if (p < end && *p == ',') p++;
    while (end - p >= BLOCK && !is_mark[(unsigned char)*p]) {
        uint64_t found = which(p, '"') | which(p, '{') | which(p, '[') | which(p, '}') | which(p, ']');
        if (found) return p + first_of(found);
        p += BLOCK;
    }
    while (p < end && !is_mark[(unsigned char)*p]) p++;
    return p;
}

// Skips a list or an object; NULL if it does not end.
static const char *skip_brackets(const char *p, const char *end)
{
    long depth = 0;
    bool escaped;
    do {
        p = find_mark(p, end);
        if (p == end) return NULL;
        if (*p == '"') {
            p = find_quote(p, end, &escaped);
            if (!p) return NULL;
        } else {
            depth += *p == '{' || *p == '[' ? 1 : -1;
        }
        p++;
    } while (depth > 0);
    return p;
}

bool frit_pull_skip(frit_pull *pull, frit_str *span)
{
    char c = frit_pull_peek(pull);
    const char *begin = pull->at, *p;
    bool escaped;
    if (c == '"') {
        p = find_quote(begin, pull->end, &escaped);
        p = p ? p + 1 : NULL;
    } else {
        p = c == '{' || c == '[' ? skip_brackets(begin, pull->end) : skip_word(begin, pull->end);
    }
    if (!p) return fail(pull, "not valid JSON: a string or a list without its end");
    if (p == begin) return fail(pull, "not valid JSON: a value is expected here");
    pull->at = p;
    if (span) *span = (frit_str){begin, (size_t)(p - begin)};
    return true;
}
