// SPDX-License-Identifier: MIT
// The preprocessor of kernels, line by line.
#include "backend/webgpu/runtime/wgsl.h"

#include "base/arena.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEFINES = 128, MOST_DEPTH = 16 };

typedef struct define {
    frit_str name, text;
} define;

typedef struct maker {
    frit_arena arena;   // texts of repeats
    define defines[MOST_DEFINES];
    size_t n_defines;
    const char *included[MOST_DEPTH];
    int n_included;
    int depth;
    bool is_active[MOST_DEPTH], was_active[MOST_DEPTH];   // of nested #if
    int n_ifs;
    frit_buf *out;
} maker;

static frit_status process(maker *m, frit_str text);

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// ------------------------------------------------------------------------------- names

static const define *find_define(const maker *m, frit_str name)
{
    for (size_t i = m->n_defines; i-- > 0;)
        if (m->defines[i].name.len == name.len && memcmp(m->defines[i].name.ptr, name.ptr, name.len) == 0)
            return &m->defines[i];
    return NULL;
}

static frit_status add_define(maker *m, frit_str name, frit_str text)
{
    if (m->n_defines == MOST_DEFINES)
        return frit_fail(FRIT_E_INTERNAL, "a kernel has more than %d definitions", (int)MOST_DEFINES);
    m->defines[m->n_defines++] = (define){name, text};
    return FRIT_OK;
}

static void expand(const maker *m, frit_str text, int depth, frit_buf *out)
{
    for (size_t i = 0; i < text.len;) {
        size_t n = 0;
        while (i + n < text.len && is_name(text.ptr[i + n])) n++;
        if (n == 0) {
            frit_buf_append(out, text.ptr + i++, 1);
            continue;
        }
        const frit_str name = {text.ptr + i, n};
        const bool is_field = i > 0 && text.ptr[i - 1] == '.';
        const define *found = is_field || depth == MOST_DEPTH ? NULL : find_define(m, name);
        const define *unsigned_one = !found && !is_field && depth < MOST_DEPTH && text.ptr[i + n - 1] == 'u'
                                         ? find_define(m, (frit_str){name.ptr, n - 1})
                                         : NULL;
        if (unsigned_one) frit_buf_text(out, "u32(");
        if (found || unsigned_one)
            expand(m, (found ? found : unsigned_one)->text, depth + 1, out);
        else
            frit_buf_append(out, name.ptr, n);
        if (unsigned_one) frit_buf_char(out, ')');
        i += n;
    }
}

// ------------------------------------------------------------------------------- conditions

typedef struct scanner {
    const char *at;
    bool failed;
} scanner;

static int64_t parse_level(scanner *s, int level);

static void skip_spaces(scanner *s)
{
    while (*s->at == ' ') s->at++;
}

static int64_t parse_value(scanner *s)
{
    skip_spaces(s);
    if (*s->at == '!') return s->at++, !parse_value(s);
    if (*s->at == '-') return s->at++, -parse_value(s);
    if (*s->at == '(') {
        s->at++;
        const int64_t value = parse_level(s, 0);
        skip_spaces(s);
        s->failed = s->failed || *s->at != ')';
        s->at += *s->at == ')';
        return value;
    }
    int64_t value = 0;
    const bool is_number = isdigit((unsigned char)*s->at);
    s->failed = s->failed || !is_name(*s->at);
    for (; is_name(*s->at); s->at++)
        if (is_number && isdigit((unsigned char)*s->at)) value = value * 10 + *s->at - '0';
    return value;
}

static const struct {
    const char *text;
    int level;
} operators[] = {{"||", 0}, {"&&", 1}, {"==", 2}, {"!=", 2}, {"<=", 3}, {">=", 3},
                 {"<", 3},  {">", 3},  {"+", 4},  {"-", 4},  {"*", 5},  {"/", 5}};
enum { N_LEVELS = 6 };

static int64_t apply(size_t op, int64_t a, int64_t b)
{
    switch (op) {
    case 0:
        return a || b;
    case 1:
        return a && b;
    case 2:
        return a == b;
    case 3:
        return a != b;
    case 4:
        return a <= b;
    case 5:
        return a >= b;
    case 6:
        return a < b;
    case 7:
        return a > b;
    case 8:
        return a + b;
    case 9:
        return a - b;
    case 10:
        return a * b;
    default:
        return b ? a / b : 0;
    }
}

