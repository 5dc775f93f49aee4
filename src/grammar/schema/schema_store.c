// SPDX-License-Identifier: MIT
// Storage of a schema while it is compiled: literals and sets, which are interned, and resources. All memory is charged
// to the budget.
#include "grammar/schema/schema.h"

#include <stdlib.h>

// ------------------------------------------------------------------------------------- memory

frit_status frit_schema_no_memory(const schema *s)
{
    return frit_budget_fail(s->budget, sizeof(set), "a JSON schema");
}

void *frit_schema_alloc(schema *s, size_t n, size_t size)
{
    const bool fits = n < SIZE_MAX / 2 / (size + 1) && frit_budget_acquire(s->budget, n * size + 16) == FRIT_OK;
    if (!fits) {
        s->arena.failed = true;
        return NULL;
    }
    s->arena_bytes += n * size + 16;
    return frit_arena_alloc(&s->arena, n, size);
}

char *frit_schema_text(schema *s, const char *text, size_t n)
{
    char *copy = frit_schema_alloc(s, n + 1, 1);
    if (copy && n > 0) memcpy(copy, text, n);
    return copy;
}

frit_status frit_schema_grow(schema *s, void *items, int32_t n, int32_t *room, size_t size)
{
    if (n < *room) return FRIT_OK;
    const size_t before = (size_t)*room, after = before ? before * 2 : 64;
    void *old;
    memcpy(&old, items, sizeof old);
    void *grown = frit_budget_resize(s->budget, old, before * size, after * size);
    if (!grown) return frit_schema_no_memory(s);
    memcpy(items, &grown, sizeof grown);
    *room = (int32_t)after;
    return FRIT_OK;
}

void frit_schema_free_list(schema *s, void *items, int32_t room, size_t size)
{
    free(items);
    frit_budget_release(s->budget, (size_t)room * size);
}

// ------------------------------------------------------------------------------------- indexes

static uint64_t mix(uint64_t h, uint64_t value)
{
    h = (h ^ value) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static int32_t first_bucket(const item_index *x, uint64_t key)
{
    return (int32_t)(mix(0, key) >> 32 & (uint64_t)(x->n_buckets - 1));
}

static int32_t next_bucket(const item_index *x, int32_t bucket)
{
    return (bucket + 1) & (x->n_buckets - 1);
}

// Adds a new item. key_of returns the keys of other items, which are needed when the table grows.
static frit_status put(schema *s, item_index *x, uint64_t key, int32_t item,
                       uint64_t (*key_of)(const schema *s, int32_t item))
{
    if (2 * x->n >= x->n_buckets) {
        const size_t before = (size_t)x->n_buckets, after = before ? before * 2 : 128;
        int32_t *buckets = frit_budget_resize(s->budget, x->buckets, before * sizeof *buckets, after * sizeof *buckets);
        if (!buckets) return frit_schema_no_memory(s);
        memset(buckets, -1, after * sizeof *buckets);
        *x = (item_index){.buckets = buckets, .n_buckets = (int32_t)after};
        for (int32_t i = 0; i < item; i++) FRIT_TRY(put(s, x, key_of(s, i), i, key_of));
    }
    int32_t bucket = first_bucket(x, key), probes = 1;
    for (; x->buckets[bucket] >= 0; probes++) bucket = next_bucket(x, bucket);
    x->buckets[bucket] = item;
    x->n++;
    return frit_budget_spend(s->budget, 4 * probes);
}

static uint64_t hash_text(const char *text, size_t n)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 1099511628211u;
    return h;
}

// ------------------------------------------------------------------------------------- literals

// True for keywords that do not restrict the value.
static bool is_remark(const char *keyword)
{
    static const char *const remarks[] = {"title",    "description", "default",  "examples",
                                          "$comment", "deprecated",  "readOnly", "writeOnly"};
    for (size_t i = 0; i < FRIT_COUNT(remarks); i++)
        if (strcmp(keyword, remarks[i]) == 0) return true;
    return false;
}

