// SPDX-License-Identifier: MIT
// Lets sessions take pages from the prefix cache (prefix_cache.c) and add pages to it.
//
// A session without pages looks for the longest cached beginning of its tokens when it is about to run (schedule.c). It
// does not look when tokens are pushed, because adapters may change and pages may be evicted until then. At least one
// token runs, and all tokens from the first one that has a result. A session adds whole pages when steps are complete,
// and its partial last page when it ends.
//
// Keys and values depend on tokens, adapters and salt. Each choice of adapters, scales and salt has a tree of its own.
// A session whose keys and values come from elsewhere (a file, or other adapters before) does not use the prefix cache
// until it begins anew.
#include "engine/engine.h"
#include "engine/session/saved.h"

#include "base/number.h"

#include <stdlib.h>
#include <string.h>

static bool takes_part(const frit_session *session)
{
    return session->prefix.root && !session->prefix.is_foreign && session->failure.status == FRIT_OK &&
           session->source.n == 0;
}

// ------------------------------------------------------------------------------- taking and leaving

static void lower(size_t *limit, size_t n)
{
    if (n < *limit) *limit = n;
}

// Returns how many of the first tokens need not run.
static size_t limit_of(const frit_session *session)
{
    size_t limit = session->n_tokens > 0 ? session->n_tokens - 1 : 0;
    for (size_t q = 0; q < session->results.n_pushes; q++) {
        const frit_row_push *item = &session->results.pushes[q];
        if (session->results.n_delivered < item->first + item->n)
            lower(&limit, item->first > session->results.n_delivered ? item->first : session->results.n_delivered);
    }
    for (int32_t k = 0; k < session->pick.n; k++) lower(&limit, session->pick.requests[k].at);
    return limit;
}

static frit_kv_found find_cached(const frit_session *session)
{
    const frit_kv_text text = {session->prefix.root, session->tokens, (int32_t)limit_of(session)};
    return frit_kv_find(&session->engine->kv, &text);
}

bool frit_prefix_has_room(const frit_session *session)
{
    const frit_kv *kv = &session->engine->kv;
    const int32_t n = (int32_t)session->n_tokens;
    if (frit_kv_has_room(kv, &session->map, n, 0)) return true;
    if (!takes_part(session)) return false;
    const frit_kv_found found = find_cached(session);
    return frit_kv_has_room(kv, &session->map, n, frit_kv_found_shared(kv, &found));
}

bool frit_prefix_begin(frit_session *session)
{
    frit_kv *kv = &session->engine->kv;
    session->prefix.is_foreign = false;
    if (session->results.n_delivered == 0) session->prefix.n_cached = 0;
    if (!takes_part(session)) return true;
    const frit_kv_text text = {session->prefix.root, session->tokens, (int32_t)limit_of(session)};
    if (frit_kv_disk_look(kv, &text, &session->prefix.n_known)) return false;
    if (!frit_prefix_has_room(session)) return true;
    const frit_kv_found found = find_cached(session);
    if (found.n == 0 || frit_kv_ref_found(kv, &session->map, &found) != FRIT_OK) return true;
    session->n_done = (size_t)found.n;
    if (session->results.n_delivered == 0) session->prefix.n_cached = session->n_done;
    return true;
}

// Returns how many tokens are final. Drafts that may be rejected are not.
static size_t n_settled(const frit_session *session)
{
    size_t n = session->n_done - session->n_flying;
    if (session->pick.n > 0 && session->pick.requests[0].n > 1) lower(&n, session->pick.requests[0].at + 1);
    while (n > 0 && session->tokens[n - 1] < 0) n--;
    return n;
}

void frit_prefix_cache(frit_session *session, bool ends)
{
    if (!takes_part(session)) return;
    const frit_kv_text text = {session->prefix.root, session->tokens, (int32_t)n_settled(session)};
    if (!ends && text.n / FRIT_PAGE_TOKENS == session->map.page_list.n) return;
    frit_kv_cache_text(&session->engine->kv, &session->map, &text, ends);
}

