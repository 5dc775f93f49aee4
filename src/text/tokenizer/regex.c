// SPDX-License-Identifier: MIT
// Translation, compilation and search. The translated parts are:
//
//     \s \S           PCRE2 counts U+180E as white space; Unicode no longer does
//     \p{Han}         scripts, which PCRE2 matches with their extensions; long names of categories
//     \w \h           Oniguruma: letters, marks, digits and connectors; a hexadecimal digit
//     [a[bc]] [a&&b]  Oniguruma: classes in classes; a&&b becomes a look-ahead before a
//     x{1,3}+         Oniguruma: repeated, not possessive
//     (?m)            Oniguruma: the dot matches newlines
//     ^ $             Oniguruma: the ends of a line, not of the text
//     \uXXXX          a code point
#include "text/tokenizer/regex.h"

#include "base/time.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <ctype.h>
#include <stdlib.h>

enum {
    MAX_SOURCE_BYTES = 1 << 14,
    MAX_NESTING = 8,
    JIT_STACK_BYTES = 32 << 20,   // for regexes that backtrack over long sequences; reserved only when needed
    HEAP_LIMIT_KB = 32 << 10,
    // The limits of the first call, before the clock is read.
    FIRST_LIMIT = 200,   // steps of backtracking; doubled for each call
    MATCH_LIMIT = 1 << 30,
    FIRST_PLACES = 1,   // start positions of a match; doubled for each call
    SHORT_BYTES = 16,   // shorter texts are searched in one call, because reading the clock takes longer
    CALLS_PER_LOOK = 256,
};

// The time limit of one text. Published regexes take up to 600 ns a byte, two or three times that on a shared core.
static const uint64_t base_ns = 300000000, byte_ns = 1500;

static const char spaces[] = "\\t-\\r\\x{85}\\p{Z}";
// Oniguruma's \w: letters, marks, decimal digits, and the numbers of Latin-1, which are superscripts and fractions.
static const char words[] = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

// ------------------------------------------------------------------------------------- translation

typedef struct translator {
    const char *begin, *at, *end;
    bool oniguruma;
    frit_buf *out;
    size_t atom;         // where the last atom starts in `out`
    size_t groups[64];   // where the open groups start
    size_t n_groups;
} translator;

static frit_status fail_at(const translator *t, const char *why)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "regex '%.*s', character %zu: %s",
                     (int)(t->end - t->begin > 200 ? 200 : t->end - t->begin), t->begin, (size_t)(t->at - t->begin),
                     why);
}

static bool is_hex(const char *p, int n)
{
    for (int i = 0; i < n; i++)
        if (!isxdigit((unsigned char)p[i])) return false;
    return true;
}

