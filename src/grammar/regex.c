// SPDX-License-Identifier: MIT
// Regular expressions to automata. While an expression is compiled, the start and end of the text are bytes that ^ and
// $ read, so that an anchor may occur anywhere. They are removed from the automaton at the end.
#include "grammar/regex.h"

#include "base/grow.h"
#include "base/utf8.h"
#include "grammar/grammar.h"

#include <stdlib.h>
#include <utf8proc.h>

enum { TEXT_START = 0xfe, TEXT_END = 0xff };   // bytes that do not occur in UTF-8
enum { MAX_RANGES = 1 << 16, MAX_REPEATS = 10000, MAX_CODE_POINT = 0x10ffff };

typedef struct ranges {
    frit_range *items;
    size_t n, capacity;
    bool failed;
} ranges;

typedef struct parser {
    frit_str text;
    size_t at;
    frit_nfa nfa;
    int depth;
} parser;

static int peek(const parser *p)
{
    return p->at < p->text.len ? (unsigned char)p->text.ptr[p->at] : -1;
}

static bool next_is(const parser *p, const char *text)
{
    return frit_str_starts((frit_str){p->text.ptr + p->at, p->text.len - p->at}, text);
}

static frit_status fail_at(size_t at, const parser *p, const char *expected)
{
    const size_t left = p->text.len - at;
    if (left == 0)
        return frit_fail(FRIT_E_INVALID, "regular expression '%.*s': found its end; expected %s",
                         (int)(p->text.len < 80 ? p->text.len : 80), p->text.ptr, expected);
    return frit_fail(FRIT_E_INVALID, "regular expression '%.*s', position %zu: found '%.*s'; expected %s",
                     (int)(p->text.len < 80 ? p->text.len : 80), p->text.ptr, at + 1, (int)(left < 8 ? left : 8),
                     p->text.ptr + at, expected);
}

static frit_status fail_here(const parser *p, const char *expected)
{
    return fail_at(p->at, p, expected);
}

// ------------------------------------------------------------------------------------- sets of characters

static void add(ranges *r, uint32_t low, uint32_t high)
{
    if (r->n == MAX_RANGES || FRIT_GROW(r->items, r->capacity, r->n + 1, "a class of characters") != FRIT_OK) {
        r->failed = true;
        return;
    }
    r->items[r->n++] = (frit_range){low, high};
}

// Adds the characters that are not in `from`.
static void add_inverted(ranges *r, ranges *from)
{
    uint32_t next = 0;
    from->n = frit_ranges_sort(from->items, from->n);
    for (size_t i = 0; i < from->n; i++) {
        if (from->items[i].low > next) add(r, next, from->items[i].low - 1);
        next = from->items[i].high + 1;
    }
    if (next <= MAX_CODE_POINT) add(r, next, MAX_CODE_POINT);
    r->failed |= from->failed;
}

