// SPDX-License-Identifier: MIT
// The other files in a tokenizer's folder:
//
//     tokenizer_config.json       special tokens by role, added tokens, chat template
//     special_tokens_map.json     special tokens by role, if tokenizer_config.json has none
//     generation_config.json, config.json     tokens that end an answer
//     chat_template.json, chat_template.jinja, additional_chat_templates/NAME.jinja    templates in their own files
#include "text/vocab/vocab_file.h"

#include "base/file/file.h"
#include "format/json.h"

#include <math.h>
#include <stdlib.h>

static const uint64_t max_bytes = 32 << 20;

// Loads a file; *out = NULL if the folder has no such file.
static frit_status load(const char *folder, const char *name, json_t **out)
{
    frit_buf path = {0};
    char *text = NULL;
    size_t n = 0;
    *out = NULL;
    frit_buf_printf(&path, "%s/%s", folder, name);
    frit_status status = path.failed ? frit_fail_memory(path.len, "a path") : FRIT_OK;
    bool found = status == FRIT_OK && frit_path_get_kind(path.data) == FRIT_PATH_FILE;
    if (found) status = frit_file_read(path.data, max_bytes, &text, &n);
    if (found && status == FRIT_OK) {
        json_error_t error;
        // Integers are read as reals, because files write 10^30 for no limit.
        *out = frit_json_read(text, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
        if (!*out)
            status =
                frit_fail_file(FRIT_E_FORMAT, "%s: not valid JSON in line %d: %s", path.data, error.line, error.text);
    }
    free(text);
    frit_buf_free(&path);
    return status;
}

static frit_str text_of(const json_t *json)
{
    if (json_is_object(json)) json = json_object_get(json, "content");
    return json_is_string(json) ? (frit_str){json_string_value(json), json_string_length(json)} : (frit_str){"", 0};
}

// ------------------------------------------------------------------------------------- roles

static void read_roles(frit_vocab *vocab, const json_t *config)
{
    const struct {
        const char *key;
        frit_token *id;
    } roles[] = {
        {"cls_token", &vocab->bos},   {"bos_token", &vocab->bos}, {"eos_token", &vocab->eos},
        {"unk_token", &vocab->unk},   {"sep_token", &vocab->sep}, {"pad_token", &vocab->pad},
        {"mask_token", &vocab->mask},
    };
    for (size_t i = 0; i < FRIT_COUNT(roles); i++) {
        frit_str piece = text_of(json_object_get(config, roles[i].key));
        frit_token id = piece.len > 0 ? frit_vocab_find(vocab, piece) : -1;
        if (id >= 0) *roles[i].id = id;
    }
}

// Marks a token that ends an answer. `file` is the file's name, for errors; -1 means no token. The ids of config.json
// have been checked with the model's size of vocabulary, except in encoders, whose ids may be another tokenizer's.
static frit_status mark_end(frit_vocab *vocab, const char *file, const json_t *id, const frit_log *log)
{
    const double value = json_number_value(id);
    if (!json_is_number(id) || value != floor(value) || value < -1 || value > INT32_MAX)
        return frit_fail(FRIT_E_FORMAT, "%s: eos_token_id is no token id, expected a whole number, or a list of such",
                         file);
    if (value >= vocab->n && strcmp(file, "config.json") != 0)
        frit_log_say(log, FRIT_LOG_WARNING, "%s: eos_token_id is %.0f, but the vocabulary has %d tokens", file, value,
                     vocab->n);
    if (value < 0 || value >= vocab->n) return FRIT_OK;
    vocab->entries[(frit_token)value].is_end = true;
    if (vocab->eos < 0) vocab->eos = (frit_token)value;
    return FRIT_OK;
}

static frit_status read_ends(frit_vocab *vocab, const char *file, const json_t *config, const frit_log *log)
{
    const json_t *ids = json_object_get(config, "eos_token_id"), *id;
    size_t i;
    if (!ids || json_is_null(ids)) return FRIT_OK;
    if (!json_is_array(ids)) return mark_end(vocab, file, ids, log);
    json_array_foreach(ids, i, id) FRIT_TRY(mark_end(vocab, file, id, log));
    return FRIT_OK;
}

static bool begins_with(const frit_vocab *vocab, frit_token id)
{
    return vocab->n_prefix > 0 && vocab->prefix[0] == id;
}

static bool ends_with(const frit_vocab *vocab, frit_token id)
{
    return vocab->n_suffix > 0 && vocab->suffix[vocab->n_suffix - 1] == id;
}

// Reads the flags add_bos_token and add_eos_token. They apply if the tokenizer's class builds its template from them,
// as Llama's and Gemma's do; otherwise a template in the file has precedence.
static frit_status read_around(frit_vocab *vocab, const json_t *config, frit_arena *arena)
{
    const char *class_name = json_string_value(json_object_get(config, "tokenizer_class"));
    const json_t *bos = json_object_get(config, "add_bos_token"), *eos = json_object_get(config, "add_eos_token");
    bool by_flags = class_name && (strstr(class_name, "Llama") || strstr(class_name, "Gemma"));
    bool template_speaks = vocab->n_prefix + vocab->n_suffix > 0 && !by_flags;
    if (json_is_boolean(bos) && !template_speaks) vocab->add_bos = json_is_true(bos);
    if (json_is_boolean(eos) && !template_speaks) vocab->add_eos = json_is_true(eos);
    if (json_is_false(bos) && by_flags && begins_with(vocab, vocab->bos)) {
        vocab->n_prefix--;
        memmove(vocab->prefix, vocab->prefix + 1, (size_t)vocab->n_prefix * sizeof *vocab->prefix);
    }
    if (json_is_false(eos) && by_flags && ends_with(vocab, vocab->eos)) vocab->n_suffix--;
    bool both = json_is_true(eos) && by_flags && vocab->n_suffix == 0 && vocab->eos >= 0;
    if (!both) return FRIT_OK;
    vocab->suffix = frit_arena_new(arena, frit_token, 1);
    if (!vocab->suffix) return frit_fail_memory(sizeof(frit_token), "a list of tokens");
    vocab->suffix[vocab->n_suffix++] = vocab->eos;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- added tokens

static void set_added(frit_vocab_entry *entry, const json_t *token)
{
    entry->kind = json_is_true(json_object_get(token, "special")) ? FRIT_TOKEN_CONTROL : FRIT_TOKEN_USER;
    entry->single_word = json_is_true(json_object_get(token, "single_word"));
    entry->strip_left = json_is_true(json_object_get(token, "lstrip"));
    entry->strip_right = json_is_true(json_object_get(token, "rstrip"));
    entry->normalized = json_is_true(json_object_get(token, "normalized"));
}

// Reads {"128000": {"content": "<|begin_of_text|>", ...}}, for tokenizers whose own file has no special tokens.
static frit_status read_added(frit_vocab *vocab, const json_t *added, frit_arena *arena, const frit_log *log)
{
    const char *key;
    json_t *token;
    bool changed = false;
    json_object_foreach((json_t *)(uintptr_t)added, key, token)
    {
        long id = strtol(key, NULL, 10);
        frit_str piece = text_of(token);
        if (id < 0 || id > (long)vocab->n + 65536 || piece.len == 0) continue;
        if (id >= vocab->n) FRIT_TRY(frit_vocab_grow(vocab, (int32_t)id + 1, arena));
        frit_vocab_entry *entry = &vocab->entries[id];
        if (entry->kind != FRIT_TOKEN_UNUSED) continue;
        entry->piece = (frit_str){frit_arena_text(arena, piece.ptr, piece.len), piece.len};
        if (!entry->piece.ptr) return frit_fail_memory(piece.len, "an added token");
        set_added(entry, token);
        changed = true;
    }
    if (!changed) return FRIT_OK;
    frit_index_deinit(&vocab->ids);
    return frit_vocab_index(vocab, log);
}

// ------------------------------------------------------------------------------------- the chat template

typedef struct templates {
    frit_chat_sources *all;
    frit_arena *arena;
} templates;

static frit_status keep_template(const templates *t, frit_str name, frit_str text)
{
    return frit_chat_sources_set(t->all, name, text, t->arena);
}

// Reads a template: a text, {NAME: text}, or a list of {"name", "template"}.
static frit_status read_template(const templates *t, const json_t *json)
{
    size_t i;
    const char *name;
    json_t *item;
    if (json_is_string(json)) return keep_template(t, frit_str_of("default"), text_of(json));
    json_object_foreach((json_t *)(uintptr_t)json, name, item)
        FRIT_TRY(keep_template(t, frit_str_of(name), text_of(item)));
    json_array_foreach(json, i, item)
        FRIT_TRY(keep_template(t, text_of(json_object_get(item, "name")), text_of(json_object_get(item, "template"))));
    return FRIT_OK;
}

static frit_status read_template_file(const templates *t, const char *folder, const char *file, frit_str name)
{
    frit_buf path = {0};
    char *text = NULL;
    size_t n = 0;
    frit_buf_printf(&path, "%s/%s", folder, file);
    frit_status status = path.failed ? frit_fail_memory(path.len, "a path") : FRIT_OK;
    if (status == FRIT_OK && frit_path_get_kind(path.data) == FRIT_PATH_FILE) {
        status = frit_file_read(path.data, max_bytes, &text, &n);
        const size_t n_mark = status == FRIT_OK && n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        if (status == FRIT_OK) status = keep_template(t, name, (frit_str){text + n_mark, n - n_mark});
    }
    free(text);
    frit_buf_free(&path);
    return status;
}

typedef struct listing {
    const templates *t;
    const char *folder;
    frit_status status;
} listing;

static void read_named_file(void *ctx, const char *file, uint64_t n_bytes, int64_t changed)
{
    static const char ending[] = ".jinja";
    listing *l = ctx;
    const size_t n = strlen(file), n_ending = sizeof ending - 1;
    (void)n_bytes;
    (void)changed;
    if (l->status != FRIT_OK || n <= n_ending || strcmp(file + n - n_ending, ending) != 0) return;
    l->status = read_template_file(l->t, l->folder, file, (frit_str){file, n - n_ending});
}

// Sorts the files of a folder, whose order depends on the file system.
static int compare_names(const void *a, const void *b)
{
    const frit_str x = ((const frit_named_template *)a)->name, y = ((const frit_named_template *)b)->name;
    const int order = memcmp(x.ptr, y.ptr, x.len < y.len ? x.len : y.len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

// Reads template files. They replace the templates of tokenizer_config.json, except its default if no file has one.
static frit_status read_template_files(const templates *given, const char *folder)
{
    frit_chat_sources found = {.n = 0};
    const templates t = {&found, given->arena};
    FRIT_TRY(read_template_file(&t, folder, "chat_template.jinja", frit_str_of("default")));
    frit_buf path = {0};
    frit_buf_printf(&path, "%s/additional_chat_templates", folder);
    if (path.failed) return frit_fail_memory(path.len, "a path");
    listing l = {&t, path.data, FRIT_OK};
    if (frit_path_get_kind(path.data) == FRIT_PATH_FOLDER) frit_folder_each(path.data, read_named_file, &l);
    frit_buf_free(&path);
    FRIT_TRY(l.status);
    if (found.n == 0) return FRIT_OK;
    if (frit_chat_sources_find(&found, "default").len == 0)
        FRIT_TRY(keep_template(&t, frit_str_of("default"), frit_chat_sources_find(given->all, "default")));
    qsort(found.items, found.n, sizeof *found.items, compare_names);
    *given->all = found;
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- the whole

typedef struct config {
    json_t *tokenizer, *map, *generation, *model, *template;
} config;

static frit_status use(frit_vocab *vocab, const config *c, const char *folder, frit_arena *arena, const frit_log *log)
{
    FRIT_TRY(read_added(vocab, json_object_get(c->tokenizer, "added_tokens_decoder"), arena, log));
    read_roles(vocab, c->map);
    read_roles(vocab, c->tokenizer);
    if (c->generation)
        FRIT_TRY(read_ends(vocab, "generation_config.json", c->generation, log));
    else
        FRIT_TRY(read_ends(vocab, "config.json", c->model, log));
    FRIT_TRY(read_around(vocab, c->tokenizer, arena));
    const templates t = {&vocab->chats, arena};
    FRIT_TRY(read_template(&t, json_object_get(c->tokenizer, "chat_template")));
    FRIT_TRY(read_template(&t, json_object_get(c->template, "chat_template")));
    return read_template_files(&t, folder);
}

frit_status frit_json_read_config(frit_vocab *vocab, const char *folder, frit_arena *arena, const frit_log *log)
{
    config c = {0};
    frit_status status = load(folder, "tokenizer_config.json", &c.tokenizer);
    if (status == FRIT_OK) status = load(folder, "special_tokens_map.json", &c.map);
    if (status == FRIT_OK) status = load(folder, "generation_config.json", &c.generation);
    if (status == FRIT_OK) status = load(folder, "config.json", &c.model);
    if (status == FRIT_OK) status = load(folder, "chat_template.json", &c.template);
    if (status == FRIT_OK) status = use(vocab, &c, folder, arena, log);
    json_decref(c.tokenizer);
    json_decref(c.map);
    json_decref(c.generation);
    json_decref(c.model);
    json_decref(c.template);
    return status;
}
