// SPDX-License-Identifier: MIT
// Loading a schema: its resources and references.
#include "grammar/schema/schema.h"

#include "text/answer/format.h"

#include <stdlib.h>

frit_status frit_schema_fail(const char *keyword, const char *what)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: '%s' %s", keyword, what);
}

// ------------------------------------------------------------------------------------- URIs

// The end of a part of a URI: the position of the first character that is in `ends`.
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

// Resolves a URI reference against a base (RFC 3986, 5.2), without its fragment.
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
    {"dependencies", MAP},
    {"additionalProperties", ONE},
    {"additionalItems", ONE},
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
        if (subschemas[i].shape == LIST || json_is_array(below))   // `items` is a schema or a list
            json_array_foreach(below, k, one) FRIT_TRY(find_resources(s, one, base, depth));
        if (subschemas[i].shape == MAP)
            json_object_foreach(below, key, one) FRIT_TRY(find_resources(s, one, base, depth));
    }
    return FRIT_OK;
}

static frit_status add_anchor(schema *s, const char *base, const char *anchor, json_t *value)
{
    frit_buf uri = {0};
    frit_buf_printf(&uri, "%s#%s", base, anchor);
    const char *text = uri.failed ? NULL : frit_schema_text(s, uri.data, uri.len);
    frit_buf_free(&uri);
    return frit_schema_add_resource(s, text, value, base);
}

// Registers $id and $anchor of a schema and of the schemas in it.
static frit_status find_resources(schema *s, json_t *value, const char *base, int depth)
{
    if (!json_is_object(value)) return FRIT_OK;
    if (depth >= FRIT_GRAMMAR_DEPTH)
        return frit_fail(FRIT_E_LIMIT, "JSON schema: subschemas are more than %d deep", FRIT_GRAMMAR_DEPTH);
    FRIT_TRY(frit_budget_spend(s->budget, 16 + 8 * (int64_t)json_object_size(value)));
    const char *id = frit_schema_id(s, value);
    if (id && id[0] == '#') {   // up to draft-07: an anchor
        FRIT_TRY(add_anchor(s, base, id + 1, value));
    } else if (id) {
        base = join(s, base, id);
        FRIT_TRY(frit_schema_add_resource(s, base, value, base));
    }
    static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
    for (size_t i = 0; i < FRIT_COUNT(anchors); i++) {
        const char *anchor = json_string_value(json_object_get(value, anchors[i]));
        if (anchor) FRIT_TRY(add_anchor(s, base, anchor, value));
    }
    return find_below(s, value, base, depth + 1);
}

bool frit_schema_is_reference(const schema *s, json_t *value)
{
    return s->dialect != DRAFT_ANY && s->dialect <= DRAFT_07 && json_object_get(value, "$ref");
}

