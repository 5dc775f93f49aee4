// SPDX-License-Identifier: MIT
// text/tokenizer/pipeline.h: the steps before and after the kind of a tokenizer.
//
//     text -> repair -> special tokens cut out -> normalizers -> cuts -> words -> kind -> ids
//
// GGUF names a pre-tokenizer (pretok_rows.c), a tokenizer.json lists steps (json_steps.c), a SentencePiece file has
// flags (spm_model.c). All three fill the lists of a pipeline, which encoding then runs. Borrowed texts live in the
// arena of the vocabulary.
#pragma once
#include "base/arena.h"
#include "text/tokenizer/charsmap.h"
#include "text/halt.h"
#include "text/tokenizer/regex.h"
#include "text/unicode.h"

// ------------------------------------------------------------------------------------- normalizers

typedef struct frit_normalizer frit_normalizer;

struct frit_normalizer {   // a step from text to text
    frit_status (*apply)(const frit_normalizer *norm, frit_str text, frit_buf *out);
    frit_regex *regex;                 // Replace
    frit_str content;                  // Replace, Prepend
    unsigned flags;                    // of the step's own enum
    frit_charsmap charsmap;            // Precompiled, SentencePiece
    const struct frit_trie *symbols;   // SentencePiece: user-defined symbols stay unchanged
};

enum { FRIT_BERT_CLEAN = 1, FRIT_BERT_IDEOGRAPHS = 2, FRIT_BERT_STRIP = 4, FRIT_BERT_LOWER = 8, FRIT_BERT_GGUF = 16 };
enum { FRIT_STRIP_LEFT = 1, FRIT_STRIP_RIGHT = 2 };
enum { FRIT_SPM_PREFIX = 1, FRIT_SPM_TRIM = 2, FRIT_SPM_ESCAPE = 4, FRIT_SPM_SUFFIX = 8 };

// The normalizing steps; each has its own meaning of `flags` and the other fields.
frit_status frit_normalizer_form(const frit_normalizer *norm, frit_str text, frit_buf *out);   // flags: a frit_form
frit_status frit_normalizer_lowercase(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_strip(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_strip_accents(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_replace(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_escape(const frit_normalizer *norm, frit_str text, frit_buf *out);   // ' ' to U+2581
frit_status frit_normalizer_prepend(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_bert(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_nmt(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_byte_level(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_precompiled(const frit_normalizer *norm, frit_str text, frit_buf *out);
frit_status frit_normalizer_spm(const frit_normalizer *norm, frit_str text, frit_buf *out);

// ------------------------------------------------------------------------------------- cuts

typedef enum frit_split {   // handling of the matches of a regex
    FRIT_SPLIT_ISOLATED,
    FRIT_SPLIT_REMOVED,
    FRIT_SPLIT_WITH_PREVIOUS,
    FRIT_SPLIT_WITH_NEXT,
    FRIT_SPLIT_CONTIGUOUS,
} frit_split;

typedef enum frit_prefix { FRIT_PREFIX_NEVER, FRIT_PREFIX_FIRST, FRIT_PREFIX_ALWAYS } frit_prefix;

typedef struct frit_cut {   // a step from words to words
    frit_prefix prefix;     // before the regex: `space` is put before words without it
    bool replace;           // before the prefix: ' ' becomes `space`
    bool spell;             // as the last step: bytes become letters
    frit_str space;
    frit_regex *regex;   // or NULL
    frit_split split;
    bool invert;   // swaps matches and the text between them
} frit_cut;

typedef struct frit_word {
    uint32_t start, end;
} frit_word;

typedef struct frit_words {
    frit_str text;   // the text of the words
    frit_word *items;
    size_t n, capacity;
    bool failed;
} frit_words;

void frit_words_free(frit_words *words);

// ------------------------------------------------------------------------------------- decoding

// How a piece becomes text. Rules that depend on the position are applied during decoding, the others once, on opening.
typedef struct frit_decoding {
    bool letters;          // pieces spell bytes with letters
    bool escaped;          // U+2581 is a space
    bool spaced;           // a space precedes every piece, except pieces that begin with `continuing`
    frit_str continuing;   // dropped from pieces that begin with it
    frit_str word_end;     // dropped from pieces that end with it; the space then follows these pieces instead
    bool cleanup;          // no space before "." "," "n't" and similar
    struct frit_replacement {
        frit_str from, to;
    } replacements[8];
    int n_replacements;
    int strip_start;    // this many spaces are dropped at the start of the text
    bool strip_first;   // all spaces of the first piece are dropped
    bool strip_again;   // strip_start and strip_first also apply after every special token
    frit_str unknown;   // text of the unknown token; empty: the token is hidden
} frit_decoding;

typedef struct frit_pipeline {
    frit_repair repair;
    frit_normalizer *norms;
    size_t n_norms;
    frit_cut *cuts;
    size_t n_cuts;
    bool bytes;     // the kind sees bytes
    bool letters;   // its pieces spell bytes with letters
    frit_decoding decoding;
} frit_pipeline;

#define FRIT_PUNCTUATION "[\\p{P}$+<=>^`|~]"   // Unicode's punctuation, and ASCII's symbols

// Adds BERT's two cuts, at white space and around punctuation, to pipeline->cuts, which has space for them.
frit_status frit_cut_add_bert(frit_pipeline *pipeline);
void frit_pipeline_deinit(frit_pipeline *pipeline);

// Scratch memory of one call.
typedef struct frit_flow {
    frit_buf normal[2], rewritten[2];   // the last two texts of normalizing and of rewriting
    frit_words words[2];
    frit_matcher matcher;
    frit_halt *halt;   // NULL: nothing stops the call
    size_t most;       // size in bytes that the text may grow to
} frit_flow;

frit_status frit_flow_init(frit_flow *flow);
void frit_flow_deinit(frit_flow *flow);
// Normalizes a text. The result is valid until the next call with this flow.
frit_status frit_pipeline_normalize(const frit_pipeline *pipeline, frit_str text, frit_flow *flow, frit_str *out);
// Cuts a text into words. `at_start`: the text begins the whole text.
frit_status frit_pipeline_cut(const frit_pipeline *pipeline, frit_str text, bool at_start, frit_flow *flow,
                              const frit_words **out);

// ------------------------------------------------------------------------------------- byte letters

// Byte-level pieces spell bytes with letters: a printable byte stands for itself, another byte for a letter from U+0100
// on.
uint32_t frit_letter_of(unsigned char byte);
int frit_letter_byte(uint32_t c);   // -1: no letter
void frit_letters_spell(frit_str bytes, frit_buf *out);
typedef struct frit_letters {
    int16_t bytes[512];   // by code point; -1: no letter
} frit_letters;
void frit_letters_init(frit_letters *letters);
// Appends the bytes that a piece spells. A piece with a character that is no letter stands for itself.
void frit_letters_read(const frit_letters *letters, frit_str piece, frit_buf *out);
