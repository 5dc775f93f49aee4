// SPDX-License-Identifier: MIT
// Loading a schema: its resources and references.
#include "grammar/schema.h"

#include "text/answer/format.h"

#include <stdlib.h>

frit_status frit_schema_fail(const char *keyword, const char *what)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: '%s' %s", keyword, what);
}

// ------------------------------------------------------------------------------------- URIs

// The end of a part of an URI: up to one of the characters in `ends`.
static size_t part(const char *uri, const char *ends)
{
    return strcspn(uri, ends);
}

static bool has_scheme(const char *uri)
{
    const size_t n = part(uri, ":/?#");
    return n > 0 && uri[n] == ':';
}

// Removes "." and ".." from the path that begins at `from`.
static void remove_dots(frit_buf *uri, size_t from)
{
    size_t out = from;
    char *d = uri->data;
    for (size_t i = from; i < uri->len;) {
        size_t n = 1;
        while (i + n < uri->len && d[i + n] != '/') n++;
        if (n == 3 && memcmp(d + i, "/..", 3) == 0) {
            while (out > from && d[--out] != '/') {
            }
            if (i + n == uri->len) d[out++] = '/';
        } else if (n == 2 && memcmp(d + i, "/.", 2) == 0) {
            if (i + n == uri->len) d[out++] = '/';
        } else {
            memmove(d + out, d + i, n);
            out += n;
        }
        i += n;
    }
    uri->len = out;
    d[out] = 0;
}

// An URI reference against a base (RFC 3986, 5.2), without its fragment.
static const char *join(schema *s, const char *base, const char *reference)
{
    frit_buf out = {0};
    const size_t n = part(reference, "#"), scheme = has_scheme(base) ? part(base, ":") + 1 : 0;
    const size_t authority = strncmp(base + scheme, "//", 2) == 0 ? 2 + part(base + scheme + 2, "/?#") : 0;
    if (has_scheme(reference)) {
        frit_buf_append(&out, reference, n);
    } else if (n == 0) {
        frit_buf_append(&out, base, part(base, "#"));
    } else if (strncmp(reference, "//", 2) == 0) {
        frit_buf_append(&out, base, scheme);
        frit_buf_append(&out, reference, n);
    } else {
        frit_buf_append(&out, base, scheme + authority);
        const char *path = base + scheme + authority;
        size_t keep = part(path, "?#");
        while (keep > 0 && path[keep - 1] != '/') keep--;
        if (reference[0] != '/') frit_buf_append(&out, path, keep);
        if (reference[0] != '/' && keep == 0 && authority > 0) frit_buf_char(&out, '/');
        frit_buf_append(&out, reference, n);
        if (!out.failed) remove_dots(&out, scheme + authority);
    }
    const char *text = out.failed ? NULL : frit_schema_text(s, out.data ? out.data : "", out.len);
    frit_buf_free(&out);
    return text;
}

static const struct {
    const char *keyword;
    enum { ONE, LIST, MAP } shape;
} subschemas[] = {
    {"$defs", MAP},
    {"definitions", MAP},
    {"properties", MAP},
    {"patternProperties", MAP},
    {"dependentSchemas", MAP},
    {"additionalProperties", ONE},
    {"propertyNames", ONE},
    {"items", ONE},
    {"contains", ONE},
    {"not", ONE},
    {"if", ONE},
    {"then", ONE},
    {"else", ONE},
    {"unevaluatedItems", ONE},
    {"unevaluatedProperties", ONE},
    {"prefixItems", LIST},
    {"allOf", LIST},
    {"anyOf", LIST},
    {"oneOf", LIST},
};

static frit_status find_resources(schema *s, json_t *value, const char *base, int depth);

static frit_status find_below(schema *s, json_t *value, const char *base, int depth)
{
    const char *keyword, *key;
    json_t *below, *one;
    size_t k;
    json_object_foreach(value, keyword, below)
    {
        size_t i = 0;
        if (!json_is_object(below) && !json_is_array(below)) continue;
        while (i < FRIT_COUNT(subschemas) && strcmp(subschemas[i].keyword, keyword) != 0) i++;
        if (i == FRIT_COUNT(subschemas)) continue;
        if (subschemas[i].shape == ONE) FRIT_TRY(find_resources(s, below, base, depth));
        if (subschemas[i].shape == LIST)
            json_array_foreach(below, k, one) FRIT_TRY(find_resources(s, one, base, depth));
        if (subschemas[i].shape == MAP)
            json_object_foreach(below, key, one) FRIT_TRY(find_resources(s, one, base, depth));
    }
    return FRIT_OK;
}

