// SPDX-License-Identifier: MIT
// Opens a model: checkpoint -> architecture -> hyperparameters -> weights -> vocabulary -> tokenizer -> chat template.
#include "engine/model/model.h"

#include "convert/convert.h"
#include "convert/random.h"
#include "format/gguf.h"
#include "text/template/template.h"
#include "text/vocab/vocab_file.h"
#include "text/vocab/vocab_write.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct opening {
    frit_model *model;
    const char *path;
    const frit_model_options *options;
    const frit_random_options *random;   // NULL: the model is in a file
    const uint8_t *bytes;                // of a GGUF file in memory, or NULL
    size_t n_bytes;
    const frit_model_files *files;   // files that are read by ranges, or NULL
} opening;

enum { MAX_TEMPLATE_BYTES = 16 << 20 };

// Share of progress for reading files, which takes the longest.
static const double checkpoint_share = 0.9;

static bool report(const opening *o, double done)
{
    return !o->options->progress || o->options->progress(o->options->progress_ctx, done);
}

static bool checkpoint_progress(void *ctx, double done)
{
    return report(ctx, done * checkpoint_share);
}

static frit_status say_progress(const opening *o, double done)
{
    return report(o, done) ? FRIT_OK : frit_fail_file(FRIT_E_CANCELLED, "%s: opening was cancelled", o->path);
}

static frit_status bind_weights(frit_model *model)
{
    frit_status status = frit_arch_of(&model->arch, model->ckpt);
    if (status == FRIT_OK) status = frit_hparams_read(&model->hp, model->arch, model->ckpt, &model->arena);
    if (model->vocab_only) {   // hyperparameters are only displayed then: they stay 0 if they cannot be read
        if (status != FRIT_OK) model->hp = (frit_hparams){0};
        return FRIT_OK;
    }
    FRIT_TRY(status);
    FRIT_TRY(frit_weights_bind(&model->weights, model->arch, &model->hp, model->ckpt, &model->arena));
    return frit_rope_init(&model->hp, model->hp.n_ctx_train, &model->arena);
}

frit_status frit_model_bind_again(frit_model *model, frit_arena *arena)
{
    frit_weights weights;
    FRIT_TRY(frit_weights_bind(&weights, model->arch, &model->hp, model->ckpt, arena));
    model->weights = weights;
    return FRIT_OK;
}

#if !defined(__wasm__)
// Changes the types as 'frit convert' would. Rows are quantized when they are read (format/rows.h), that is when
// engines pack them.
static frit_status change_type(opening *o)
{
    frit_model *model = o->model;
    frit_convert_types types;
    bool has_fp8_inputs;
    if (frit_convert_is_fp8(o->options->type, &has_fp8_inputs)) model->fp8_inputs = has_fp8_inputs;
    FRIT_TRY(frit_convert_find_types(o->options->type, &types));
    if (!frit_convert_changes(&types) || model->ckpt->n_tensors == 0) return FRIT_OK;
    const bool is_gguf = strncmp(model->ckpt->format, "GGUF", 4) == 0;
    const frit_arch *arch;
    frit_hparams hp;
    FRIT_TRY(frit_arch_of(&arch, model->ckpt));
    FRIT_TRY(frit_hparams_read(&hp, arch, model->ckpt, &model->arena));
    FRIT_TRY(frit_meta_remove(&model->ckpt->meta, "general.file_type"));
    return frit_convert_checkpoint(model->ckpt, is_gguf ? NULL : arch, &hp, &types, &model->log);
}
// Returns the kind of a tokenizer file, or of a folder with no model but a tokenizer; NULL: neither.
static const char *bare_tokenizer_kind(const char *path)
{
    if (frit_path_get_kind(path) != FRIT_PATH_FOLDER) return frit_vocab_file_kind(path);
    frit_buf config = {0};
    frit_buf_printf(&config, "%s/config.json", path);
    bool has_model = config.failed || frit_path_get_kind(config.data) == FRIT_PATH_FILE;
    frit_buf_free(&config);
    return has_model ? NULL : frit_vocab_file_kind(path);
}

