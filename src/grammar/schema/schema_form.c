// SPDX-License-Identifier: MIT
// Arguments of calls in formats other than JSON (text/answer/format.h): names without quotes, texts between marks.
//
//     PYTHON    KEY=JSON, KEY=JSON
//     LOOSE     {KEY:VALUE, ...}; texts have the format's quotes around them, at every depth
// TAGGED    arg_open KEY key_close VALUE value_close ...; a text is written as it is, other values as JSON
//
// Texts that the parser of answers (text/answer) would read as another value are excluded: a text for which numbers are
// allowed too must begin with a letter, and may not be a word such as "true".
#include "grammar/schema/schema.h"

#include "grammar/marked.h"
#include "grammar/regex.h"
#include "text/answer/format.h"
#include "text/answer/values.h"

static const language no_texts = {.kind = LANGUAGE_NONE}, all_texts = {.kind = LANGUAGE_ALL};

bool frit_form_is(const schema *s, int style)
{
    return s->form->arguments && (int)s->form->arguments->style == style;
}

bool frit_form_is_word(const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+");
    return n > 0 && !name[n];
}

static frit_status keep(schema *s, frit_status status, frit_dfa *dfa, language *out)
{
    FRIT_TRY(status);
    *out = frit_language_keep(s, dfa);
    return s->arena.failed ? frit_fail_memory(sizeof *dfa, "a JSON schema") : FRIT_OK;
}

frit_status frit_form_allow(schema *s, language *strings)
{
    frit_dfa dfa;
    if (s->allowed.kind == LANGUAGE_NONE)
        FRIT_TRY(keep(s, frit_text_without(s->budget, &dfa, s->form->without, s->form->n_without), &dfa, &s->allowed));
    return frit_language_strings(s, *strings, FRIT_DFA_AND, s->allowed, strings);
}

static frit_status and_pattern(schema *s, language *texts, const char *pattern)
{
    frit_dfa dfa;
    language l;
    FRIT_TRY(keep(s, frit_regex_language(s->budget, &dfa, frit_str_of(pattern), false), &dfa, &l));
    return frit_language_strings(s, *texts, FRIT_DFA_AND, l, texts);
}

// Makes `before`, a text, and `tail`, which ends with the mark.
static frit_status text_part(schema *s, int32_t rule, frit_str before, language texts, frit_str tail, frit_str mark,
                             frit_fragment *out)
{
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    frit_dfa dfa;
    *out = frit_nfa_none(nfa);
    const frit_dfa *some;
    if (texts.kind == LANGUAGE_NONE) return FRIT_OK;
    FRIT_TRY(frit_language_dfa(s, &texts, &some));
    FRIT_TRY(frit_text_then(s->budget, &dfa, some, tail, mark));
    const frit_fragment open = frit_nfa_text(nfa, before);
    frit_nfa_or(nfa, *out, frit_nfa_seq(nfa, open, frit_nfa_dfa(nfa, &dfa)));
    frit_dfa_free(&dfa);
    return FRIT_OK;
}

frit_status frit_form_text(schema *s, int32_t rule, language texts, frit_fragment *out)
{
    const frit_str quote = s->form->arguments->quote;
    return text_part(s, rule, quote, texts, quote, quote, out);
}

frit_status frit_form_key(schema *s, int32_t rule, const char *name, language keys, frit_fragment *out)
{
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    *out = frit_nfa_none(nfa);
    if (name && frit_form_is_word(name)) {
        frit_nfa_or(nfa, *out, frit_nfa_text(nfa, frit_str_of(name)));
        return FRIT_OK;
    }
    if (name && frit_form_is(s, CALL_LOOSE)) return frit_form_text(s, rule, keys, out);
    if (name)
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "JSON schema: the property '%.64s' cannot be written in this model's calls", name);
    FRIT_TRY(and_pattern(s, &keys, "[A-Za-z0-9_.-]{1,64}"));
    if (keys.kind == LANGUAGE_SOME) frit_nfa_or(nfa, *out, frit_nfa_dfa(nfa, keys.dfa));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- between marks

// Makes the key of a parameter, without its marks.
static frit_status tagged_key(schema *s, int32_t rule, const char *name, language keys, frit_fragment *out)
{
    const answer_format *f = s->form->arguments;
    if (!name) return frit_form_key(s, rule, NULL, keys, out);
    if (!*name || strchr(name, f->key_close_text.ptr[0]) || strchr(name, f->key_close_other.ptr[0]))
        return frit_fail(FRIT_E_UNSUPPORTED,
                         "JSON schema: the property '%.64s' cannot be written in this model's calls", name);
    *out = frit_nfa_text(frit_builder_nfa(s->builder, rule), frit_str_of(name));
    return FRIT_OK;
}

