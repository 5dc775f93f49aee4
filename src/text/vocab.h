// SPDX-License-Identifier: MIT
// text/vocab.h: the tokens of a model: pieces, scores, kinds, and the ids with a meaning of their own.
//
// Read from a checkpoint's tokenizer.ggml.* metadata and checked: lengths agree, ids are inside, merges name tokens.
// Pieces are stored as the file has them (byte-level letters, U+2581 for spaces); the tokenizer kind knows what they
// mean. Everything lives in the caller's arena and in the checkpoint's metadata, except the map `ids`.
//
// Some facts are not in the files and are inferred as the published tokenizers behave: which tokens end an answer, and
// which special tokens swallow the white space beside them.
#pragma once
#include "base/arena.h"
#include "base/log.h"
#include "base/map.h"
#include "format/meta.h"

typedef enum frit_token_kind {   // GGUF's numbers
    FRIT_TOKEN_NORMAL = 1,
    FRIT_TOKEN_UNKNOWN,
    FRIT_TOKEN_CONTROL,
    FRIT_TOKEN_USER,
    FRIT_TOKEN_UNUSED,
    FRIT_TOKEN_BYTE
} frit_token_kind;

enum { FRIT_SPECIAL_PIECE_BYTES = 1024 };   // the longest piece that a special token may have

typedef struct frit_vocab_entry {
    frit_str piece;
    float score;
    frit_token_kind kind;
    bool is_end;        // ends an answer
    bool strip_left;    // where it is recognised in text, it swallows the white space before it
    bool strip_right;   // ... behind it
} frit_vocab_entry;

typedef struct frit_merge {   // two tokens that become one
    frit_token left, right, merged;
} frit_merge;

struct frit_pretok_row;

typedef struct frit_vocab {
    const char *model;   // tokenizer.ggml.model: "gpt2", "llama", ...; "none" if the model has no text
    const char *pre;     // tokenizer.ggml.pre, or ""
    const struct frit_pretok_row *pretok;   // its row (gpt2 kinds only), or NULL
    frit_vocab_entry *entries;              // [n]; NULL if the model has no text
    int32_t n;
    frit_map ids;                                        // piece -> id (the first of equal pieces)
    frit_token bos, eos, eot, unk, sep, pad, mask, nl;   // -1: none
    bool add_bos, add_eos, add_sep, add_space_prefix, remove_extra_spaces, escape_spaces;
    bool lowercase, strip_accents;   // WordPiece
    frit_merge *merges;              // by rank
    uint64_t n_merges;
    frit_token *specials;   // CONTROL, USER and UNKNOWN tokens, longest piece first
    int32_t n_specials;
} frit_vocab;

// `expected`: what the embedding table holds, or 0 if unknown. A model without text ("none", "no_vocab") gets n =
// expected. FRIT_E_FORMAT for anything inconsistent, FRIT_E_UNSUPPORTED for an unknown pre-tokenizer.
frit_status frit_vocab_read(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena,
                            const frit_log *log);
void frit_vocab_deinit(frit_vocab *vocab);

// The id of a piece that may stand in ordinary text: not a control, unknown or byte token. -1 if there is none.
frit_token frit_vocab_find_text(const frit_vocab *vocab, frit_str piece);
// The id of any piece, or -1.
frit_token frit_vocab_find(const frit_vocab *vocab, frit_str piece);
// The token "<0xXX>" of a byte, or -1.
frit_token frit_vocab_find_byte(const frit_vocab *vocab, unsigned char byte);
