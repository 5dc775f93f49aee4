// SPDX-License-Identifier: MIT
// Sessions to files or memory, and back (saved.h has the layout).
#include "engine/engine.h"
#include "engine/session/saved.h"

#include "base/checksum.h"
#include "base/file/file.h"
#include "format/rows.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------------- which model

enum { N_SAMPLES = 4, SAMPLE_BYTES = 64 };   // of each tensor: models that differ, differ in whole tensors

static void add_text(frit_checksum *sum, const char *text, size_t n)
{
    const uint64_t length = n;
    frit_checksum_add(sum, &length, sizeof length);
    frit_checksum_add(sum, text, n);
}

// Adds some rows of a tensor whose rows are made when they are read.
static frit_status add_rows(frit_checksum *sum, const frit_tensor *tensor)
{
    const size_t n_bytes = (size_t)(frit_tensor_row_bytes(tensor) + 15) / 16 * 16;
    uint8_t *row = malloc(n_bytes + frit_tensor_scratch_bytes(tensor));
    if (!row) return frit_fail_memory(n_bytes, tensor->name);
    for (int64_t i = 0; i < N_SAMPLES; i++) {
        frit_tensor_read(tensor, (frit_tensor_n_rows(tensor) - 1) / (N_SAMPLES - 1) * i, 1, row, row + n_bytes);
        frit_checksum_add(sum, row, (size_t)frit_tensor_row_bytes(tensor));
    }
    free(row);
    return FRIT_OK;
}

static frit_status add_tensor(frit_checksum *sum, const frit_tensor *tensor)
{
    add_text(sum, tensor->name, strlen(tensor->name));
    const uint64_t type = tensor->dtype;
    frit_checksum_add(sum, &type, sizeof type);
    frit_checksum_add(sum, tensor->shape, sizeof tensor->shape);
    if (!tensor->data) return add_rows(sum, tensor);
    const uint64_t n = tensor->n_bytes < SAMPLE_BYTES ? tensor->n_bytes : SAMPLE_BYTES;
    for (uint64_t i = 0; i < N_SAMPLES; i++)
        frit_checksum_add(sum, (const uint8_t *)tensor->data + (tensor->n_bytes - n) / (N_SAMPLES - 1) * i, (size_t)n);
    return FRIT_OK;
}

// True for keys that describe the architecture. Names and texts may change without making another model.
static bool is_of_architecture(frit_str key)
{
    return !frit_str_starts(key, "general.") && !frit_str_starts(key, "tokenizer.") && !frit_str_starts(key, "split.");
}

static frit_status add_metadata(frit_checksum *sum, const frit_meta *meta)
{
    frit_buf text = {0};
    for (size_t i = 0; i < meta->n; i++) {
        if (!is_of_architecture(meta->pairs[i].key)) continue;
        frit_buf_clear(&text);
        frit_value_print(&meta->pairs[i].value, INT32_MAX, &text);
        add_text(sum, meta->pairs[i].key.ptr, meta->pairs[i].key.len);
        add_text(sum, text.data, text.len);
    }
    const bool failed = text.failed;
    frit_buf_free(&text);
    return failed ? frit_fail_memory(text.len, "a model's metadata") : FRIT_OK;
}

static void add_rotation(frit_checksum *sum, const frit_rope_table *table, const frit_rope_params *rope)
{
    frit_checksum_add(sum, &table->magnitude, sizeof table->magnitude);
    if (rope->dim > 1) frit_checksum_add(sum, table->inv_freq->data, (size_t)table->inv_freq->n_bytes);
}

// Sums the adapters in use, independently of their order.
static frit_status sum_adapters(const frit_session *session, uint64_t *sums)
{
    const frit_engine_adapters *all = &session->engine->adapters;
    *sums = 0;
    for (int32_t i = 0; i < all->n && session->adapters.scales; i++) {
        const frit_adapter *adapter = all->items[i];
        frit_checksum sum = {0};
        if (session->adapters.scales[i] == 0 || !adapter) continue;
        frit_checksum_add(&sum, &session->adapters.scales[i], sizeof session->adapters.scales[i]);
        frit_checksum_add(&sum, &adapter->file.alpha, sizeof adapter->file.alpha);
        for (size_t k = 0; k < adapter->file.ckpt->n_tensors; k++)
            FRIT_TRY(add_tensor(&sum, &adapter->file.ckpt->tensors[k]));
        for (int32_t k = 0; adapter->steers && k < adapter->table.n_layers; k++) {
            const bool steers = adapter->table.directions[k] != NULL;
            frit_checksum_add(&sum, &steers, sizeof steers);
        }
        *sums += frit_checksum_value(&sum);
    }
    return FRIT_OK;
}

