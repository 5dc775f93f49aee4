// SPDX-License-Identifier: MIT
// GBNF, the grammars of llama.cpp: rules NAME ::= ALTERNATIVES, with "text", [classes], ., groups, * + ? {m,n}, tokens
// (<[id]>, <text>, and ! for any other token) and comments. A rule ends at the end of its line; groups, and
// alternatives after ::= and |, may continue on the next line.
#include "grammar/grammar.h"

#include "base/utf8.h"

#include <stdlib.h>

enum { MAX_RANGES = 4096, MAX_REPEATS = 100000, MAX_TOKEN_BYTES = 1024 };

typedef struct parser {
    frit_str text;
    size_t at;
    const frit_token_names *names;
    frit_rule_builder *builder;
    int32_t rule;                    // the rule whose automaton is made
    int depth;                       // of groups
    frit_range *ranges, *inverted;   // [MAX_RANGES + 1]
} parser;

static frit_nfa *nfa(const parser *p)
{
    return frit_builder_nfa(p->builder, p->rule);
}

static int peek(const parser *p)
{
    return p->at < p->text.len ? (unsigned char)p->text.ptr[p->at] : -1;
}

static frit_status fail_at(const parser *p, size_t at, const char *expected)
{
    int line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        column = p->text.ptr[i] == '\n' ? 1 : column + 1;
        line += p->text.ptr[i] == '\n';
    }
    if (at >= p->text.len)
        return frit_fail(FRIT_E_INVALID, "grammar, line %d: found the end of the text; expected %s", line, expected);
    size_t n = 0;
    while (n < 16 && at + n < p->text.len && (unsigned char)p->text.ptr[at + n] > ' ') n++;
    return frit_fail(FRIT_E_INVALID, "grammar, line %d, column %d: found '%.*s'; expected %s", line, column,
                     (int)(n ? n : 1), p->text.ptr + at, expected);
}

static frit_status fail_here(const parser *p, const char *expected)
{
    return fail_at(p, p->at, expected);
}

// Skips spaces and comments, and with `lines` ends of lines.
static void skip_space(parser *p, bool lines)
{
    for (;;) {
        const int c = peek(p);
        if (c == '#')
            while (peek(p) >= 0 && peek(p) != '\n' && peek(p) != '\r') p->at++;
        else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
            p->at++;
        else
            return;
    }
}

static bool is_name_char(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static frit_str read_name(parser *p)
{
    const size_t start = p->at;
    while (is_name_char(peek(p))) p->at++;
    return (frit_str){p->text.ptr + start, p->at - start};
}

static frit_status read_hex(parser *p, int n, uint32_t *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        const int c = peek(p);
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0)
            return fail_here(p, n == 2   ? "2 hexadecimal digits after \\x"
                                : n == 4 ? "4 hexadecimal digits after \\u"
                                         : "8 hexadecimal digits after \\U");
        *out = *out * 16 + (uint32_t)digit;
        p->at++;
    }
    if (*out > 0x10ffff || (*out >= 0xd800 && *out <= 0xdfff))
        return fail_at(p, p->at - (size_t)n, "a Unicode character that is no surrogate");
    return FRIT_OK;
}

// Reads one character of a literal or class, with escapes.
static frit_status read_char(parser *p, uint32_t *out)
{
    const int n = frit_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, out);
    if (n <= 0) return fail_here(p, p->at == p->text.len ? "the end of a literal or class" : "a character in UTF-8");
    p->at += (size_t)n;
    if (*out != '\\') return FRIT_OK;
    const int c = peek(p);
    if (c < 0) return fail_here(p, "a character after \\");
    p->at++;
    switch (c) {
    case 'x':
        return read_hex(p, 2, out);
    case 'u':
        return read_hex(p, 4, out);
    case 'U':
        return read_hex(p, 8, out);
    case 't':
        *out = '\t';
        return FRIT_OK;
    case 'r':
        *out = '\r';
        return FRIT_OK;
    case 'n':
        *out = '\n';
        return FRIT_OK;
    case '\\':
    case '"':
    case '[':
    case ']':
    case '-':
    case '^':
        *out = (uint32_t)c;
        return FRIT_OK;
    default:
        return fail_at(p, p->at - 1, "one of x u U t r n \\ \" [ ] - ^ after \\");
    }
}

static frit_status read_literal(parser *p, frit_fragment *out)
{
    frit_buf text = {0};
    frit_status status = FRIT_OK;
    p->at++;
    while (status == FRIT_OK && peek(p) != '"') {
        uint32_t c;
        char bytes[4];
        if (peek(p) < 0) {
            status = fail_here(p, "a closing \"");
            break;
        }
        status = read_char(p, &c);
        if (status == FRIT_OK) frit_buf_append(&text, bytes, (size_t)frit_utf8_encode(c, bytes));
    }
    p->at++;
    if (status == FRIT_OK && text.failed) status = frit_fail_memory(text.len, "a literal of a grammar");
    if (status == FRIT_OK) *out = frit_nfa_text(nfa(p), (frit_str){text.data ? text.data : "", text.len});
    frit_buf_free(&text);
    return status;
}