static int64_t parse_level(scanner *s, int level)
{
    if (level == N_LEVELS) return parse_value(s);
    int64_t value = parse_level(s, level + 1);
    for (bool found = true; found;) {
        found = false;
        skip_spaces(s);
        for (size_t i = 0; i < FRIT_COUNT(operators) && !found; i++) {
            const size_t n = strlen(operators[i].text);
            if (strncmp(s->at, operators[i].text, n) != 0) continue;
            if (operators[i].level != level) break;
            s->at += n;
            value = apply(i, value, parse_level(s, level + 1));
            found = true;
        }
    }
    return value;
}

static frit_status evaluate(const maker *m, frit_str text, int64_t *out)
{
    frit_buf expanded = {0};
    expand(m, text, 0, &expanded);
    scanner s = {.at = expanded.data ? expanded.data : ""};
    *out = parse_level(&s, 0);
    skip_spaces(&s);
    const bool failed = s.failed || *s.at || expanded.failed;
    frit_buf_free(&expanded);
    if (!failed) return FRIT_OK;
    return frit_fail(FRIT_E_INTERNAL, "a kernel has the expression '%.*s', which has no value", (int)text.len,
                     text.ptr);
}

// ------------------------------------------------------------------------------- directives

static bool is_active(const maker *m)
{
    for (int i = 0; i < m->n_ifs; i++)
        if (!m->is_active[i]) return false;
    return true;
}

static frit_str trimmed(frit_str s)
{
    while (s.len > 0 && isspace((unsigned char)s.ptr[0])) s.ptr++, s.len--;
    while (s.len > 0 && isspace((unsigned char)s.ptr[s.len - 1])) s.len--;
    return s;
}

// The line at the beginning of *text, without its comment, and moves *text after it.
static frit_str take_line(frit_str *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    const size_t n = end ? (size_t)(end - text->ptr) : text->len;
    frit_str line = {text->ptr, n};
    text->ptr += n + (end ? 1 : 0);
    text->len -= n + (end ? 1 : 0);
    for (size_t i = 0; i + 1 < line.len; i++)
        if (line.ptr[i] == '/' && line.ptr[i + 1] == '/') line.len = i;
    return trimmed(line);
}

static bool takes_word(frit_str *line, const char *word)
{
    if (!frit_str_starts(*line, word)) return false;
    const size_t n = strlen(word);
    if (n < line->len && is_name(line->ptr[n])) return false;
    *line = trimmed((frit_str){line->ptr + n, line->len - n});
    return true;
}

static frit_str take_name(frit_str *line)
{
    size_t n = 0;
    while (n < line->len && is_name(line->ptr[n])) n++;
    const frit_str name = {line->ptr, n};
    *line = trimmed((frit_str){line->ptr + n, line->len - n});
    return name;
}

static frit_status include(maker *m, frit_str name)
{
    if (name.len < 2) return frit_fail(FRIT_E_INTERNAL, "a kernel includes a file without a name");
    name = (frit_str){name.ptr + 1, name.len - 2};
    for (int i = 0; i < m->n_included; i++)
        if (frit_str_is(name, m->included[i])) return FRIT_OK;
    for (size_t i = 0; i < frit_wgsl_n_sources; i++) {
        if (!frit_str_is(name, frit_wgsl_sources[i].name)) continue;
        if (m->n_included == MOST_DEPTH) return frit_fail(FRIT_E_INTERNAL, "a kernel includes too many files");
        m->included[m->n_included++] = frit_wgsl_sources[i].name;
        return process(m, frit_str_of(frit_wgsl_sources[i].text));
    }
    return frit_fail(FRIT_E_INTERNAL, "there is no kernel %.*s", (int)name.len, name.ptr);
}

// Takes the lines up to the matching #end from *text.
static frit_str take_body(frit_str *text)
{
    frit_str body = {text->ptr, 0};
    for (int depth = 1; text->len > 0;) {
        const char *begin = text->ptr;
        frit_str line = take_line(text);
        if (takes_word(&line, "#repeat")) depth++;
        if (takes_word(&line, "#end") && --depth == 0) {
            body.len = (size_t)(begin - body.ptr);
            return body;
        }
    }
    body.len = (size_t)(text->ptr - body.ptr);
    return body;
}

static frit_status repeat(maker *m, frit_str line, frit_str body)
{
    const frit_str name = take_name(&line);
    int64_t n = 0;
    if (name.len == 0) return frit_fail(FRIT_E_INTERNAL, "a kernel repeats lines without a name");
    FRIT_TRY(evaluate(m, line, &n));
    for (int64_t i = 0; i < n; i++) {
        frit_buf text = {0};
        for (size_t k = 0; k < body.len; k++) {
            if (body.ptr[k] == '@' && k + name.len < body.len && memcmp(body.ptr + k + 1, name.ptr, name.len) == 0) {
                frit_buf_printf(&text, "%d", (int)i);
                k += name.len;
            } else {
                frit_buf_char(&text, body.ptr[k]);
            }
        }
        char *kept = frit_arena_text(&m->arena, text.data ? text.data : "", text.len);
        const bool failed = text.failed || !kept;
        frit_buf_free(&text);
        if (failed) return frit_fail_memory(body.len, "a kernel");
        FRIT_TRY(process(m, frit_str_of(kept)));
    }
    return FRIT_OK;
}

