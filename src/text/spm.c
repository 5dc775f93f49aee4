// SPDX-License-Identifier: MIT
// SentencePiece BPE: characters merge into pieces, the best score first. Spaces are written as U+2581; a space is put
// before the text so that a first word looks like the others. What is no token becomes its bytes, <0xXX>.
#include "text/merge.h"

#include "base/utf8.h"

typedef struct spm {
    frit_token bytes[256];   // token of a byte, or -1
    size_t longest;          // bytes of the longest piece
} spm;

typedef struct pair_context {
    const frit_vocab *vocab;
    const char *text;
    size_t longest;
} pair_context;

static frit_status init(frit_tokenizer *tokenizer, const frit_log *log)
{
    const frit_vocab *vocab = tokenizer->vocab;
    spm *state = frit_arena_new(&tokenizer->arena, spm, 1);
    if (!state) return frit_fail_memory(sizeof *state, "the tokenizer");
    tokenizer->state = state;
    int n_missing = 0;
    for (int byte = 0; byte < 256; byte++) {
        char letter = (char)byte;
        state->bytes[byte] = frit_vocab_find_byte(vocab, (unsigned char)byte);
        if (state->bytes[byte] < 0) state->bytes[byte] = frit_vocab_find(vocab, (frit_str){&letter, 1});
        n_missing += state->bytes[byte] < 0;
    }
    if (n_missing > 0 && vocab->unk < 0)
        frit_log_say(
            log, FRIT_LOG_WARNING,
            "the vocabulary lacks the tokens of %d of the 256 bytes and an unknown token: they vanish from text",
            n_missing);
    for (frit_token id = 0; id < vocab->n; id++)
        if (vocab->entries[id].piece.len > state->longest) state->longest = vocab->entries[id].piece.len;
    return FRIT_OK;
}

static bool pair_cost(const void *ctx, const frit_symbol *left, const frit_symbol *right, double *cost,
                      frit_token *merged)
{
    const pair_context *context = ctx;
    size_t len = (size_t)left->len + right->len;
    if (len > context->longest) return false;
    *merged = frit_vocab_find_text(context->vocab, (frit_str){context->text + left->start, len});
    if (*merged < 0) return false;
    *cost = -(double)context->vocab->entries[*merged].score;
    return true;
}

static void push_characters(const frit_vocab *vocab, frit_str text, frit_merger *merger)
{
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        if (n < 1) n = 1;
        frit_merger_push(merger, (uint32_t)i, (uint32_t)n,
                         frit_vocab_find_text(vocab, (frit_str){text.ptr + i, (size_t)n}));
        i += (size_t)n;
    }
}

static void emit(const frit_tokenizer *tokenizer, frit_str text, const frit_symbol *symbol, frit_ids *out)
{
    const spm *state = tokenizer->state;
    if (symbol->id >= 0) {
        frit_ids_push(out, symbol->id);
        return;
    }
    for (uint32_t i = 0; i < symbol->len; i++) {
        frit_token byte = state->bytes[(unsigned char)text.ptr[symbol->start + i]];
        if (byte < 0) {   // without byte tokens the whole character is unknown
            if (tokenizer->vocab->unk >= 0) frit_ids_push(out, tokenizer->vocab->unk);
            return;
        }
        frit_ids_push(out, byte);
    }
}

static frit_status encode(const frit_tokenizer *tokenizer, frit_str text, frit_ids *out)
{
    frit_buf escaped = {0};
    if (tokenizer->vocab->add_space_prefix) frit_buf_text(&escaped, "\xe2\x96\x81");
    frit_escape_spaces(text, &escaped);
    frit_merger merger = {0};
    frit_str whole = {escaped.data, escaped.len};
    if (!escaped.failed) {
        pair_context context = {tokenizer->vocab, whole.ptr, ((const spm *)tokenizer->state)->longest};
        push_characters(tokenizer->vocab, whole, &merger);
        frit_merger_run(&merger, pair_cost, &context);
        for (int32_t i = 0; i < merger.n; i++)
            if (merger.symbols[i].len > 0) emit(tokenizer, whole, &merger.symbols[i], out);
    }
    bool failed = escaped.failed || merger.failed;
    frit_merger_free(&merger);
    frit_buf_free(&escaped);
    return failed ? frit_fail_memory(text.len, "the text to encode") : FRIT_OK;
}

static void decode(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out)
{
    frit_unescape_spaces(tokenizer->vocab->entries[id].piece, out);
}

const frit_tokenizer_kind frit_tokenizer_spm = {"llama", "SentencePiece BPE", init, NULL, encode, decode};
