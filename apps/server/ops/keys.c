// SPDX-License-Identifier: MIT
// The keys in use, their counters and their limits.
#include "server/ops/keys.h"

#include "frit_tools.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// REFUSED_RESERVED: running requests have reserved the tokens that are left.
typedef enum refusal { REFUSED_RATE, REFUSED_TOKENS, REFUSED_CONCURRENT, REFUSED_RESERVED, N_REFUSALS } refusal;

// A token bucket: requests or tokens that are left at the time `at`.
typedef struct bucket {
    double left, at;
    bool is_used;   // false: the bucket is full
} bucket;

struct server_key {
    _Atomic int n_owners;
    uint64_t id;
    char salt[33], label[SERVER_KEY_NAME];
    uint8_t hash[SERVER_KEY_HASH];
    pthread_mutex_t lock;   // of the fields below
    server_key_options options;
    bucket requests, tokens;
    double reserved;   // tokens that running requests reserved
    int32_t n_active;
    size_t n_held;   // bytes of bodies in memory
    uint64_t n_requests, n_refused[N_REFUSALS], n_prompt, n_answer;
    double served;
};

struct server_keys {
    pthread_mutex_t lock;
    const frit_option_list *texts;
    char *path;
    server_key **items;
    size_t n;
};

// ---------------------------------------------------------------------------------------- a key

// Derives id, salt and label from another hash, so that the hash of the key itself is never shown.
static void derive_names(server_key *key, const server_key_options *options)
{
    uint8_t text[8 + SERVER_KEY_NAME] = "hash:", sum[SERVER_KEY_HASH];
    size_t n = 5 + SERVER_KEY_HASH;
    memcpy(text + 5, options->hash, SERVER_KEY_HASH);
    if (options->name[0]) n = (size_t)snprintf((char *)text, sizeof text, "name:%s", options->name);
    frit_sha256_of(text, n, sum);
    for (int i = 0; i < 8; i++) key->id = key->id << 8 | sum[i];
    if (key->id == 0) key->id = 1;
    for (int i = 0; i < 16; i++) snprintf(key->salt + 2 * i, 3, "%02x", sum[i]);
    if (options->name[0])
        snprintf(key->label, sizeof key->label, "%s", options->name);
    else
        snprintf(key->label, sizeof key->label, "key:%.8s", key->salt);
}

static server_key *key_new(const server_key_options *options)
{
    server_key *key = calloc(1, sizeof *key);
    if (!key) return NULL;
    derive_names(key, options);
    memcpy(key->hash, options->hash, sizeof key->hash);
    key->options = *options;
    atomic_store(&key->n_owners, 1);
    pthread_mutex_init(&key->lock, NULL);
    return key;
}

server_key *server_key_ref(server_key *key)
{
    if (key) atomic_fetch_add(&key->n_owners, 1);
    return key;
}

void server_key_unref(server_key *key)
{
    if (!key || atomic_fetch_sub(&key->n_owners, 1) > 1) return;
    pthread_mutex_destroy(&key->lock);
    free(key);
}

uint64_t server_key_id(const server_key *key)
{
    return key ? key->id : 0;
}

const char *server_key_salt(const server_key *key)
{
    return key ? key->salt : "";
}

const char *server_key_label(const server_key *key)
{
    return key ? key->label : NULL;
}

int32_t server_key_priority(server_key *key)
{
    if (!key) return 0;
    pthread_mutex_lock(&key->lock);
    const int32_t priority = key->options.priority;
    pthread_mutex_unlock(&key->lock);
    return priority;
}

int32_t server_key_weight(server_key *key)
{
    if (!key) return 1;
    pthread_mutex_lock(&key->lock);
    const int32_t weight = key->options.weight;
    pthread_mutex_unlock(&key->lock);
    return weight;
}

// ---------------------------------------------------------------------------------------- limits, lock held

static void refill_bucket(bucket *b, const server_limit *limit, double now)
{
    if (!b->is_used) *b = (bucket){limit->amount, now, true};
    b->left += (now - b->at) * limit->amount / limit->seconds;
    if (b->left > limit->amount) b->left = limit->amount;
    b->at = now;
}

// Seconds until the bucket has `wanted`; 0: it has.
static double wait_seconds(const bucket *b, const server_limit *limit, double wanted)
{
    return b->left >= wanted ? 0 : (wanted - b->left) * limit->seconds / limit->amount;
}

