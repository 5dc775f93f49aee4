// SPDX-License-Identifier: MIT
// text/tokenizer/tokenizer.h: text to tokens and back. A kind of tokenizer is a row in tokenizer.c and has its own
// file.
//
// Encoding first cuts out special tokens (special.h), then runs each fragment between them through the steps of the
// vocabulary's pipeline (pipeline.h) and hands the words to the kind's encode function. User-defined tokens are always
// recognised, control tokens only with FRIT_TEXT_PARSE_SPECIAL. Decoding gives the bytes of each token; a stream
// (stream.h) turns them into valid UTF-8. A tokenizer is immutable and may be used by many threads at once; scratch
// memory is per call (scratch.h).
//
//     frit_ids ids = {0};
//     FRIT_TRY(frit_tokenizer_encode(tokenizer, frit_str_of("Once upon a time"), FRIT_TEXT_SPECIAL, &ids));
//     ...
//     frit_ids_free(&ids);
#pragma once
#include "text/vocab/special.h"
#include "text/vocab/vocab.h"

typedef struct frit_ids {   // a growable list of tokens
    frit_token *items;
    size_t n, capacity;
    size_t n_least;   // number of tokens known when an encoding was given up
    bool failed;
} frit_ids;
void frit_ids_push(frit_ids *ids, frit_token id);
void frit_ids_free(frit_ids *ids);

typedef struct frit_tokenizer frit_tokenizer;
typedef struct frit_scratch frit_scratch;

typedef struct frit_tokenizer_kind {
    const char *models;   // values of frit_vocab.model that the kind serves, separated by spaces
    const char *title;
    frit_status (*init)(frit_tokenizer *tokenizer, const frit_log *log);   // builds what the kind needs; may be NULL
    void (*deinit)(frit_tokenizer *tokenizer);                             // may be NULL
    // Appends the tokens of a word, a part of a text after the pipeline's steps, never empty. Equal words get equal
    // tokens.
    frit_status (*encode)(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out);
} frit_tokenizer_kind;

struct frit_tokenizer {
    const frit_tokenizer_kind *kind;
    const frit_vocab *vocab;
    frit_special special;              // searched for in the original text
    frit_special special_normalized;   // searched for in normalized text
    frit_special special_raw;          // the tokens of special_normalized in their form before normalizing
    size_t token_bytes;                // the longest text of a token in bytes; 0: unlimited
    void *state;                       // data of the kind
    frit_str *pieces;                  // [n]: the bytes of every token, decoded once
    frit_arena arena;
};

// The kinds, each in its file.
extern const frit_tokenizer_kind frit_tokenizer_bpe, frit_tokenizer_unigram, frit_tokenizer_wordpiece,
    frit_tokenizer_wordlevel, frit_tokenizer_rwkv;

// FRIT_OK and *out = NULL for a vocabulary without text. The vocabulary is borrowed.
frit_status frit_tokenizer_new(frit_tokenizer **out, const frit_vocab *vocab, const frit_log *log);
void frit_tokenizer_free(frit_tokenizer *tokenizer);
typedef struct frit_encoding {
    unsigned flags;                 // FRIT_TEXT_SPECIAL, FRIT_TEXT_PARSE_SPECIAL
    const frit_spans *untrusted;    // ranges of the text in which no control token is recognised; NULL: none
    size_t max_tokens;              // 0: any number
    bool (*cancelled)(void *ctx);   // called from time to time; may be NULL
    void *cancel_ctx;
} frit_encoding;

// Encodes a text. FRIT_E_LIMIT once there are more than max_tokens, or at once if the text is certainly too long;
// out->n_least is then a lower bound of the number of tokens. FRIT_E_CANCELLED if `cancelled` returns true.
frit_status frit_tokenizer_encode_as(const frit_tokenizer *tokenizer, frit_str text, const frit_encoding *how,
                                     frit_ids *out);
// Encodes a text. `flags`: FRIT_TEXT_SPECIAL, FRIT_TEXT_PARSE_SPECIAL. With FRIT_TEXT_SPECIAL a BOS is added (if the
// model needs one) unless FRIT_TEXT_PARSE_SPECIAL finds one at the start of the text, so a rendered chat never gets
// two.
frit_status frit_tokenizer_encode(const frit_tokenizer *tokenizer, frit_str text, unsigned flags, frit_ids *out);
// Decodes a whole sequence. The space that some kinds put before a text, and after special tokens, is removed. `flags`:
// FRIT_TEXT_SPECIAL shows special tokens.
frit_status frit_tokenizer_decode(const frit_tokenizer *tokenizer, const frit_token *ids, size_t n, unsigned flags,
                                  frit_buf *out);
// The bytes of one token; control tokens give "" unless `flags` has FRIT_TEXT_SPECIAL.
frit_str frit_tokenizer_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags);

// The position in a sequence that is decoded token by token; zero before its first token.
typedef struct frit_text_place {
    bool started;         // some text was written
    bool fresh;           // the last token was special
    bool space_pending;   // the last piece ended a word
    int n_stripped;       // spaces dropped at the start
} frit_text_place;

// The bytes of the next token of a sequence: its piece, without a space that the encoder added. They live as long as
// the tokenizer.
frit_str frit_tokenizer_next_piece(const frit_tokenizer *tokenizer, frit_token id, unsigned flags,
                                   frit_text_place *place);