// Opens what a path names: a file, a folder, or a tokenizer alone.
static frit_status open_path(opening *o, const frit_checkpoint_options *options)
{
    frit_model *model = o->model;
    const char *kind = bare_tokenizer_kind(o->path);
    if (!kind) {
        frit_status status = frit_checkpoint_open(&model->ckpt, o->path, options);
        if (status != FRIT_E_UNSUPPORTED || !o->options->vocab_only) return status;
        kind = frit_vocab_file_kind(o->path);   // a tokenizer can be used even if the model cannot run
        if (!kind) return status;
    }
    FRIT_TRY(frit_checkpoint_new(&model->ckpt, o->path));
    model->ckpt->format = kind;
    return FRIT_OK;
}
#else
// A module for browsers has no paths and no encoders, which would double its size.
static frit_status open_path(const opening *o, const frit_checkpoint_options *options)
{
    (void)options;
    return frit_fail(FRIT_E_UNSUPPORTED, "%s: modules for browsers open models from memory and by ranges", o->path);
}

static frit_status change_type(const opening *o)
{
    if (!o->options->type) return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "type: '%s': modules for browsers cannot change the types of weights",
                     o->options->type);
}
#endif

static frit_status open_checkpoint(opening *o, const frit_checkpoint_options *options)
{
    frit_model *model = o->model;
    if (o->random) {
        const frit_random_row *row;
        FRIT_TRY(frit_random_find(&row, o->random->shape));
        return frit_random_open(&model->ckpt, row, o->random);
    }
    if (o->files) {
        FRIT_TRY(frit_checkpoint_new(&model->ckpt, o->path));
        return frit_gguf_open_files(model->ckpt, o->files);
    }
    if (o->bytes) {
        int64_t n_parts = 1;
        FRIT_TRY(frit_checkpoint_new(&model->ckpt, o->path));
        FRIT_TRY(frit_gguf_parse(model->ckpt, o->path, o->bytes, o->n_bytes));
        FRIT_TRY(frit_meta_get_i64(&model->ckpt->meta, "split.count", &n_parts, NULL));
        if (n_parts <= 1) return FRIT_OK;
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: one of %lld parts of a split set; expected a whole file",
                              o->path, (long long)n_parts);
    }
    return open_path(o, options);
}

static frit_status read_inputs(frit_model *model)
{
    frit_str inputs;
    bool found;
    FRIT_TRY(frit_meta_get_text(&model->ckpt->meta, "frit.product_inputs", &inputs, &found));
    model->fp8_inputs = found && frit_str_is(inputs, "fp8");
    return FRIT_OK;
}

// Reads the vocabulary from the metadata, or from the files beside the weights.
static frit_status open_vocab(frit_model *model)
{
    const frit_checkpoint *ckpt = model->ckpt;
    int64_t expected = model->vocab_only ? 0 : model->hp.n_vocab;
    frit_str published;
    bool has_published;
    FRIT_TRY(frit_meta_get_text(&ckpt->meta, FRIT_KEY_TOKENIZER_JSON, &published, &has_published));
    if (has_published)
        return frit_vocab_read_embedded(&model->vocab, published, &ckpt->meta, expected, &model->arena, &model->log);
    FRIT_TRY(frit_vocab_read(&model->vocab, &ckpt->meta, expected, &model->arena, &model->log));
    bool has_text = model->vocab.entries != NULL || strncmp(ckpt->format, "GGUF", 4) == 0;
    if (has_text || !frit_vocab_file_kind(ckpt->path)) return FRIT_OK;
    frit_vocab_deinit(&model->vocab);
    return frit_vocab_open(&model->vocab, ckpt->path, expected, &model->arena, &model->log);
}

static frit_str piece_of(const frit_vocab *vocab, frit_token id)
{
    return id >= 0 && id < vocab->n ? vocab->entries[id].piece : (frit_str){"", 0};
}

// True if a mark of a chat format is a token.
static bool has_mark(const void *ctx, const char *mark)
{
    return frit_vocab_find(ctx, frit_str_of(mark)) >= 0;
}