// Registers $id and $anchor of a schema and those in it.
static frit_status find_resources(schema *s, json_t *value, const char *base, int depth)
{
    if (!json_is_object(value)) return FRIT_OK;
    if (depth >= FRIT_GRAMMAR_DEPTH)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: subschemas are more than %d deep", FRIT_GRAMMAR_DEPTH);
    FRIT_TRY(frit_budget_spend(s->budget, 16 + 8 * (int64_t)json_object_size(value)));
    const char *id = frit_schema_id(s, value);
    if (id) {
        base = join(s, base, id);
        FRIT_TRY(frit_schema_add_resource(s, base, value, base));
    }
    static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
    for (size_t i = 0; i < FRIT_COUNT(anchors); i++) {
        const char *anchor = json_string_value(json_object_get(value, anchors[i]));
        frit_buf uri = {0};
        if (!anchor) continue;
        frit_buf_printf(&uri, "%s#%s", base, anchor);
        const char *text = uri.failed ? NULL : frit_schema_text(s, uri.data, uri.len);
        frit_buf_free(&uri);
        FRIT_TRY(frit_schema_add_resource(s, text, value, base));
    }
    return find_below(s, value, base, depth + 1);
}

const char *frit_schema_id(const schema *s, json_t *value)
{
    (void)s;
    return json_string_value(json_object_get(value, "$id"));
}

