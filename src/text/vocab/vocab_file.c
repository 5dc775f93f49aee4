// SPDX-License-Identifier: MIT
// The sources of vocabularies, the search for the tokenizer's file in a folder, and functions for all sources.
#include "text/vocab/vocab_file.h"

#include "base/file/file.h"
#include "base/grow.h"

#include <stdio.h>
#include <stdlib.h>

// Sources in the order of recognition.
static const frit_vocab_source *const sources[] = {&frit_vocab_json, &frit_vocab_tiktoken, &frit_vocab_spm};

// Names of a tokenizer's file in a folder, the most specific first.
static const char *const names[] = {
    "tokenizer.json",     "tekken.json",  "tokenizer.model",         "tiktoken.model",     "qwen.tiktoken",
    "tokenizer.tiktoken", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model.v3",
};

enum { START_BYTES = 512 };
static const uint64_t max_file_bytes = 512 << 20;
static const int64_t max_sparse = 4096;   // unused ids, in a small vocabulary

// ------------------------------------------------------------------------------------- files

static const frit_vocab_source *recognise(frit_str start)
{
    for (size_t i = 0; i < FRIT_COUNT(sources); i++)
        if (sources[i]->recognises(start)) return sources[i];
    return NULL;
}

// Finds the tokenizer's file: `path` itself, or one in the folder. False if neither exists.
static bool find_file(const char *path, frit_buf *file)
{
    frit_path_kind kind = frit_path_get_kind(path);
    frit_buf_text(file, path);
    if (kind != FRIT_PATH_FOLDER) return kind == FRIT_PATH_FILE && !file->failed;
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        frit_buf_clear(file);
        frit_buf_printf(file, "%s/%s", path, names[i]);
        if (!file->failed && frit_path_get_kind(file->data) == FRIT_PATH_FILE) return true;
    }
    return false;
}

const char *frit_vocab_file_kind(const char *path)
{
    frit_buf name = {0};
    const frit_vocab_source *source = NULL;
    FILE *file = find_file(path, &name) ? fopen(name.data, "rb") : NULL;
    if (file) {
        char start[START_BYTES];
        size_t n = fread(start, 1, sizeof start, file);
        source = recognise((frit_str){start, n});
        fclose(file);
    } else if (frit_path_get_kind(path) == FRIT_PATH_FOLDER && frit_vocab_pair_is_in(path)) {
        source = &frit_vocab_json;   // both are read as a tokenizer.json
    }
    frit_buf_free(&name);
    return source ? source->name : NULL;
}

static frit_status read_file(frit_vocab *vocab, const char *path, frit_arena *arena, const frit_log *log)
{
    char *text;
    size_t n;
    FRIT_TRY(frit_file_read(path, max_file_bytes, &text, &n));
    vocab->text = text;
    const frit_vocab_source *source = recognise((frit_str){text, n < START_BYTES ? n : START_BYTES});
    if (!source)
        return frit_fail_file(FRIT_E_FORMAT, "%s: neither a tokenizer.json, a SentencePiece model nor a list of ranks",
                              path);
    return source->read(vocab, (frit_str){text, n}, path, arena, log);
}

static frit_status read_path(frit_vocab *vocab, const char *path, int64_t expected, frit_arena *arena,
                             const frit_log *log)
{
    frit_buf file = {0};
    const bool is_file = find_file(path, &file);
    const bool is_pair = !is_file && frit_path_get_kind(path) == FRIT_PATH_FOLDER && frit_vocab_pair_is_in(path);
    const bool found = is_file || is_pair;
    frit_status status =
        is_pair ? frit_vocab_pair_read(vocab, path, arena, log)
        : is_file
            ? read_file(vocab, file.data, arena, log)
            : frit_fail_file(FRIT_E_NOT_FOUND, "%s: there is no tokenizer.json or other file of a tokenizer", path);
    bool folder = found && strcmp(file.data, path) != 0;
    frit_buf_free(&file);
    FRIT_TRY(status);
    if (folder) FRIT_TRY(frit_json_read_config(vocab, path, arena, log));
    if (expected > 0 && vocab->n > expected)
        return frit_fail_file(FRIT_E_FORMAT, "%s: the tokenizer has %d tokens, but the embedding table has %lld rows",
                              path, (int)vocab->n, (long long)expected);
    if (expected > vocab->n) FRIT_TRY(frit_vocab_grow(vocab, (int32_t)expected, arena));
    return frit_vocab_finish(vocab, arena);
}

