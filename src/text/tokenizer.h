// SPDX-License-Identifier: MIT
// text/tokenizer.h: text to tokens and back. A kind of tokenizer is a row in tokenizer.c and a file of its own.
//
// Encoding first cuts out special tokens (special.h), then hands each fragment between them to the kind's encode
// function. User-defined tokens are always recognised, control tokens only with FRIT_TEXT_PARSE_SPECIAL. Decoding is
// per token: the bytes that a token stands for; a stream (stream.h) turns them into valid UTF-8. A tokenizer is
// immutable and may be used by many threads at once; scratch memory is per call.
//
//     frit_ids ids = {0};
//     FRIT_TRY(frit_tokenizer_encode(tokenizer, frit_str_of("Once upon a time"), FRIT_TEXT_SPECIAL, &ids));
//     ...
//     frit_ids_free(&ids);
#pragma once
#include "text/special.h"
#include "text/vocab.h"

typedef struct frit_ids {   // a growable list of tokens
    frit_token *items;
    size_t n, capacity;
    bool failed;
} frit_ids;
void frit_ids_push(frit_ids *ids, frit_token id);
void frit_ids_free(frit_ids *ids);

typedef struct frit_tokenizer frit_tokenizer;

typedef struct frit_tokenizer_kind {
    const char *name;   // tokenizer.ggml.model
    const char *title;
    frit_status (*init)(frit_tokenizer *tokenizer, const frit_log *log);   // builds what the kind needs; may be NULL
    void (*deinit)(frit_tokenizer *tokenizer);                             // may be NULL
    // Appends the tokens of a fragment: text that opens the whole or follows a special token, and holds none itself.
    frit_status (*encode)(const frit_tokenizer *tokenizer, frit_str text, frit_ids *out);
    // Appends the bytes that a normal token stands for.
    void (*decode)(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out);
} frit_tokenizer_kind;

struct frit_tokenizer {
    const frit_tokenizer_kind *kind;
    const frit_vocab *vocab;
    frit_special special;
    void *state;        // the kind's own
    frit_str *pieces;   // [n]: the bytes of every token, decoded once
    frit_arena arena;
};

// What several kinds need: ' ' to U+2581 and back.
void frit_escape_spaces(frit_str text, frit_buf *out);
void frit_unescape_spaces(frit_str piece, frit_buf *out);

// The kinds, each in its file.
extern const frit_tokenizer_kind frit_tokenizer_bpe, frit_tokenizer_gemma4, frit_tokenizer_spm,
    frit_tokenizer_wordpiece;

// FRIT_OK and *out = NULL for a vocabulary without text. The vocabulary is borrowed.
frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log);
void frit_tokenizer_free(frit_tokenizer *tokenizer);
// `flags`: FRIT_TEXT_SPECIAL, FRIT_TEXT_PARSE_SPECIAL. With FRIT_TEXT_SPECIAL a BOS is added (if the model asks for
// one) unless FRIT_TEXT_PARSE_SPECIAL finds one at the start of the text: a rendered chat never gets two.
frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out);
// Whole sequences. The space that some kinds put before a text, and behind special tokens, is removed again.
// `flags`: FRIT_TEXT_SPECIAL shows specials.
frit_status frit_tokenizer_decode(const frit_tokenizer *tokenizer, const frit_token *ids, size_t n, unsigned flags,
                                  frit_buf *out);
// The bytes of one token; control tokens give "" unless `flags` has FRIT_TEXT_SPECIAL.
frit_str frit_tokenizer_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags);
// The bytes of the next token of a sequence: the piece, without a space that the encoder added. *at_start is true
// before the first token.
frit_str frit_tokenizer_next_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags, bool *at_start);
