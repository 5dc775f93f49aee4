// SPDX-License-Identifier: MIT
// text/vocab/vocab.h: the tokens of a model: pieces, scores, kinds, ids with a special meaning, and the rules that cut
// text.
//
// A vocabulary is read from a checkpoint's tokenizer.ggml.* metadata (vocab_gguf.c) or from the files that models are
// published with (vocab_file.h), and checked: lengths agree, ids are in range, merges name tokens. Pieces are stored as
// in the file (byte-level letters, U+2581 for spaces); the tokenizer kind interprets them. Everything lives in the
// caller's arena, in the checkpoint's metadata or in `text`, except the index and the regexes.
//
// Files lack some facts, which are inferred from the behaviour of the published tokenizers: which tokens end an answer,
// and which special tokens absorb the white space around them.
#pragma once
#include "base/arena.h"
#include "base/log.h"
#include "format/meta.h"
#include "text/chat/chat_sources.h"
#include "text/vocab/index.h"
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/trie.h"

enum { FRIT_SPECIAL_PIECE_BYTES = 1024 };   // the longest piece that a special token may have

typedef struct frit_vocab_entry {
    frit_str piece;
    double score;
    unsigned char kind;   // frit_token_kind
    bool is_end;          // ends an answer
    bool strip_left;      // absorbs the white space before it
    bool strip_right;     // absorbs the white space after it
    bool single_word;     // recognised only between characters that are not part of words
    bool normalized;      // searched for in normalized text
    bool is_added;        // not a piece of the model: recognised in text only as a whole
} frit_vocab_entry;

typedef struct frit_merge {   // two tokens that become one
    frit_token left, right, merged;
} frit_merge;

typedef struct frit_fill {   // tokens of fill-in-the-middle; -1: none
    frit_token prefix, suffix, middle, pad, repo, separator;
} frit_fill;

struct frit_pretok_row;

typedef struct frit_vocab {
    const char *model;                      // "gpt2", "llama", ...: the kind; "none" if the model has no text
    const char *pre;                        // tokenizer.ggml.pre, or ""
    const struct frit_pretok_row *pretok;   // the row of `pre`, or NULL
    frit_vocab_entry *entries;              // [n]; NULL if the model has no text
    int32_t n;
    frit_index ids;                                      // piece -> id (the first of equal pieces)
    size_t n_equal;                                      // number of tokens with the piece of an earlier one
    frit_token bos, eos, eot, unk, sep, pad, mask, nl;   // -1: none
    frit_fill fill;
    bool add_bos, add_eos, add_sep, add_space_prefix, remove_extra_spaces, escape_spaces;
    bool lowercase, strip_accents;   // WordPiece in GGUF
    frit_token *prefix, *suffix;     // tokens that are put around a text
    int32_t n_prefix, n_suffix;
    frit_token pair_sep;   // between two texts, after the suffix of the first; -1: none
    frit_merge *merges;    // by rank
    uint64_t n_merges;
    frit_token *specials;   // CONTROL, USER and UNKNOWN tokens, longest piece first
    int32_t n_specials;

    // The steps before and after the model; each kind uses its own fields.
    frit_pipeline pipeline;
    bool by_score;             // BPE: pairs merge by the score of the merged token, not by a list
    bool whole_words;          // BPE: a word that is a token is not merged
    bool whole_newlines;       // BPE: a sequence of newlines that is a token is not merged
    bool byte_fallback;        // a character that is no token becomes the tokens of its bytes
    bool fuse_unknown;         // adjacent unknown tokens become one
    bool unknown_parts;        // without an unknown token, an unknown character still prevents a merge across it
    bool single_precision;     // Unigram: scores are added as floats
    frit_str word_prefix;      // WordPiece: prefix of the first piece of a word
    frit_str inner_prefix;     // BPE, WordPiece: prefix of the other pieces of a word
    frit_str word_suffix;      // BPE: suffix of the last piece of a word
    int32_t max_word_chars;    // WordPiece: longer words are unknown; 0: no limit
    frit_trie *symbols;        // user-defined symbols that the model itself keeps whole; NULL: they are cut out before
                               // the model
    frit_chat_sources chats;   // from a tokenizer's own files
    void *text;                // the bytes that pieces may point into, freed with the vocabulary
} frit_vocab;

// Reads a vocabulary from metadata. `expected` is the number of rows of the embedding table, or 0 if unknown; a model
// without text ("none", "no_vocab") gets this number of tokens. FRIT_E_FORMAT for anything inconsistent,
// FRIT_E_UNSUPPORTED for an unknown pre-tokenizer.
frit_status frit_vocab_read(frit_vocab *vocab, const frit_meta *meta, int64_t expected, frit_arena *arena,
                            const frit_log *log);
void frit_vocab_deinit(frit_vocab *vocab);

// The id of a piece of ordinary text, that is, not of a control, unknown or byte token. -1 if no piece is equal.
frit_token frit_vocab_find_text(const frit_vocab *vocab, frit_str piece);
// The id of any piece, or -1.
frit_token frit_vocab_find(const frit_vocab *vocab, frit_str piece);
// The token "<0xXX>" of a byte, or -1.
frit_token frit_vocab_find_byte(const frit_vocab *vocab, unsigned char byte);
// The byte of a piece: "<0x0A>" -> 10; -1 for other pieces.
int frit_vocab_byte_of(frit_str piece);

// For readers, called in this order: start, entries, index, ids and merges, finish.
void frit_vocab_start(frit_vocab *vocab);
frit_status frit_vocab_index(frit_vocab *vocab, const frit_log *log);
typedef struct frit_merge_text {
    frit_str left, right;
} frit_merge_text;
enum { FRIT_MERGE_BATCH = 32 };   // merges that are looked up at once, which is fast
// Appends to vocab->merges, which must have space. inner_prefix is removed from a right side when it is joined.
frit_status frit_vocab_add_merges(frit_vocab *vocab, const frit_merge_text *texts, size_t n);
// Finishes a vocabulary: infers roles from spellings, finds the newline, lists the tokens around a text and the
// specials.
frit_status frit_vocab_finish(frit_vocab *vocab, frit_arena *arena);