static_assert((int)FRIT_SAVED_GROUPS == (int)FRIT_MAX_GROUPS, "a file has all groups");

static void describe_groups(const frit_kv *kv, frit_saved_header *h)
{
    for (int32_t g = 0; g < kv->n_groups; g++)
        h->groups[g] = (frit_saved_group){.position_bytes = frit_kv_position_bytes(kv, g),
                                          .window = (uint32_t)kv->groups[g].window,
                                          .of_source = kv->groups[g].of_source};
}

frit_status frit_engine_describe(const frit_engine *engine, frit_saved_header *h)
{
    const frit_hparams *hp = &engine->hp;
    const frit_model *model = engine->model;
    frit_checksum weights = {0}, rotation = {0};
    FRIT_TRY(frit_model_check_files(model));
    for (size_t i = 0; i < model->ckpt->n_tensors; i++) FRIT_TRY(add_tensor(&weights, &model->ckpt->tensors[i]));
    FRIT_TRY(add_metadata(&weights, &model->ckpt->meta));
    add_rotation(&rotation, &hp->rope_table, &hp->rope);
    add_rotation(&rotation, &hp->rope_swa_table, &hp->rope_swa);
    const bool is_long = frit_has(&model->weights.rope_long) && hp->n_ctx > hp->rope.n_ctx_orig;
    frit_checksum_add(&rotation, &is_long, sizeof is_long);

    memset(h, 0, sizeof *h);
    memcpy(h->magic, frit_saved_magic, sizeof h->magic);
    h->version = FRIT_SAVED_VERSION;
    h->n_layer = (uint32_t)hp->n_layer;
    const frit_cache_layer *first = engine->kv.layers;
    snprintf(h->arch, sizeof h->arch, "%s", model->arch->name);
    snprintf(h->type_k, sizeof h->type_k, "%s", frit_dtype_get(first->k.dtype)->name);
    snprintf(h->type_v, sizeof h->type_v, "%s", frit_dtype_get(first->v.dtype)->name);
    h->model = frit_checksum_value(&weights);
    h->rotation = frit_checksum_value(&rotation);
    describe_groups(&engine->kv, h);
    for (int32_t i = 0; i < engine->kv.n_layers; i++)
        h->state_bytes += (uint64_t)engine->kv.layers[i].spec.n_state * sizeof(float);
    h->n_vocab = (uint32_t)hp->n_vocab;
    h->n_ctx = (uint32_t)engine->n_ctx;
    return FRIT_OK;
}

// Fills in the part of the header that a file must share with the session that loads it.
static frit_status describe_session(const frit_session *session, frit_saved_header *h)
{
    FRIT_TRY(frit_engine_describe(session->engine, h));
    return sum_adapters(session, &h->adapters);
}

// ------------------------------------------------------------------------------- saving

typedef struct writing {
    frit_file_writer *file;   // NULL: writes to memory
    uint8_t *memory;          // of the next bytes; there is room for all
    frit_checksum sum;
} writing;

static frit_status write_bytes(writing *w, const void *bytes, size_t n_bytes)
{
    if (w->file) return frit_file_writer_write(w->file, bytes, n_bytes);
    if (n_bytes > 0) memcpy(w->memory, bytes, n_bytes);
    w->memory += n_bytes;
    return FRIT_OK;
}

static frit_status put_const(writing *w, const void *bytes, size_t n_bytes)
{
    frit_checksum_add(&w->sum, bytes, n_bytes);
    return write_bytes(w, bytes, n_bytes);
}

static frit_status put(void *ctx, uint8_t *bytes, size_t n_bytes)
{
    return put_const(ctx, bytes, n_bytes);
}