// Makes the texts of a set that the parser reads as texts.
static frit_status tagged_texts(schema *s, int32_t set_id, unsigned types, bool says_type, language *out)
{
    static const char *const words[] = {"true", "false", "null", "True", "False", "None"};
    *out = no_texts;
    FRIT_TRY(frit_schema_language_of(s, set_id, TYPE_STRING, out));
    if (s->form->n_without > 0) FRIT_TRY(frit_form_allow(s, out));
    if (says_type || types == FRIT_PARAM_TEXT) return FRIT_OK;
    FRIT_TRY(and_pattern(s, out, "[A-Za-z][^]*"));
    for (size_t i = 0; i < FRIT_COUNT(words); i++) {
        language word = all_texts;
        char pattern[32];
        snprintf(pattern, sizeof pattern, "%s[ \\t\\r\\n]*", words[i]);
        FRIT_TRY(and_pattern(s, &word, pattern));
        FRIT_TRY(frit_language_strings(s, *out, FRIT_DFA_MINUS, word, out));
    }
    return FRIT_OK;
}

// Makes a rule for the set's values that are not texts and have a type that the parser expects.
static frit_status tagged_json(schema *s, int32_t set_id, unsigned types, int32_t *rule)
{
    const bool number = types & FRIT_PARAM_NUMBER, truth = types & FRIT_PARAM_BOOL;
    const bool wanted[N_TYPES] = {[TYPE_NULL] = types & FRIT_PARAM_NULL,
                                  [TYPE_TRUE] = truth,
                                  [TYPE_FALSE] = truth,
                                  [TYPE_NUMBER] = number,
                                  [TYPE_ARRAY] = types & FRIT_PARAM_LIST,
                                  [TYPE_OBJECT] = types & FRIT_PARAM_OBJECT};
    *rule = frit_builder_rule_new(s->builder, "value of a parameter");
    return *rule < 0 ? s->builder->failed : frit_schema_define_as(s, set_id, *rule, wanted);
}

static frit_status tagged_member(schema *s, int32_t rule, const char *name, language keys, int32_t set_id,
                                 frit_fragment *out)
{
    const answer_format *f = s->form->arguments;
    const bool says_type = f->key_close_text.len != f->key_close_other.len;
    const json_t *about = name ? json_object_get(json_object_get(s->root, "properties"), name) : NULL;
    const unsigned types = says_type ? FRIT_PARAM_ANY : frit_value_types(about);
    const frit_str line = {"\n", f->value_on_lines ? 1 : 0};
    char tail[256];
    language texts;
    int32_t json;
    frit_fragment key, text;
    if (f->value_close.len + 2 > sizeof tail) return frit_fail(FRIT_E_UNSUPPORTED, "the marks of calls are too long");
    const size_t n_tail = (size_t)snprintf(tail, sizeof tail, "%.*s%.*s", (int)line.len, line.ptr,
                                           (int)f->value_close.len, f->value_close.ptr);
    FRIT_TRY(tagged_texts(s, set_id, types, says_type, &texts));
    FRIT_TRY(tagged_json(s, set_id, types, &json));
    FRIT_TRY(frit_schema_space(s));
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    const frit_fragment open = frit_nfa_text(nfa, f->arg_open);
    FRIT_TRY(tagged_key(s, rule, name, keys, &key));
    const frit_fragment head = frit_nfa_seq(nfa, open, key), values = frit_nfa_none(nfa);
    FRIT_TRY(text_part(s, rule, line, texts, (frit_str){tail, n_tail}, f->value_close, &text));
    const frit_fragment text_close = frit_nfa_text(nfa, f->key_close_text);
    frit_nfa_add(nfa, text_close.out, FRIT_EPSILON, FRIT_EPSILON, text.in);
    frit_nfa_or(nfa, values, (frit_fragment){.in = text_close.in, .out = text.out});
    frit_fragment other = frit_nfa_text(nfa, f->key_close_other);
    other = frit_nfa_seq(nfa, other, frit_nfa_text(nfa, line));
    other = frit_nfa_seq(nfa, other, frit_nfa_call(nfa, json));
    frit_nfa_or(nfa, values, frit_nfa_seq(nfa, other, frit_nfa_text(nfa, (frit_str){tail, n_tail})));
    *out = frit_nfa_seq(nfa, head, values);
    *out = frit_nfa_seq(nfa, *out, frit_nfa_call(nfa, s->rule_space));
    return FRIT_OK;
}

frit_status frit_form_member(schema *s, int32_t rule, const char *name, language keys, int32_t set_id,
                             frit_fragment *out)
{
    int32_t value;
    if (frit_form_is(s, CALL_TAGGED)) return tagged_member(s, rule, name, keys, set_id, out);
    FRIT_TRY(frit_schema_rule_of(s, set_id, &value));
    FRIT_TRY(frit_form_key(s, rule, name, keys, out));
    frit_nfa *nfa = frit_builder_nfa(s->builder, rule);
    *out = frit_nfa_seq(nfa, *out, frit_nfa_bytes(nfa, '=', '='));
    *out = frit_nfa_seq(nfa, *out, frit_nfa_call(nfa, value));
    return FRIT_OK;
}