static bool refuse_key(server_key *key, refusal why, double wait, server_problem *problem)
{
    const server_key_options *o = &key->options;
    const server_limit *limit = why == REFUSED_RATE ? &o->requests : &o->tokens;
    static const char *const codes[] = {"rate_limit_exceeded", "token_limit_exceeded", "concurrency_limit_exceeded",
                                        "token_limit_exceeded"};
    key->n_refused[why]++;
    if (why == REFUSED_CONCURRENT)
        server_refuse(problem, 429, codes[why], NULL, "this key may have %d requests at once, and has them",
                      (int)o->concurrent);
    else if (why == REFUSED_RESERVED)
        server_refuse(problem, 429, codes[why], NULL,
                      "this key may use %.0f tokens in %.0f seconds, and its requests that run may need all that is "
                      "left of them; max_tokens of a request says how many it may need",
                      limit->amount, limit->seconds);
    else
        server_refuse(problem, 429, codes[why], NULL, "this key may use %.0f %s in %.0f seconds, and has used them",
                      limit->amount, why == REFUSED_TOKENS ? "tokens" : "requests", limit->seconds);
    problem->retry_after = wait < 1 ? 1 : (int)ceil(wait);
    return false;
}

static bool enter_key(server_key *key, double now, server_problem *problem)
{
    const server_key_options *o = &key->options;
    if (o->concurrent > 0 && key->n_active >= o->concurrent) return refuse_key(key, REFUSED_CONCURRENT, 1, problem);
    if (o->tokens.amount > 0) {
        refill_bucket(&key->tokens, &o->tokens, now);
        const double wait = wait_seconds(&key->tokens, &o->tokens, 1);
        if (wait > 0) return refuse_key(key, REFUSED_TOKENS, wait, problem);
        if (key->tokens.left - key->reserved < 1) return refuse_key(key, REFUSED_RESERVED, 1, problem);
    }
    if (o->requests.amount > 0) {
        refill_bucket(&key->requests, &o->requests, now);
        const double wait = wait_seconds(&key->requests, &o->requests, 1);
        if (wait > 0) return refuse_key(key, REFUSED_RATE, wait, problem);
        key->requests.left--;
    }
    key->n_active++;
    key->n_requests++;
    return true;
}

bool server_key_enter(server_key *key, double now, server_problem *problem)
{
    if (!key) return true;
    pthread_mutex_lock(&key->lock);
    const bool good = enter_key(key, now, problem);
    pthread_mutex_unlock(&key->lock);
    return good;
}

bool server_key_reserve(server_key *key, double now, double n, double *kept, server_problem *problem)
{
    bool good = true;
    if (!key) return true;
    pthread_mutex_lock(&key->lock);
    const server_limit *limit = &key->options.tokens;
    if (limit->amount > 0) {
        refill_bucket(&key->tokens, limit, now);
        const double left = key->tokens.left - key->reserved;
        good = left >= 1 || refuse_key(key, REFUSED_RESERVED, 1, problem);
        if (good) *kept = n < left ? n : left;
        if (good) key->reserved += *kept;
    }
    pthread_mutex_unlock(&key->lock);
    return good;
}

void server_key_unreserve(server_key *key, double n)
{
    if (!key) return;
    pthread_mutex_lock(&key->lock);
    key->reserved -= n;
    pthread_mutex_unlock(&key->lock);
}

static server_allowance allowance_of(bucket *b, const server_limit *limit, double reserved, double now)
{
    if (limit->amount <= 0) return (server_allowance){0};
    refill_bucket(b, limit, now);
    const double left = b->left - reserved;
    return (server_allowance){limit->amount, left > 0 ? left : 0, wait_seconds(b, limit, limit->amount)};
}

void server_key_allowances(server_key *key, double now, server_allowance *requests, server_allowance *tokens)
{
    *requests = *tokens = (server_allowance){0};
    if (!key) return;
    pthread_mutex_lock(&key->lock);
    *requests = allowance_of(&key->requests, &key->options.requests, 0, now);
    *tokens = allowance_of(&key->tokens, &key->options.tokens, key->reserved, now);
    pthread_mutex_unlock(&key->lock);
}

void server_key_leave(server_key *key)
{
    if (!key) return;
    pthread_mutex_lock(&key->lock);
    key->n_active--;
    pthread_mutex_unlock(&key->lock);
}