const char *frit_schema_base(const schema *s, json_t *value, const char *base)
{
    const int32_t found = frit_schema_id(s, value) ? frit_schema_find_value(s, value) : -1;
    return found >= 0 ? s->resources[found].base : base;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

// Follows a JSON pointer, whose escapes are those of URIs too. NULL: it leads nowhere.
static json_t *follow(schema *s, resource *at, const char *pointer)
{
    json_t *value = at->value;
    while (value && *pointer == '/') {
        if (frit_budget_spend(s->budget, 32) != FRIT_OK) return NULL;
        char key[512];
        size_t n = 0;
        for (pointer++; *pointer && *pointer != '/' && n + 1 < sizeof key; pointer++) {
            char c = *pointer;
            if (c == '%' && hex(pointer[1]) >= 0 && hex(pointer[2]) >= 0) {
                c = (char)(hex(pointer[1]) * 16 + hex(pointer[2]));
                pointer += 2;
            }
            key[n++] = c;
        }
        size_t out = 0;
        for (size_t i = 0; i < n; i++, out++) {
            const bool escaped = key[i] == '~' && i + 1 < n && (key[i + 1] == '0' || key[i + 1] == '1');
            key[out] = escaped ? key[i + 1] == '0' ? '~' : '/' : key[i];
            i += escaped;
        }
        key[out] = 0;
        value =
            json_is_array(value) ? json_array_get(value, (size_t)strtoul(key, NULL, 10)) : json_object_get(value, key);
        if (json_is_object(value)) at->base = frit_schema_base(s, value, at->base);
    }
    return *pointer ? NULL : value;
}

frit_status frit_schema_resolve(schema *s, const char *base, json_t *reference, resource *out)
{
    const char *text = json_string_value(reference);
    if (!text) return frit_fail(FRIT_E_INVALID, "JSON schema: a '$ref' is not a text");
    const char *uri = join(s, base, text), *fragment = text + part(text, "#");
    if (!uri) return frit_schema_no_memory(s);
    fragment += *fragment == '#';
    frit_buf wanted = {0};
    const bool anchor = *fragment && *fragment != '/';
    frit_buf_printf(&wanted, anchor ? "%s#%s" : "%s", uri, fragment);
    const int32_t found = wanted.failed ? -1 : frit_schema_find_uri(s, wanted.data ? wanted.data : "");
    frit_buf_free(&wanted);
    *out = found >= 0 ? s->resources[found] : (resource){0};
    if (out->value && *fragment == '/') out->value = follow(s, out, fragment);
    FRIT_TRY(frit_budget_spend(s->budget, 0));
    if (out->value) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: '$ref' to '%.200s', which is not in the schema", text);
}

frit_status frit_schema_resolve_dynamic(schema *s, const char *base, json_t *reference, resource *out)
{
    FRIT_TRY(frit_schema_resolve(s, base, reference, out));
    const char *text = json_string_value(reference), *name = text + part(text, "#") + 1;
    const char *anchor = json_string_value(json_object_get(out->value, "$dynamicAnchor"));
    if (!anchor || !strchr(text, '#') || strcmp(anchor, name) != 0) return FRIT_OK;   // the same as $ref
    FRIT_TRY(frit_budget_spend(s->budget, 8 * (int64_t)s->n_resources));
    for (int32_t i = 0; i < s->n_resources; i++) {
        json_t *other = s->resources[i].value;
        const char *same = json_string_value(json_object_get(other, "$dynamicAnchor"));
        if (other != out->value && same && strcmp(same, anchor) == 0)
            return frit_schema_fail("$dynamicRef", "depends on how a schema is reached: its anchor occurs twice");
    }
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- compiling

static frit_status check_dialect(const schema *s)
{
    const char *dialect = json_string_value(json_object_get(s->root, "$schema"));
    if (!dialect || strstr(dialect, "://json-schema.org/")) return FRIT_OK;
    return frit_schema_fail("$schema", "is not one of json-schema.org");
}

static frit_status make_rules(schema *s)
{
    FRIT_TRY(frit_schema_begin_sets(s));
    FRIT_TRY(check_dialect(s));
    FRIT_TRY(frit_schema_add_resource(s, "", s->root, ""));
    FRIT_TRY(find_resources(s, s->root, "", 0));
    s->rule_number = s->rule_space = -1;
    const char *base = frit_schema_base(s, s->root, "");
    return frit_schema_set_of(s, s->root, base, &s->first_set);
}

// The rule of an object's members, as calls write them.
static frit_status make_arguments(schema *s, int32_t *rule)
{
    int32_t object;
    FRIT_TRY(frit_schema_set_of(s, s->object, "", &object));
    FRIT_TRY(frit_schema_set_and(s, s->first_set, object, &s->first_set));
    if (!frit_form_is(s, CALL_PYTHON) && !frit_form_is(s, CALL_TAGGED))
        return frit_schema_rule_of(s, s->first_set, rule);
    *rule = frit_draft_rule_new(s->draft, "arguments of a call");
    return *rule < 0 ? s->draft->failed : frit_schema_define_arguments(s, s->first_set, *rule);
}

static void free_parts(schema *s)
{
    for (int32_t i = 0; i < s->n_dfas; i++) {
        frit_dfa_free(s->dfas[i]);
        free(s->dfas[i]);
    }
    frit_schema_free_list(s, s->dfas, s->dfas_room, sizeof(frit_dfa *));
    frit_schema_free_list(s, s->queue, s->queue_room, sizeof *s->queue);
    frit_schema_free_list(s, s->counted, s->counted_room, sizeof *s->counted);
    frit_schema_free_store(s);
    json_decref(s->object);
    free(s);
}

frit_status frit_schema_add(frit_draft *draft, json_t *root, const frit_schema_options *options,
                            const frit_schema_form *form, int32_t *rule)
{
    static const frit_schema_form plain;
    schema *s = calloc(1, sizeof *s);
    if (!s) return frit_fail_memory(sizeof *s, "a JSON schema");
    s->budget = &draft->budget;
    s->complete = options && options->complete;
    s->any_order = options && (options->any_order || options->complete);
    s->ignore_formats = options && options->ignore_formats;
    s->root = root;
    s->draft = draft;
    s->form = form ? form : &plain;
    s->object = json_pack("{s:s}", "type", "object");
    frit_status status = s->object ? make_rules(s) : frit_schema_no_memory(s);
    if (status == FRIT_OK)
        status = s->form->arguments ? make_arguments(s, rule) : frit_schema_rule_of(s, s->first_set, rule);
    for (int32_t i = 0; status == FRIT_OK && i < s->n_queue; i++)
        status = frit_schema_define(s, s->queue[i]);   // which adds others
    if (status == FRIT_OK) status = frit_schema_define_counted(s);
    free_parts(s);
    return status;
}

frit_status frit_schema_add_text(frit_draft *draft, frit_str text, const frit_schema_options *options,
                                 const frit_schema_form *form, int32_t *rule)
{
    json_error_t error;
    if (text.len > FRIT_GRAMMAR_TEXT)
        return frit_fail(FRIT_E_LIMIT, "the JSON schema has %zu bytes; expected at most %d", text.len,
                         FRIT_GRAMMAR_TEXT);
    const size_t bytes = frit_json_bytes(text);   // held while the schema is compiled
    FRIT_TRY(frit_budget_take(&draft->budget, bytes));
    FRIT_TRY(frit_budget_spend(&draft->budget, (int64_t)(bytes + 4 * text.len) / 8));
    json_t *root = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!root)
        return frit_fail(FRIT_E_INVALID, "JSON schema, line %d, column %d: %s", error.line, error.column, error.text);
    const frit_status status = frit_schema_add(draft, root, options, form, rule);
    json_decref(root);
    frit_budget_give(&draft->budget, bytes);
    return status;
}

frit_status frit_schema_compile(frit_automaton **out, frit_str text, const frit_schema_options *options)
{
    *out = NULL;
    int32_t root = 0;
    frit_draft draft = {0};
    frit_status status = frit_schema_add_text(&draft, text, options, NULL, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &draft, root);
    frit_draft_free(&draft);
    return status;
}
