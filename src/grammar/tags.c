// SPDX-License-Identifier: MIT
// Structural tags: text in which triggers begin parts with a form, given as JSON. Two notations are read, those of vLLM
// and of XGrammar:
//
//     {"structures": [{"begin": "<call=now>", "schema": {...}, "end": "</call>"}], "triggers": ["<call="]}
//     {"format": {"type": "triggered_tags", "triggers": ["<call="], "tags": [{"begin", "content": {...}, "end"}]}}
//
// Every format becomes a rule. A trigger is ordinary text until it is complete; after it only the tags that begin with
// it can follow.
#include "base/number.h"
#include "grammar/grammar.h"
#include "grammar/marked.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>

enum { MAX_MARKS = 512, MAX_MARK_BYTES = 1024, MAX_TAGS = 4096, DEPTH = 100 };

typedef struct marks {   // the texts are borrowed
    const frit_str *items;
    int n;
} marks;

typedef struct tags {
    frit_rule_builder *builder;
    const frit_tags_options *o;
    char path[256];   // of the part that is read, for errors
    size_t n_path;
    int depth;
} tags;

// Adds the rule of a format. Free text within it contains none of the marks.
typedef frit_status (*add_fn)(tags *t, const json_t *format, marks without, int32_t *rule);

static frit_status add_format(tags *t, const json_t *format, marks without, int32_t *rule);

// ------------------------------------------------------------------------------------- sentences

static size_t enter(tags *t, const char *name, size_t index)
{
    const size_t before = t->n_path;
    const int n = snprintf(t->path + before, sizeof t->path - before, index == SIZE_MAX ? "%s%s" : "%s%s[%zu]",
                           before > 0 ? "." : "", name, index);
    if (n > 0 && (size_t)n < sizeof t->path - before) t->n_path += (size_t)n;
    return before;
}

static void leave(tags *t, size_t before)
{
    t->n_path = before;
    t->path[before] = 0;
}

static frit_status fail(const tags *t, frit_status status, const char *format, ...) FRIT_PRINTF(3, 4);
static frit_status fail(const tags *t, frit_status status, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    frit_vformat(what, sizeof what, format, args);
    va_end(args);
    return frit_fail(status, "structural tag%s%s: %s", t->n_path > 0 ? ", " : "", t->path, what);
}

// Prefixes the last error with the part that it is about.
static frit_status fail_within(const tags *t, frit_status status)
{
    char sentence[512];
    if (status == FRIT_OK || status == FRIT_E_MEMORY) return status;
    snprintf(sentence, sizeof sentence, "%s", frit_error());
    return fail(t, status, "%s", sentence);
}

// ------------------------------------------------------------------------------------- reading

static frit_status read_text(const tags *t, const json_t *value, const char *name, bool may_be_empty, frit_str *out)
{
    *out = (frit_str){json_string_value(value), json_string_length(value)};
    if (!json_is_string(value))
        return fail(t, FRIT_E_INVALID, "%s %s; expected a text", name, value ? "is no text" : "is missing");
    if (out->len > 0 || may_be_empty) return FRIT_OK;
    return fail(t, FRIT_E_INVALID, "%s is empty; expected a text", name);
}

// Reads a text or a list of texts. The caller frees *out.
static frit_status read_texts(tags *t, const json_t *value, const char *name, bool may_be_empty, frit_str **out, int *n)
{
    const bool is_list = json_is_array(value);
    const size_t n_texts = is_list ? json_array_size(value) : 1;
    *out = NULL;
    *n = 0;
    if (n_texts > MAX_MARKS) return fail(t, FRIT_E_LIMIT, "%zu %s; expected at most %d", n_texts, name, MAX_MARKS);
    *out = calloc(n_texts + 1, sizeof **out);
    if (!*out) return frit_fail_memory(n_texts * sizeof **out, "structural tags");
    frit_status status = FRIT_OK;
    for (size_t i = 0; status == FRIT_OK && i < n_texts; i++) {
        frit_str *text = &(*out)[*n];
        status = read_text(t, is_list ? json_array_get(value, i) : value, name, may_be_empty, text);
        if (status == FRIT_OK && text->len > MAX_MARK_BYTES)
            status = fail(t, FRIT_E_LIMIT, "%s of %zu bytes; expected at most %d", name, text->len, MAX_MARK_BYTES);
        (*n)++;
    }
    return status;
}