static frit_status write_session(writing *w, const frit_session *session, const frit_saved_header *h)
{
    const frit_kv *kv = &session->engine->kv;
    const frit_kv_map *map = &session->map;
    const int32_t n_done = (int32_t)session->n_done, n_before = (int32_t)h->n_snapshots - 1;
    FRIT_TRY(put_const(w, h, sizeof *h));
    FRIT_TRY(put_const(w, session->tokens, session->n_tokens * sizeof *session->tokens));
    if (h->n_source > 0)
        FRIT_TRY(put_const(w, session->source.tokens, session->source.n * sizeof *session->source.tokens));
    for (int32_t i = 0; i < n_before; i++) FRIT_TRY(put_const(w, &map->snapshots[i]->at, sizeof n_done));
    if (h->n_snapshots > 0) FRIT_TRY(put_const(w, &n_done, sizeof n_done));
    FRIT_TRY(put_const(w, session->results.logits, h->n_logits * sizeof *session->results.logits));
    const frit_kv_visitor puts = {.visit = put, .ctx = w};
    FRIT_TRY(frit_kv_visit(kv, map->tables, FRIT_KV_TEXT, n_done, &puts));
    FRIT_TRY(frit_kv_visit(kv, map->tables, FRIT_KV_SOURCE, (int32_t)h->n_encoded, &puts));
    for (int32_t i = 0; i < n_before; i++) {
        const frit_kv_snapshot *snapshot = map->snapshots[i];
        FRIT_TRY(frit_kv_visit(kv, snapshot->tables, FRIT_KV_WINDOWS, snapshot->at, &puts));
        FRIT_TRY(frit_kv_visit_states(kv, snapshot->state, &puts));
    }
    if (h->n_snapshots > 0) FRIT_TRY(frit_kv_visit_states(kv, map->state, &puts));
    FRIT_TRY(put_const(w, session->note.text ? session->note.text : "", session->note.n_bytes));
    const uint64_t sum = frit_checksum_value(&w->sum);
    return write_bytes(w, &sum, sizeof sum);
}

// Counts the snapshots for the header, and returns the bytes of their data. Leaves out snapshots after n_done, which a
// failed step may have left.
static uint64_t count_snapshots(const frit_session *session, frit_saved_header *h)
{
    const frit_kv *kv = &session->engine->kv;
    const frit_kv_map *map = &session->map;
    uint64_t n_bytes = h->state_bytes;
    if ((kv->state_bytes == 0 && !kv->has_windows) || h->n_done == 0) return 0;
    h->n_snapshots = 1;
    for (int32_t i = 0; i < map->n_snapshots && (uint32_t)map->snapshots[i]->at <= h->n_done; i++, h->n_snapshots++) {
        if (map->snapshots[i]->is_for_drafts) break;   // it is the last one
        n_bytes += h->state_bytes + frit_saved_bytes(h, FRIT_SAVED_WINDOWS, (uint32_t)map->snapshots[i]->at);
    }
    return n_bytes;
}

// Makes the header for saving the session as it is now.
static frit_status make_header(const frit_session *session, frit_saved_header *out)
{
    frit_saved_header h;
    FRIT_TRY(frit_session_settle_all(session));
    FRIT_TRY(frit_session_status(session));
    FRIT_TRY(frit_session_check_known(session));
    if (session->soft.n > 0) return frit_fail(FRIT_E_UNSUPPORTED, "a session with pictures cannot be saved yet");
    FRIT_TRY(describe_session(session, &h));
    h.n_tokens = (uint32_t)session->n_tokens;
    h.n_done = (uint32_t)session->n_done;
    h.n_logits = frit_session_logits(session) ? h.n_vocab : 0;
    h.n_source = (uint32_t)session->source.n;
    h.n_encoded = session->source.waits ? 0 : h.n_source;
    h.n_note_bytes = session->note.n_bytes;
    h.n_dropped = session->shift.n_dropped;
    const uint64_t n_snapshot_bytes = count_snapshots(session, &h);
    h.n_bytes = sizeof h + UINT64_C(4) * h.n_tokens + UINT64_C(4) * h.n_source + UINT64_C(4) * h.n_snapshots +
                UINT64_C(4) * h.n_logits + frit_saved_bytes(&h, FRIT_SAVED_TEXT, h.n_done) +
                frit_saved_bytes(&h, FRIT_SAVED_SOURCE, h.n_encoded) + n_snapshot_bytes + h.n_note_bytes +
                sizeof(uint64_t);
    *out = h;
    return FRIT_OK;
}

frit_status frit_session_save(const frit_session *session, const char *path)
{
    frit_saved_header h;
    writing w = {0};
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(path);
    FRIT_TRY(make_header(session, &h));
    FRIT_TRY(frit_file_writer_open_private(&w.file, path));
    frit_status status = write_session(&w, session, &h);
    if (status != FRIT_OK) {
        frit_file_writer_abort(w.file);
        return status;
    }
    return frit_file_writer_commit(w.file);
}