static void add_set(ranges *r, int name)
{
    static const frit_range digits[] = {{'0', '9'}};
    static const frit_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    static const frit_range spaces[] = {{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680},
                                        {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f},
                                        {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    const int lower = name | 0x20;
    const frit_range *set = lower == 'd' ? digits : lower == 'w' ? words : spaces;
    const size_t n = lower == 'd' ? FRIT_COUNT(digits) : lower == 'w' ? FRIT_COUNT(words) : FRIT_COUNT(spaces);
    ranges all = {0};
    for (size_t i = 0; i < n; i++) add(&all, set[i].low, set[i].high);
    if (name == lower)
        for (size_t i = 0; i < n; i++) add(r, set[i].low, set[i].high);
    else
        add_inverted(r, &all);
    free(all.items);
}

// General categories, with the letters by which utf8proc names them.
static const struct {
    const char *name, *category;
} categories[] = {
    {"Letter", "L"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"punct", "P"},
    {"Punctuation", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Other", "C"},
    {"Space_Separator", "Zs"},
    {"Control", "Cc"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
};

// Adds the characters of a category, by its letters.
static void add_category(ranges *r, frit_str name)
{
    enum { EMPTY = 0x40000, EMPTY_END = 0xdffff, N_CATEGORIES = 32 };   // planes without characters
    signed char is[N_CATEGORIES];
    memset(is, -1, sizeof is);
    for (uint32_t c = 0, end; c <= MAX_CODE_POINT; c = end + 1) {
        const int category = utf8proc_category((utf8proc_int32_t)c) % N_CATEGORIES;
        end = c == EMPTY ? EMPTY_END : c;
        if (is[category] < 0)
            is[category] = memcmp(utf8proc_category_string((utf8proc_int32_t)c), name.ptr, name.len) == 0;
        if (!is[category]) continue;
        if (r->n > 0 && r->items[r->n - 1].high + 1 == c)
            r->items[r->n - 1].high = end;
        else
            add(r, c, end);
    }
}

// Reads \p{NAME} or \P{NAME}, after the letter.
static frit_status add_property(parser *p, ranges *r, bool inverted)
{
    const size_t start = p->at;
    const char *end = peek(p) == '{' ? memchr(p->text.ptr + p->at, '}', p->text.len - p->at) : NULL;
    if (!end) return fail_here(p, "{NAME} after \\p");
    frit_str name = {p->text.ptr + p->at + 1, (size_t)(end - p->text.ptr) - p->at - 1};
    p->at = (size_t)(end - p->text.ptr) + 1;
    static const char *const prefixes[] = {"General_Category=", "gc="};
    for (size_t i = 0; i < FRIT_COUNT(prefixes); i++)
        if (frit_str_starts(name, prefixes[i]))
            name = (frit_str){name.ptr + strlen(prefixes[i]), name.len - strlen(prefixes[i])};
    for (size_t i = 0; i < FRIT_COUNT(categories); i++)
        if (frit_str_is(name, categories[i].name)) name = frit_str_of(categories[i].category);
    ranges all = {0};
    FRIT_TRY(frit_budget_spend(p->nfa.budget, MAX_CODE_POINT));
    if (name.len > 0 && name.len <= 2) add_category(&all, name);
    const bool known = all.n > 0;
    if (inverted)
        add_inverted(r, &all);
    else
        for (size_t i = 0; i < all.n; i++) add(r, all.items[i].low, all.items[i].high);
    free(all.items);
    return known ? FRIT_OK : fail_at(start, p, "the name of a general category, as in \\p{L}");
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static bool read_hex(parser *p, int n, uint32_t *out)
{
    *out = 0;
    if (p->text.len - p->at < (size_t)n) return false;
    for (int i = 0; i < n; i++) {
        const int digit = hex_digit((unsigned char)p->text.ptr[p->at + (size_t)i]);
        if (digit < 0) return false;
        *out = *out * 16 + (uint32_t)digit;
    }
    p->at += (size_t)n;
    return true;
}

// Reads \uHHHH, \u{H...}, or a pair of surrogates, after the u.
static frit_status read_unicode(parser *p, uint32_t *out)
{
    uint32_t low;
    if (peek(p) == '{') {
        const size_t start = p->at++;
        *out = 0;
        for (; hex_digit(peek(p)) >= 0 && *out <= MAX_CODE_POINT; p->at++)
            *out = *out * 16 + (uint32_t)hex_digit(peek(p));
        if (peek(p) != '}' || *out > MAX_CODE_POINT) return fail_at(start, p, "hexadecimal digits of a character");
        p->at++;
        return FRIT_OK;
    }
    if (!read_hex(p, 4, out)) return fail_here(p, "4 hexadecimal digits after \\u");
    if (*out < 0xd800 || *out > 0xdbff || !next_is(p, "\\u")) return FRIT_OK;
    const size_t start = p->at;
    p->at += 2;
    if (read_hex(p, 4, &low) && low >= 0xdc00 && low <= 0xdfff)
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    else
        p->at = start;
    return FRIT_OK;
}

// Reads an escape of one character, after its backslash.
static frit_status read_escape(parser *p, uint32_t *out)
{
    static const char names[] = "tnrfv0", values[] = "\t\n\r\f\v";
    const int c = peek(p);
    if (c < 0) return fail_here(p, "a character after \\");
    const char *name = c ? strchr(names, c) : NULL;
    if (name) {
        p->at++;
        *out = (unsigned char)values[name - names];
        return FRIT_OK;
    }
    if (c == 'u' || c == 'x') {
        p->at++;
        if (c == 'u') return read_unicode(p, out);
        return read_hex(p, 2, out) ? FRIT_OK : fail_here(p, "2 hexadecimal digits after \\x");
    }
    if (c == 'c' && p->at + 1 < p->text.len) {
        const int letter = p->text.ptr[p->at + 1] | 0x20;
        if (letter < 'a' || letter > 'z') return fail_here(p, "a letter after \\c");
        *out = (uint32_t)(letter - 'a' + 1);
        p->at += 2;
        return FRIT_OK;
    }
    if ((c >= '1' && c <= '9') || c == 'k') return fail_here(p, "no back reference");
    if (c == 'b' || c == 'B') return fail_here(p, "no word boundary");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return fail_here(p, "a known escape after \\");
    const int n = frit_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, out);
    if (n <= 0) return fail_here(p, "a character in UTF-8");
    p->at += (size_t)n;
    return FRIT_OK;
}

static bool is_set_name(int c)
{
    return c > 0 && strchr("dDwWsS", c);
}

// Reads one character or set of a class. *single: -1 for a set.
static frit_status read_class_item(parser *p, ranges *r, int64_t *single)
{
    uint32_t c;
    *single = -1;
    if (peek(p) == '\\') {
        p->at++;
        if (is_set_name(peek(p))) {
            add_set(r, peek(p));
            p->at++;
            return FRIT_OK;
        }
        if (peek(p) == 'p' || peek(p) == 'P') {
            p->at++;
            return add_property(p, r, p->text.ptr[p->at - 1] == 'P');
        }
        if (peek(p) == 'b' || peek(p) == '-') {
            *single = peek(p) == 'b' ? '\b' : '-';
            p->at++;
            return FRIT_OK;
        }
        FRIT_TRY(read_escape(p, &c));
    } else {
        const int n = frit_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, &c);
        if (n <= 0) return fail_here(p, "a character in UTF-8");
        p->at += (size_t)n;
    }
    *single = c;
    return FRIT_OK;
}

static frit_status read_class_items(parser *p, ranges *r)
{
    while (peek(p) != ']') {
        int64_t low, high;
        if (peek(p) < 0) return fail_here(p, "a closing ]");
        const size_t start = p->at;
        FRIT_TRY(read_class_item(p, r, &low));
        if (low >= 0 && peek(p) == '-' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']') {
            p->at++;
            FRIT_TRY(read_class_item(p, r, &high));
            if (high < low) return fail_at(start, p, "a range whose end is a character that is not before its start");
            add(r, (uint32_t)low, (uint32_t)high);
        } else if (low >= 0) {
            add(r, (uint32_t)low, (uint32_t)low);
        }
    }
    p->at++;
    return FRIT_OK;
}

// Makes a part that reads one character of the ranges, or with `inverted` any other character.
static frit_status set_part(parser *p, ranges *r, bool inverted, frit_fragment *out)
{
    ranges others = {0};
    FRIT_TRY(frit_budget_spend(p->nfa.budget, 16 * (int64_t)r->n));
    r->n = frit_ranges_sort(r->items, r->n);
    if (inverted) add_inverted(&others, r);
    const bool failed = r->failed || others.failed;
    if (!failed)
        *out = inverted ? frit_nfa_chars(&p->nfa, others.items, others.n) : frit_nfa_chars(&p->nfa, r->items, r->n);
    free(others.items);
    return failed ? frit_fail(FRIT_E_LIMIT, "the regular expression has a class of more than %d ranges", MAX_RANGES)
                  : FRIT_OK;
}

static frit_status read_class(parser *p, frit_fragment *out)
{
    p->at++;
    const bool inverted = peek(p) == '^';
    p->at += inverted;
    ranges r = {0};
    frit_status status = read_class_items(p, &r);
    if (status == FRIT_OK) status = set_part(p, &r, inverted, out);
    free(r.items);
    return status;
}

// ------------------------------------------------------------------------------------- structure

static frit_status read_alternatives(parser *p, frit_fragment *out);

static frit_status read_group(parser *p, frit_fragment *out)
{
    if (p->depth >= FRIT_GRAMMAR_DEPTH) return fail_here(p, "groups at most 200 deep");
    const size_t start = p->at++;
    if (next_is(p, "?=") || next_is(p, "?!") || next_is(p, "?<=") || next_is(p, "?<!"))
        return fail_at(start, p, "no lookahead or lookbehind");
    if (next_is(p, "?:")) {
        p->at += 2;
    } else if (next_is(p, "?<") || next_is(p, "?P<")) {
        const char *end = memchr(p->text.ptr + p->at, '>', p->text.len - p->at);
        if (!end) return fail_at(start, p, "a group's name that ends in >");
        p->at = (size_t)(end - p->text.ptr) + 1;
    } else if (next_is(p, "?")) {
        return fail_at(start, p, "a group ( or (?: without flags");
    }
    p->depth++;
    FRIT_TRY(read_alternatives(p, out));
    p->depth--;
    if (peek(p) != ')') return fail_here(p, "a closing )");
    p->at++;
    return FRIT_OK;
}

static frit_status read_escaped(parser *p, frit_fragment *out)
{
    p->at++;
    const int c = peek(p);
    ranges r = {0};
    frit_status status = FRIT_OK;
    uint32_t one;
    if (is_set_name(c)) {
        add_set(&r, c);
        p->at++;
    } else if (c == 'p' || c == 'P') {
        p->at++;
        status = add_property(p, &r, c == 'P');
    } else {
        status = read_escape(p, &one);
        if (status == FRIT_OK) add(&r, one, one);
    }
    if (status == FRIT_OK) status = set_part(p, &r, false, out);
    free(r.items);
    return status;
}

static frit_status read_atom(parser *p, frit_fragment *out)
{
    static const frit_range dot[] = {{0, '\t'}, {'\v', '\f'}, {0xe, 0x2027}, {0x202a, MAX_CODE_POINT}};
    const int c = peek(p);
    uint32_t one;
    if (c == '(') return read_group(p, out);
    if (c == '[') return read_class(p, out);
    if (c == '\\') return read_escaped(p, out);
    if (c == '*' || c == '+' || c == '?') return fail_here(p, "something to repeat");
    if (c == '^' || c == '$') {
        const unsigned char mark = c == '^' ? TEXT_START : TEXT_END;
        *out = frit_nfa_bytes(&p->nfa, mark, mark);
        p->at++;
        return FRIT_OK;
    }
    if (c == '.') {
        *out = frit_nfa_chars(&p->nfa, dot, FRIT_COUNT(dot));
        p->at++;
        return FRIT_OK;
    }
    const int n = frit_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, &one);
    if (n <= 0) return fail_here(p, "a character in UTF-8");
    *out = frit_nfa_text(&p->nfa, (frit_str){p->text.ptr + p->at, (size_t)n});
    p->at += (size_t)n;
    return FRIT_OK;
}

static bool read_number(parser *p, int32_t *out)
{
    const size_t start = p->at;
    int64_t n = 0;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++)
        if (n <= MAX_REPEATS) n = n * 10 + (peek(p) - '0');
    *out = (int32_t)n;
    return p->at > start;
}

// Reads {m}, {m,} or {m,n}. Returns false and reads nothing if the { is a literal.
static bool read_counts(parser *p, int32_t *min, int32_t *max)
{
    const size_t start = p->at++;
    bool good = read_number(p, min);
    *max = *min;
    if (good && peek(p) == ',') {
        p->at++;
        if (!read_number(p, max)) *max = FRIT_NO_LIMIT;
    }
    good = good && peek(p) == '}';
    p->at = good ? p->at + 1 : start;
    return good;
}

static frit_status read_quantifier(parser *p, frit_fragment *part)
{
    const size_t start = p->at;
    const int c = peek(p);
    int32_t min = c == '+', max = c == '?' ? 1 : FRIT_NO_LIMIT;
    if (c == '*' || c == '+' || c == '?')
        p->at++;
    else if (c != '{' || !read_counts(p, &min, &max))
        return FRIT_OK;
    if (min > MAX_REPEATS || max > MAX_REPEATS) return fail_at(start, p, "at most 10000 repetitions");
    if (max != FRIT_NO_LIMIT && max < min) return fail_at(start, p, "a largest number that is not below the smallest");
    if (peek(p) == '?') p->at++;
    if (peek(p) == '+') return fail_here(p, "no possessive quantifier");
    *part = frit_nfa_repeat(&p->nfa, *part, min, max);
    return frit_nfa_check(&p->nfa);
}

static frit_status read_alternatives(parser *p, frit_fragment *out)
{
    *out = frit_nfa_none(&p->nfa);
    for (;;) {
        frit_fragment sequence = frit_nfa_empty(&p->nfa);
        while (peek(p) >= 0 && peek(p) != '|' && peek(p) != ')') {
            frit_fragment part;
            FRIT_TRY(read_atom(p, &part));
            FRIT_TRY(read_quantifier(p, &part));
            sequence = frit_nfa_seq(&p->nfa, sequence, part);
        }
        *out = frit_nfa_or(&p->nfa, *out, sequence);
        if (peek(p) != '|') return FRIT_OK;
        p->at++;
    }
}

// ------------------------------------------------------------------------------------- start and end

// Makes the part before or after the match: empty if ^ or $ has read the mark, otherwise the mark and, in a search, any
// text.
static frit_fragment around(frit_nfa *nfa, unsigned char mark, bool search)
{
    static const frit_range any = {0, MAX_CODE_POINT};
    const frit_fragment all = frit_nfa_none(nfa);
    frit_nfa_or(nfa, all, frit_nfa_empty(nfa));
    frit_fragment part = frit_nfa_empty(nfa);
    if (mark == TEXT_START) part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, mark, mark));
    if (search) part = frit_nfa_seq(nfa, part, frit_nfa_repeat(nfa, frit_nfa_chars(nfa, &any, 1), 0, FRIT_NO_LIMIT));
    if (mark == TEXT_END) part = frit_nfa_seq(nfa, part, frit_nfa_bytes(nfa, mark, mark));
    return frit_nfa_or(nfa, all, part);
}