frit_status frit_vocab_open(frit_vocab *vocab, const char *path, int64_t expected, frit_arena *arena,
                            const frit_log *log)
{
    frit_vocab_start(vocab);
    frit_status status = expected > INT32_MAX
                             ? frit_fail_file(FRIT_E_LIMIT, "%s: %lld tokens are too many", path, (long long)expected)
                             : read_path(vocab, path, expected, arena, log);
    if (status != FRIT_OK) frit_vocab_deinit(vocab);
    return status;
}

// Reads the roles of tokens, which other files of the folder of a tokenizer.json have.
static frit_status read_roles(frit_vocab *vocab, const frit_meta *meta)
{
    const struct {
        const char *key;
        frit_token *id;
    } roles[] = {
        {"tokenizer.ggml.bos_token_id", &vocab->bos},       {"tokenizer.ggml.eos_token_id", &vocab->eos},
        {"tokenizer.ggml.eot_token_id", &vocab->eot},       {"tokenizer.ggml.unknown_token_id", &vocab->unk},
        {"tokenizer.ggml.seperator_token_id", &vocab->sep}, {"tokenizer.ggml.padding_token_id", &vocab->pad},
        {"tokenizer.ggml.mask_token_id", &vocab->mask},
    };
    for (size_t i = 0; i < FRIT_COUNT(roles); i++) {
        int64_t id = -1;
        FRIT_TRY(frit_meta_get_i64(meta, roles[i].key, &id, NULL));
        if (id >= 0 && id < vocab->n) *roles[i].id = (frit_token)id;
    }
    if (vocab->n_prefix == 0) FRIT_TRY(frit_meta_get_bool(meta, "tokenizer.ggml.add_bos_token", &vocab->add_bos, NULL));
    if (vocab->n_suffix == 0) FRIT_TRY(frit_meta_get_bool(meta, "tokenizer.ggml.add_eos_token", &vocab->add_eos, NULL));
    return FRIT_OK;
}

static frit_status read_embedded(frit_vocab *vocab, frit_str json, const frit_meta *meta, int64_t expected,
                                 frit_arena *arena, const frit_log *log)
{
    char *text = malloc(json.len + 1);   // zero-terminated; becomes the vocabulary's
    if (!text) return frit_fail_memory(json.len, "a tokenizer");
    memcpy(text, json.ptr, json.len);
    text[json.len] = 0;
    vocab->text = text;
    FRIT_TRY(frit_vocab_json.read(vocab, (frit_str){text, json.len}, "tokenizer.json", arena, log));
    if (expected > 0 && vocab->n > expected)
        return frit_fail(FRIT_E_FORMAT, "the tokenizer has %d tokens, but the embedding table has %lld rows",
                         (int)vocab->n, (long long)expected);
    if (expected > vocab->n) FRIT_TRY(frit_vocab_grow(vocab, (int32_t)expected, arena));
    FRIT_TRY(read_roles(vocab, meta));
    return frit_vocab_finish(vocab, arena);
}

frit_status frit_vocab_read_embedded(frit_vocab *vocab, frit_str json, const frit_meta *meta, int64_t expected,
                                     frit_arena *arena, const frit_log *log)
{
    frit_vocab_start(vocab);
    frit_status status = expected > INT32_MAX ? frit_fail(FRIT_E_LIMIT, "%lld tokens are too many", (long long)expected)
                                              : read_embedded(vocab, json, meta, expected, arena, log);
    if (status != FRIT_OK) frit_vocab_deinit(vocab);
    return status;
}

