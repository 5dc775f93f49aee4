// SPDX-License-Identifier: MIT
// Compiles a row's regexes with PCRE2 and cuts text with them, one after the other:
//
//     borders       |..................text..................|
//     regex 1       |....|match|......|match|match|..........|
//     regex 2       |.|m||match|..    every piece by itself: look-arounds do not see over a border
#include "text/pretok.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdlib.h>

enum {
    JIT_STACK_BYTES = 64 << 20,   // for regexes that go back over long runs; reserved only when needed
    MATCH_LIMIT = 1 << 30,
    HEAP_LIMIT_KB = 256 << 10,
};

// ------------------------------------------------------------------------------------- regexes

// PCRE2's \s knows U+180E, which Unicode took off its list of white space; the libraries that models are trained with
// do not. So \s is spelled out.
static void spell_out(const char *regex, frit_buf *out)
{
    static const char spaces[] = "\\t-\\r\\x{85}\\p{Z}";
    bool in_class = false;
    for (const char *at = regex; *at; at++) {
        if (*at == '\\' && at[1] == 's') {
            frit_buf_printf(out, in_class ? "%s" : "[%s]", spaces);
            at++;
        } else if (*at == '\\' && at[1] == 'S') {
            frit_buf_printf(out, "[^%s]", spaces);
            at++;
        } else if (*at == '\\') {
            frit_buf_append(out, at, 2);
            at++;
        } else {
            if (*at == '[') in_class = true;
            if (*at == ']') in_class = false;
            frit_buf_char(out, *at);
        }
    }
}

static frit_status compile(const char *regex, pcre2_code **code)
{
    frit_buf spelled = {0};
    spell_out(regex, &spelled);
    int error = 0;
    PCRE2_SIZE at = 0;
    if (!spelled.failed)
        *code = pcre2_compile((PCRE2_SPTR)spelled.data, spelled.len, PCRE2_UTF | PCRE2_UCP, &error, &at, NULL);
    frit_buf_free(&spelled);
    if (*code) {
        pcre2_jit_compile(*code, PCRE2_JIT_COMPLETE);   // without JIT it is only slower
        return FRIT_OK;
    }
    char why[128] = "out of memory";
    if (error != 0) pcre2_get_error_message(error, (PCRE2_UCHAR *)why, sizeof why);
    return frit_fail(FRIT_E_INTERNAL, "pre-tokenizer regex, character %zu: %s", (size_t)at, why);
}

frit_status frit_pretok_init(frit_pretok *pretok, const frit_pretok_row *row)
{
    *pretok = (frit_pretok){0};
    for (; pretok->n < FRIT_PRETOK_MAX_REGEXES && row->regexes[pretok->n]; pretok->n++) {
        frit_status status = compile(row->regexes[pretok->n], &pretok->codes[pretok->n]);
        if (status != FRIT_OK) {
            frit_pretok_deinit(pretok);
            return status;
        }
    }
    return FRIT_OK;
}

void frit_pretok_deinit(frit_pretok *pretok)
{
    for (int i = 0; i < pretok->n; i++) pcre2_code_free(pretok->codes[i]);
    *pretok = (frit_pretok){0};
}

// ------------------------------------------------------------------------------------- words

static void push(frit_words *words, size_t end)
{
    if (words->n == words->capacity) {
        size_t capacity = words->capacity ? words->capacity * 2 : 256;
        size_t *ends = capacity < SIZE_MAX / sizeof *ends ? realloc(words->ends, capacity * sizeof *ends) : NULL;
        if (!ends) {
            words->failed = true;
            return;
        }
        words->ends = ends;
        words->capacity = capacity;
    }
    words->ends[words->n++] = end;
}

void frit_words_free(frit_words *words)
{
    free(words->ends);
    *words = (frit_words){0};
}

// ------------------------------------------------------------------------------------- matching

typedef struct matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;   // NULL until the small stack has been too small
    pcre2_jit_stack *stack;
} matcher;

static bool enlarge(matcher *m)
{
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(1 << 16, JIT_STACK_BYTES, NULL);
    if (!m->context || !m->stack) return false;
    pcre2_jit_stack_assign(m->context, NULL, m->stack);
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KB);
    return true;
}

// Finds the next match in `piece` at or behind `from`: 1 found, 0 none, negative: PCRE2's error.
static int next_match(matcher *m, const pcre2_code *code, frit_str piece, size_t from, size_t *start, size_t *end)
{
    PCRE2_SPTR subject = (PCRE2_SPTR)piece.ptr;
    int rc = pcre2_match(code, subject, piece.len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    bool limited = rc == PCRE2_ERROR_JIT_STACKLIMIT || rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT;
    if (limited && !m->context && enlarge(m))
        rc = pcre2_match(code, subject, piece.len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(code, subject, piece.len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
    if (rc == PCRE2_ERROR_NOMATCH) return 0;
    if (rc < 0) return rc;
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m->data);
    *start = span[0];
    *end = span[1];
    return 1;
}

// Cuts text[begin, end) into matches and what lies between them.
static frit_status cut(matcher *m, const pcre2_code *code, frit_str text, size_t begin, size_t end, frit_words *out)
{
    frit_str piece = {text.ptr + begin, end - begin};
    size_t done = 0, match_start = 0, match_end = 0;
    while (done < piece.len) {
        int found = next_match(m, code, piece, done, &match_start, &match_end);
        if (found < 0) {
            char why[128];
            pcre2_get_error_message(found, (PCRE2_UCHAR *)why, sizeof why);
            return frit_fail(found == PCRE2_ERROR_NOMEMORY ? FRIT_E_MEMORY : FRIT_E_LIMIT,
                             "the text cannot be cut into words, byte %zu: %s", begin + done, why);
        }
        if (!found || match_end == match_start) break;   // no row matches nothing
        if (match_start > done) push(out, begin + match_start);
        push(out, begin + match_end);
        done = match_end;
    }
    if (done < piece.len) push(out, end);
    return FRIT_OK;
}

static frit_status split(matcher *m, const frit_pretok *pretok, frit_str text, frit_words *words, frit_words *next)
{
    push(words, text.len);
    for (int i = 0; i < pretok->n; i++) {
        next->n = 0;
        size_t begin = 0;
        for (size_t k = 0; k < words->n; k++) {
            FRIT_TRY(cut(m, pretok->codes[i], text, begin, words->ends[k], next));
            begin = words->ends[k];
        }
        if (words->failed || next->failed) return frit_fail_memory(text.len, "the words of the text");
        frit_words swap = *words;
        *words = *next;
        *next = swap;
    }
    return words->failed ? frit_fail_memory(text.len, "the words of the text") : FRIT_OK;
}

frit_status frit_pretok_split(const frit_pretok *pretok, frit_str text, frit_words *out)
{
    out->n = 0;
    if (text.len == 0) return FRIT_OK;
    matcher m = {.data = pcre2_match_data_create(1, NULL)};
    if (!m.data) return frit_fail_memory(sizeof(size_t) * 2, "a regex match");
    frit_words next = {0};
    frit_status status = split(&m, pretok, text, out, &next);
    frit_words_free(&next);
    pcre2_match_context_free(m.context);
    pcre2_jit_stack_free(m.stack);
    pcre2_match_data_free(m.data);
    return status;
}