static frit_status run_if(maker *m, frit_str line)
{
    int64_t value = 0;
    if (m->n_ifs == MOST_DEPTH) return frit_fail(FRIT_E_INTERNAL, "a kernel has too many nested conditions");
    if (is_active(m)) FRIT_TRY(evaluate(m, line, &value));
    m->is_active[m->n_ifs] = m->was_active[m->n_ifs] = value != 0;
    m->n_ifs++;
    return FRIT_OK;
}

static frit_status run_else(maker *m, bool has_condition, frit_str line)
{
    int64_t value = 1;
    const int i = m->n_ifs - 1;
    if (i < 0) return frit_fail(FRIT_E_INTERNAL, "a kernel has #else without #if");
    m->is_active[i] = false;
    m->n_ifs--;   // the condition is of the block around
    const bool outer = is_active(m);
    if (outer && has_condition && !m->was_active[i]) FRIT_TRY(evaluate(m, line, &value));
    m->n_ifs++;
    m->is_active[i] = !m->was_active[i] && value != 0;
    m->was_active[i] = m->was_active[i] || value != 0;
    return FRIT_OK;
}

static frit_status run_directive(maker *m, frit_str line, frit_str *text)
{
    if (takes_word(&line, "#if")) return run_if(m, line);
    if (takes_word(&line, "#elif")) return run_else(m, true, line);
    if (takes_word(&line, "#else")) return run_else(m, false, line);
    if (takes_word(&line, "#endif")) {
        if (m->n_ifs == 0) return frit_fail(FRIT_E_INTERNAL, "a kernel has #endif without #if");
        m->n_ifs--;
        return FRIT_OK;
    }
    if (takes_word(&line, "#repeat")) {
        const frit_str body = take_body(text);
        return is_active(m) ? repeat(m, line, body) : FRIT_OK;
    }
    if (!is_active(m)) return FRIT_OK;
    if (takes_word(&line, "#include")) return include(m, line);
    if (takes_word(&line, "#define")) {
        const frit_str name = take_name(&line);
        return add_define(m, name, line);
    }
    return frit_fail(FRIT_E_INTERNAL, "a kernel has the directive '%.*s'", (int)line.len, line.ptr);
}

static frit_status process(maker *m, frit_str text)
{
    if (m->depth == 2 * MOST_DEPTH) return frit_fail(FRIT_E_INTERNAL, "a kernel is nested too deeply");
    m->depth++;
    while (text.len > 0) {
        const frit_str line = take_line(&text);
        if (line.len > 0 && line.ptr[0] == '#')
            FRIT_TRY(run_directive(m, line, &text));
        else if (line.len > 0 && is_active(m)) {
            expand(m, line, 0, m->out);
            frit_buf_char(m->out, '\n');
        }
    }
    m->depth--;
    return FRIT_OK;
}

frit_status frit_wgsl_make_text(const char *text, const char *const *defines, size_t n, frit_buf *out)
{
    maker *m = calloc(1, sizeof *m);
    if (!m) return frit_fail_memory(sizeof *m, "a kernel");
    m->out = out;
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < n && status == FRIT_OK; i++) {
        const char *equals = strchr(defines[i], '=');
        const size_t length = equals ? (size_t)(equals - defines[i]) : strlen(defines[i]);
        status = add_define(m, (frit_str){defines[i], length}, frit_str_of(equals ? equals + 1 : "1"));
    }
    if (status == FRIT_OK) status = process(m, frit_str_of(text));
    if (status == FRIT_OK && m->n_ifs > 0) status = frit_fail(FRIT_E_INTERNAL, "a kernel has #if without #endif");
    frit_arena_free(&m->arena);
    free(m);
    if (status == FRIT_OK && out->failed) return frit_fail_memory(out->len, "a kernel");
    return status;
}

frit_status frit_wgsl_make(const char *file, const char *const *defines, size_t n, frit_buf *out)
{
    for (size_t i = 0; i < frit_wgsl_n_sources; i++)
        if (strcmp(frit_wgsl_sources[i].name, file) == 0)
            return frit_wgsl_make_text(frit_wgsl_sources[i].text, defines, n, out);
    return frit_fail(FRIT_E_INTERNAL, "there is no kernel %s", file);
}
