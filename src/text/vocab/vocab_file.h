// SPDX-License-Identifier: MIT
// text/vocab/vocab_file.h: vocabularies from the files that models are published with.
//
//     tokenizer.json    Hugging Face: json_vocab.c, json_steps.c
//     tekken.json       Mistral: tekken.c
//     *.model           SentencePiece: spm_model.c; or ranks
//     *.tiktoken        ranks, one token a line: tiktoken.c
//     vocab.json and merges.txt, or vocab.txt: vocab_pair.c
//
// Other files of a folder have special tokens and the chat template: json_config.c. A kind of file is a row of
// vocab_file.c, recognised by its first bytes.
#pragma once
#include "text/vocab/vocab.h"

typedef struct frit_vocab_source {
    const char *name;                     // "SentencePiece model"
    bool (*recognises)(frit_str start);   // looks at the first bytes; never fails
    // Fills entries and everything else in the file, in the order that vocab.h gives, except frit_vocab_finish.
    // vocab->text is the file's bytes, zero-terminated.
    frit_status (*read)(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena, const frit_log *log);
} frit_vocab_source;

extern const frit_vocab_source frit_vocab_json, frit_vocab_spm, frit_vocab_tiktoken;

// vocab_pair.c: reads vocab.json and merges.txt, or vocab.txt, of a folder without a tokenizer.json.
bool frit_vocab_pair_is_in(const char *folder);
frit_status frit_vocab_pair_read(frit_vocab *vocab, const char *folder, frit_arena *arena, const frit_log *log);

// The name of the source that would read this file, or the tokenizer's file of this folder; NULL if no source fits.
const char *frit_vocab_file_kind(const char *path);
// Opens a vocabulary. `path` is a file, or a folder whose other files are read too. `expected` is the number of rows of
// the embedding table, or 0; missing tokens are added as unused ones.
frit_status frit_vocab_open(frit_vocab *vocab, const char *path, int64_t expected, frit_arena *arena,
                            const frit_log *log);

// Reads a published tokenizer.json that is inside another file, and special tokens by role from tokenizer.ggml.* of
// `meta`.
frit_status frit_vocab_read_embedded(frit_vocab *vocab, frit_str json, const frit_meta *meta, int64_t expected,
                                     frit_arena *arena, const frit_log *log);

// For sources: a list of pieces with ids becomes vocab->entries; missing ids become unused tokens.
typedef struct frit_vocab_list {
    struct frit_vocab_item {
        frit_str piece;
        int32_t id;
        double score;
        unsigned char kind;
    } * items;
    size_t n, capacity;
} frit_vocab_list;
frit_status frit_vocab_list_add(frit_vocab_list *list, frit_str piece, double id, double score, frit_token_kind kind);
frit_status frit_vocab_list_finish(frit_vocab_list *list, const char *path, frit_vocab *vocab, frit_arena *arena);
void frit_vocab_list_free(frit_vocab_list *list);
// Makes room for n tokens; new tokens are unused.
frit_status frit_vocab_grow(frit_vocab *vocab, int32_t n, frit_arena *arena);
// Marks the byte tokens "<0xXX>".
void frit_vocab_mark_bytes(frit_vocab *vocab);

// json_steps.c: fills vocab->pipeline and the tokens around a text. NULL and JSON null mean no steps.
struct json_t;
frit_status frit_json_read_normalizer(frit_vocab *vocab, const struct json_t *json, frit_arena *arena);
frit_status frit_json_read_cuts(frit_vocab *vocab, const struct json_t *json, frit_arena *arena);
frit_status frit_json_read_decoder(frit_vocab *vocab, const struct json_t *json, frit_arena *arena);
frit_status frit_json_read_template(frit_vocab *vocab, const struct json_t *json, frit_arena *arena);
// tekken.c
frit_status frit_tekken_read(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena);
// json_config.c: tokenizer_config.json, special_tokens_map.json, generation_config.json, chat_template.jinja.
frit_status frit_json_read_config(frit_vocab *vocab, const char *folder, frit_arena *arena, const frit_log *log);
// tiktoken.c: decodes the base64 at the start of `text`, up to another byte. The bytes are in the arena.
frit_status frit_base64_read(frit_str text, frit_arena *arena, frit_str *bytes);
