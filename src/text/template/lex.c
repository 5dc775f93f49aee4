// SPDX-License-Identifier: MIT
// Template source to tokens. White space around tags follows trim_blocks and lstrip_blocks:
//
//     ___{% if x %}/text     removes spaces (_) before a block at the start of a line, and the line end (/) after it
//     a {%- if x -%} b       a minus removes all white space on its side
//     ___{%+ if x +%}/       a plus keeps it
//
// Comments behave like blocks. The last line end of the source is ignored.
#include "text/template/node.h"

#include "base/grow.h"
#include "base/number.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>

typedef struct lexer {
    frit_str source;
    size_t at;
    int line;
    frit_arena *arena;
    tokens *out;
    bool line_starting;   // the input so far ended with a line end
} lexer;

static frit_status fail(const lexer *x, const char *why)
{
    return frit_fail(FRIT_E_FORMAT, "chat template, line %d: %s", x->line, why);
}

static frit_status push(lexer *x, token t)
{
    tokens *out = x->out;
    if (out->n == MAX_TOKENS)
        return frit_fail(FRIT_E_LIMIT, "chat template, line %d: more than %d names, marks and texts", x->line,
                         MAX_TOKENS);
    FRIT_TRY(FRIT_GROW_IN(x->arena, out->items, out->capacity, out->n + 1, "the tokens of a template"));
    t.line = x->line;
    out->items[out->n++] = t;
    return FRIT_OK;
}

static bool looking_at(const lexer *x, size_t at, const char *text)
{
    size_t n = strlen(text);
    return x->source.len - at >= n && memcmp(x->source.ptr + at, text, n) == 0;
}

// Moves on, counting lines.
static void move(lexer *x, size_t to)
{
    for (; x->at < to; x->at++) x->line += x->source.ptr[x->at] == '\n';
}

static size_t skip_spaces(const lexer *x, size_t at)
{
    size_t len;
    while (at < x->source.len && frit_is_space_at(x->source, at, &len)) at += len;
    return at;
}

// ------------------------------------------------------------------------------------- text between tags

static size_t find_tag(const lexer *x, size_t from)
{
    for (size_t i = from; i + 1 < x->source.len; i++) {
        char c = x->source.ptr[i + 1];
        if (x->source.ptr[i] == '{' && (c == '{' || c == '%' || c == '#')) return i;
    }
    return x->source.len;
}

// The end of text[begin, end) before a tag with this sign: '-', '+' or 0. `block`: the tag is a block or a comment.
static size_t trim_before(const lexer *x, size_t begin, size_t end, char sign, bool block)
{
    const char *p = x->source.ptr;
    if (sign == '-') {
        size_t kept = begin, len;
        for (size_t i = begin; i < end; i += len) {
            len = 1;
            if (!frit_is_space_at(x->source, i, &len)) {
                uint32_t c;
                int n = frit_utf8_decode(p + i, end - i, &c);
                len = n > 0 ? (size_t)n : 1;
                kept = i + len;
            }
        }
        return kept;
    }
    if (sign == '+' || !block) return end;
    size_t line = end;
    while (line > begin && p[line - 1] != '\n') line--;
    if (line == begin && !x->line_starting) return end;
    for (size_t i = line, len; i < end; i += len)
        if (!frit_is_space_at(x->source, i, &len)) return end;
    return line;
}

static frit_status push_text(lexer *x, size_t begin, size_t end)
{
    if (end <= begin) return FRIT_OK;
    return push(x, (token){.type = TOKEN_TEXT, .text = {x->source.ptr + begin, end - begin}});
}

// The position after "%}" or "#}" at `at` and the white space that its sign removes.
static size_t trim_after(const lexer *x, size_t at, char sign)
{
    if (sign == '-') return skip_spaces(x, at);
    if (sign != '+' && at < x->source.len && x->source.ptr[at] == '\n') return at + 1;
    return at;
}

static void end_tag(lexer *x, size_t to)
{
    move(x, to);
    x->line_starting = to > 0 && x->source.ptr[to - 1] == '\n';
}

static frit_status lex_comment(lexer *x)
{
    size_t begin = x->at + 2;
    if (looking_at(x, begin, "-") || looking_at(x, begin, "+")) begin++;
    size_t i = begin;
    while (i < x->source.len && !looking_at(x, i, "#}")) i++;
    if (i >= x->source.len) return fail(x, "a comment is not closed");
    char sign = i > begin ? x->source.ptr[i - 1] : 0;
    end_tag(x, trim_after(x, i + 2, sign));
    return FRIT_OK;
}

// True if the tag at "{%" is `word`; sets the position after the word, and the sign there.
static bool is_word_tag(const lexer *x, size_t at, const char *word, size_t *after, char *sign)
{
    size_t i = at + 2;
    if (i < x->source.len && (x->source.ptr[i] == '-' || x->source.ptr[i] == '+')) i++;
    i = skip_spaces(x, i);
    if (!looking_at(x, i, word)) return false;
    i = skip_spaces(x, i + strlen(word));
    *sign = i < x->source.len ? x->source.ptr[i] : 0;
    if (*sign == '-' || *sign == '+') i++;
    if (!looking_at(x, i, "%}")) return false;
    *after = i + 2;
    return true;
}

