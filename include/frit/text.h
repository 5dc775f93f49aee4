// SPDX-License-Identifier: MIT
// frit/text.h: tokens and text.
#ifndef FRIT_TEXT_H
#define FRIT_TEXT_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FRIT_TEXT_SPECIAL = 1,         // tokenize: add BOS/EOS if the model needs them; detokenize: show special tokens
    FRIT_TEXT_PARSE_SPECIAL = 2,   // tokenize: text that spells a special token becomes that token
    FRIT_TEXT_BYTES = 4,           // text streams: give the bytes of each token at once, even part of a character
};

// Tokenizes bytes of any content. Writes at most `capacity` ids and sets *n_tokens to the number of tokens of the text.
// FRIT_E_LIMIT if it exceeds `capacity`: call again with more room. `tokens` may be NULL if capacity is 0. After any
// other failure *n_tokens is 0: FRIT_E_TIMEOUT if a regex of the tokenizer takes too long for this text, FRIT_E_INVALID
// for more than 512 MiB.
FRIT_API frit_status frit_tokenize(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                                   frit_token *tokens, size_t capacity, size_t *n_tokens);

typedef struct frit_tokenize_limits {
    size_t max_tokens;              // 0: any number
    bool (*cancelled)(void *ctx);   // called from time to time by the calling thread; NULL: never
    void *ctx;
    uint64_t reserved[8];
} frit_tokenize_limits;

// frit_tokenize with limits. Returns FRIT_E_LIMIT when there are more than max_tokens (*n_tokens is then a lower bound
// above max_tokens; a text that is certainly too long is not read), and FRIT_E_CANCELLED when `cancelled` returns true.
// `limits` may be NULL.
FRIT_API frit_status frit_tokenize_within(const frit_model *model, const char *text, size_t n_bytes, unsigned flags,
                                          const frit_tokenize_limits *limits, frit_token *tokens, size_t capacity,
                                          size_t *n_tokens);

// Writes the text of tokens, at most `capacity` bytes, not zero-terminated, and sets *n_bytes to its length.
// FRIT_E_LIMIT if it exceeds `capacity`.
FRIT_API frit_status frit_detokenize(const frit_model *model, const frit_token *tokens, size_t n_tokens, unsigned flags,
                                     char *text, size_t capacity, size_t *n_bytes);

// Returns the bytes that a token adds to generated text; "" for control tokens. Lives as long as the model.
FRIT_API const char *frit_token_piece(const frit_model *model, frit_token token, size_t *n_bytes);

// True for the tokens that end an answer (EOS, end of turn, ...).
FRIT_API bool frit_token_is_end(const frit_model *model, frit_token token);

typedef enum frit_token_kind {   // GGUF's numbers
    FRIT_TOKEN_NORMAL = 1,
    FRIT_TOKEN_UNKNOWN,   // stands for text that no token spells
    FRIT_TOKEN_CONTROL,   // a mark such as BOS: adds no text
    FRIT_TOKEN_USER,      // added to the vocabulary; its text is always recognised
    FRIT_TOKEN_UNUSED,
    FRIT_TOKEN_BYTE   // a single byte
} frit_token_kind;

typedef struct frit_token_info {
    frit_token_kind kind;
    bool is_end;        // as frit_token_is_end
    double score;       // in vocabularies with scores (SentencePiece); else 0
    const char *text;   // the vocabulary's spelling; not zero-terminated; lives as long as the model
    size_t n_bytes;     // length of `text`; frit_token_piece gives the bytes that the token stands for
    uint64_t reserved[8];
} frit_token_info;

// FRIT_E_INVALID for an id outside the vocabulary, FRIT_E_UNSUPPORTED if the model has none.
FRIT_API frit_status frit_token_get_info(const frit_model *model, frit_token token, frit_token_info *info);

typedef enum frit_token_role {
    FRIT_ROLE_BOS,   // begins a text
    FRIT_ROLE_EOS,   // ends a text
    FRIT_ROLE_EOT,   // ends a turn of a chat
    FRIT_ROLE_UNKNOWN,
    FRIT_ROLE_SEPARATOR,
    FRIT_ROLE_PAD,
    FRIT_ROLE_MASK,
    FRIT_ROLE_NEWLINE,
    FRIT_ROLE_FIM_PREFIX,   // fill-in-the-middle: the text before the gap follows
    FRIT_ROLE_FIM_SUFFIX,   // the text after the gap follows
    FRIT_ROLE_FIM_MIDDLE,   // the answer, which fills the gap, follows
    FRIT_ROLE_FIM_PAD,
    FRIT_ROLE_FIM_REPO,        // the name of a repository follows
    FRIT_ROLE_FIM_SEPARATOR,   // a file follows
} frit_token_role;

// Returns the token of a role, or -1 if the model has none.
FRIT_API frit_token frit_token_of_role(const frit_model *model, frit_token_role role);

// Converts tokens to text as they are generated, in whole characters (unless FRIT_TEXT_BYTES is set).
typedef struct frit_text_stream frit_text_stream;
FRIT_API frit_status frit_text_stream_new(frit_text_stream **out, const frit_model *model, unsigned flags);
// Returns the text that this token completes, possibly "": valid UTF-8, zero-terminated, lives until the next call.
FRIT_API frit_status frit_text_stream_push(frit_text_stream *stream, frit_token token, const char **text,
                                           size_t *n_bytes);
// Returns the text that is still held back, with incomplete characters replaced by U+FFFD.
FRIT_API frit_status frit_text_stream_flush(frit_text_stream *stream, const char **text, size_t *n_bytes);
FRIT_API void frit_text_stream_free(frit_text_stream *stream);

#ifdef __cplusplus
}
#endif
#endif