// Hashes a value; equal values have equal hashes. *left is the number of values, or of bytes divided by 64, that may
// still be examined; below 0 the value is not small.
static uint64_t hash_value(json_t *value, int depth, int *left)
{
    enum { MAX_DEPTH = 4 };
    uint64_t h = (uint64_t)json_typeof(value) + 1;
    const char *key;
    size_t i;
    json_t *one;
    if (--*left < 0 || depth > MAX_DEPTH || json_string_length(value) / 64 > (size_t)*left) *left = -1;
    if (*left < 0) return 0;
    if (json_is_string(value)) {
        h ^= hash_text(json_string_value(value), json_string_length(value));
        *left -= (int)(json_string_length(value) / 64);
    }
    if (json_is_integer(value)) h += (uint64_t)json_integer_value(value) * 0x9e3779b97f4a7c15u;
    if (json_is_real(value)) {
        const double real = json_real_value(value);
        uint64_t bits;
        memcpy(&bits, &real, sizeof bits);
        h += bits * 0x9e3779b97f4a7c15u;
    }
    for (i = 0; i < json_array_size(value) && *left >= 0; i++)
        h = h * 31 + hash_value(json_array_get(value, i), depth + 1, left);
    json_object_foreach(value, key, one)
    {
        if (depth == 0 && is_remark(key)) continue;
        const size_t n = strlen(key);
        if (n / 64 > (size_t)(*left < 0 ? 0 : *left)) *left = -1;
        if (*left < 0) return 0;
        *left -= (int)(n / 64);
        h += (hash_text(key, n) ^ hash_value(one, depth + 1, left)) * 0x9e3779b97f4a7c15u;
    }
    return h;
}

// True if two schemas have equal keywords, except keywords that do not restrict the value.
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
    enum { MAX_COMPARED = 100000 };   // hashes may collide on purpose
    if (a->kind != b->kind || a->n_any != b->n_any) return false;
    if (a->kind == LITERAL_ANY) return memcmp(a->any, b->any, (size_t)a->n_any * sizeof *a->any) == 0;
    if (a->value == b->value) return true;
    if (a->hash == 0 || a->hash != b->hash || strcmp(a->base, b->base) != 0) return false;
    if (s->n_compared++ >= MAX_COMPARED) return false;
    return a->kind == LITERAL_CONST ? json_equal(a->value, b->value) : same_keywords(a->value, b->value);
}

static uint64_t literal_key(const schema *s, int32_t item)
{
    return s->literals[item].key;
}

static frit_status add_literal(schema *s, literal *l, int32_t *out)
{
    item_index *x = &s->literal_index;
    for (int32_t bucket = x->n > 0 ? first_bucket(x, l->key) : -1; bucket >= 0 && x->buckets[bucket] >= 0;
         bucket = next_bucket(x, bucket)) {
        const int32_t i = x->buckets[bucket];
        FRIT_TRY(frit_budget_spend(s->budget, 4));
        if (s->literals[i].key != l->key || !same_literal(s, &s->literals[i], l)) continue;
        *out = 2 * i;
        return FRIT_OK;
    }
    if (s->n_literals >= 20000) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 20000 subschemas");
    FRIT_TRY(frit_schema_grow(s, &s->literals, s->n_literals, &s->literals_room, sizeof *s->literals));
    s->literals[s->n_literals] = *l;
    FRIT_TRY(put(s, x, l->key, s->n_literals, literal_key));
    *out = 2 * s->n_literals++;
    return FRIT_OK;
}

frit_status frit_schema_literal(schema *s, literal_kind kind, json_t *value, const char *base, int32_t *out)
{
    enum { SMALL = 64 };
    literal l = {.kind = kind, .value = value, .base = base};
    int left = SMALL;
    if (kind == LITERAL_CONST || !frit_schema_id(s, value)) l.hash = hash_value(value, 0, &left);
    if (left < 0) l.hash = 0;
    l.key = l.hash ? l.hash : mix(1, (uint64_t)(uintptr_t)value);
    FRIT_TRY(frit_budget_spend(s->budget, 2 * SMALL));
    return add_literal(s, &l, out);
}

