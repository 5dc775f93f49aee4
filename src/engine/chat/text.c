// SPDX-License-Identifier: MIT
// Public text functions: tokenizing and detokenizing with the two-call pattern.
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

struct frit_text_stream {
    frit_model *model;   // holds a reference
    frit_stream stream;
};

static frit_status check_text(const frit_model *model)
{
    if (model->tokenizer) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vocabulary, so text and tokens cannot be converted",
                          model->info.path);
}

static frit_status check_ids(const frit_model *model, const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] < 0 || tokens[i] >= model->vocab.n)
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d, this vocabulary's ids are 0 to %d", i, n,
                             tokens[i], model->vocab.n - 1);
    return FRIT_OK;
}

frit_status frit_return_tokens(const frit_model *model, frit_str text, const frit_encoding *how, frit_token *tokens,
                               size_t capacity, size_t *n_tokens)
{
    frit_ids ids = {0};
    frit_status status = frit_tokenizer_encode_as(model->tokenizer, text, how, &ids);
    const bool is_too_many = how->max_tokens > 0 && ids.n_least > how->max_tokens;
    // FRIT_E_LIMIT means that the caller's array is too small.
    if (status == FRIT_E_LIMIT && !is_too_many) status = FRIT_E_INVALID;
    if (status == FRIT_OK && ids.failed) status = frit_fail_memory(text.len * sizeof *tokens, "tokens");
    if (status == FRIT_OK) {
        *n_tokens = ids.n;
        const size_t n = ids.n < capacity ? ids.n : capacity;
        if (n > 0) memcpy(tokens, ids.items, n * sizeof *tokens);
        if (ids.n > capacity)
            status = frit_fail(FRIT_E_LIMIT, "the text has %zu tokens, there is room for %zu", ids.n, capacity);
    } else if (status == FRIT_E_LIMIT && how->max_tokens > 0 && ids.n_least > how->max_tokens) {
        *n_tokens = ids.n_least;
    }
    frit_ids_free(&ids);
    return status;
}

frit_encoding frit_encoding_of(unsigned flags, const frit_spans *untrusted, const frit_tokenize_limits *limits)
{
    frit_encoding how = {.flags = flags, .untrusted = untrusted};
    if (!limits) return how;
    how.max_tokens = limits->max_tokens;
    how.cancelled = limits->cancelled;
    how.cancel_ctx = limits->ctx;
    return how;
}

frit_status frit_tokenize_within(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                                 const frit_tokenize_limits *limits, frit_token *tokens, size_t capacity,
                                 size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(text, n_bytes);
    FRIT_REQUIRE_UNUSED(limits);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    FRIT_TRY(check_text(model));
    const frit_encoding how = frit_encoding_of(flags, NULL, limits);
    return frit_return_tokens(model, (frit_str){text, n_bytes}, &how, tokens, capacity, n_tokens);
}

frit_status frit_tokenize(const frit_model *model, const char *text, size_t n_bytes, unsigned flags, frit_token *tokens,
                          size_t capacity, size_t *n_tokens)
{
    FRIT_REQUIRE(n_tokens);
    *n_tokens = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(text, n_bytes);
    FRIT_REQUIRE_ITEMS(tokens, capacity);
    return frit_tokenize_within(model, text, n_bytes, flags, NULL, tokens, capacity, n_tokens);
}

frit_status frit_return_text(frit_status status, frit_buf *buf, char *text, size_t capacity, size_t *n_bytes)
{
    // FRIT_E_LIMIT of a template becomes FRIT_E_INVALID, because FRIT_E_LIMIT means that the array is too small.
    if (status == FRIT_E_LIMIT) status = FRIT_E_INVALID;
    if (status == FRIT_OK && buf->failed) status = frit_fail_memory(buf->len, "text");
    if (status == FRIT_OK) {
        *n_bytes = buf->len;
        size_t n = buf->len < capacity ? buf->len : capacity;
        if (n > 0) memcpy(text, buf->data, n);
        if (buf->len > capacity)
            status = frit_fail(FRIT_E_LIMIT, "the text has %zu bytes, there is room for %zu", buf->len, capacity);
    }
    frit_buf_free(buf);
    return status;
}