bool server_key_acquire_bytes(server_key *key, size_t n_bytes, size_t most)
{
    if (!key) return true;
    pthread_mutex_lock(&key->lock);
    const bool good = key->n_held + n_bytes <= most;
    if (good) key->n_held += n_bytes;
    pthread_mutex_unlock(&key->lock);
    return good;
}

void server_key_release_bytes(server_key *key, size_t n_bytes)
{
    if (!key) return;
    pthread_mutex_lock(&key->lock);
    key->n_held -= n_bytes;
    pthread_mutex_unlock(&key->lock);
}

void server_key_charge(server_key *key, size_t n_prompt, size_t n_answer)
{
    if (!key) return;
    const double n = (double)(n_prompt + n_answer);
    pthread_mutex_lock(&key->lock);
    key->n_prompt += n_prompt;
    key->n_answer += n_answer;
    key->tokens.left -= n;   // may be below 0: a request that has begun continues
    key->served += n / key->options.weight;
    pthread_mutex_unlock(&key->lock);
}

double server_key_served(server_key *key)
{
    if (!key) return 0;
    pthread_mutex_lock(&key->lock);
    const double served = key->served;
    pthread_mutex_unlock(&key->lock);
    return served;
}

void server_key_raise(server_key *key, double least)
{
    if (!key) return;
    pthread_mutex_lock(&key->lock);
    if (key->served < least) key->served = least;
    pthread_mutex_unlock(&key->lock);
}

// ---------------------------------------------------------------------------------------- all keys

// The key of the old list with the same name and hash, with new limits, or a new key. NULL: no memory.
static server_key *keep_or_make(const server_keys *keys, const server_key_options *options)
{
    for (size_t i = 0; i < keys->n; i++) {
        server_key *key = keys->items[i];
        if (memcmp(key->hash, options->hash, sizeof key->hash) != 0) continue;
        pthread_mutex_lock(&key->lock);
        const bool is_same = strcmp(key->options.name, options->name) == 0;
        if (is_same) key->options = *options;
        pthread_mutex_unlock(&key->lock);
        if (is_same) return server_key_ref(key);
    }
    return key_new(options);
}

static void release_all(server_key **items, size_t n)
{
    for (size_t i = 0; i < n; i++) server_key_unref(items[i]);
    free(items);
}

// Replaces all keys by those of the lines and of --api-key. A key in both has the limits of its line.
static bool replace_keys(server_keys *keys, const server_key_options *lines, size_t n_lines, server_problem *problem)
{
    const size_t n_texts = keys->texts->n;
    server_key **items = calloc(n_texts + n_lines + 1, sizeof *items);
    if (!items) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    size_t n = 0;
    bool good = true;
    for (size_t i = 0; good && i < n_lines; i++) good = (items[n++] = keep_or_make(keys, &lines[i])) != NULL;
    for (size_t i = 0; good && i < n_texts; i++) {
        server_key_options options;
        bool is_known = false;
        server_key_of_text(keys->texts->items[i], &options);
        for (size_t k = 0; k < n; k++) is_known |= memcmp(items[k]->hash, options.hash, sizeof options.hash) == 0;
        if (!is_known) good = (items[n++] = keep_or_make(keys, &options)) != NULL;
    }
    if (!good) {
        release_all(items, n);
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    }
    pthread_mutex_lock(&keys->lock);
    server_key **old = keys->items;
    const size_t n_old = keys->n;
    keys->items = items;
    keys->n = n;
    pthread_mutex_unlock(&keys->lock);
    release_all(old, n_old);
    return true;
}

bool server_keys_reload(server_keys *keys, server_problem *problem)
{
    server_key_options *lines = NULL;
    size_t n = 0;
    if (keys->path && !server_key_file_read(keys->path, &lines, &n, problem)) return false;
    const bool good = replace_keys(keys, lines, n, problem);
    free(lines);
    return good;
}

bool server_keys_open(server_keys **out, const frit_option_list *texts, const char *path, server_problem *problem)
{
    *out = NULL;
    for (size_t i = 0; i < texts->n; i++)
        if (!texts->items[i][0]) return server_refuse(problem, 400, NULL, NULL, "--api-key: the key is empty");
    server_keys *keys = calloc(1, sizeof *keys);
    if (!keys) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    pthread_mutex_init(&keys->lock, NULL);
    keys->texts = texts;
    keys->path = path ? strdup(path) : NULL;
    bool good = !path || keys->path || server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    good = good && server_keys_reload(keys, problem);
    if (good)
        *out = keys;
    else
        server_keys_close(keys);
    return good;
}