frit_status frit_schema_any(schema *s, const int32_t *sets, int32_t n, int32_t *out)
{
    int32_t *copy = frit_schema_alloc(s, (size_t)n, sizeof *copy);
    uint64_t key = 2;
    if (!copy) return frit_schema_no_memory(s);
    if (n > 0) memcpy(copy, sets, (size_t)n * sizeof *sets);
    for (int32_t i = 0; i < n; i++) key = mix(key, (uint32_t)sets[i]);
    return add_literal(s, &(literal){.kind = LITERAL_ANY, .any = copy, .n_any = n, .key = key}, out);
}

// ------------------------------------------------------------------------------------- sets

static int compare(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t key_of_set(const int32_t *literals, int32_t n)
{
    uint64_t key = (uint64_t)n;
    for (int32_t i = 0; i < n; i++) key = mix(key, (uint32_t)literals[i]);
    return key;
}

static uint64_t set_key(const schema *s, int32_t item)
{
    return s->sets[item].key;
}

static int32_t find_set(const schema *s, const int32_t *literals, int32_t n, uint64_t key)
{
    const item_index *x = &s->set_index;
    if (x->n == 0) return -1;
    for (int32_t bucket = first_bucket(x, key); x->buckets[bucket] >= 0; bucket = next_bucket(x, bucket)) {
        const set *known = &s->sets[x->buckets[bucket]];
        const size_t bytes = (size_t)n * sizeof *literals;
        if (known->key == key && known->n == n && (n == 0 || memcmp(known->literals, literals, bytes) == 0))
            return x->buckets[bucket];
    }
    return -1;
}

static frit_status add_set(schema *s, const int32_t *literals, int32_t n, int32_t *out)
{
    const uint64_t key = key_of_set(literals, n);
    FRIT_TRY(frit_budget_spend(s->budget, 4 + n));
    if ((*out = find_set(s, literals, n, key)) >= 0) return FRIT_OK;
    if (s->n_sets >= 20000) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 20000 combinations of subschemas");
    int32_t *copy = frit_schema_alloc(s, (size_t)n, sizeof *copy);
    if (!copy) return frit_schema_no_memory(s);
    if (n > 0) memcpy(copy, literals, (size_t)n * sizeof *literals);
    FRIT_TRY(frit_schema_grow(s, &s->sets, s->n_sets, &s->sets_room, sizeof *s->sets));
    s->sets[s->n_sets] = (set){.literals = copy, .n = n, .rule = -1, .empty = -1, .key = key};
    FRIT_TRY(put(s, &s->set_index, key, s->n_sets, set_key));
    *out = s->n_sets++;
    return FRIT_OK;
}

int32_t frit_schema_set_known(const schema *s, int32_t a, int32_t n)
{
    return find_set(s, s->sets[a].literals, n, key_of_set(s->sets[a].literals, n));
}

frit_status frit_schema_begin_sets(schema *s)
{
    int32_t no;
    FRIT_TRY(add_set(s, NULL, 0, &no));
    return add_set(s, &(int32_t){-1}, 1, &no);   // SET_FALSE; no literal has the number -1
}

frit_status frit_schema_set(schema *s, const int32_t *literals, int32_t n, int32_t *out)
{
    int32_t sorted[256], kept = 0;
    if (n > 256) return frit_fail(FRIT_E_LIMIT, "JSON schema: more than 256 subschemas hold of one value");
    FRIT_TRY(frit_budget_spend(s->budget, 4 * n));
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
    *out = a;
    if (b == SET_TRUE || a == b) return FRIT_OK;
    *out = b;
    if (a == SET_TRUE) return FRIT_OK;
    const set *x = &s->sets[a], *y = &s->sets[b];
    if (x->n + y->n > 256) return frit_schema_set(s, NULL, 257, out);
    if (x->n > 0) memcpy(all, x->literals, (size_t)x->n * sizeof *all);
    if (y->n > 0) memcpy(all + x->n, y->literals, (size_t)y->n * sizeof *all);
    return frit_schema_set(s, all, x->n + y->n, out);
}

frit_status frit_schema_set_not(schema *s, int32_t a, int32_t *out)
{
    int32_t any[256], l;
    const int32_t n = s->sets[a].n, *literals = s->sets[a].literals;
    *out = a == SET_TRUE ? SET_FALSE : SET_TRUE;
    if (a == SET_TRUE || a == SET_FALSE) return FRIT_OK;
    if (n == 1) return frit_schema_set_one(s, literals[0] ^ 1, out);
    for (int32_t i = 0; i < n; i++) FRIT_TRY(frit_schema_set_one(s, literals[i] ^ 1, &any[i]));
    FRIT_TRY(frit_schema_any(s, any, n, &l));
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

// ------------------------------------------------------------------------------------- resources

static uint64_t uri_key(const schema *s, int32_t item)
{
    return hash_text(s->resources[item].uri, strlen(s->resources[item].uri));
}

static uint64_t value_key(const schema *s, int32_t item)
{
    return (uint64_t)(uintptr_t)s->resources[item].value;
}

frit_status frit_schema_add_resource(schema *s, const char *uri, json_t *value, const char *base)
{
    if (!uri || !base) return frit_schema_no_memory(s);
    FRIT_TRY(frit_schema_grow(s, &s->resources, s->n_resources, &s->resources_room, sizeof *s->resources));
    s->resources[s->n_resources] = (resource){uri, value, base};
    FRIT_TRY(put(s, &s->uri_index, uri_key(s, s->n_resources), s->n_resources, uri_key));
    FRIT_TRY(put(s, &s->value_index, value_key(s, s->n_resources), s->n_resources, value_key));
    s->n_resources++;
    return FRIT_OK;
}

int32_t frit_schema_find_uri(schema *s, const char *uri)
{
    const item_index *x = &s->uri_index;
    const size_t n = strlen(uri);
    int32_t found = -1;
    if (x->n == 0 || frit_budget_spend(s->budget, 8 + (int64_t)n) != FRIT_OK) return -1;
    for (int32_t bucket = first_bucket(x, hash_text(uri, n)); x->buckets[bucket] >= 0;
         bucket = next_bucket(x, bucket)) {
        if (frit_budget_spend(s->budget, 4) != FRIT_OK) return -1;
        if (x->buckets[bucket] > found && strcmp(s->resources[x->buckets[bucket]].uri, uri) == 0)
            found = x->buckets[bucket];
    }
    return found;
}

int32_t frit_schema_find_value(const schema *s, const json_t *value)
{
    const item_index *x = &s->value_index;
    int32_t found = -1;
    if (x->n == 0) return -1;
    for (int32_t bucket = first_bucket(x, (uint64_t)(uintptr_t)value); x->buckets[bucket] >= 0;
         bucket = next_bucket(x, bucket))
        if (x->buckets[bucket] > found && s->resources[x->buckets[bucket]].value == value) found = x->buckets[bucket];
    return found;
}

void frit_schema_free_store(schema *s)
{
    item_index *const indexes[] = {&s->literal_index, &s->set_index, &s->uri_index, &s->value_index};
    for (size_t i = 0; i < FRIT_COUNT(indexes); i++)
        frit_schema_free_list(s, indexes[i]->buckets, indexes[i]->n_buckets, sizeof *indexes[i]->buckets);
    frit_schema_free_list(s, s->literals, s->literals_room, sizeof *s->literals);
    frit_schema_free_list(s, s->sets, s->sets_room, sizeof *s->sets);
    frit_schema_free_list(s, s->resources, s->resources_room, sizeof *s->resources);
    frit_arena_free(&s->arena);
    frit_budget_release(s->budget, s->arena_bytes);
}