frit_status frit_session_save_memory(const frit_session *session, void *bytes, size_t capacity, size_t *n_bytes)
{
    frit_saved_header h;
    FRIT_REQUIRE(n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(bytes, capacity);
    FRIT_TRY(make_header(session, &h));
    if (h.n_bytes > SIZE_MAX) return frit_fail_memory(SIZE_MAX, "a saved session");
    *n_bytes = (size_t)h.n_bytes;
    if (h.n_bytes > capacity)
        return frit_fail(FRIT_E_LIMIT, "the saved session has %zu bytes, there is room for %zu", *n_bytes, capacity);
    return write_session(&(writing){.memory = bytes}, session, &h);
}

// ------------------------------------------------------------------------------- loading

static frit_status read_bytes(void *ctx, uint8_t *bytes, size_t n_bytes)
{
    const uint8_t **at = ctx;
    memcpy(bytes, *at, n_bytes);
    *at += n_bytes;
    return FRIT_OK;
}

// Restores a snapshot. If the engine keeps fewer snapshots than the file has, the last ones stay.
static frit_status restore_snapshot(frit_session *session, const frit_saved *saved, int32_t at, const uint8_t **from)
{
    frit_kv *kv = &session->engine->kv;
    const frit_kv_visitor reader = {read_bytes, from, true};
    if (kv->max_snapshots == 0) {
        *from += frit_saved_bytes(&saved->header, FRIT_SAVED_WINDOWS, (uint32_t)at) + saved->header.state_bytes;
        return FRIT_OK;
    }
    FRIT_TRY(frit_kv_alloc(kv, &session->map, at, true));
    FRIT_TRY(frit_kv_visit(kv, session->map.tables, FRIT_KV_WINDOWS, at, &reader));
    const frit_kv_snapshot *snapshot = frit_kv_add_snapshot(kv, &session->map, at, false);
    if (snapshot) return frit_kv_visit_states(kv, snapshot->state, &reader);
    *from += saved->header.state_bytes;
    return FRIT_OK;
}

static frit_status restore_cache(frit_session *session, const frit_saved *saved)
{
    const frit_saved_header *h = &saved->header;
    frit_kv *kv = &session->engine->kv;
    const uint8_t *snapshots = saved->snapshots, *positions = saved->positions;
    for (uint32_t i = 0; i + 1 < h->n_snapshots; i++) {
        int32_t at;
        memcpy(&at, saved->snapshot_positions + i * sizeof at, sizeof at);
        FRIT_TRY(restore_snapshot(session, saved, at, &snapshots));
    }
    if (h->n_done == 0) return FRIT_OK;
    FRIT_TRY(frit_kv_alloc(kv, &session->map, (int32_t)h->n_done, false));
    FRIT_TRY(frit_kv_visit(kv, session->map.tables, FRIT_KV_TEXT, (int32_t)h->n_done,
                           &(frit_kv_visitor){read_bytes, &positions, true}));
    if (h->n_snapshots == 0) return FRIT_OK;
    return frit_kv_visit_states(kv, session->map.state, &(frit_kv_visitor){read_bytes, &snapshots, true});
}

// Restores the source and, if the encoder had run, its cache.
static frit_status restore_source(frit_session *session, const frit_saved *saved)
{
    const frit_saved_header *h = &saved->header;
    frit_kv *kv = &session->engine->kv;
    const uint8_t *at = saved->source_positions;
    FRIT_TRY(frit_session_set_source(session, saved->source, h->n_source));
    session->source.waits = h->n_encoded < h->n_source;
    if (session->source.waits) return FRIT_OK;
    FRIT_TRY(frit_kv_alloc_source(kv, &session->map, (int32_t)h->n_encoded));
    return frit_kv_visit(kv, session->map.tables, FRIT_KV_SOURCE, (int32_t)h->n_encoded,
                         &(frit_kv_visitor){read_bytes, &at, true});
}

// Restores a session from a file that has been checked.
static frit_status restore_session(frit_session *session, const frit_saved *saved)
{
    const frit_saved_header *h = &saved->header;
    if (h->n_encoded < h->n_source) FRIT_TRY(frit_engine_grow(session->engine, h->n_source));
    FRIT_TRY(frit_session_set_note(session, (const char *)saved->note, (size_t)h->n_note_bytes));
    FRIT_TRY(frit_session_truncate(session, 0));
    frit_session_release_source(session);
    frit_status status = h->n_source > 0 ? restore_source(session, saved) : FRIT_OK;
    if (status == FRIT_OK) status = restore_cache(session, saved);
    if (status != FRIT_OK) {
        frit_kv_release(&session->engine->kv, &session->map);
        frit_session_release_source(session);
        return status;
    }
    memcpy(session->tokens, saved->tokens, h->n_tokens * sizeof *session->tokens);
    memcpy(session->results.logits, saved->logits, h->n_logits * sizeof *session->results.logits);
    session->n_tokens = h->n_tokens;
    session->n_done = h->n_done;
    session->shift.n_dropped = (size_t)h->n_dropped;
    session->prefix.is_foreign = h->n_done > 0;   // the file is not trusted
    session->prefix.n_cached = 0;
    session->results.logits_at = h->n_logits > 0 ? h->n_tokens : 0;
    session->results.needs_logits = true;
    return FRIT_OK;
}

static frit_status load_session(frit_session *session, const char *name, const uint8_t *bytes, uint64_t n_bytes)
{
    frit_saved_header expected;
    frit_saved saved;
    FRIT_TRY(describe_session(session, &expected));
    FRIT_TRY(frit_saved_parse(&saved, name, bytes, n_bytes, &expected));
    return restore_session(session, &saved);
}

frit_status frit_session_load(frit_session *session, const char *path)
{
    frit_file *file;
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(path);
    FRIT_TRY(frit_session_settle_all(session));
    FRIT_TRY(frit_file_open(&file, path, false));
    frit_status status = load_session(session, path, frit_file_data(file), frit_file_size(file));
    frit_file_close(file);
    return status;
}

frit_status frit_session_load_memory(frit_session *session, const void *bytes, size_t n_bytes)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE(bytes);
    FRIT_TRY(frit_session_settle_all(session));
    return load_session(session, "memory", bytes, n_bytes);
}