void frit_prefix_drop(frit_session *session)
{
    if (session->prefix.root && !session->prefix.is_foreign) frit_kv_drop_text(&session->engine->kv, &session->map);
    session->prefix.is_foreign = true;
}

// ------------------------------------------------------------------------------- what texts depend on

// Numbers the adapters: an index is used again for another adapter, which gets a new number.
frit_status frit_prefix_number_adapters(frit_engine *engine)
{
    const frit_engine_adapters *table = &engine->adapters;
    if (engine->adapter_numbers.n < table->n) {
        frit_adapter_number *items = realloc(engine->adapter_numbers.items, (size_t)table->n * sizeof *items);
        if (!items) return frit_fail_memory((size_t)table->n * sizeof *items, "an engine's adapters");
        for (int32_t i = engine->adapter_numbers.n; i < table->n; i++) items[i] = (frit_adapter_number){0};
        engine->adapter_numbers.items = items;
        engine->adapter_numbers.n = table->n;
    }
    for (int32_t i = 0; i < table->n; i++)
        if (engine->adapter_numbers.items[i].adapter != table->items[i])
            engine->adapter_numbers.items[i] = (frit_adapter_number){table->items[i], ++engine->adapter_numbers.n_seen};
    return FRIT_OK;
}

static void add_bytes(uint8_t *key, size_t *n, const void *bytes, size_t n_bytes)
{
    if (n_bytes > 0) memcpy(key + *n, bytes, n_bytes);
    *n += n_bytes;
}

// A root's key: the adapters that have a scale, then the salt.
static frit_status make_root(const frit_session *session, const void *salt, size_t n_salt, frit_kv_root **out)
{
    const frit_engine *engine = session->engine;
    const size_t n_adapters = session->adapters.scales ? (size_t)engine->adapters.n : 0;
    const size_t most = sizeof n_salt + n_adapters * (sizeof(uint64_t) + sizeof(float)) + n_salt;
    uint8_t *key = malloc(most);
    size_t n = 0;
    if (!key) return frit_fail_memory(most, "a session's root of the prefix cache");
    add_bytes(key, &n, &n_salt, sizeof n_salt);
    for (size_t i = 0; i < n_adapters; i++) {
        if (session->adapters.scales[i] == 0) continue;
        add_bytes(key, &n, &engine->adapter_numbers.items[i].number, sizeof engine->adapter_numbers.items[i].number);
        add_bytes(key, &n, &session->adapters.scales[i], sizeof session->adapters.scales[i]);
    }
    add_bytes(key, &n, salt, n_salt);
    const frit_status status = frit_kv_root_get(&session->engine->kv, key, n, out);
    // Numbers of adapters mean something to this engine only, so roots with adapters are not stored on disk.
    if (status == FRIT_OK && n == sizeof n_salt + n_salt) frit_kv_disk_name_root(&session->engine->kv, *out);
    free(key);
    return status;
}

// Changes the salt. The salt is the end of a root's key.
static frit_status move_to_root(frit_session *session, const void *salt, size_t n_salt)
{
    frit_kv_root *root;
    FRIT_TRY(make_root(session, salt, n_salt, &root));
    frit_kv_root_unref(&session->engine->kv, session->prefix.root);
    session->prefix.root = root;
    return FRIT_OK;
}

frit_status frit_prefix_adapt(frit_session *session)
{
    if (!session->prefix.root) return FRIT_OK;
    size_t n_salt;
    const frit_kv_root *before = session->prefix.root;
    memcpy(&n_salt, before->key, sizeof n_salt);
    FRIT_TRY(move_to_root(session, before->key + before->n_bytes - n_salt, n_salt));
    if (session->prefix.root != before && session->n_done > 0) session->prefix.is_foreign = true;
    return FRIT_OK;
}

frit_status frit_prefix_join(frit_session *session)
{
    if (!session->engine->kv.prefix.on) return FRIT_OK;
    return move_to_root(session, "", 0);
}