void server_keys_close(server_keys *keys)
{
    if (!keys) return;
    release_all(keys->items, keys->n);
    pthread_mutex_destroy(&keys->lock);
    free(keys->path);
    free(keys);
}

bool server_keys_have_file(const server_keys *keys)
{
    return keys->path != NULL;
}

size_t server_keys_count(server_keys *keys)
{
    pthread_mutex_lock(&keys->lock);
    const size_t n = keys->n;
    pthread_mutex_unlock(&keys->lock);
    return n;
}

// 1 if all bytes are equal, else 0. The time does not depend on the bytes.
static size_t is_equal(const uint8_t *a, const uint8_t *b)
{
    unsigned differs = 0;
    for (int i = 0; i < SERVER_KEY_HASH; i++) differs |= (unsigned)(a[i] ^ b[i]);
    return (differs - 1) >> (8 * sizeof differs - 1);
}

server_key *server_keys_find(server_keys *keys, const char *first, const char *second)
{
    uint8_t sums[2][SERVER_KEY_HASH];
    frit_sha256_of(first ? first : "", first ? strlen(first) : 0, sums[0]);
    frit_sha256_of(second ? second : "", second ? strlen(second) : 0, sums[1]);
    size_t found = 0;   // index from 1 on
    pthread_mutex_lock(&keys->lock);
    for (size_t i = 0; i < keys->n; i++) {   // compares all keys, so that the time does not depend on the match
        const size_t is_first = is_equal(sums[0], keys->items[i]->hash) & (first != NULL);
        const size_t is_second = is_equal(sums[1], keys->items[i]->hash) & (second != NULL);
        found |= (i + 1) & (0 - (size_t)((is_first | is_second) & (found == 0)));
    }
    server_key *key = found ? server_key_ref(keys->items[found - 1]) : NULL;
    pthread_mutex_unlock(&keys->lock);
    return key;
}

// ---------------------------------------------------------------------------------------- metrics

static uint64_t value_of(const server_key *key, int row)
{
    const uint64_t values[] = {key->n_requests,
                               key->n_refused[REFUSED_RATE],
                               key->n_refused[REFUSED_TOKENS] + key->n_refused[REFUSED_RESERVED],
                               key->n_refused[REFUSED_CONCURRENT],
                               key->n_prompt,
                               key->n_answer,
                               (uint64_t)key->n_active};
    return values[row];
}

// Rows of one name follow each other, and differ in the label after the key's.
static const struct {
    const char *name, *type, *help, *label;
} rows[] = {
    {"frit_key_requests_total", "counter", "requests of a key that were let in", ""},
    {"frit_key_refused_total", "counter", "requests of a key that its limits refused", ",reason=\"rate\""},
    {"frit_key_refused_total", "counter", "", ",reason=\"tokens\""},
    {"frit_key_refused_total", "counter", "", ",reason=\"concurrent\""},
    {"frit_key_tokens_total", "counter", "tokens that a key has used", ",kind=\"prompt\""},
    {"frit_key_tokens_total", "counter", "", ",kind=\"answer\""},
    {"frit_key_requests_active", "gauge", "requests of a key that are not over", ""},
};

static void write_row(const server_keys *keys, int row, FILE *out)
{
    if (rows[row].help[0])
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", rows[row].name, rows[row].help, rows[row].name, rows[row].type);
    for (size_t i = 0; i < keys->n; i++) {
        server_key *key = keys->items[i];
        pthread_mutex_lock(&key->lock);
        const uint64_t value = value_of(key, row);
        pthread_mutex_unlock(&key->lock);
        fprintf(out, "%s{key=\"%s\"%s} %llu\n", rows[row].name, key->label, rows[row].label, (unsigned long long)value);
    }
}

char *server_keys_metrics(server_keys *keys)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    if (!out) return NULL;
    pthread_mutex_lock(&keys->lock);
    for (int row = 0; row < (int)(sizeof rows / sizeof rows[0]) && keys->n > 0; row++) write_row(keys, row, out);
    pthread_mutex_unlock(&keys->lock);
    const bool failed = ferror(out);
    if (fclose(out) == 0 && !failed) return text;
    free(text);
    return NULL;
}