const char *frit_schema_id(const schema *s, json_t *value)
{
    if (frit_schema_is_reference(s, value)) return NULL;
    return json_string_value(json_object_get(value, s->dialect == DRAFT_04 ? "id" : "$id"));
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

// Follows a JSON pointer, whose escapes include those of URIs. NULL if it leads nowhere.
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

static frit_status resolve(schema *s, const char *base, const char *text, resource *out)
{
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

static frit_status resolve_dynamic(schema *s, const char *text, resource *out)
{
    const char *name = text + part(text, "#") + 1;
    const char *anchor = json_string_value(json_object_get(out->value, "$dynamicAnchor"));
    if (!anchor || !strchr(text, '#') || strcmp(anchor, name) != 0) return FRIT_OK;   // equivalent to $ref
    FRIT_TRY(frit_budget_spend(s->budget, 8 * (int64_t)s->n_resources));
    for (int32_t i = 0; i < s->n_resources; i++) {
        json_t *other = s->resources[i].value;
        const char *same = json_string_value(json_object_get(other, "$dynamicAnchor"));
        if (other != out->value && same && strcmp(same, anchor) == 0)
            return frit_schema_fail("$dynamicRef", "depends on how a schema is reached: its anchor occurs twice");
    }
    return FRIT_OK;
}

static bool is_recursive(json_t *value)
{
    return json_is_true(json_object_get(value, "$recursiveAnchor"));
}

static frit_status resolve_recursive(schema *s, const resource *out)
{
    if (!is_recursive(out->value)) return FRIT_OK;   // equivalent to $ref
    FRIT_TRY(frit_budget_spend(s->budget, 8 * (int64_t)s->n_resources));
    for (int32_t i = 0; i < s->n_resources; i++) {
        json_t *other = s->resources[i].value;
        if (other != out->value && is_recursive(other))
            return frit_schema_fail("$recursiveRef",
                                    "depends on how a schema is reached: '$recursiveAnchor' occurs twice");
    }
    return FRIT_OK;
}

frit_status frit_schema_resolve(schema *s, const char *keyword, const char *base, json_t *reference, resource *out)
{
    const char *text = json_string_value(reference);
    if (!text) return frit_fail(FRIT_E_INVALID, "JSON schema: a '%s' is not a text", keyword);
    if (strcmp(keyword, "$recursiveRef") == 0 && strcmp(text, "#") != 0)
        return frit_fail(FRIT_E_INVALID, "JSON schema: a '$recursiveRef' is '%.60s'; expected '#'", text);
    FRIT_TRY(resolve(s, base, text, out));
    if (strcmp(keyword, "$dynamicRef") == 0) return resolve_dynamic(s, text, out);
    return strcmp(keyword, "$recursiveRef") == 0 ? resolve_recursive(s, out) : FRIT_OK;
}

// ------------------------------------------------------------------------------------- compiling

static frit_status read_dialect(schema *s)
{
    static const struct {
        const char *part;
        schema_dialect dialect;
    } dialects[] = {{"draft-04/", DRAFT_04},           {"draft-06/", DRAFT_06},           {"draft-07/", DRAFT_07},
                    {"draft/2019-09/", DRAFT_2019_09}, {"draft/2020-12/", DRAFT_2020_12}, {"schema", DRAFT_ANY}};
    static const char place[] = "://json-schema.org/";
    const char *uri = json_string_value(json_object_get(s->root, "$schema"));
    const char *at = uri ? strstr(uri, place) : NULL;
    if (!uri) return FRIT_OK;
    if (!at) return frit_schema_fail("$schema", "is not one of json-schema.org");
    for (size_t i = 0; i < FRIT_COUNT(dialects); i++) {
        if (strncmp(at + strlen(place), dialects[i].part, strlen(dialects[i].part)) != 0) continue;
        s->dialect = dialects[i].dialect;
        return FRIT_OK;
    }
    return frit_fail(FRIT_E_UNSUPPORTED,
                     "JSON schema: '$schema' is '%.100s'; expected draft-04, draft-06, draft-07, 2019-09 or 2020-12",
                     uri);
}

static frit_status make_rules(schema *s)
{
    FRIT_TRY(frit_schema_begin_sets(s));
    FRIT_TRY(read_dialect(s));
    FRIT_TRY(frit_schema_add_resource(s, "", s->root, ""));
    FRIT_TRY(find_resources(s, s->root, "", 0));
    s->rule_number = s->rule_space = -1;
    const char *base = frit_schema_base(s, s->root, "");
    return frit_schema_set_of(s, s->root, base, &s->first_set);
}

// Makes the rule of an object's members in the syntax of calls.
static frit_status make_arguments(schema *s, int32_t *rule)
{
    int32_t object;
    FRIT_TRY(frit_schema_set_of(s, s->object, "", &object));
    FRIT_TRY(frit_schema_set_and(s, s->first_set, object, &s->first_set));
    if (!frit_form_is(s, CALL_PYTHON) && !frit_form_is(s, CALL_TAGGED))
        return frit_schema_rule_of(s, s->first_set, rule);
    *rule = frit_builder_rule_new(s->builder, "arguments of a call");
    return *rule < 0 ? s->builder->failed : frit_schema_define_arguments(s, s->first_set, *rule);
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

frit_status frit_schema_add(frit_rule_builder *builder, json_t *root, const frit_schema_options *options,
                            const frit_schema_form *form, int32_t *rule)
{
    static const frit_schema_form plain;
    schema *s = calloc(1, sizeof *s);
    if (!s) return frit_fail_memory(sizeof *s, "a JSON schema");
    s->budget = &builder->budget;
    s->complete = options && options->complete;
    s->any_order = options && (options->any_order || options->complete);
    s->ignore_formats = options && options->ignore_formats;
    s->open_objects = options && options->open_objects;
    s->root = root;
    s->builder = builder;
    s->form = form ? form : &plain;
    s->object = json_pack("{s:s}", "type", "object");
    frit_status status = s->object ? make_rules(s) : frit_schema_no_memory(s);
    if (status == FRIT_OK)
        status = s->form->arguments ? make_arguments(s, rule) : frit_schema_rule_of(s, s->first_set, rule);
    for (int32_t i = 0; status == FRIT_OK && i < s->n_queue; i++)
        status = frit_schema_define(s, s->queue[i]);   // may append to the queue
    if (status == FRIT_OK) status = frit_schema_define_counted(s);
    free_parts(s);
    return status;
}

frit_status frit_schema_add_text(frit_rule_builder *builder, frit_str text, const frit_schema_options *options,
                                 const frit_schema_form *form, int32_t *rule)
{
    json_error_t error;
    if (text.len > FRIT_GRAMMAR_TEXT)
        return frit_fail(FRIT_E_LIMIT, "the JSON schema has %zu bytes; expected at most %d", text.len,
                         FRIT_GRAMMAR_TEXT);
    const size_t bytes = frit_json_bytes(text);   // allocated while the schema is compiled
    FRIT_TRY(frit_budget_acquire(&builder->budget, bytes));
    FRIT_TRY(frit_budget_spend(&builder->budget, (int64_t)(bytes + 4 * text.len) / 8));
    json_t *root = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!root)
        return frit_fail(FRIT_E_INVALID, "JSON schema, line %d, column %d: %s", error.line, error.column, error.text);
    const frit_status status = frit_schema_add(builder, root, options, form, rule);
    json_decref(root);
    frit_budget_release(&builder->budget, bytes);
    return status;
}

frit_status frit_schema_compile(frit_automaton **out, frit_str text, const frit_schema_options *options)
{
    *out = NULL;
    int32_t root = 0;
    frit_rule_builder builder = {0};
    frit_status status = frit_schema_add_text(&builder, text, options, NULL, &root);
    if (status == FRIT_OK) status = frit_automaton_compile(out, &builder, root);
    frit_builder_free(&builder);
    return status;
}