static frit_status read_flag(const tags *t, const json_t *format, const char *name, bool *out)
{
    const json_t *value = json_object_get(format, name);
    *out = json_is_true(value);
    if (!value || json_is_boolean(value)) return FRIT_OK;
    return fail(t, FRIT_E_INVALID, "%s is not a boolean; expected true or false", name);
}

static frit_status read_list(const tags *t, const json_t *format, const char *name, size_t *n)
{
    const json_t *list = json_object_get(format, name);
    *n = json_array_size(list);
    if (*n == 0)
        return fail(t, FRIT_E_INVALID, "%s %s; expected a list of one or more", name,
                    !list                 ? "is missing"
                    : json_is_array(list) ? "is empty"
                                          : "is no list");
    return *n <= MAX_TAGS ? FRIT_OK : fail(t, FRIT_E_LIMIT, "%zu %s; expected at most %d", *n, name, MAX_TAGS);
}

static bool starts_with(frit_str text, frit_str part)
{
    return text.len >= part.len && memcmp(text.ptr, part.ptr, part.len) == 0;
}

// True if `text` contains `part`. The search is charged to the budget; when it is exhausted, a later charge fails.
static bool contains(const tags *t, frit_str text, frit_str part)
{
    const int64_t steps = text.len < part.len ? 1 : 1 + (int64_t)((text.len - part.len + 1) * (part.len + 16) / 16);
    if (frit_budget_spend(&t->builder->budget, steps) != FRIT_OK) return false;
    for (size_t i = 0; i + part.len <= text.len; i++)
        if (memcmp(text.ptr + i, part.ptr, part.len) == 0) return true;
    return false;
}

static bool overlaps(const tags *t, frit_str a, frit_str b)   // one contains the other
{
    return contains(t, a, b) || contains(t, b, a);
}

// Returns the marks of a that overlap with no mark of b; the caller frees the items of *out.
static frit_status leave_out(const tags *t, marks a, marks b, marks *out)
{
    frit_str *kept = calloc((size_t)a.n + 1, sizeof *kept);
    *out = (marks){kept, 0};
    if (!kept) return frit_fail_memory((size_t)a.n * sizeof *kept, "structural tags");
    for (int i = 0; i < a.n; i++) {
        bool is_kept = true;
        for (int k = 0; k < b.n; k++) is_kept = is_kept && !overlaps(t, a.items[i], b.items[k]);
        if (is_kept) kept[out->n++] = a.items[i];
    }
    return FRIT_OK;
}