// Makes the language of texts t for which START t END is in `marked`.
static frit_status remove_marks(const frit_dfa *marked, frit_dfa *out)
{
    frit_nfa nfa = {.budget = marked->budget};
    frit_fragment part = frit_nfa_none(&nfa);
    const int32_t base = nfa.n_states;
    for (int32_t s = 0; s < marked->n_states; s++) frit_nfa_state(&nfa);
    for (int32_t s = 0; s < marked->n_states && nfa.failed == FRIT_OK; s++) {
        for (int32_t i = marked->first[s]; i < marked->first[s + 1]; i++) {
            const frit_dfa_edge e = marked->edges[i];
            if (e.low < TEXT_START) {
                frit_nfa_add(&nfa, base + s, e.low, e.high < TEXT_START ? e.high : TEXT_START - 1, base + e.to);
            }
            if (s == 0 && e.low <= TEXT_START && e.high >= TEXT_START)
                frit_nfa_add(&nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, base + e.to);
            if (e.high == TEXT_END && marked->final[e.to])
                frit_nfa_add(&nfa, base + s, FRIT_EPSILON, FRIT_EPSILON, part.out);
        }
    }
    const frit_status status = frit_dfa_new(out, &nfa, part);
    frit_nfa_free(&nfa);
    return status;
}