static frit_status read_class(parser *p, frit_fragment *out)
{
    const size_t start = p->at++;
    const bool negated = peek(p) == '^';
    size_t n = 0;
    p->at += negated;
    while (peek(p) != ']') {
        if (peek(p) < 0) return fail_here(p, "a closing ]");
        if (n == MAX_RANGES) return fail_at(p, start, "a class of at most 4096 ranges");
        frit_range *r = &p->ranges[n++];
        FRIT_TRY(read_char(p, &r->low));
        r->high = r->low;
        if (peek(p) != '-' || p->at + 1 >= p->text.len || p->text.ptr[p->at + 1] == ']') continue;
        const size_t dash = p->at++;
        FRIT_TRY(read_char(p, &r->high));
        if (r->high < r->low) return fail_at(p, dash, "a range whose end is not before its start");
    }
    p->at++;
    FRIT_TRY(frit_budget_spend(&p->builder->budget, 16 * (int64_t)n));
    n = frit_ranges_sort(p->ranges, n);
    const size_t n_inverted = negated ? frit_ranges_invert(p->ranges, n, p->inverted) : 0;
    *out = negated ? frit_nfa_chars(nfa(p), p->inverted, n_inverted) : frit_nfa_chars(nfa(p), p->ranges, n);
    return FRIT_OK;
}

static frit_status read_count(parser *p, int32_t *out)
{
    const size_t start = p->at;
    int64_t n = 0;
    for (; peek(p) >= '0' && peek(p) <= '9'; p->at++) {
        n = n * 10 + (peek(p) - '0');
        if (n > MAX_REPEATS) return fail_at(p, start, "at most 100000 repetitions");
    }
    if (p->at == start) return fail_here(p, "a number of repetitions");
    *out = (int32_t)n;
    return FRIT_OK;
}

// Reads {m}, {m,}, {,n} or {m,n}.
static frit_status read_counts(parser *p, int32_t *min, int32_t *max)
{
    const size_t start = p->at++;
    skip_space(p, true);
    *min = 0;
    if (peek(p) != ',') FRIT_TRY(read_count(p, min));
    *max = *min;
    skip_space(p, true);
    if (peek(p) == ',') {
        p->at++;
        skip_space(p, true);
        *max = FRIT_NO_LIMIT;
        if (peek(p) != '}') FRIT_TRY(read_count(p, max));
        skip_space(p, true);
    }
    if (peek(p) != '}') return fail_here(p, "a closing }");
    p->at++;
    if (*max != FRIT_NO_LIMIT && *max < *min)
        return fail_at(p, start, "a largest number of repetitions that is not below the smallest");
    return FRIT_OK;
}

static frit_status read_alternatives(parser *p, bool nested, frit_fragment *out);

static frit_status read_group(parser *p, frit_fragment *out)
{
    if (p->depth >= FRIT_GRAMMAR_DEPTH) return fail_here(p, "groups at most 200 deep");
    p->at++;
    p->depth++;
    skip_space(p, true);
    FRIT_TRY(read_alternatives(p, true, out));
    p->depth--;
    if (peek(p) != ')') return fail_here(p, "a closing )");
    p->at++;
    return FRIT_OK;
}

// Reads the id in "[id]"; -1: not of this form.
static int32_t id_of(frit_str text)
{
    int32_t id = 0;
    if (text.len < 3 || text.ptr[0] != '[' || text.ptr[text.len - 1] != ']') return -1;
    for (size_t i = 1; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return -1;
        if (id < FRIT_TOKEN) id = id * 10 + (text.ptr[i] - '0');   // no vocabulary has more tokens
    }
    return id;
}

// Reads <[id]>, or the text of a token, which begins with < and ends with >; after ! any other token.
static frit_status read_token(parser *p, frit_fragment *out)
{
    const bool negated = peek(p) == '!';
    p->at += negated;
    const size_t start = p->at;
    if (peek(p) != '<') return fail_here(p, "a token, as <[12]> or <think>, after !");
    while (peek(p) >= ' ' && peek(p) != '>' && p->at - start < MAX_TOKEN_BYTES) p->at++;
    if (peek(p) != '>') return fail_here(p, "a closing > of a token");
    p->at++;
    frit_str text = {p->text.ptr + start, p->at - start};
    int32_t id = id_of((frit_str){text.ptr + 1, text.len - 2});
    if (id >= 0) text.len = 0;
    if (!p->names) return fail_at(p, start, "text, as there is no vocabulary whose tokens could be named");
    const char *expected = p->names->find(p->names->vocab, text, &id);
    if (expected) return fail_at(p, start, expected);
    *out = frit_nfa_token(nfa(p), id, negated);
    return FRIT_OK;
}