// Joins both lists; the caller frees the items of *out.
static frit_status join(marks a, marks b, marks *out)
{
    frit_str *all = calloc((size_t)a.n + (size_t)b.n + 1, sizeof *all);
    *out = (marks){all, 0};
    if (!all) return frit_fail_memory((size_t)(a.n + b.n) * sizeof *all, "structural tags");
    for (int i = 0; i < a.n; i++) all[out->n++] = a.items[i];
    for (int i = 0; i < b.n; i++)
        if (b.items[i].len > 0) all[out->n++] = b.items[i];
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- rules

static frit_status new_rule(tags *t, const char *name, int32_t *rule)
{
    *rule = frit_builder_rule_new(t->builder, name);
    return *rule < 0 ? t->builder->failed : FRIT_OK;
}

static frit_status end_rule(tags *t, int32_t rule, frit_fragment part)
{
    frit_builder_define(t->builder, rule, part);
    return frit_nfa_check(frit_builder_nfa(t->builder, rule));
}

// Adds a rule of the automaton and frees it. Returns `made` if making the automaton failed.
static frit_status add_dfa(tags *t, frit_status made, frit_dfa *dfa, int32_t *rule)
{
    FRIT_TRY(made);
    frit_status status = new_rule(t, "a text", rule);
    if (status == FRIT_OK) status = end_rule(t, *rule, frit_nfa_dfa(frit_builder_nfa(t->builder, *rule), dfa));
    frit_dfa_free(dfa);
    return status;
}

static frit_status add_const(tags *t, const json_t *format, marks without, int32_t *rule)
{
    frit_str text;
    (void)without;
    FRIT_TRY(read_text(t, json_object_get(format, "value"), "value", true, &text));
    FRIT_TRY(new_rule(t, "a text", rule));
    return end_rule(t, *rule, frit_nfa_text(frit_builder_nfa(t->builder, *rule), text));
}

static frit_status add_schema(tags *t, json_t *schema, int32_t *rule)
{
    if (!json_is_object(schema) && !json_is_boolean(schema))
        return fail(t, FRIT_E_INVALID, "the JSON schema %s; expected an object, true or false",
                    schema ? "is of another type" : "is missing");
    return fail_within(t, frit_schema_add(t->builder, schema, &t->o->schema, &t->o->form, rule));
}

static frit_status add_json_schema(tags *t, const json_t *format, marks without, int32_t *rule)
{
    (void)without;
    return add_schema(t, json_object_get(format, "json_schema"), rule);
}

static frit_status add_regex(tags *t, const json_t *format, marks without, int32_t *rule)
{
    frit_str text;
    (void)without;
    FRIT_TRY(read_text(t, json_object_get(format, "pattern"), "pattern", true, &text));
    return fail_within(t, frit_regex_add(t->builder, text, rule));
}

static frit_status add_grammar(tags *t, const json_t *format, marks without, int32_t *rule)
{
    frit_str text;
    (void)without;
    FRIT_TRY(read_text(t, json_object_get(format, "grammar"), "grammar", false, &text));
    return fail_within(t, frit_gbnf_add(t->builder, text, t->o->names, rule));
}

static frit_status read_excluded(tags *t, const json_t *format, marks without, marks *out)
{
    frit_str *own = NULL;
    int n = 0;
    const json_t *list = json_object_get(format, "excluded_str");
    if (!list) list = json_object_get(format, "excludes");
    frit_status status = list ? read_texts(t, list, "excluded texts", false, &own, &n) : FRIT_OK;
    *out = (marks){0};
    if (status == FRIT_OK) status = join((marks){own, n}, without, out);
    free(own);
    return status;
}

static frit_status add_any_text(tags *t, const json_t *format, marks without, int32_t *rule)
{
    frit_dfa dfa;
    marks all;
    frit_status status = read_excluded(t, format, without, &all);
    if (status == FRIT_OK)
        status = add_dfa(t, frit_text_without(&t->builder->budget, &dfa, all.items, all.n), &dfa, rule);
    free((frit_str *)(uintptr_t)all.items);
    return status;
}

// Adds a list of formats: all in sequence, or one of them.
static frit_status add_elements(tags *t, const json_t *format, marks without, bool is_sequence, int32_t *rule)
{
    size_t n;
    FRIT_TRY(read_list(t, format, "elements", &n));
    int32_t *parts = calloc(n, sizeof *parts);
    frit_status status = parts ? FRIT_OK : frit_fail_memory(n * sizeof *parts, "structural tags");
    for (size_t i = 0; status == FRIT_OK && i < n; i++) {
        const size_t before = enter(t, "elements", i);
        status = add_format(t, json_array_get(json_object_get(format, "elements"), i), without, &parts[i]);
        leave(t, before);
    }
    if (status == FRIT_OK) status = new_rule(t, "elements", rule);
    if (status == FRIT_OK) {
        frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
        frit_fragment all = is_sequence ? frit_nfa_empty(nfa) : frit_nfa_none(nfa);
        for (size_t i = 0; i < n; i++) {
            const frit_fragment part = frit_nfa_call(nfa, parts[i]);
            all = is_sequence ? frit_nfa_seq(nfa, all, part) : frit_nfa_or(nfa, all, part);
        }
        status = end_rule(t, *rule, all);
    }
    free(parts);
    return status;
}

static frit_status add_sequence(tags *t, const json_t *format, marks without, int32_t *rule)
{
    return add_elements(t, format, without, true, rule);
}

static frit_status add_or(tags *t, const json_t *format, marks without, int32_t *rule)
{
    return add_elements(t, format, without, false, rule);
}

// ------------------------------------------------------------------------------------- tags

typedef struct tag {
    frit_str begin;
    int32_t rest;   // rule of everything that follows the beginning
    int trigger;
} tag;

// Adds text up to and including the first end. Other marks do not occur in it, except ends of enclosing tags that
// overlap with its own ends: the innermost tag ends first.
static frit_status add_text_until(tags *t, const json_t *content, marks ends, marks without, int32_t *rule)
{
    frit_dfa until, others, both = {0};
    marks around, all = {0};
    frit_status status = leave_out(t, without, ends, &around);
    if (status == FRIT_OK) status = read_excluded(t, content, around, &all);
    free((frit_str *)(uintptr_t)around.items);
    if (status == FRIT_OK) status = frit_text_until(&t->builder->budget, &until, ends.items, ends.n);
    if (status == FRIT_OK && all.n > 0) {
        status = frit_text_without(&t->builder->budget, &others, all.items, all.n);
        if (status == FRIT_OK) {
            status = frit_dfa_combine(&both, &until, FRIT_DFA_AND, &others);
            frit_dfa_free(&others);
        }
        frit_dfa_free(&until);
        until = both;
    }
    if (status == FRIT_OK) status = add_dfa(t, status, &until, rule);
    free((frit_str *)(uintptr_t)all.items);
    return status;
}

static frit_status add_content(tags *t, const json_t *item, marks without, int32_t *rule)
{
    const json_t *content = json_object_get(item, "content");
    if (!content) return add_schema(t, json_object_get(item, "schema"), rule);
    const size_t before = enter(t, "content", SIZE_MAX);
    const frit_status status = add_format(t, content, without, rule);
    leave(t, before);
    return status;
}

// Adds the content, and one of the ends.
static frit_status add_rest(tags *t, const json_t *item, marks ends, marks without, int32_t *rule)
{
    const json_t *content = json_object_get(item, "content");
    const char *type = json_string_value(json_object_get(content, "type"));
    bool has_end = ends.n > 0;
    int32_t inner;
    marks all;
    for (int i = 0; i < ends.n; i++) has_end = has_end && ends.items[i].len > 0;
    if (type && strcmp(type, "any_text") == 0 && has_end) return add_text_until(t, content, ends, without, rule);
    FRIT_TRY(join(without, ends, &all));
    frit_status status = add_content(t, item, all, &inner);
    free((frit_str *)(uintptr_t)all.items);
    FRIT_TRY(status);
    FRIT_TRY(new_rule(t, "a tag", rule));
    frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
    const frit_fragment part = frit_nfa_call(nfa, inner), end = frit_nfa_none(nfa);
    for (int i = 0; i < ends.n; i++) frit_nfa_or(nfa, end, frit_nfa_text(nfa, ends.items[i]));
    return end_rule(t, *rule, frit_nfa_seq(nfa, part, end));
}

static frit_status read_tag(tags *t, const json_t *item, marks without, tag *out)
{
    frit_str *ends;
    int n_ends;
    if (!json_is_object(item)) return fail(t, FRIT_E_INVALID, "found no object; expected one with begin and end");
    FRIT_TRY(read_text(t, json_object_get(item, "begin"), "begin", true, &out->begin));
    frit_status status = read_texts(t, json_object_get(item, "end"), "end", true, &ends, &n_ends);
    if (status == FRIT_OK && n_ends == 0) status = fail(t, FRIT_E_INVALID, "end is empty; expected a text or several");
    if (status == FRIT_OK) status = add_rest(t, item, (marks){ends, n_ends}, without, &out->rest);
    free(ends);
    return status;
}

static frit_status add_tag(tags *t, const json_t *format, marks without, int32_t *rule)
{
    tag one;
    FRIT_TRY(read_tag(t, format, without, &one));
    FRIT_TRY(new_rule(t, "a tag", rule));
    frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
    const frit_fragment begin = frit_nfa_text(nfa, one.begin);
    return end_rule(t, *rule, frit_nfa_seq(nfa, begin, frit_nfa_call(nfa, one.rest)));
}

// Reads the tags of a list; the caller frees *out.
static frit_status read_tags(tags *t, const json_t *format, const char *name, marks without, tag **out, size_t *n)
{
    *out = NULL;
    FRIT_TRY(read_list(t, format, name, n));
    *out = calloc(*n, sizeof **out);
    frit_status status = *out ? FRIT_OK : frit_fail_memory(*n * sizeof **out, "structural tags");
    for (size_t i = 0; status == FRIT_OK && i < *n; i++) {
        const size_t before = enter(t, name, i);
        status = read_tag(t, json_array_get(json_object_get(format, name), i), without, &(*out)[i]);
        leave(t, before);
    }
    return status;
}

// Adds a rule for any tag that has the trigger (-1: any tag), without the first bytes of its beginning.
static frit_status add_any_tag(tags *t, const tag *all, size_t n, int trigger, size_t skip, int32_t *rule)
{
    FRIT_TRY(new_rule(t, "a tag", rule));
    frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
    const frit_fragment any = frit_nfa_none(nfa);
    for (size_t i = 0; i < n; i++) {
        if (trigger >= 0 && all[i].trigger != trigger) continue;
        const frit_fragment begin = frit_nfa_text(nfa, (frit_str){all[i].begin.ptr + skip, all[i].begin.len - skip});
        frit_nfa_or(nfa, any, frit_nfa_seq(nfa, begin, frit_nfa_call(nfa, all[i].rest)));
    }
    return end_rule(t, *rule, any);
}

static frit_status add_separated(tags *t, const json_t *format, marks without, int32_t *rule)
{
    tag *all = NULL;
    size_t n;
    int32_t one;
    frit_str separator = {"", 0};
    bool at_least_one, only_one;
    FRIT_TRY(read_flag(t, format, "at_least_one", &at_least_one));
    FRIT_TRY(read_flag(t, format, "stop_after_first", &only_one));
    FRIT_TRY(read_text(t, json_object_get(format, "separator"), "separator", true, &separator));
    frit_status status = read_tags(t, format, "tags", without, &all, &n);
    if (status == FRIT_OK) status = add_any_tag(t, all, n, -1, 0, &one);
    free(all);
    FRIT_TRY(status);
    FRIT_TRY(new_rule(t, "tags", rule));
    frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
    const frit_fragment part = frit_nfa_none(nfa), first = frit_nfa_call(nfa, one);
    frit_nfa_or(nfa, part, first);
    if (!at_least_one) frit_nfa_or(nfa, part, frit_nfa_empty(nfa));
    if (!only_one) {
        const frit_fragment next = frit_nfa_text(nfa, separator);
        frit_nfa_add(nfa, first.out, FRIT_EPSILON, FRIT_EPSILON, next.in);
        frit_nfa_add(nfa, next.out, FRIT_EPSILON, FRIT_EPSILON, first.in);
    }
    return end_rule(t, *rule, part);
}

// ------------------------------------------------------------------------------------- triggers

// Removes duplicate triggers, and refuses a trigger that contains another one, because it could never be reached.
static frit_status check_triggers(const tags *t, frit_str *triggers, int *n)
{
    int n_kept = 0;
    for (int i = 0; i < *n; i++) {
        bool is_new = true;
        for (int k = 0; k < n_kept; k++) {
            const bool longer = contains(t, triggers[i], triggers[k]), shorter = contains(t, triggers[k], triggers[i]);
            if (longer && shorter) is_new = false;
            if (longer == shorter) continue;
            const frit_str outer = triggers[longer ? i : k], inner = triggers[longer ? k : i];
            return fail(
                t, FRIT_E_INVALID,
                "the trigger '%.*s' contains the trigger '%.*s', which always comes first; expected one of them",
                (int)(outer.len < 64 ? outer.len : 64), outer.ptr, (int)(inner.len < 64 ? inner.len : 64), inner.ptr);
        }
        if (is_new) triggers[n_kept++] = triggers[i];
    }
    *n = n_kept;
    return FRIT_OK;
}

static frit_status find_triggers(const tags *t, const frit_str *triggers, int n_triggers, const char *name, tag *all,
                                 size_t n)
{
    FRIT_TRY(frit_budget_spend(&t->builder->budget, 2 * (int64_t)n * n_triggers));
    for (size_t i = 0; i < n; i++) {
        all[i].trigger = -1;
        for (int k = 0; k < n_triggers; k++)
            if (starts_with(all[i].begin, triggers[k])) all[i].trigger = k;
        if (all[i].trigger < 0)
            return fail(t, FRIT_E_INVALID, "%s[%zu].begin is '%.*s'; expected it to begin with one of the triggers",
                        name, i, (int)(all[i].begin.len < 64 ? all[i].begin.len : 64), all[i].begin.ptr);
    }
    for (int k = 0; k < n_triggers; k++) {
        bool is_used = false;
        for (size_t i = 0; i < n; i++) is_used = is_used || all[i].trigger == k;
        if (!is_used)
            return fail(t, FRIT_E_INVALID, "the trigger '%.*s' begins none of the %s; expected one or more",
                        (int)(triggers[k].len < 64 ? triggers[k].len : 64), triggers[k].ptr, name);
    }
    return FRIT_OK;
}

// Adds text up to a trigger, each with the call of its rest. Other marks do not occur in the text. Marks that overlap
// with a trigger are left out: the trigger has precedence.
static frit_status add_until_trigger(tags *t, marks triggers, const int32_t *rests, marks without, frit_dfa *out)
{
    marks all;
    FRIT_TRY(join(triggers, without, &all));
    int32_t *symbols = calloc((size_t)all.n + 1, sizeof *symbols);
    frit_str *items = (frit_str *)(uintptr_t)all.items;
    int n = triggers.n;
    for (int i = 0; symbols && i < triggers.n; i++) symbols[i] = FRIT_CALL + rests[i];
    for (int i = triggers.n; symbols && i < all.n; i++) {
        bool is_reached = true;
        for (int k = 0; k < n; k++) is_reached = is_reached && !overlaps(t, items[k], items[i]);
        if (!is_reached) continue;
        symbols[n] = FRIT_NO_SYMBOL;
        items[n++] = items[i];
    }
    const frit_status status = symbols ? frit_text_until_each(&t->builder->budget, out, items, symbols, n)
                                       : frit_fail_memory((size_t)all.n * sizeof *symbols, "structural tags");
    free(symbols);
    free(items);
    return status;
}

typedef struct triggered {
    marks triggers;
    int32_t *rests;   // rules of the text after each trigger
    int32_t first;    // rule of a tag at the beginning; -1: text may come first
    bool only_one;
} triggered;

// Makes (text-without-triggers trigger rest)* text-without-triggers.
static frit_status add_free(tags *t, const triggered *g, marks without, int32_t *rule)
{
    frit_dfa until, plain;
    marks none;
    FRIT_TRY(join(g->triggers, without, &none));
    frit_status status = add_until_trigger(t, g->triggers, g->rests, without, &until);
    if (status == FRIT_OK) {
        status = frit_text_without(&t->builder->budget, &plain, none.items, none.n);
        if (status != FRIT_OK) frit_dfa_free(&until);
    }
    free((frit_str *)(uintptr_t)none.items);
    FRIT_TRY(status);
    status = new_rule(t, "text with tags", rule);
    if (status == FRIT_OK) {
        frit_nfa *nfa = frit_builder_nfa(t->builder, *rule);
        const frit_fragment head = g->first >= 0 ? frit_nfa_call(nfa, g->first) : frit_nfa_empty(nfa);
        const frit_fragment part = frit_nfa_none(nfa);
        frit_nfa_add(nfa, head.out, FRIT_EPSILON, FRIT_EPSILON, part.in);
        if (g->first >= 0 && g->only_one) {
            frit_nfa_add(nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, part.out);
        } else {
            const frit_fragment tagged = frit_nfa_dfa(nfa, &until);
            frit_nfa_or(nfa, part, frit_nfa_dfa(nfa, &plain));
            frit_nfa_add(nfa, part.in, FRIT_EPSILON, FRIT_EPSILON, tagged.in);
            frit_nfa_add(nfa, tagged.out, FRIT_EPSILON, FRIT_EPSILON, g->only_one ? part.out : part.in);
        }
        status = end_rule(t, *rule, (frit_fragment){.in = head.in, .out = part.out});
    }
    frit_dfa_free(&until);
    frit_dfa_free(&plain);
    return status;
}

// Adds triggered tags. `name` is the member with the list of tags.
static frit_status add_triggered_of(tags *t, const json_t *format, const char *name, marks without, int32_t *rule)
{
    triggered g = {.first = -1};
    frit_str *triggers = NULL;
    tag *all = NULL;
    marks texts = {0};
    size_t n = 0, n_listed;
    bool at_least_one;
    FRIT_TRY(read_flag(t, format, "at_least_one", &at_least_one));
    FRIT_TRY(read_flag(t, format, "stop_after_first", &g.only_one));
    FRIT_TRY(read_list(t, format, "triggers", &n_listed));
    frit_status status =
        read_texts(t, json_object_get(format, "triggers"), "triggers", false, &triggers, &g.triggers.n);
    if (status == FRIT_OK) status = check_triggers(t, triggers, &g.triggers.n);
    if (status == FRIT_OK) status = read_tags(t, format, name, without, &all, &n);
    if (status == FRIT_OK) status = find_triggers(t, triggers, g.triggers.n, name, all, n);
    if (status == FRIT_OK) status = read_excluded(t, format, without, &texts);
    g.triggers.items = triggers;
    g.rests = status == FRIT_OK ? calloc((size_t)g.triggers.n, sizeof *g.rests) : NULL;
    if (status == FRIT_OK && !g.rests) status = frit_fail_memory(n_listed * sizeof *g.rests, "structural tags");
    for (int k = 0; status == FRIT_OK && k < g.triggers.n; k++)
        status = add_any_tag(t, all, n, k, triggers[k].len, &g.rests[k]);
    if (status == FRIT_OK && at_least_one) status = add_any_tag(t, all, n, -1, 0, &g.first);
    if (status == FRIT_OK) status = add_free(t, &g, texts, rule);
    free((frit_str *)(uintptr_t)texts.items);
    free(g.rests);
    free(all);
    free(triggers);
    return status;
}

static frit_status add_triggered(tags *t, const json_t *format, marks without, int32_t *rule)
{
    return add_triggered_of(t, format, "tags", without, rule);
}

// ------------------------------------------------------------------------------------- formats

static const struct {
    const char *type;
    add_fn add;
} formats[] = {
    {"const_string", add_const},
    {"json_schema", add_json_schema},
    {"regex", add_regex},
    {"grammar", add_grammar},
    {"any_text", add_any_text},
    {"sequence", add_sequence},
    {"or", add_or},
    {"tag", add_tag},
    {"triggered_tags", add_triggered},
    {"tags_with_separator", add_separated},
};

static frit_status add_format(tags *t, const json_t *format, marks without, int32_t *rule)
{
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!type)
        return fail(t, FRIT_E_INVALID, "found %s; expected an object with a type, a text",
                    format ? "no format" : "nothing");
    if (t->depth >= DEPTH) return fail(t, FRIT_E_LIMIT, "formats are more than %d deep", DEPTH);
    for (size_t i = 0; i < FRIT_COUNT(formats); i++) {
        if (strcmp(type, formats[i].type) != 0) continue;
        t->depth++;
        const frit_status status = formats[i].add(t, format, without, rule);
        t->depth--;
        return status;
    }
    return fail(t, FRIT_E_UNSUPPORTED,
                "the format '%.64s' is not known; expected const_string, json_schema, regex, grammar, any_text, "
                "sequence, or, tag, triggered_tags or tags_with_separator",
                type);
}