frit_status frit_regex_language(frit_budget *budget, frit_dfa *out, frit_str pattern, bool search)
{
    *out = (frit_dfa){0};
    if (pattern.len > FRIT_GRAMMAR_TEXT)
        return frit_fail(FRIT_E_LIMIT, "the regular expression has %zu bytes; expected at most %d", pattern.len,
                         FRIT_GRAMMAR_TEXT);
    parser p = {.text = pattern, .nfa = {.budget = budget}};
    frit_dfa marked = {0};
    const frit_fragment before = around(&p.nfa, TEXT_START, search);
    frit_fragment part = {0};
    frit_status status = read_alternatives(&p, &part);
    if (status == FRIT_OK && peek(&p) >= 0) status = fail_here(&p, "the end or an opening (");
    if (status == FRIT_OK) {
        part = frit_nfa_seq(&p.nfa, before, part);
        part = frit_nfa_seq(&p.nfa, part, around(&p.nfa, TEXT_END, search));
        status = frit_dfa_new(&marked, &p.nfa, part);
    }
    if (status == FRIT_OK) status = remove_marks(&marked, out);
    frit_dfa_free(&marked);
    frit_nfa_free(&p.nfa);
    return status;
}

frit_status frit_regex_add(frit_rule_builder *builder, frit_str pattern, int32_t *rule)
{
    frit_dfa language;
    FRIT_TRY(frit_regex_language(&builder->budget, &language, pattern, false));
    *rule = frit_builder_rule_new(builder, "the regular expression");
    if (*rule >= 0) frit_builder_define(builder, *rule, frit_nfa_dfa(frit_builder_nfa(builder, *rule), &language));
    frit_dfa_free(&language);
    return builder->failed;
}

frit_status frit_regex_compile(frit_automaton **out, frit_str pattern)
{
    *out = NULL;
    int32_t root = 0;
    frit_rule_builder builder = {0};
    frit_status status = frit_regex_add(&builder, pattern, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, root);
    frit_builder_free(&builder);
    return status;
}