// Properties with other names in PCRE2.
static const struct {
    const char *name, *as;
} properties[] = {
    {"Letter", "L"},
    {"Mark", "M"},
    {"Number", "N"},
    {"Punctuation", "P"},
    {"Symbol", "S"},
    {"Separator", "Z"},
    {"Other", "C"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Decimal_Number", "Nd"},
    {"Digit", "Nd"},
    {"Alpha", "Alphabetic"},
    {"Punct", "P"},
    {"Space", "White_Space"},
    {"Upper", "Uppercase"},
    {"Lower", "Lowercase"},
    {"Any", "Any"},
    {"Alphabetic", "Alphabetic"},
    {"White_Space", "White_Space"},
    {"Uppercase", "Uppercase"},
    {"Lowercase", "Lowercase"},
    {"Emoji", "Emoji"},
    {"Ideographic", "Ideographic"},
    {"Extended_Pictographic", "Extended_Pictographic"},
};

// Translates \p{Han}: scripts are meant without their extensions. Returns the number of bytes read, or 0 for other
// names.
static size_t translate_property(translator *t)
{
    const char *name = t->at + 3, *close = name < t->end ? memchr(name, '}', (size_t)(t->end - name)) : NULL;
    if (t->end - t->at < 4 || t->at[2] != '{' || !close || *name == '^') return 0;
    size_t n = (size_t)(close - name);
    bool script = n > 2 && isupper((unsigned char)*name) && islower((unsigned char)name[1]) && !memchr(name, '=', n) &&
                  !memchr(name, ':', n);
    if (!script) return 0;
    for (size_t i = 0; i < FRIT_COUNT(properties); i++) {
        if (strlen(properties[i].name) != n || memcmp(properties[i].name, name, n) != 0) continue;
        frit_buf_printf(t->out, "\\%c{%s}", t->at[1], properties[i].as);
        return (size_t)(close + 1 - t->at);
    }
    frit_buf_printf(t->out, "\\%c{sc:%.*s}", t->at[1], (int)n, name);
    return (size_t)(close + 1 - t->at);
}

// Translates an escape at t->at, in a class or outside.
static void translate_escape(translator *t, bool in_class)
{
    char c = t->at + 1 < t->end ? t->at[1] : 0;
    const char *open = in_class ? "" : "[", *close = in_class ? "" : "]";
    size_t n = c == 'p' || c == 'P' ? translate_property(t) : 0;
    if (n > 0) {
        t->at += n;
        return;
    }
    n = 2;
    if (c == 's') {
        frit_buf_printf(t->out, "%s%s%s", open, spaces, close);
    } else if (c == 'S' && !in_class) {
        frit_buf_printf(t->out, "[^%s]", spaces);
    } else if (t->oniguruma && c == 'w') {
        frit_buf_printf(t->out, "%s%s%s", open, words, close);
    } else if (t->oniguruma && c == 'W' && !in_class) {
        frit_buf_printf(t->out, "[^%s]", words);
    } else if (t->oniguruma && c == 'h') {
        frit_buf_printf(t->out, "%s0-9A-Fa-f%s", open, close);
    } else if (c == 'u' && t->end - t->at >= 6 && is_hex(t->at + 2, 4)) {
        frit_buf_printf(t->out, "\\x{%.4s}", t->at + 2);
        n = 6;
    } else {
        n = (size_t)(t->end - t->at) < n ? 1 : n;
        frit_buf_append(t->out, t->at, n);
    }
    t->at += n;
}

static frit_status translate_class(translator *t, int depth);

// Drops the brackets of the classes in the output from `start` on, because a union of classes is one class. Inner
// classes must be plain ones.
static frit_status flatten_classes(translator *t, size_t start)
{
    size_t to = start;
    for (size_t i = start; i < t->out->len; i++) {
        char c = t->out->data[i];
        bool posix = c == '[' && t->out->data[i + 1] == ':';
        if (c == '\\') {
            t->out->data[to++] = t->out->data[i++];
        } else if (posix) {
            while (t->out->data[i] != ']') t->out->data[to++] = t->out->data[i++];
        } else if (c == '[' && t->out->data[i + 1] == '^') {
            return fail_at(t, "a negated class inside a class");
        } else if (c == '(') {
            return fail_at(t, "an intersection inside a class");
        } else if (c == '[' || c == ']') {
            continue;
        }
        t->out->data[to++] = t->out->data[i];
    }
    t->out->len = to;
    return FRIT_OK;
}

// Translates the inside of a class up to && or its end. *single: it is exactly one class.
static frit_status translate_members(translator *t, int depth, bool *single)
{
    size_t start = t->out->len;
    int n_classes = 0;
    bool others = false;
    for (bool first = true; t->at < t->end; first = false) {
        if (*t->at == ']' && !first) break;
        if (t->oniguruma && t->end - t->at >= 2 && t->at[0] == '&' && t->at[1] == '&') break;
        if (*t->at == '\\') {
            translate_escape(t, true);
            others = true;
        } else if (*t->at == '[' && t->end - t->at >= 2 && t->at[1] == ':') {
            const char *close = memchr(t->at, ']', (size_t)(t->end - t->at));
            if (!close) return fail_at(t, "a class without its end");
            frit_buf_append(t->out, t->at, (size_t)(close + 1 - t->at));
            t->at = close + 1;
            others = true;
        } else if (*t->at == '[' && t->oniguruma) {
            FRIT_TRY(translate_class(t, depth + 1));
            n_classes++;
        } else {
            if (*t->at == '[') frit_buf_char(t->out, '\\');
            frit_buf_char(t->out, *t->at++);
            others = true;
        }
    }
    *single = n_classes == 1 && !others;
    return n_classes == 0 || *single || t->out->failed ? FRIT_OK : flatten_classes(t, start);
}

// Translates a class: [A&&B&&C] becomes (?:(?=B)(?=C)A), its negation [^A&&B&&C] becomes (?:(?!(?=B)(?=C)A)(?s:.)).
static frit_status translate_class(translator *t, int depth)
{
    if (depth > MAX_NESTING) return fail_at(t, "classes are nested too deep");
    frit_buf *out = t->out, first = {0}, others = {0};
    t->at++;
    bool negated = t->at < t->end && *t->at == '^', single = false;
    t->at += negated;
    int n = 0;
    frit_status status = FRIT_OK;
    for (bool more = true; more && status == FRIT_OK; n++) {
        frit_buf members = {0};
        t->out = &members;
        status = translate_members(t, depth, &single);
        if (status == FRIT_OK && members.len == 0) status = fail_at(t, "an empty class");
        const char *open = single ? "" : "[", *close = single ? "" : "]";
        if (n == 0)
            frit_buf_printf(&first, "%s%s%s%s", open, negated && !single && t->at < t->end && *t->at == ']' ? "^" : "",
                            members.len ? members.data : "", close);
        else
            frit_buf_printf(&others, "(?=%s%s%s)", open, members.len ? members.data : "", close);
        frit_buf_free(&members);
        more = t->at < t->end && *t->at == '&';
        if (more) t->at += 2;
    }
    t->out = out;
    if (status == FRIT_OK && t->at >= t->end) status = fail_at(t, "a class without its end");
    t->at++;
    const char *head = others.len ? others.data : "", *tail = first.len ? first.data : "";
    if (n == 1 && !(negated && single))
        frit_buf_text(out, tail);
    else
        frit_buf_printf(out, negated ? "(?:(?!%s%s)(?s:.))" : "(?:%s%s)", head, tail);
    if (first.failed || others.failed) out->failed = true;
    frit_buf_free(&first);
    frit_buf_free(&others);
    return status;
}

// Puts the last atom into a group, so that the next quantifier repeats the repetition.
static void wrap_atom(translator *t)
{
    size_t n = t->out->len - t->atom;
    if (!frit_buf_reserve(t->out, 4)) return;
    char *atom = t->out->data + t->atom;
    memmove(atom + 3, atom, n);
    memcpy(atom, "(?:", 3);
    t->out->len += 3;
    frit_buf_char(t->out, ')');
}

static void translate_group(translator *t)
{
    if (t->n_groups < FRIT_COUNT(t->groups)) t->groups[t->n_groups++] = t->out->len;
    frit_buf_char(t->out, *t->at++);
    if (t->end - t->at < 2 || t->at[0] != '?') return;
    const char *p = t->at + 1;
    while (p < t->end && (islower((unsigned char)*p) || *p == '-')) p++;
    if (!t->oniguruma || p == t->end || (*p != ':' && *p != ')')) return;
    for (; t->at < p; t->at++) frit_buf_char(t->out, *t->at == 'm' ? 's' : *t->at);
}

static frit_status translate(translator *t)
{
    while (t->at < t->end) {
        size_t before = t->out->len;
        char c = *t->at;
        if (c == '\\') {
            translate_escape(t, false);
        } else if (c == '[') {
            FRIT_TRY(translate_class(t, 0));
        } else if (c == '(') {
            translate_group(t);
        } else if (c == ')') {
            before = t->n_groups > 0 ? t->groups[--t->n_groups] : before;
            frit_buf_char(t->out, *t->at++);
        } else if (c == '{') {
            while (t->at < t->end && *t->at != '}') frit_buf_char(t->out, *t->at++);
            if (t->at < t->end) frit_buf_char(t->out, *t->at++);
            if (t->oniguruma && t->at < t->end && *t->at == '+') wrap_atom(t);
            continue;
        } else {
            frit_buf_char(t->out, *t->at++);
            if (c == '*' || c == '+' || c == '?') continue;
            while (t->at < t->end && ((unsigned char)*t->at & 0xc0) == 0x80) frit_buf_char(t->out, *t->at++);
        }
        t->atom = before;
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- compilation

static frit_status compile(frit_regex **out, frit_str source, frit_str translated, uint32_t options)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    *out = pcre2_compile((PCRE2_SPTR)translated.ptr, translated.len, PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT | options,
                         &error, &at, NULL);
    if (*out) {
        pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);   // optional: JIT only makes it faster
        return FRIT_OK;
    }
    char why[128] = "out of memory";
    pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
    return frit_fail(FRIT_E_FORMAT, "regex '%.*s' cannot be used: %s", (int)(source.len < 200 ? source.len : 200),
                     source.ptr, why);
}

frit_status frit_regex_new(frit_regex **out, frit_str source, frit_dialect dialect)
{
    *out = NULL;
    if (source.len > MAX_SOURCE_BYTES)
        return frit_fail(FRIT_E_LIMIT, "a regex has %zu bytes, expected at most %d", source.len, MAX_SOURCE_BYTES);
    frit_buf translated = {0};
    translator t = {.begin = source.ptr,
                    .at = source.ptr,
                    .end = source.ptr + source.len,
                    .oniguruma = dialect == FRIT_DIALECT_ONIGURUMA,
                    .out = &translated};
    frit_status status = translate(&t);
    if (status == FRIT_OK && translated.failed) status = frit_fail_memory(source.len, "a regex");
    if (status == FRIT_OK)
        status = compile(out, source, (frit_str){translated.len ? translated.data : "", translated.len},
                         PCRE2_UCP | (t.oniguruma ? PCRE2_MULTILINE : 0));
    frit_buf_free(&translated);
    return status;
}

frit_status frit_regex_new_literal(frit_regex **out, frit_str text)
{
    return compile(out, text, text, PCRE2_LITERAL);
}

void frit_regex_free(frit_regex *regex)
{
    pcre2_code_free(regex);
}

// ------------------------------------------------------------------------------------- search

frit_status frit_matcher_init(frit_matcher *matcher)
{
    *matcher = (frit_matcher){.data = pcre2_match_data_create(1, NULL), .context = pcre2_match_context_create(NULL)};
    if (!matcher->data || !matcher->context) {
        frit_matcher_deinit(matcher);
        return frit_fail_memory(sizeof(size_t) * 2, "a regex match");
    }
    pcre2_set_heap_limit(matcher->context, HEAP_LIMIT_KB);
    matcher->may_take_ns = base_ns;
    return FRIT_OK;
}

void frit_matcher_allow(frit_matcher *matcher, size_t n_bytes)
{
    matcher->may_take_ns += n_bytes * byte_ns;
}

// Checks the time limit. `doubles`: the next attempt may take as long as all before, so half of the limit must be left.
// Otherwise three quarters may be used, because a harmless text may be long and the processor slow.
static frit_status look_at_clock(frit_matcher *m, size_t from, bool doubles)
{
    uint64_t now = frit_time_thread_ns();
    if (m->start_ns == 0) m->start_ns = now;
    if (now - m->start_ns < (doubles ? m->may_take_ns / 2 : m->may_take_ns / 4 * 3)) return FRIT_OK;
    return frit_fail(
        FRIT_E_TIMEOUT,
        "a regex of the tokenizer takes too long for this text, byte %zu: it backtracks or looks ahead too often",
        from);
}

void frit_matcher_deinit(frit_matcher *matcher)
{
    pcre2_match_context_free(matcher->context);
    pcre2_jit_stack_free(matcher->stack);
    pcre2_match_data_free(matcher->data);
    *matcher = (frit_matcher){0};
}

// Gives the matcher a larger JIT stack, because the thread's default stack was too small.
static bool enlarge(frit_matcher *m)
{
    if (m->stack) return false;
    m->stack = pcre2_jit_stack_create(1 << 16, JIT_STACK_BYTES, NULL);
    if (!m->stack) return false;
    pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return true;
}

static int search(frit_matcher *m, const frit_regex *regex, frit_str text, size_t from, uint32_t options)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)text.ptr;
    options |= PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
    int rc = pcre2_match(regex, subject, text.len, from, options, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && enlarge(m))
        rc = pcre2_match(regex, subject, text.len, from, options, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(regex, subject, text.len, from, options | PCRE2_NO_JIT, m->data, m->context);
    return rc;
}