static frit_status add_all(tags *t, const json_t *root, int32_t *rule)
{
    const marks without = {t->o->form.without, t->o->form.n_without};
    if (json_object_get(root, "structures")) return add_triggered_of(t, root, "structures", without, rule);
    const json_t *format = json_object_get(root, "format");
    const char *type = json_string_value(json_object_get(root, "type"));
    if (!format && type && strcmp(type, "structural_tag") != 0) return add_format(t, root, without, rule);
    if (!format) return fail(t, FRIT_E_INVALID, "found neither structures nor a format; expected one of them");
    const size_t before = enter(t, "format", SIZE_MAX);
    const frit_status status = add_format(t, format, without, rule);
    leave(t, before);
    return status;
}

frit_status frit_tags_add_text(frit_rule_builder *builder, frit_str text, const frit_tags_options *options,
                               int32_t *rule)
{
    static const frit_tags_options plain;
    json_error_t error;
    tags t = {.builder = builder, .o = options ? options : &plain};
    if (text.len > FRIT_GRAMMAR_TEXT)
        return frit_fail(FRIT_E_LIMIT, "the structural tag has %zu bytes; expected at most %d", text.len,
                         FRIT_GRAMMAR_TEXT);
    const size_t bytes = frit_json_bytes(text);   // allocated while the tags are compiled
    FRIT_TRY(frit_budget_acquire(&builder->budget, bytes));
    json_t *root = json_loadb(text.ptr, text.len, 0, &error);   // no answer contains the zero character
    if (!root)
        return frit_fail(FRIT_E_INVALID, "structural tag, line %d, column %d: %s", error.line, error.column,
                         error.text);
    const frit_status status = add_all(&t, root, rule);
    json_decref(root);
    frit_budget_release(&builder->budget, bytes);
    return status;
}

frit_status frit_tags_compile(frit_automaton **out, frit_str text, const frit_tags_options *options)
{
    *out = NULL;
    int32_t root = 0;
    frit_rule_builder builder = {0};
    frit_status status = frit_tags_add_text(&builder, text, options, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, root);
    frit_builder_free(&builder);
    return status;
}