static frit_status read_element(parser *p, frit_fragment *out)
{
    const int c = peek(p);
    static const frit_range any = {0, 0x10ffff};
    if (c == '"') return read_literal(p, out);
    if (c == '[') return read_class(p, out);
    if (c == '(') return read_group(p, out);
    if (c == '<' || c == '!') return read_token(p, out);
    if (c == '.') {
        p->at++;
        *out = frit_nfa_chars(nfa(p), &any, 1);
        return FRIT_OK;
    }
    if (!is_name_char(c)) return fail_here(p, "a \"literal\", a [class], a <token>, a rule's name, '.' or '('");
    const int32_t rule = frit_builder_rule_named(p->builder, read_name(p));
    if (rule < 0) return p->builder->failed;
    *out = frit_nfa_call(nfa(p), rule);
    return FRIT_OK;
}

static frit_status read_repeats(parser *p, bool nested, frit_fragment *part)
{
    for (int n = 0;; n++) {
        skip_space(p, nested);
        const int c = peek(p);
        int32_t min = c == '+', max = c == '?' ? 1 : FRIT_NO_LIMIT;
        if (c == '{')
            FRIT_TRY(read_counts(p, &min, &max));
        else if (c == '*' || c == '+' || c == '?')
            p->at++;
        else
            return FRIT_OK;
        *part = frit_nfa_repeat(nfa(p), *part, min, max);
    }
}

static bool is_end_of_sequence(const parser *p)
{
    const int c = peek(p);
    return c < 0 || c == '|' || c == ')' || c == '\n' || c == '\r';
}

static frit_status read_sequence(parser *p, bool nested, frit_fragment *out)
{
    *out = frit_nfa_empty(nfa(p));
    for (skip_space(p, nested); !is_end_of_sequence(p); skip_space(p, nested)) {
        frit_fragment part;
        FRIT_TRY(read_element(p, &part));
        FRIT_TRY(read_repeats(p, nested, &part));
        FRIT_TRY(frit_nfa_check(nfa(p)));
        *out = frit_nfa_seq(nfa(p), *out, part);
    }
    return FRIT_OK;
}

// True if an alternative continues, also if the next line begins with |.
static bool has_more(parser *p, bool nested)
{
    if (peek(p) == '|') return true;
    const size_t at = p->at;
    if (!nested) skip_space(p, true);
    if (peek(p) == '|') return true;
    p->at = at;
    return false;
}

static frit_status read_alternatives(parser *p, bool nested, frit_fragment *out)
{
    *out = frit_nfa_none(nfa(p));
    for (;;) {
        frit_fragment part;
        FRIT_TRY(read_sequence(p, nested, &part));
        *out = frit_nfa_or(nfa(p), *out, part);
        if (!has_more(p, nested)) return FRIT_OK;
        p->at++;
        skip_space(p, true);
    }
}

static frit_status read_rule(parser *p)
{
    const size_t start = p->at;
    const frit_str name = read_name(p);
    if (name.len == 0) return fail_here(p, "the name of a rule");
    p->rule = frit_builder_rule_named(p->builder, name);
    if (p->rule < 0) return p->builder->failed;
    if (p->builder->rules[p->rule].defined) return fail_at(p, start, "rules that are defined once");
    skip_space(p, false);
    if (p->text.len - p->at < 3 || memcmp(p->text.ptr + p->at, "::=", 3) != 0) return fail_here(p, "::=");
    p->at += 3;
    skip_space(p, true);
    frit_fragment part;
    FRIT_TRY(read_alternatives(p, false, &part));
    if (peek(p) >= 0 && peek(p) != '\n' && peek(p) != '\r') return fail_here(p, "the end of the line");
    frit_builder_define(p->builder, p->rule, part);
    return frit_nfa_check(nfa(p));
}

static frit_status read_all(parser *p)
{
    for (skip_space(p, true); peek(p) >= 0; skip_space(p, true)) FRIT_TRY(read_rule(p));
    for (int32_t r = p->builder->first_named; r < p->builder->n_rules; r++)
        if (!p->builder->rules[r].defined)
            return frit_fail(FRIT_E_INVALID, "the grammar's rule '%.64s' is used, but not defined",
                             p->builder->rules[r].name);
    return FRIT_OK;
}

frit_status frit_gbnf_add(frit_rule_builder *builder, frit_str text, const frit_token_names *names, int32_t *rule)
{
    if (text.len > FRIT_GRAMMAR_TEXT)
        return frit_fail(FRIT_E_LIMIT, "the grammar has %zu bytes; expected at most %d", text.len, FRIT_GRAMMAR_TEXT);
    parser p = {.text = text, .names = names, .builder = builder};
    p.ranges = malloc((2 * (size_t)MAX_RANGES + 1) * sizeof *p.ranges);
    if (!p.ranges) return frit_fail_memory(MAX_RANGES * sizeof *p.ranges, "a grammar");
    p.inverted = p.ranges + MAX_RANGES;
    builder->first_named = builder->n_rules;
    *rule = frit_builder_rule_named(builder, frit_str_of("root"));
    const frit_status status = *rule < 0 ? builder->failed : read_all(&p);
    free(p.ranges);
    return status;
}

frit_status frit_gbnf_compile(frit_automaton **out, frit_str text, const frit_token_names *names)
{
    *out = NULL;
    int32_t root = 0;
    frit_rule_builder builder = {0};
    frit_status status = frit_gbnf_add(&builder, text, names, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, root);
    frit_builder_free(&builder);
    return status;
}
