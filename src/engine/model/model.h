// SPDX-License-Identifier: MIT
// engine/model/model.h: an opened checkpoint with its vocabulary, bound weights and hyperparameters; immutable,
// counted.
#pragma once
#include "arch/arch.h"
#include "backend/backend.h"
#include "frit_tools.h"
#include "sample/sampler.h"
#include "text/chat/chat.h"
#include "text/stream.h"

struct frit_model {
    _Atomic int n_refs;
    frit_model *of;      // whose layer for multi-token prediction this is, and whose parts it shares; NULL: none
    frit_layer *layer;   // that layer
    frit_checkpoint *ckpt;
    frit_arena arena;
    frit_log log;
    const frit_arch *arch;   // NULL if opened for its vocabulary only, and unknown
    frit_hparams hp;
    frit_weights weights;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;     // NULL for a file without text
    frit_chat_sources own_chats;   // of the file's metadata
    const frit_chat_sources *chats;
    frit_chat *chat;        // NULL for a file without text, or if several templates have names of their own
    frit_chat *tool_chat;   // of conversations with tools; NULL: the same
    bool vocab_only;        // weights are not bound: asked for, or the file has no tensors
    frit_model_info info;
    const char **keys;               // [meta.n]: the metadata's keys, zero-terminated
    const char *sampling_sequence;   // general.sampling.sequence; NULL: the file has none
    frit_stores *stores;             // weights as its engines' devices read them
    bool floats_in_place;            // engines copy no floats of files: they come and go often
    bool floats_coarse;              // engines may round what products with floats read: for text and sums
    bool loads_late;                 // engines load what a step reads when its plan is made: few of their layers run
    frit_lock *trie_lock;
    struct frit_model_trie {
        frit_token_trie *trie;
        frit_str *pieces;   // [n_vocab]
    } tries[3];             // prefix trees of the vocabulary, for grammars; made with the first of them (grammar.c).
                            // [1], [2]: special tokens that mark reasoning and calls are texts, by chat and tool_chat
};

void frit_model_retain(frit_model *model);      // frit_model_free gives the reference back
void frit_model_free_next(frit_model *model);   // model_mtp.c
// Binds the weights again where tensors of the checkpoint were replaced, from `arena`; for a model without engines that
// only the caller has.
frit_status frit_model_bind_again(frit_model *model, frit_arena *arena);
// FRIT_E_IO if a mapped file has shrunk. Touching what is gone raises SIGBUS, so look before reading weights.
frit_status frit_model_check_files(const frit_model *model);
// Hands a finished text out by the two-call pattern, and frees it (text.c).
// `model` has a vocabulary.
frit_status frit_give_tokens(const frit_model *model, frit_str text, const frit_encoding *how, frit_token *tokens,
                             size_t capacity, size_t *n_tokens);
frit_encoding frit_encoding_of(unsigned flags, const frit_spans *untrusted, const frit_tokenize_limits *limits);
frit_status frit_give_text(frit_status status, frit_buf *buf, char *text, size_t capacity, size_t *n_bytes);
// The template of conversations with tools or without (model.c). FRIT_E_UNSUPPORTED without one.
frit_status frit_model_get_chat(const frit_model *model, bool with_tools, const frit_chat **out);
// Fills model->info and model->keys from the rest (info.c).
frit_status frit_model_describe(frit_model *model);
frit_status frit_model_copy_sampling(frit_model *model);   // recommend.c
// Options about RoPE, as metadata that takes the place of the file's (model_rope.c).
frit_status frit_model_set_rope(frit_checkpoint *ckpt, const frit_model_options *options);