static frit_status lex_raw(lexer *x, size_t begin)
{
    for (size_t i = begin; i + 1 < x->source.len; i++) {
        size_t after;
        char sign;
        if (!looking_at(x, i, "{%") || !is_word_tag(x, i, "endraw", &after, &sign)) continue;
        char before = x->source.ptr[i + 2];
        FRIT_TRY(push_text(x, begin, trim_before(x, begin, i, before, true)));
        end_tag(x, trim_after(x, after, sign));
        return FRIT_OK;
    }
    return fail(x, "a raw block is not closed");
}

// ------------------------------------------------------------------------------------- inside tags

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Reads \xHH, \uHHHH or \UHHHHHHHH at text[*i] == 'x', 'u' or 'U'.
static frit_status unescape_code(lexer *x, frit_str text, size_t *i, frit_buf *out)
{
    size_t n = text.ptr[*i] == 'x' ? 2 : text.ptr[*i] == 'u' ? 4 : 8;
    uint32_t c = 0;
    if (text.len - *i - 1 < n) return fail(x, "a text has a broken escape");
    for (size_t k = 1; k <= n; k++) {
        int digit = hex_digit(text.ptr[*i + k]);
        if (digit < 0 || c > 0xfffffff) return fail(x, "a text has a broken escape");
        c = c * 16 + (uint32_t)digit;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) return fail(x, "a text has an escape that is no character");
    char utf8[4];
    frit_buf_append(out, utf8, (size_t)frit_utf8_encode(c, utf8));
    *i += n + 1;
    return FRIT_OK;
}

static frit_status unescape_one(lexer *x, frit_str text, size_t *i, frit_buf *out)
{
    static const char letters[] = "\\'\"abfnrtv", bytes[] = "\\'\"\a\b\f\n\r\t\v";
    char c = text.ptr[*i];
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        frit_buf_char(out, bytes[letter - letters]);
        ++*i;
    } else if (c == '\n') {
        ++*i;
    } else if (c == 'x' || c == 'u' || c == 'U') {
        return unescape_code(x, text, i, out);
    } else if (c >= '0' && c <= '7') {
        uint32_t code = 0;
        for (int k = 0; k < 3 && *i < text.len && text.ptr[*i] >= '0' && text.ptr[*i] <= '7'; k++)
            code = code * 8 + (uint32_t)(text.ptr[(*i)++] - '0');
        char utf8[4];
        frit_buf_append(out, utf8, (size_t)frit_utf8_encode(code, utf8));
    } else {   // Python keeps an unknown escape unchanged
        frit_buf_char(out, '\\');
    }
    return FRIT_OK;
}

static frit_status lex_string(lexer *x)
{
    char quote = x->source.ptr[x->at];
    size_t end = x->at + 1;
    bool escaped = false;
    for (; end < x->source.len && x->source.ptr[end] != quote; end++) {
        if (x->source.ptr[end] != '\\') continue;
        escaped = true;
        end++;
    }
    if (end >= x->source.len) return fail(x, "a text in quotes is not closed");
    token t = {.type = TOKEN_STRING, .text = {x->source.ptr + x->at + 1, end - x->at - 1}};
    if (escaped) {
        frit_buf out = {0};
        frit_status status = FRIT_OK;
        for (size_t i = 0; i < t.text.len && status == FRIT_OK;) {
            if (t.text.ptr[i] == '\\' && i + 1 < t.text.len) {
                i++;
                status = unescape_one(x, t.text, &i, &out);
            } else {
                frit_buf_char(&out, t.text.ptr[i++]);
            }
        }
        const char *copy = frit_arena_text(x->arena, out.data ? out.data : "", out.len);
        t.text = (frit_str){copy, out.len};
        if (status == FRIT_OK && (out.failed || !copy)) status = frit_fail_memory(out.len, "a text of a template");
        frit_buf_free(&out);
        FRIT_TRY(status);
    }
    FRIT_TRY(push(x, t));
    move(x, end + 1);
    return FRIT_OK;
}

static size_t skip_digits(const lexer *x, size_t at)
{
    while (at < x->source.len && (is_digit(x->source.ptr[at]) || x->source.ptr[at] == '_')) at++;
    return at;
}