// ------------------------------------------------------------------------------------- lists of pieces

void frit_vocab_list_free(frit_vocab_list *list)
{
    free(list->items);
    *list = (frit_vocab_list){0};
}

static int shown(frit_str piece)
{
    return piece.len < 100 ? (int)piece.len : 100;
}

frit_status frit_vocab_list_add(frit_vocab_list *list, frit_str piece, double id, double score, frit_token_kind kind)
{
    if (!(id >= 0 && id < INT32_MAX) || id != (double)(int32_t)id)
        return frit_fail(FRIT_E_FORMAT, "token '%.*s' has the id %g, expected a whole number of 0 or more",
                         shown(piece), piece.ptr, id);
    FRIT_TRY(FRIT_GROW(list->items, list->capacity, list->n + 1, "the vocabulary"));
    list->items[list->n++] = (struct frit_vocab_item){piece, (int32_t)id, score, (unsigned char)kind};
    return FRIT_OK;
}

static bool is_same(frit_str a, frit_str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

frit_status frit_vocab_list_finish(frit_vocab_list *list, const char *path, frit_vocab *vocab, frit_arena *arena)
{
    if (list->n == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: the vocabulary is empty", path);
    const struct frit_vocab_item *last = &list->items[0];
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].id > last->id) last = &list->items[i];
    if ((int64_t)last->id > 16 * (int64_t)list->n + max_sparse)
        return frit_fail_file(FRIT_E_FORMAT, "%s: token '%.*s' has id %d, but there are only %zu tokens", path,
                              shown(last->piece), last->piece.ptr, (int)last->id, list->n);
    vocab->n = last->id + 1;
    vocab->entries = frit_arena_new(arena, frit_vocab_entry, (size_t)vocab->n);
    if (!vocab->entries) return frit_fail_memory((size_t)vocab->n * sizeof *vocab->entries, "the vocabulary");
    for (size_t i = 0; i < list->n; i++) {
        const struct frit_vocab_item *item = &list->items[i];
        frit_vocab_entry *entry = &vocab->entries[item->id];
        if (entry->kind != 0 && !is_same(entry->piece, item->piece))
            return frit_fail_file(FRIT_E_FORMAT, "%s: both '%.*s' and '%.*s' have the id %d", path, shown(entry->piece),
                                  entry->piece.ptr, shown(item->piece), item->piece.ptr, (int)item->id);
        *entry = (frit_vocab_entry){.piece = item->piece, .score = item->score, .kind = item->kind};
    }
    for (int32_t i = 0; i < vocab->n; i++)
        if (vocab->entries[i].kind == 0)
            vocab->entries[i] = (frit_vocab_entry){.piece = {"", 0}, .kind = FRIT_TOKEN_UNUSED};
    return FRIT_OK;
}

frit_status frit_vocab_grow(frit_vocab *vocab, int32_t n, frit_arena *arena)
{
    frit_vocab_entry *entries = frit_arena_new(arena, frit_vocab_entry, (size_t)n);
    if (!entries) return frit_fail_memory((size_t)n * sizeof *entries, "the vocabulary");
    memcpy(entries, vocab->entries, (size_t)vocab->n * sizeof *entries);
    for (int32_t i = vocab->n; i < n; i++) entries[i] = (frit_vocab_entry){.piece = {"", 0}, .kind = FRIT_TOKEN_UNUSED};
    vocab->entries = entries;
    vocab->n = n;
    vocab->ids.pieces = (const char *)&entries[0].piece;
    return FRIT_OK;
}

void frit_vocab_mark_bytes(frit_vocab *vocab)
{
    for (int byte = 0; byte < 256; byte++) {
        frit_token id = frit_vocab_find_byte(vocab, (unsigned char)byte);
        if (id >= 0) vocab->entries[id].kind = FRIT_TOKEN_BYTE;
    }
}
