// SPDX-License-Identifier: MIT
// text/vocab.h: the tokens of a model: pieces, scores, kinds, and the ids with a meaning of their own.
//
// Read from a checkpoint's tokenizer.ggml.* metadata and checked: lengths agree, ids are inside, pieces are unique
// enough to be found. Pieces are stored as the file has them (byte-level letters, U+2581 for spaces); the tokenizer
// kind knows what they mean.
#pragma once
#include "base/arena.h"
#include "base/log.h"
#include "base/map.h"
#include "format/meta.h"

typedef enum frit_token_kind {   // GGUF's numbers
    FRIT_TOKEN_NORMAL = 1, FRIT_TOKEN_UNKNOWN, FRIT_TOKEN_CONTROL, FRIT_TOKEN_USER, FRIT_TOKEN_UNUSED, FRIT_TOKEN_BYTE
} frit_token_kind;

typedef struct frit_vocab_entry {
    frit_str piece;
    float score;
    frit_token_kind kind;
    bool is_end;              // ends an answer
} frit_vocab_entry;

typedef struct frit_vocab {
    const char *model;        // tokenizer.ggml.model: "gpt2", "llama", …, "none"
    const char *pre;          // tokenizer.ggml.pre, or ""
    frit_vocab_entry *entries;
    int32_t n;
    frit_map ids;             // piece → id (the first of equal pieces)
    frit_token bos, eos, eot, unk, sep, pad, mask, nl;   // -1: none
    bool add_bos, add_eos, add_sep, add_space_prefix, remove_extra_spaces, escape_spaces;
    frit_str *merges;         // "left right", by rank
    uint64_t n_merges;
    frit_token *specials;     // CONTROL, USER and UNKNOWN tokens, longest piece first
    int32_t n_specials;
} frit_vocab;

// `expected`: what the embedding table holds, or 0 if unknown. A model without text ("none", "no_vocab") gets n = expected.
frit_status frit_vocab_read(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena, const frit_log *log);
void frit_vocab_deinit(frit_vocab *vocab);