void frit_prefix_leave(frit_session *session)
{
    frit_kv_root_unref(&session->engine->kv, session->prefix.root);
    session->prefix.root = NULL;
}

frit_status frit_session_set_salt(frit_session *session, const char *salt, size_t n_bytes)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(salt, n_bytes);
    FRIT_TRY(frit_session_settle(session));
    if (session->n_done > 0)
        return frit_fail(FRIT_E_INVALID, "%zu tokens of the session ran with another salt: truncate it to 0 first",
                         session->n_done);
    return session->prefix.root ? move_to_root(session, salt, n_bytes) : FRIT_OK;
}

size_t frit_session_cached(const frit_session *session)
{
    FRIT_REQUIRE_OR(0, session);
    return session->prefix.n_cached;
}

// ------------------------------------------------------------------------------- on disk

// Describes what keys and values depend on beside tokens: model, cache, kernels.
static frit_status identify(const frit_engine *engine, frit_buf *out)
{
    frit_saved_header model;
    FRIT_TRY(frit_engine_describe(engine, &model));
    model.n_ctx = 0;   // matters only for the rotation, which the header has too
    frit_buf_printf(out, "frit %s, pages of %d, many rows from %d on, long prompts from %d\n", frit_version(),
                    FRIT_PAGE_TOKENS, engine->rows.least[FRIT_ROWS_PREFILL],
                    engine->rows.least[FRIT_ROWS_LONG_PREFILL]);
    frit_buf_append(out, (const char *)&model, sizeof model);
    for (int i = 0; i < engine->n_devices; i++) {
        const frit_device *device = engine->devices[i];
        frit_device_info info;
        device->backend->info(device, &info);
        frit_buf_printf(out, "%s %s", device->backend->name, info.isa);
        for (int32_t g = 0; g < engine->kv.n_groups && i < engine->kv.n_storages; g++)
            frit_buf_printf(out, " %llu", (unsigned long long)engine->kv.storages[i].layout.page_bytes[g]);
        frit_buf_char(out, '\n');
    }
    if (engine->kv.devices) frit_buf_append(out, (const char *)engine->kv.devices, (size_t)engine->kv.n_layers);
    return out->failed ? frit_fail_memory(out->len, "the prefix cache on disk") : FRIT_OK;
}

// Splits "FOLDER:SIZE" or "FOLDER". A colon before the last part of a path belongs to the folder.
static frit_status split_size(const char *text, size_t *n_folder, uint64_t *max_bytes)
{
    static const uint64_t usual = UINT64_C(4000000000);
    const char *colon = strrchr(text, ':');
    const bool has_size = colon && !strpbrk(colon, "/\\");
    *max_bytes = usual;
    *n_folder = has_size ? (size_t)(colon - text) : strlen(text);
    if (has_size && !frit_parse_size(colon + 1, max_bytes))
        return frit_fail(FRIT_E_INVALID, "prefix-cache-disk: '%.32s' is not a size, expected one like 4G", colon + 1);
    if (*n_folder > 0) return FRIT_OK;
    return frit_fail(FRIT_E_INVALID, "prefix-cache-disk is '%.64s', expected a folder, and a size after a colon", text);
}

frit_status frit_prefix_open_disk(frit_engine *engine, const char *prefix_disk)
{
    frit_kv_disk_options options = {.n_ctx = engine->n_ctx, .log = engine->model->log};
    size_t n;
    FRIT_TRY(split_size(prefix_disk, &n, &options.max_bytes));
    frit_buf folder = {0}, identity = {0};
    frit_buf_append(&folder, prefix_disk, n);
    frit_status status = folder.failed ? frit_fail_memory(n, "a path") : identify(engine, &identity);
    options.folder = folder.data;
    options.identity = identity.data;
    options.n_identity = identity.len;
    if (status == FRIT_OK) status = frit_kv_disk_init(&engine->kv, &options);
    frit_buf_free(&folder);
    frit_buf_free(&identity);
    return status;
}
