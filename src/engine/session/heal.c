// SPDX-License-Identifier: MIT
// Token healing: a prompt often ends in the middle of what the model would write as one token. The last tokens of such
// a prompt are removed, and the sampler must begin with their text, in the tokens that the model prefers.
#include "engine/model/model.h"

#include <stdlib.h>

enum { MAX_HEALED = 8 };   // tokens; hardly any token is as long as the text of more

// True for tokens of ordinary text, and false for special tokens.
static bool is_text(const frit_model *model, frit_token token)
{
    unsigned char kind = model->vocab.entries[token].kind;
    return (kind == FRIT_TOKEN_NORMAL || kind == FRIT_TOKEN_BYTE) && model->tokenizer->pieces[token].len > 0;
}

// True if some token's text begins with `text` and is longer.
static bool has_longer_piece(const frit_model *model, frit_str text)
{
    for (frit_token i = 0; i < model->vocab.n; i++) {
        frit_str piece = model->tokenizer->pieces[i];
        if (piece.len > text.len && memcmp(piece.ptr, text.ptr, text.len) == 0 && is_text(model, i)) return true;
    }
    return false;
}

// The text of each token; empty for tokens that are not text.
static const frit_str *text_pieces(const frit_model *model, frit_sampler *sampler)
{
    if (sampler->own_pieces) return sampler->own_pieces;
    frit_str *pieces = sampler->own_pieces = malloc((size_t)sampler->n_vocab * sizeof *pieces);
    for (frit_token i = 0; pieces && i < sampler->n_vocab; i++)
        pieces[i] = i < model->vocab.n && is_text(model, i) ? model->tokenizer->pieces[i] : (frit_str){"", 0};
    return pieces;
}

frit_status frit_sampler_heal(frit_sampler *sampler, const frit_model *model, const frit_token *tokens, size_t n_tokens,
                              size_t *n_keep)
{
    FRIT_REQUIRE(n_keep);
    *n_keep = n_tokens;
    FRIT_REQUIRE(sampler);
    FRIT_REQUIRE(model);
    FRIT_REQUIRE_ITEMS(tokens, n_tokens);
    if (!model->tokenizer)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: has no vocabulary; token healing needs one", model->info.path);
    for (size_t i = 0; i < n_tokens; i++)
        if (tokens[i] < 0 || tokens[i] >= model->vocab.n)
            return frit_fail(FRIT_E_INVALID, "token %zu of %zu is %d, this vocabulary's ids are 0 to %d", i, n_tokens,
                             tokens[i], model->vocab.n - 1);
    frit_buf text = {0}, longer = {0};
    size_t keep = n_tokens;
    for (size_t i = n_tokens; i > 1 && n_tokens - i < MAX_HEALED && is_text(model, tokens[i - 1]); i--) {
        frit_str piece = model->tokenizer->pieces[tokens[i - 1]];
        frit_buf_clear(&longer);
        frit_buf_append(&longer, piece.ptr, piece.len);
        frit_buf_append(&longer, text.data, text.len);
        frit_buf swap = text;
        text = longer;
        longer = swap;
        if (has_longer_piece(model, (frit_str){text.data, text.len})) keep = i - 1;
    }
    // The end of `text` is the removed text. `text` may be longer, because the loop went on beyond the best cut.
    // `text` is empty if no token could be removed.
    size_t n = 0;
    for (size_t i = keep; i < n_tokens; i++) n += model->tokenizer->pieces[tokens[i]].len;
    const frit_str *pieces = keep < n_tokens ? text_pieces(model, sampler) : NULL;
    frit_status status = FRIT_OK;
    if (text.failed || longer.failed || (keep < n_tokens && !pieces))
        status = frit_fail_memory(text.len, "the text to heal");
    else
        status = frit_sampler_force_prefix(sampler, pieces, (frit_str){n > 0 ? text.data + (text.len - n) : "", n});
    if (status == FRIT_OK) *n_keep = keep;
    frit_buf_free(&text);
    frit_buf_free(&longer);
    return status;
}