frit_status frit_detokenize(const frit_model *model, const frit_token *tokens, size_t n_tokens, unsigned flags,
                            char *text, size_t capacity, size_t *n_bytes)
{
    FRIT_REQUIRE(n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    FRIT_REQUIRE_ITEMS(text, capacity);
    FRIT_TRY(check_text(model));
    FRIT_TRY(check_ids(model, tokens, n_tokens));
    frit_buf buf = {0};
    frit_status status = frit_tokenizer_decode(model->tokenizer, tokens, n_tokens, flags, &buf);
    return frit_return_text(status, &buf, text, capacity, n_bytes);
}

const char *frit_token_piece(const frit_model *model, frit_token token, size_t *n_bytes)
{
    FRIT_REQUIRE_OR(NULL, n_bytes);
    *n_bytes = 0;
    FRIT_REQUIRE_OR(NULL, model);
    frit_str piece = {"", 0};
    if (model->tokenizer && token >= 0 && token < model->vocab.n)
        piece = frit_tokenizer_piece(model->tokenizer, token, 0);
    *n_bytes = piece.len;
    return piece.ptr ? piece.ptr : "";
}

bool frit_token_is_end(const frit_model *model, frit_token token)
{
    FRIT_REQUIRE_OR(false, model);
    return model->tokenizer && token >= 0 && token < model->vocab.n && model->vocab.entries[token].is_end;
}

frit_status frit_token_get_info(const frit_model *model, frit_token token, frit_token_info *info)
{
    FRIT_REQUIRE(info);
    *info = (frit_token_info){0};
    FRIT_REQUIRE(model);
    FRIT_TRY(check_text(model));
    FRIT_TRY(check_ids(model, &token, 1));
    const frit_vocab_entry *entry = &model->vocab.entries[token];
    *info = (frit_token_info){
        .kind = (frit_token_kind)entry->kind,
        .is_end = entry->is_end,
        .score = entry->score,
        .text = entry->piece.ptr ? entry->piece.ptr : "",
        .n_bytes = entry->piece.len,
    };
    return FRIT_OK;
}

frit_token frit_token_of_role(const frit_model *model, frit_token_role role)
{
    FRIT_REQUIRE_OR(-1, model);
    const frit_vocab *vocab = &model->vocab;
    if (!model->tokenizer) return -1;
    const frit_token tokens[] = {
        [FRIT_ROLE_BOS] = vocab->bos,
        [FRIT_ROLE_EOS] = vocab->eos,
        [FRIT_ROLE_EOT] = vocab->eot,
        [FRIT_ROLE_UNKNOWN] = vocab->unk,
        [FRIT_ROLE_SEPARATOR] = vocab->sep,
        [FRIT_ROLE_PAD] = vocab->pad,
        [FRIT_ROLE_MASK] = vocab->mask,
        [FRIT_ROLE_NEWLINE] = vocab->nl,
        [FRIT_ROLE_FIM_PREFIX] = vocab->fill.prefix,
        [FRIT_ROLE_FIM_SUFFIX] = vocab->fill.suffix,
        [FRIT_ROLE_FIM_MIDDLE] = vocab->fill.middle,
        [FRIT_ROLE_FIM_PAD] = vocab->fill.pad,
        [FRIT_ROLE_FIM_REPO] = vocab->fill.repo,
        [FRIT_ROLE_FIM_SEPARATOR] = vocab->fill.separator,
    };
    return (size_t)role < FRIT_COUNT(tokens) ? tokens[role] : -1;
}

frit_status frit_text_stream_new(frit_text_stream **out, const frit_model *model, unsigned flags)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_TRY(check_text(model));
    frit_text_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return frit_fail_memory(sizeof *stream, "a text stream");
    stream->model = (frit_model *)model;   // only the reference count changes
    frit_model_ref(stream->model);
    frit_stream_init(&stream->stream, model->tokenizer, flags);
    *out = stream;
    return FRIT_OK;
}

static frit_status return_piece(const frit_text_stream *stream, frit_str piece, const char **text, size_t *n_bytes)
{
    if (stream->stream.text.failed || stream->stream.held.failed) return frit_fail_memory(piece.len, "text");
    *text = piece.len > 0 ? piece.ptr : "";
    *n_bytes = piece.len;
    return FRIT_OK;
}

frit_status frit_text_stream_push(frit_text_stream *stream, frit_token token, const char **text, size_t *n_bytes)
{
    FRIT_REQUIRE(stream);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE(n_bytes);
    FRIT_TRY(check_ids(stream->model, &token, 1));
    return return_piece(stream, frit_stream_push(&stream->stream, token), text, n_bytes);
}

frit_status frit_text_stream_flush(frit_text_stream *stream, const char **text, size_t *n_bytes)
{
    FRIT_REQUIRE(stream);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE(n_bytes);
    return return_piece(stream, frit_stream_flush(&stream->stream), text, n_bytes);
}

void frit_text_stream_free(frit_text_stream *stream)
{
    if (!stream) return;
    frit_stream_deinit(&stream->stream);
    frit_model_free(stream->model);
    free(stream);
}