static frit_status fail_search(int rc, size_t from)
{
    char why[128];
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)why, sizeof why);
    return frit_fail(rc == PCRE2_ERROR_NOMEMORY ? FRIT_E_MEMORY : FRIT_E_TIMEOUT,
                     "a regex of the tokenizer fails on this text at byte %zu: %s", from, why);
}

// PCRE2's limits do not bound the time of a call, because a step may scan the whole text. So the first call tries one
// position and a few steps; each further call doubles both, after a check of the clock.
frit_status frit_matcher_next(frit_matcher *m, const frit_regex *regex, frit_str text, size_t from, size_t *start,
                              size_t *end, bool *found)
{
    uint32_t limit = FIRST_LIMIT;
    size_t at = from, places = text.len - from <= SHORT_BYTES ? SHORT_BYTES : FIRST_PLACES;
    *found = false;
    if (++m->n_calls % CALLS_PER_LOOK == 0) FRIT_TRY(look_at_clock(m, from, false));
    for (;;) {
        size_t last = text.len - at > places ? at + places - 1 : text.len;
        pcre2_set_match_limit(m->context, limit);
        pcre2_set_offset_limit(m->context, last);
        int rc = search(m, regex, text, at, 0);
        if (rc >= 0) {
            const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
            *start = span[0];
            *end = span[1];
            *found = *start <= *end && *start >= from;   // false for \K in a look-around
            return FRIT_OK;
        }
        if (rc == PCRE2_ERROR_NOMATCH) {
            if (last >= text.len) return FRIT_OK;
            for (at = last + 1; at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80;) at++;
            places *= 2;
        } else if (rc == PCRE2_ERROR_MATCHLIMIT && limit < MATCH_LIMIT) {
            limit *= 2;
        } else {
            return fail_search(rc, from);
        }
        FRIT_TRY(look_at_clock(m, from, true));
    }
}