// ------------------------------------------------------------------------------- notes

frit_status frit_session_file_note(const char *path, char *note, size_t capacity, size_t *n_bytes)
{
    frit_file *file;
    FRIT_REQUIRE(path);
    FRIT_REQUIRE(n_bytes);
    FRIT_REQUIRE_ITEMS(note, capacity);
    FRIT_TRY(frit_file_open(&file, path, false));
    const uint64_t n_file = frit_file_size(file), n_ends = sizeof(frit_saved_header) + sizeof(uint64_t);
    frit_saved_header h = {.n_note_bytes = UINT64_MAX};
    if (n_file >= n_ends) memcpy(&h, frit_file_data(file), sizeof h);
    const bool is_session = n_file >= n_ends && memcmp(h.magic, frit_saved_magic, sizeof h.magic) == 0 &&
                            h.version == FRIT_SAVED_VERSION && h.n_bytes == n_file && h.n_note_bytes <= n_file - n_ends;
    frit_status status = FRIT_OK;
    *n_bytes = is_session ? (size_t)h.n_note_bytes : 0;
    if (!is_session)
        status = frit_fail_file(FRIT_E_FORMAT, "%s: is not a session of this version", path);
    else if (*n_bytes > capacity)
        status = frit_fail_file(FRIT_E_LIMIT, "%s: its note has %zu bytes", path, *n_bytes);
    else if (*n_bytes > 0)
        memcpy(note, frit_file_data(file) + n_file - sizeof(uint64_t) - *n_bytes, *n_bytes);
    frit_file_close(file);
    return status;
}

frit_status frit_session_set_note(frit_session *session, const char *note, size_t n_bytes)
{
    FRIT_REQUIRE(session);
    FRIT_REQUIRE_ITEMS(note, n_bytes);
    char *copy = malloc(n_bytes + 1);
    if (!copy) return frit_fail_memory(n_bytes, "a session's note");
    if (n_bytes > 0) memcpy(copy, note, n_bytes);
    copy[n_bytes] = 0;
    free(session->note.text);
    session->note.text = copy;
    session->note.n_bytes = n_bytes;
    return FRIT_OK;
}

const char *frit_session_note(const frit_session *session, size_t *n_bytes)
{
    FRIT_REQUIRE_OR(NULL, n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE_OR(NULL, session);
    *n_bytes = session->note.n_bytes;
    return session->note.text ? session->note.text : "";
}
