// SPDX-License-Identifier: MIT
// The state file of a choice of types: saving and loading.
#include "quantize/type_choice.h"
#include "base/number.h"
#include "base/sha256.h"
#include "base/time.h"
#include "format/gguf.h"
#include "format/rows.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, SAVE_SECONDS = 60, SAMPLE_BYTES = 4096 };

// ------------------------------------------------------------------------------------- the key

static void add_tensor(frit_sha256 *sum, const frit_tensor *tensor)
{
    const uint64_t n = tensor->data ? tensor->n_bytes : 0, n_sample = n < SAMPLE_BYTES ? n : SAMPLE_BYTES;
    frit_sha256_add(sum, tensor->name, strlen(tensor->name) + 1);
    frit_sha256_add(sum, &tensor->dtype, sizeof tensor->dtype);
    frit_sha256_add(sum, tensor->shape, sizeof tensor->shape);
    if (n > 0) frit_sha256_add(sum, (const uint8_t *)tensor->data + (n - n_sample) / 2, (size_t)n_sample);
}

// Hashes the model, importance, and n_text bytes of a text in n_windows.
static void make_key(const frit_type_choice *a, const char *text, size_t n_text, int32_t n_windows, char key[65])
{
    const uint64_t numbers[] = {VERSION, a->n_ctx, (uint64_t)n_windows, text ? n_text + 1 : 0, a->n};
    uint8_t hash[FRIT_SHA256_BYTES];
    frit_sha256 sum;
    frit_sha256_init(&sum);
    frit_sha256_add(&sum, numbers, sizeof numbers);
    if (text) frit_sha256_add(&sum, text, n_text);
    for (size_t i = 0; i < a->ckpt->n_tensors; i++) add_tensor(&sum, &a->ckpt->tensors[i]);
    for (size_t k = 0; k < a->n; k++) frit_sha256_add(&sum, a->list[k].name, strlen(a->list[k].name) + 1);
    for (size_t i = 0; a->quantize.importance && i < a->read.n; i++)
        frit_sha256_add(&sum, a->read.entries[i].sums, a->read.entries[i].n_values * sizeof(double));
    frit_sha256_end(&sum, hash);
    for (size_t i = 0; i < sizeof hash; i++) frit_format(key + 2 * i, 3, "%02x", hash[i]);
}

static void make_keys(frit_type_choice *a)
{
    const frit_allocate_options *o = a->options;
    make_key(a, NULL, 0, 0, a->model_key);
    make_key(a, o->text, o->n_text, o->n_windows, a->key);
}

// ------------------------------------------------------------------------------------- saving

static frit_value numbers_of(frit_value_type type, size_t n, const void *items)
{
    return (frit_value){.type = FRIT_VALUE_ARRAY, .array = {type, n, items}};
}

frit_status frit_type_choice_save(frit_type_choice *a)
{
    if (!a->options->state) return FRIT_OK;
    frit_arena arena = {0};
    frit_meta meta;
    frit_meta_init(&meta, &arena);
    double *kl = frit_arena_new(&arena, double, a->n + 1);
    for (size_t k = 0; kl && k < a->n; k++) kl[k] = a->list[k].probe_kl;
    const frit_value tokens = numbers_of(FRIT_VALUE_I32, a->n_windows * a->n_ctx, a->tokens),
                     prices = numbers_of(FRIT_VALUE_F64, a->n, kl),
                     windows = numbers_of(FRIT_VALUE_F64, a->n * FRIT_PRICED_WINDOWS, a->window_kl),
                     errors = numbers_of(FRIT_VALUE_F64, a->n * FRIT_DTYPE_COUNT, a->errors);
    frit_status status = kl ? FRIT_OK : frit_fail_memory(a->n * sizeof *kl, "prices");
    if (status == FRIT_OK) status = frit_meta_add_text(&meta, "prices.key", a->key);
    if (status == FRIT_OK && a->has_text) status = frit_meta_add_text(&meta, "prices.text_of", a->model_key);
    if (status == FRIT_OK) status = frit_meta_add(&meta, frit_str_of("prices.tokens"), tokens);
    if (status == FRIT_OK) status = frit_meta_add(&meta, frit_str_of("prices.kl"), prices);
    if (status == FRIT_OK) status = frit_meta_add(&meta, frit_str_of("prices.windows"), windows);
    if (status == FRIT_OK) status = frit_meta_add(&meta, frit_str_of("prices.errors"), errors);
    const frit_importance_file file = {.n_chunks = (int32_t)a->n_windows, .chunk_size = (int32_t)a->n_ctx};
    if (status == FRIT_OK) status = frit_importance_write_with(&a->measured, a->options->state, &file, &meta);
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
    a->saved_ns = frit_time_ns();
    return status;
}

frit_status frit_type_choice_save_sometimes(frit_type_choice *a)
{
    return frit_time_ns() - a->saved_ns < SAVE_SECONDS * UINT64_C(1000000000) ? FRIT_OK : frit_type_choice_save(a);
}

// ------------------------------------------------------------------------------------- loading

// Returns the items of an array of n; NULL if there is no such array.
static const void *find_items(const frit_meta *meta, const char *key, frit_value_type type, uint64_t n)
{
    const frit_value *value = frit_meta_find(meta, key);
    const bool is = value && value->type == FRIT_VALUE_ARRAY && value->array.type == type && value->array.n == n;
    return is ? value->array.items : NULL;
}

