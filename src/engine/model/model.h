// SPDX-License-Identifier: MIT
// engine/model/model.h: an opened checkpoint with its vocabulary, bound weights and hyperparameters. Immutable, with a
// reference count.
#pragma once
#include "arch/arch.h"
#include "backend/backend.h"
#include "frit_tools.h"
#include "sample/sampler.h"
#include "text/chat/chat.h"
#include "text/stream.h"

struct frit_model {
    _Atomic int n_refs;
    frit_model *of;      // the model whose multi-token prediction layer this is, and whose parts it shares; NULL: none
    frit_layer *layer;   // the layer of `of`
    _Atomic bool is_drafted;   // this model's multi-token prediction layer was opened as a model
    frit_checkpoint *ckpt;
    frit_arena arena;
    frit_log log;
    const frit_arch *arch;   // NULL if the architecture is unknown and the model was opened for its vocabulary only
    frit_hparams hp;
    frit_weights weights;
    frit_vocab vocab;
    frit_tokenizer *tokenizer;     // NULL: the file has no text
    frit_chat_sources own_chats;   // from the file's metadata
    const frit_chat_sources *chats;
    frit_chat *chat;        // NULL if the file has no text, or has several named templates without a default
    frit_chat *tool_chat;   // for conversations with tools; NULL: `chat`
    bool vocab_only;        // weights are not bound: requested by options, or the file has no tensors
    frit_model_info info;
    const char **keys;               // [meta.n]: keys of the metadata, zero-terminated
    const char *mmproj;              // path of the encoder of pictures; NULL: not given
    const char *sampling_sequence;   // general.sampling.sequence; NULL: not in the file
    frit_stores *stores;             // packed weights, which engines share
    bool floats_in_place;            // engines copy no floats of files, because they are short-lived
    bool floats_coarse;   // engines may round the inputs of products with floats; for sampled texts and covariance
    bool fp8_inputs;      // engines may round the inputs of products with fp8_128 weights to fp8
    bool loads_late;      // engines load weights when a plan is made, because few layers run
    frit_lock *media_lock;
    struct frit_picture_rules *picture_rules;   // how pictures become tokens; NULL: not read yet (media/picture.h)
    frit_lock *trie_lock;
    // Prefix trees of the vocabulary for grammars, made when first needed (model_grammar.c). In [1] and [2] marks of
    // reasoning and calls are texts, for `chat` and `tool_chat`.
    struct frit_model_trie {
        frit_token_trie *trie;
        frit_str *pieces;   // [n_vocab]
    } tries[3];
};

void frit_model_ref(frit_model *model);         // frit_model_free gives it back
void frit_model_free_next(frit_model *model);   // model_mtp.c
// Binds the weights again, from `arena`, after tensors of the checkpoint were replaced. Only for a model without
// engines and without other users.
frit_status frit_model_bind_again(frit_model *model, frit_arena *arena);
// FRIT_E_IO if a mapped file has shrunk. Reading bytes that are gone raises SIGBUS, so it is called before weights are
// read.
frit_status frit_model_check_files(const frit_model *model);
// Tokenizes a text into a caller's array (two-call pattern). `model` has a vocabulary. (text.c)
frit_status frit_return_tokens(const frit_model *model, frit_str text, const frit_encoding *how, frit_token *tokens,
                               size_t capacity, size_t *n_tokens);
frit_encoding frit_encoding_of(unsigned flags, const frit_spans *untrusted, const frit_tokenize_limits *limits);
frit_status frit_return_text(frit_status status, frit_buf *buf, char *text, size_t capacity, size_t *n_bytes);
// Returns the template for conversations with or without tools (model.c). FRIT_E_UNSUPPORTED if the model has no
// template.
frit_status frit_model_get_chat(const frit_model *model, bool with_tools, const frit_chat **out);
// Fills model->info and model->keys (info.c).
frit_status frit_model_describe(frit_model *model);
frit_status frit_model_copy_sampling(frit_model *model);   // recommend.c
// Replaces metadata about RoPE by the options (model_rope.c).
frit_status frit_model_set_rope(frit_checkpoint *ckpt, const frit_model_options *options);
