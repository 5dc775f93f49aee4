// SPDX-License-Identifier: MIT
// Loading a schema: literals and sets, which are interned, and references.
#include "grammar/schema.h"

#include "text/answer/format.h"

#include <stdlib.h>

frit_status frit_schema_fail(const char *keyword, const char *what)
{
    return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: '%s' %s", keyword, what);
}

static frit_status fail_memory(void)
{
    return frit_fail_memory(sizeof(set), "a JSON schema");
}

static bool grow(void *items, int32_t n, int32_t *room, size_t size)
{
    if (n < *room) return true;
    const int32_t more = *room ? *room * 2 : 64;
    void *grown = realloc(*(void **)items, (size_t)more * size);
    if (!grown) return false;
    *(void **)items = grown;
    *room = more;
    return true;
}

// ------------------------------------------------------------------------------------- literals and sets

// Keywords that say nothing about the value.
static bool is_remark(const char *keyword)
{
    static const char *const remarks[] = {"title",    "description", "default",  "examples",
                                          "$comment", "deprecated",  "readOnly", "writeOnly"};
    for (size_t i = 0; i < FRIT_COUNT(remarks); i++)
        if (strcmp(keyword, remarks[i]) == 0) return true;
    return false;
}

static uint64_t hash_text(const char *text, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

// Equal values have equal hashes. *left: how many more values may be looked at; below 0: the value is not small.
static uint64_t hash_value(json_t *value, int depth, int *left)
{
    enum { MAX_DEPTH = 4 };
    uint64_t h = (uint64_t)json_typeof(value) + 1;
    const char *key;
    size_t i;
    json_t *one;
    if (--*left < 0 || depth > MAX_DEPTH) *left = -1;
    if (*left < 0) return 0;
    if (json_is_string(value)) h ^= hash_text(json_string_value(value), json_string_length(value));
    if (json_is_integer(value)) h += (uint64_t)json_integer_value(value) * 0x9e3779b97f4a7c15u;
    if (json_is_real(value)) {
        const double real = json_real_value(value);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        h += bits * 0x9e3779b97f4a7c15u;
    }
    json_array_foreach(value, i, one) h = h * 31 + hash_value(one, depth + 1, left);
    json_object_foreach(value, key, one)
    {
        if (depth == 0 && is_remark(key)) continue;
        h += (hash_text(key, strlen(key)) ^ hash_value(one, depth + 1, left)) * 0x9e3779b97f4a7c15u;
    }
    return h;
}

// Whether two schemas have equal keywords, but for remarks.
static bool same_keywords(json_t *a, json_t *b)
{
    const char *key;
    json_t *one;
    size_t n_a = 0, n_b = 0;
    json_object_foreach(b, key, one) n_b += !is_remark(key);
    json_object_foreach(a, key, one)
    {
        if (is_remark(key)) continue;
        n_a++;
        if (!json_equal(one, json_object_get(b, key))) return false;
    }
    return n_a == n_b;
}

static bool same_literal(schema *s, const literal *a, const literal *b)
{
    enum { MAX_COMPARED = 100000 };   // equal hashes may be on purpose
    if (a->kind != b->kind || a->n_any != b->n_any) return false;
    if (a->kind == LITERAL_ANY) return memcmp(a->any, b->any, (size_t)a->n_any * sizeof *a->any) == 0;
    if (a->kind == LITERAL_CONST) return json_equal(a->value, b->value);
    if (a->value == b->value) return true;
    if (a->hash == 0 || a->hash != b->hash || strcmp(a->base, b->base) != 0) return false;
    return s->n_compared++ < MAX_COMPARED && same_keywords(a->value, b->value);
}

static frit_status add_literal(schema *s, const literal *l, int32_t *out)
{
    for (int32_t i = 0; i < s->n_literals; i++) {
        if (!same_literal(s, &s->literals[i], l)) continue;
        *out = 2 * i;
        return FRIT_OK;
    }
    if (s->n_literals >= 20000) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 20000 subschemas");
    void *items = s->literals;
    if (!grow(&items, s->n_literals, &s->literals_room, sizeof *s->literals)) return fail_memory();
    s->literals = items;
    s->literals[s->n_literals] = *l;
    *out = 2 * s->n_literals++;
    return FRIT_OK;
}

frit_status frit_schema_literal(schema *s, literal_kind kind, json_t *value, const char *base, int32_t *out)
{
    enum { SMALL = 64 };
    literal l = {.kind = kind, .value = value, .base = base};
    int left = SMALL;
    if (kind == LITERAL_SCHEMA && !json_object_get(value, "$id")) l.hash = hash_value(value, 0, &left);
    if (left < 0) l.hash = 0;
    return add_literal(s, &l, out);
}

frit_status frit_schema_any(schema *s, const int32_t *sets, int32_t n, int32_t *out)
{
    int32_t *copy = frit_arena_new(&s->arena, int32_t, (size_t)n);
    if (!copy) return fail_memory();
    if (n > 0) memcpy(copy, sets, (size_t)n * sizeof *sets);
    return add_literal(s, &(literal){.kind = LITERAL_ANY, .any = copy, .n_any = n}, out);
}

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static frit_status add_set(schema *s, const int32_t *literals, int32_t n, int32_t *out)
{
    for (int32_t i = 0; i < s->n_sets; i++) {
        *out = i;
        if (s->sets[i].n == n && i != SET_FALSE &&
            (n == 0 || memcmp(s->sets[i].literals, literals, (size_t)n * sizeof *literals) == 0))
            return FRIT_OK;
    }
    if (s->n_sets >= 20000) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 20000 combinations of subschemas");
    void *items = s->sets;
    int32_t *copy = frit_arena_new(&s->arena, int32_t, (size_t)n);
    if (!copy || !grow(&items, s->n_sets, &s->sets_room, sizeof *s->sets)) return fail_memory();
    if (n > 0) memcpy(copy, literals, (size_t)n * sizeof *literals);
    s->sets = items;
    s->sets[ *out = s->n_sets++] = (set){.literals = copy, .n = n, .rule = -1, .empty = -1};
    return FRIT_OK;
}

frit_status frit_schema_set(schema *s, const int32_t *literals, int32_t n, int32_t *out)
{
    int32_t sorted[256], kept = 0;
    if (n > 256) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 256 subschemas hold of one value");
    if (n > 0) memcpy(sorted, literals, (size_t)n * sizeof *literals);
    if (n > 1) qsort(sorted, (size_t)n, sizeof *sorted, compare);
    for (int32_t i = 0; i < n; i++) {
        if (kept > 0 && sorted[kept - 1] == sorted[i]) continue;
        if (kept > 0 && sorted[kept - 1] == (sorted[i] ^ 1)) {
            *out = SET_FALSE;
            return FRIT_OK;
        }
        sorted[kept++] = sorted[i];
    }
    return add_set(s, sorted, kept, out);
}

frit_status frit_schema_set_one(schema *s, int32_t l, int32_t *out)
{
    return frit_schema_set(s, &l, 1, out);
}

frit_status frit_schema_set_and(schema *s, int32_t a, int32_t b, int32_t *out)
{
    int32_t all[256];
    *out = SET_FALSE;
    if (a == SET_FALSE || b == SET_FALSE) return FRIT_OK;
    const set x = s->sets[a], y = s->sets[b];
    if (x.n + y.n > 256) return frit_schema_set(s, NULL, 257, out);
    if (x.n > 0) memcpy(all, x.literals, (size_t)x.n * sizeof *all);
    if (y.n > 0) memcpy(all + x.n, y.literals, (size_t)y.n * sizeof *all);
    return frit_schema_set(s, all, x.n + y.n, out);
}

frit_status frit_schema_set_not(schema *s, int32_t a, int32_t *out)
{
    int32_t any[256], l;
    const set x = s->sets[a];
    *out = a == SET_TRUE ? SET_FALSE : SET_TRUE;
    if (a == SET_TRUE || a == SET_FALSE) return FRIT_OK;
    if (x.n == 1) return frit_schema_set_one(s, x.literals[0] ^ 1, out);
    for (int32_t i = 0; i < x.n; i++) FRIT_TRY(frit_schema_set_one(s, x.literals[i] ^ 1, &any[i]));
    FRIT_TRY(frit_schema_any(s, any, x.n, &l));
    return frit_schema_set_one(s, l, out);
}

frit_status frit_schema_set_of(schema *s, json_t *value, const char *base, int32_t *out)
{
    int32_t l;
    *out = SET_TRUE;
    if (json_is_true(value) || (json_is_object(value) && json_object_size(value) == 0)) return FRIT_OK;
    *out = SET_FALSE;
    if (json_is_false(value)) return FRIT_OK;
    if (!json_is_object(value))
        return frit_fail(FRIT_E_INVALID, "JSON schema: found a subschema that is neither an object nor true or false");
    FRIT_TRY(frit_schema_literal(s, LITERAL_SCHEMA, value, frit_schema_base(s, value, base), &l));
    return frit_schema_set_one(s, l, out);
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
    const char *text = out.failed ? NULL : frit_arena_text(&s->arena, out.data ? out.data : "", out.len);
    frit_buf_free(&out);
    return text;
}

static frit_status add_resource(schema *s, const char *uri, json_t *value, const char *base)
{
    void *items = s->resources;
    if (!uri || !base || !grow(&items, s->n_resources, &s->resources_room, sizeof *s->resources)) return fail_memory();
    s->resources = items;
    s->resources[s->n_resources++] = (resource){uri, value, base};
    return FRIT_OK;
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
    for (size_t i = 0; i < FRIT_COUNT(subschemas); i++) {
        json_t *below = json_object_get(value, subschemas[i].keyword), *one;
        const char *key;
        size_t k;
        if (subschemas[i].shape == ONE && json_is_object(below)) FRIT_TRY(find_resources(s, below, base, depth));
        if (subschemas[i].shape == LIST && json_is_array(below))
            json_array_foreach(below, k, one) FRIT_TRY(find_resources(s, one, base, depth));
        if (subschemas[i].shape == MAP && json_is_object(below))
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
    const char *id = json_string_value(json_object_get(value, "$id"));
    if (id) {
        base = join(s, base, id);
        FRIT_TRY(add_resource(s, base, value, base));
    }
    static const char *const anchors[] = {"$anchor", "$dynamicAnchor"};
    for (size_t i = 0; i < FRIT_COUNT(anchors); i++) {
        const char *anchor = json_string_value(json_object_get(value, anchors[i]));
        frit_buf uri = {0};
        if (!anchor) continue;
        frit_buf_printf(&uri, "%s#%s", base, anchor);
        const char *text = uri.failed ? NULL : frit_arena_text(&s->arena, uri.data, uri.len);
        frit_buf_free(&uri);
        FRIT_TRY(add_resource(s, text, value, base));
    }
    return find_below(s, value, base, depth + 1);
}

const char *frit_schema_base(const schema *s, json_t *value, const char *base)
{
    if (!json_object_get(value, "$id")) return base;
    for (int32_t i = s->n_resources - 1; i >= 0; i--)   // the root is there with an empty URI too, first
        if (s->resources[i].value == value) return s->resources[i].base;
    return base;
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
    if (!uri) return fail_memory();
    fragment += *fragment == '#';
    frit_buf wanted = {0};
    const bool anchor = *fragment && *fragment != '/';
    frit_buf_printf(&wanted, anchor ? "%s#%s" : "%s", uri, fragment);
    *out = (resource){0};
    for (int32_t i = 0; i < s->n_resources && !wanted.failed; i++)
        if (strcmp(s->resources[i].uri, wanted.data) == 0) *out = s->resources[i];
    frit_buf_free(&wanted);
    if (out->value && *fragment == '/') out->value = follow(s, out, fragment);
    if (out->value) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "JSON schema: '$ref' to '%.200s', which is not in the schema", text);
}

frit_status frit_schema_resolve_dynamic(schema *s, const char *base, json_t *reference, resource *out)
{
    FRIT_TRY(frit_schema_resolve(s, base, reference, out));
    const char *text = json_string_value(reference), *name = text + part(text, "#") + 1;
    const char *anchor = json_string_value(json_object_get(out->value, "$dynamicAnchor"));
    if (!anchor || !strchr(text, '#') || strcmp(anchor, name) != 0) return FRIT_OK;   // the same as $ref
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
    int32_t no;
    FRIT_TRY(add_set(s, NULL, 0, &no));
    FRIT_TRY(add_set(s, &(int32_t){-1}, 1, &no));   // SET_FALSE; no literal is -1
    FRIT_TRY(check_dialect(s));
    FRIT_TRY(add_resource(s, "", s->root, ""));
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
    free(s->dfas);
    free(s->literals);
    free(s->sets);
    free(s->queue);
    free(s->counted);
    free(s->resources);
    frit_arena_free(&s->arena);
    json_decref(s->object);
    free(s);
}

frit_status frit_schema_add(frit_draft *draft, json_t *root, const frit_schema_options *options,
                            const frit_schema_form *form, int32_t *rule)
{
    static const frit_schema_form plain;
    schema *s = calloc(1, sizeof *s);
    if (!s) return fail_memory();
    s->complete = options && options->complete;
    s->any_order = options && (options->any_order || options->complete);
    s->ignore_formats = options && options->ignore_formats;
    s->root = root;
    s->draft = draft;
    s->form = form ? form : &plain;
    s->object = json_pack("{s:s}", "type", "object");
    frit_status status = s->object ? make_rules(s) : fail_memory();
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
    json_t *root = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!root)
        return frit_fail(FRIT_E_INVALID, "JSON schema, line %d, column %d: %s", error.line, error.column, error.text);
    const frit_status status = frit_schema_add(draft, root, options, form, rule);
    json_decref(root);
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