static frit_status load_tokens(frit_type_choice *a, const frit_meta *meta)
{
    const frit_value *value = frit_meta_find(meta, "prices.tokens");
    const uint64_t n = value && value->type == FRIT_VALUE_ARRAY ? value->array.n : 0;
    const void *items = find_items(meta, "prices.tokens", FRIT_VALUE_I32, n);
    if (!items || n == 0 || n % a->n_ctx != 0)
        return frit_fail_file(FRIT_E_FORMAT, "%s: has %llu tokens, expected windows of %zu", a->options->state,
                              (unsigned long long)n, a->n_ctx);
    frit_token *tokens = malloc((size_t)n * sizeof *tokens);
    if (!tokens) return frit_fail_memory((size_t)n * sizeof *tokens, "the tokens of a text");
    memcpy(tokens, items, (size_t)n * sizeof *tokens);
    a->tokens = tokens;
    a->n_windows = (size_t)n / a->n_ctx;
    for (uint64_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= a->model->info.n_vocab)
            return frit_fail_file(FRIT_E_FORMAT, "%s: token %llu is %d, the model has %d", a->options->state,
                                  (unsigned long long)i, tokens[i], a->model->info.n_vocab);
    return FRIT_OK;
}

// Reads NaN as not measured.
static double checked(double x)
{
    return x >= 0 && x < 1e30 ? x : -1;
}

// Decides if the file's measurements fit. If no text is named, the file's own text is used: it may be all that is left
// of the text. The file's key is then kept.
static frit_status check_key(frit_type_choice *a, const frit_meta *meta, bool *fits)
{
    const char *path = a->options->state;
    frit_str key = {0}, text_of = {0};
    bool found = false, has_text = false;
    FRIT_TRY(frit_meta_get_text(meta, "prices.key", &key, &found));
    FRIT_TRY(frit_meta_get_text(meta, "prices.text_of", &text_of, &has_text));
    if (!found) return frit_fail_file(FRIT_E_FORMAT, "%s: has no prices, expected the state of an earlier run", path);
    *fits = frit_str_is(key, a->key);
    if (*fits) return FRIT_OK;
    if (has_text && !a->options->text && frit_str_is(text_of, a->model_key) && key.len < sizeof a->key) {
        memcpy(a->key, key.ptr, key.len);
        a->key[key.len] = 0;
        *fits = a->has_text = true;
        frit_log_say(&a->log, FRIT_LOG_INFO, "%s: the text of the state is used, because none is given", path);
        return FRIT_OK;
    }
    frit_log_say(&a->log, FRIT_LOG_WARNING, "%s: was measured with another model or text, so all is measured again",
                 path);
    return FRIT_OK;
}

static frit_status load_measurements(frit_type_choice *a, const frit_checkpoint *ckpt, bool *has_importance)
{
    const size_t n_errors = a->n * FRIT_DTYPE_COUNT, n_windows = a->n * FRIT_PRICED_WINDOWS;
    const void *kl = find_items(&ckpt->meta, "prices.kl", FRIT_VALUE_F64, a->n),
               *errors = find_items(&ckpt->meta, "prices.errors", FRIT_VALUE_F64, n_errors),
               *windows = find_items(&ckpt->meta, "prices.windows", FRIT_VALUE_F64, n_windows);
    bool fits = false;
    *has_importance = false;
    FRIT_TRY(check_key(a, &ckpt->meta, &fits));
    if (!fits) return FRIT_OK;
    FRIT_TRY(load_tokens(a, &ckpt->meta));
    *has_importance = ckpt->n_tensors > 0;
    if (errors) memcpy(a->errors, errors, n_errors * sizeof *a->errors);
    for (size_t i = 0; i < n_errors; i++) a->errors[i] = checked(a->errors[i]);
    if (windows) memcpy(a->window_kl, windows, n_windows * sizeof *a->window_kl);
    for (size_t i = 0; i < n_windows; i++) a->window_kl[i] = checked(a->window_kl[i]);
    for (size_t k = 0; kl && k < a->n; k++) {
        memcpy(&a->list[k].probe_kl, (const char *)kl + k * sizeof(double), sizeof(double));
        a->list[k].probe_kl = checked(a->list[k].probe_kl);
    }
    return FRIT_OK;
}

static frit_status load_file(frit_type_choice *a, const frit_file *file, const char *path)
{
    frit_checkpoint *ckpt;
    bool has_importance = false;
    FRIT_TRY(frit_checkpoint_new(&ckpt, path));
    const uint8_t *bytes = frit_file_data(file);
    const uint64_t n_bytes = frit_file_size(file);
    frit_status status = frit_gguf_parse(ckpt, path, bytes, n_bytes);
    if (status == FRIT_OK) status = load_measurements(a, ckpt, &has_importance);
    if (status == FRIT_OK && has_importance) status = frit_importance_parse(&a->measured, path, bytes, (size_t)n_bytes);
    frit_checkpoint_close(ckpt);
    return status;
}

frit_status frit_type_choice_load(frit_type_choice *a)
{
    const size_t n = a->n * FRIT_DTYPE_COUNT, n_windows = a->n * FRIT_PRICED_WINDOWS;
    const char *path = a->options->state;
    frit_file *file;
    a->errors = frit_arena_new(&a->arena, double, n + 1);
    a->window_kl = frit_arena_new(&a->arena, double, n_windows + 1);
    if (!a->errors || !a->window_kl) return frit_fail_memory(n * sizeof *a->errors, "errors of types");
    for (size_t i = 0; i < n; i++) a->errors[i] = -1;
    for (size_t i = 0; i < n_windows; i++) a->window_kl[i] = -1;
    make_keys(a);
    if (!path || frit_path_get_kind(path) == FRIT_PATH_NONE) return FRIT_OK;
    FRIT_TRY(frit_file_open(&file, path, true));
    const frit_status status = load_file(a, file, path);
    frit_file_close(file);
    return status;
}