// Checks a template that options name. Unlike a model's own template it is never replaced by another one.
static frit_status check_named(const char *path, frit_str source)
{
    frit_template *parsed = NULL;
    if (source.len == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: the chat template is empty", path);
    const frit_status status = frit_template_new(&parsed, source);
    frit_template_free(parsed);
    return frit_fail_in(path, status);
}

// Opens a template by its name in the model's file, or by the path of a file.
static frit_status open_named(opening *o, const frit_chat_tokens *tokens)
{
    frit_model *model = o->model;
    const char *path = o->options->chat_template;
    char *text = NULL;
    size_t n_bytes;
    frit_str source = frit_chat_sources_find(model->chats, path);
    if (source.len == 0 || frit_path_get_kind(path) != FRIT_PATH_NONE) {
        FRIT_TRY(frit_file_read(path, MAX_TEMPLATE_BYTES, &text, &n_bytes));
        const size_t n_mark = n_bytes >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;   // byte order mark
        source = (frit_str){text + n_mark, n_bytes - n_mark};
    }
    frit_status status = check_named(path, source);
    if (status == FRIT_OK) status = frit_chat_new(&model->chat, source, *tokens, &model->log);
    free(text);
    return status;
}

static frit_status open_chats(opening *o, const frit_chat_tokens *tokens)
{
    frit_model *model = o->model;
    const frit_str plain = frit_chat_sources_choose(model->chats, false),
                   tools = frit_chat_sources_choose(model->chats, true);
    FRIT_TRY(frit_chat_new(&model->chat, plain, *tokens, &model->log));
    return tools.ptr != plain.ptr ? frit_chat_new(&model->tool_chat, tools, *tokens, &model->log) : FRIT_OK;
}

static frit_status open_chat(opening *o)
{
    frit_model *model = o->model;
    const frit_vocab *vocab = &model->vocab;
    const frit_chat_tokens tokens = {piece_of(vocab, vocab->bos), piece_of(vocab, vocab->eos),
                                     vocab->n_prefix > 0 && vocab->prefix[0] == vocab->bos};
    FRIT_TRY(frit_chat_sources_read(&model->own_chats, &model->ckpt->meta, &model->arena));
    model->chats = model->own_chats.n > 0 ? &model->own_chats : &vocab->chats;
    if (o->options->chat_template) return open_named(o, &tokens);
    if (model->chats->n > 0) return open_chats(o, &tokens);
    return model->tokenizer ? frit_chat_guess(&model->chat, has_mark, vocab, tokens, &model->log) : FRIT_OK;
}

frit_status frit_model_get_chat(const frit_model *model, bool with_tools, const frit_chat **out)
{
    *out = with_tools && model->tool_chat ? model->tool_chat : model->chat;
    if (*out) return FRIT_OK;
    if (model->chats->n == 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vocabulary, so there can be no chat", model->info.path);
    frit_buf names = {0};
    frit_chat_sources_list(model->chats, &names);
    const frit_status status =
        frit_fail_file(FRIT_E_UNSUPPORTED,
                       "%s: has the chat templates %s, none of which is the default; --chat-template NAME chooses one",
                       model->info.path, names.data && !names.failed ? names.data : "?");
    frit_buf_free(&names);
    return status;
}

// Static embeddings average the tokens of a text: no others are put around it.
static frit_status leave_out_special(frit_model *model)
{
    frit_vocab *vocab = &model->vocab;
    bool plain = false;
    FRIT_TRY(frit_meta_get_bool(&model->ckpt->meta, "frit.embed.plain_text", &plain, NULL));
    if (!plain) return FRIT_OK;
    vocab->n_prefix = vocab->n_suffix = 0;
    vocab->add_bos = vocab->add_eos = vocab->add_sep = false;
    return FRIT_OK;
}

static frit_status open_text(opening *o)
{
    frit_model *model = o->model;
    FRIT_TRY(open_vocab(model));
    FRIT_TRY(leave_out_special(model));
    if (strcmp(model->vocab.model, "none") != 0 && strcmp(model->vocab.model, "no_vocab") != 0)
        FRIT_TRY(frit_tokenizer_new(&model->tokenizer, &model->vocab, &model->log));
    return open_chat(o);
}

// The path of the encoder of pictures outlives the options.
static frit_status copy_mmproj(const opening *o)
{
    const char *path = o->options->mmproj;
    if (!path) return FRIT_OK;
    o->model->mmproj = frit_arena_text(&o->model->arena, path, strlen(path));
    return o->model->mmproj ? FRIT_OK : frit_fail_memory(strlen(path), "a path");
}

static frit_status open_model(opening *o)
{
    frit_model *model = o->model;
    const frit_checkpoint_options options = {
        .no_mmap = o->options->no_mmap,
        .progress = o->options->progress ? checkpoint_progress : NULL,
        .progress_ctx = o,
        .log = &model->log,
    };
    FRIT_TRY(copy_mmproj(o));
    FRIT_TRY(open_checkpoint(o, &options));
    FRIT_TRY(read_inputs(model));
    model->vocab_only = o->options->vocab_only || model->ckpt->n_tensors == 0;
    FRIT_TRY(frit_model_set_rope(model->ckpt, o->options));
    FRIT_TRY(change_type(o));
    FRIT_TRY(bind_weights(model));
    FRIT_TRY(say_progress(o, checkpoint_share));
    FRIT_TRY(open_text(o));
    FRIT_TRY(frit_model_describe(model));
    FRIT_TRY(frit_model_copy_sampling(model));
    // Most of the metadata is not read again, above all a vocabulary's texts: 7 MB for 128,000 tokens.
    for (size_t i = 0; i < model->ckpt->n_files; i++) frit_file_drop_pages(model->ckpt->files[i]);
    return say_progress(o, 1);
}

static frit_status open_opening(frit_model **out, opening o)
{
    static const frit_model_options defaults;
    frit_model *model = o.model = calloc(1, sizeof *model);
    if (!model) return frit_fail_memory(sizeof *model, "a model");
    if (!o.options) o.options = &defaults;
    atomic_init(&model->n_refs, 1);
    model->log = (frit_log){o.options->log, o.options->log_ctx};
    frit_status status = frit_stores_new(&model->stores);
    if (status == FRIT_OK) status = frit_lock_new(&model->trie_lock);
    if (status == FRIT_OK) status = frit_lock_new(&model->media_lock);
    if (status == FRIT_OK) status = frit_fail_in(o.path, open_model(&o));   // errors from below name keys and tensors
    if (status != FRIT_OK) {
        frit_model_free(model);
        return status;
    }
    *out = model;
    return FRIT_OK;
}

frit_status frit_model_open(frit_model **out, const char *path, const frit_model_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(path);
    FRIT_REQUIRE_UNUSED(options);
    return open_opening(out, (opening){.path = path, .options = options});
}

frit_status frit_model_open_memory(frit_model **out, const void *bytes, size_t n_bytes,
                                   const frit_model_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(bytes);
    FRIT_REQUIRE_UNUSED(options);
    return open_opening(out, (opening){.path = "memory", .options = options, .bytes = bytes, .n_bytes = n_bytes});
}

frit_status frit_model_open_files(frit_model **out, const frit_model_files *files, const frit_model_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(files);
    FRIT_REQUIRE(files->n_bytes);
    FRIT_REQUIRE(files->read);
    FRIT_REQUIRE_UNUSED(files);
    FRIT_REQUIRE_UNUSED(options);
    if (files->n_files == 0) return frit_fail(FRIT_E_INVALID, "n_files is 0, expected at least one file");
    return open_opening(out, (opening){.path = "files", .options = options, .files = files});
}

frit_status frit_model_open_random(frit_model **out, const frit_random_options *random,
                                   const frit_model_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(random);
    FRIT_REQUIRE_UNUSED(random);
    FRIT_REQUIRE_UNUSED(options);
    const frit_model_options own = {.log = options ? options->log : NULL, .log_ctx = options ? options->log_ctx : NULL};
    return open_opening(out, (opening){.path = random->shape ? random->shape : "", .options = &own, .random = random});
}

void frit_model_ref(frit_model *model)
{
    atomic_fetch_add(&model->n_refs, 1);
}

void frit_model_free(frit_model *model)
{
    if (!model || atomic_fetch_sub(&model->n_refs, 1) > 1) return;
    if (model->of) {
        frit_model_free_next(model);
        return;
    }
    frit_chat_free(model->chat);
    frit_chat_free(model->tool_chat);
    frit_tokenizer_free(model->tokenizer);
    frit_vocab_deinit(&model->vocab);
    frit_stores_free(model->stores);
    for (size_t i = 0; i < FRIT_COUNT(model->tries); i++) {
        frit_token_trie_free(model->tries[i].trie);
        free(model->tries[i].pieces);
    }
    frit_lock_free(model->trie_lock);
    frit_lock_free(model->media_lock);
    free(model->picture_rules);
    frit_checkpoint_close(model->ckpt);
    frit_arena_free(&model->arena);
    free(model);
}

frit_status frit_model_check_files(const frit_model *model)
{
    const frit_checkpoint *ckpt = model->ckpt;
    if (frit_checkpoint_is_intact(ckpt)) return FRIT_OK;
    for (size_t i = 0; i < ckpt->n_files; i++) {
        const frit_file *file = ckpt->files[i];
        if (!frit_file_is_intact(file))
            return frit_fail_file(FRIT_E_IO, "%s: the file shrank from %llu to %llu bytes while in use",
                                  frit_file_path(file), (unsigned long long)frit_file_size(file),
                                  (unsigned long long)frit_file_size_now(file));
    }
    return frit_fail_file(FRIT_E_IO, "%s: a file shrank while in use", ckpt->path);
}
