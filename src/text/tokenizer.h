// SPDX-License-Identifier: MIT
// text/tokenizer.h: text to tokens and back. A kind of tokenizer is a row in tokenizer.c and a file of its own.
//
// Encoding first cuts out special tokens (if they are to be parsed), then hands each fragment between them to the
// kind's encode function. Decoding is per token: the bytes that a token stands for; a stream (stream.h) turns them into
// valid UTF-8. A tokenizer is immutable and may be used by many threads at once; scratch memory is per call.
#pragma once
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
    const char *name;       // tokenizer.ggml.model
    const char *title;
    frit_status (*init)(frit_tokenizer *tokenizer);                  // builds what the kind needs; may be NULL
    void (*deinit)(frit_tokenizer *tokenizer);                       // may be NULL
    // Appends the tokens of a fragment without special tokens. `first`: nothing but special tokens came before it.
    frit_status (*encode)(const frit_tokenizer *tokenizer, frit_str text, bool first, frit_ids *out);
    // Appends the bytes that a normal token stands for.
    void (*decode)(const frit_tokenizer *tokenizer, frit_token id, frit_buf *out);
} frit_tokenizer_kind;

struct frit_tokenizer {
    const frit_tokenizer_kind *kind;
    const frit_vocab *vocab;
    void *state;            // the kind's own
    frit_str *pieces;       // [n]: the bytes of every token, decoded once
    frit_arena arena;
};

frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log);
void frit_tokenizer_free(frit_tokenizer *tokenizer);
// `flags`: FRIT_TEXT_SPECIAL, FRIT_TEXT_PARSE_SPECIAL.
frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out);
// Whole sequences; the leading space that some kinds add is removed again. `flags`: FRIT_TEXT_SPECIAL shows specials.
frit_status frit_tokenizer_decode(const frit_tokenizer *tokenizer, const frit_token *ids, size_t n, unsigned flags, frit_buf *out);
// The bytes of one token; control tokens give "" unless `flags` has FRIT_TEXT_SPECIAL.
frit_str frit_tokenizer_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags);