static frit_status lex_number(lexer *x)
{
    const char *p = x->source.ptr;
    char digits[64];
    size_t end = x->at, n = 0;
    bool is_float = false;
    int base = 10;
    char mark = end + 1 < x->source.len && p[end] == '0' ? (char)(p[end + 1] | 0x20) : 0;
    if (mark == 'x' || mark == 'o' || mark == 'b') {
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
        x->at = end += 2;
        while (end < x->source.len && (hex_digit(p[end]) >= 0 || p[end] == '_')) end++;
    } else {
        end = skip_digits(x, end);
        bool subscript = x->at > 0 && p[x->at - 1] == '.';   // a.0.1
        if (!subscript && end + 1 < x->source.len && p[end] == '.' && is_digit(p[end + 1])) {
            is_float = true;
            end = skip_digits(x, end + 1);
        }
        size_t exponent = end + 1;
        if (exponent < x->source.len && (p[exponent] == '+' || p[exponent] == '-')) exponent++;
        if (!subscript && end < x->source.len && (p[end] | 0x20) == 'e' && exponent < x->source.len &&
            is_digit(p[exponent])) {
            is_float = true;
            end = skip_digits(x, exponent);
        }
    }
    for (size_t i = x->at; i < end; i++) {
        if (p[i] == '_') continue;
        if (n + 1 >= sizeof digits) return fail(x, "a number is too long");
        digits[n++] = p[i];
    }
    digits[n] = 0;
    token t = {.type = is_float ? TOKEN_FLOAT : TOKEN_INT, .text = {p + x->at, end - x->at}};
    errno = 0;
    char *stop = digits;
    if (is_float)
        stop += frit_parse_double(digits, n, &t.f);
    else
        t.i = strtoll(digits, &stop, base);
    if (*stop || n == 0 || (!is_float && errno == ERANGE)) return fail(x, "a number is too large or malformed");
    FRIT_TRY(push(x, t));
    move(x, end);
    return FRIT_OK;
}

static frit_status lex_operator(lexer *x)
{
    static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    for (size_t i = 0; i < FRIT_COUNT(operators); i++) {
        if (!looking_at(x, x->at, operators[i])) continue;
        FRIT_TRY(push(x, (token){.type = TOKEN_OPERATOR, .text = frit_str_of(operators[i])}));
        move(x, x->at + strlen(operators[i]));
        return FRIT_OK;
    }
    return fail(x, "an unexpected character");
}

// Reads a tag from after "{{" or "{%" to after its end.
static frit_status lex_tag(lexer *x, bool block)
{
    const char *close = block ? "%}" : "}}";
    int open = 0;   // brackets; inside them "}}" ends dictionaries
    for (;;) {
        move(x, skip_spaces(x, x->at));
        if (x->at >= x->source.len) return fail(x, block ? "a block tag is not closed" : "an output tag is not closed");
        char c = x->source.ptr[x->at];
        bool signs = c == '-' || (block && c == '+');
        if (open == 0 && (looking_at(x, x->at, close) || (signs && looking_at(x, x->at + 1, close)))) {
            FRIT_TRY(
                push(x, (token){.type = block ? TOKEN_CLOSE_BLOCK : TOKEN_CLOSE_OUTPUT, .text = frit_str_of(close)}));
            size_t after = x->at + 2 + signs;
            end_tag(x, block ? trim_after(x, after, c) : c == '-' ? skip_spaces(x, after) : after);
            return FRIT_OK;
        }
        if (is_name_start(c)) {
            size_t end = x->at;
            while (end < x->source.len && (is_name_start(x->source.ptr[end]) || is_digit(x->source.ptr[end]))) end++;
            FRIT_TRY(push(x, (token){.type = TOKEN_NAME, .text = {x->source.ptr + x->at, end - x->at}}));
            move(x, end);
        } else if (is_digit(c)) {
            FRIT_TRY(lex_number(x));
        } else if (c == '\'' || c == '"') {
            FRIT_TRY(lex_string(x));
        } else {
            open += c == '(' || c == '[' || c == '{';
            if ((c == ')' || c == ']' || c == '}') && open-- == 0)
                return fail(x, "a bracket closes that was not opened");
            FRIT_TRY(lex_operator(x));
        }
    }
}

// ------------------------------------------------------------------------------------- the whole

static frit_status lex_all(lexer *x)
{
    while (x->at < x->source.len) {
        size_t begin = x->at, tag = find_tag(x, begin), after;
        if (tag == x->source.len) {
            FRIT_TRY(push_text(x, begin, tag));
            break;
        }
        char kind = x->source.ptr[tag + 1], sign = tag + 2 < x->source.len ? x->source.ptr[tag + 2] : 0, raw_sign;
        FRIT_TRY(push_text(x, begin, trim_before(x, begin, tag, sign, kind != '{')));
        move(x, tag);
        if (kind == '#') {
            FRIT_TRY(lex_comment(x));
            continue;
        }
        if (kind == '%' && is_word_tag(x, tag, "raw", &after, &raw_sign)) {
            size_t raw = raw_sign == '-' ? skip_spaces(x, after) : after;
            x->line_starting = false;
            move(x, raw);
            FRIT_TRY(lex_raw(x, raw));
            continue;
        }
        FRIT_TRY(push(
            x, (token){.type = kind == '%' ? TOKEN_OPEN_BLOCK : TOKEN_OPEN_OUTPUT, .text = {x->source.ptr + tag, 2}}));
        move(x, tag + 2 + (sign == '-' || sign == '+'));
        FRIT_TRY(lex_tag(x, kind == '%'));
    }
    return push(x, (token){.type = TOKEN_END, .text = frit_str_of("the end of the template")});
}

frit_status frit_template_lex(frit_str source, frit_arena *arena, tokens *out)
{
    lexer x = {.source = source, .line = 1, .arena = arena, .out = out, .line_starting = true};
    return lex_all(&x);
}
