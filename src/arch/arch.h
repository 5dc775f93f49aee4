// SPDX-License-Identifier: MIT
// arch/arch.h: an architecture is a list of weights and a function that builds one layer, as in the paper.
//
// frit_arch_of finds the row for a checkpoint's general.architecture. frit_hparams_read fills the hyperparameters from
// metadata, by the table in hparams.c. frit_weights_bind finds every tensor that the rows name, checks its shape, and
// computes the constants derived from weights. frit_rope_init computes the rotation frequencies for a context length.
// frit_arch_build then writes the graph of a step: embedding, `layer` for each layer, final norm, output head.
//
//     FRIT_TRY(frit_arch_of(&arch, ckpt));
//     FRIT_TRY(frit_hparams_read(&hp, arch, ckpt, &arena));
//     FRIT_TRY(frit_weights_bind(&weights, arch, &hp, ckpt, &arena));
//     FRIT_TRY(frit_rope_init(&hp, n_ctx, &arena));                       // an engine does this on its copy of hp
//     frit_graph_init(&graph, &graph_arena, n_rows, n_outs);
//     FRIT_TRY(frit_arch_build(&graph, arch, &hp, &weights, NULL));
//
// Optional weights and hyperparameters decide behaviour; no code outside an architecture's own file tests its name.
#pragma once
#include "arch/blocks.h"
#include "arch/hparams.h"
#include "arch/weight_rows.h"

// The layers with a window, used if neither attention.sliding_window nor its pattern is in the file.
typedef struct frit_windows {
    int32_t period;       // every period-th layer has full attention; 0: no pattern
    bool first_is_full;   // the first layer of a period has full attention, otherwise the last
    int32_t size;         // used if the file has no size
    bool plain_rope;      // RoPE of layers with a window is not scaled
    float rope_base;      // of layers with a window, if the file has no base; 0: as in other layers
} frit_windows;

// The value of an optional key that a file lacks, if it differs from the default in hparams.c.
typedef struct frit_key_default {
    const char *key;
    double value;
} frit_key_default;

typedef struct frit_media_arch frit_media_arch;   // media.h

struct frit_arch {
    const char *name;    // general.architecture
    const char *title;   // shown to users: "Llama 1 to 3, Mistral"
    const frit_weight_row *rows;
    size_t n_rows;
    const char *const *keys;   // the optional keys that the architecture reads: rows marked CHOSEN in hparams.c
    size_t n_keys;
    const frit_key_default *defaults;
    size_t n_defaults;
    frit_rope_style rope_style;
    frit_norm_kind norm;
    frit_act act;   // of the feed-forward
    frit_attention_options attention;
    frit_windows windows;
    frit_gating gating;             // used if the file has none; NONE: softmax
    bool expert_normalize;          // the weights of the chosen experts are divided by their sum
    bool norm_embedding;            // a norm without weights after the embedding
    bool is_encoder;                // bidirectional; the result is hidden states, or logits of a masked-LM head
    bool is_encoder_decoder;        // the encoder's layers, then the decoder's, with cross attention
    bool ranks_by_mean;             // the classification head reads the mean with GELU, not the first token with tanh
    bool averages_shared;           // the output of routed and shared experts is averaged, not added
    bool ranks_by_gelu;             // the classification head reads the first token with GELU
    bool no_out_norm;               // no final norm, because layers end with one
    bool qkv_in_thirds;             // fused q, k and v begin at thirds of the rows, whatever their sizes
    bool reads_media;               // its text may have pictures
    bool mixes_rope;                // M-RoPE: pairs of the sections take turns, instead of one section after another
    const frit_media_arch *media;   // of an encoder of pictures (media.h); NULL: rows are tokens
    frit_node *(*glu)(frit_build *b, frit_node *gate, frit_node *up);   // of experts, if more than `act` is applied
    frit_node *(*begin)(frit_build *b, frit_node *x);   // from the embeddings to the first layer's input; may be NULL
    frit_node *(*layer)(frit_build *b, const frit_layer *w, frit_node *x);
    frit_node *(*end)(frit_build *b, frit_node *x);   // after the last layer, before the norm; may be NULL
    frit_node *(*write_source)(frit_build *b,
                               frit_node *x);   // of an encoder-decoder: writes keys and values of the source
    frit_node *(*recurrent)(frit_build *b, const frit_layer *w,
                            frit_node *x);     // instead of attention in recurrent layers
    frit_status (*adjust)(frit_hparams *hp);   // after reading, before binding; may be NULL
    // Called after binding: computes constants from weights; may be NULL.
    frit_status (*compute)(frit_weights *weights, const frit_hparams *hp, frit_arena *arena);
};

// Finds the architecture of a checkpoint. FRIT_E_UNSUPPORTED: the error names the most similar known ones.
frit_status frit_arch_of(const frit_arch **out, const frit_checkpoint *ckpt);
const frit_arch *frit_arch_find(const char *name);   // NULL if unknown
const frit_arch *frit_arch_get(size_t i);            // row i of the list; NULL past the end

// mtp.c: rows of the weights that a layer for multi-token prediction has in addition to the architecture's.
const frit_weight_row *frit_next_rows(size_t *n_rows);
// Makes hyperparameters and weights of a model that consists of the first layer for multi-token prediction.
// FRIT_E_UNSUPPORTED, with the reason.
frit_status frit_next_take(frit_hparams *hp, frit_weights *weights, frit_layer *layer, const frit_arch *arch);
// The input of a layer for multi-token prediction, from the token's embedding and the hidden state of the token before.
// The hidden state is an input of the step.
frit_node *frit_next_input(frit_build *b, frit_node *embedding);

typedef struct frit_build_options {
    bool hidden;                     // the output is the last hidden state after the final norm, not logits
    bool keeps_hidden;               // the output is logits, and the last hidden state of all rows is a result too
    bool encode;                     // of an encoder-decoder: the encoder; the output is hidden states
    bool media;                      // rows may stand for pictures: each brings a flag, features and turns
    bool is_residual;                // `hidden` without the final norm
    int32_t first_layer;             // above 0: the graph begins with this layer, which reads rows that are given
    const frit_adapters *adapters;   // must outlive the graph; NULL: none
} frit_build_options;
// False for encoders without a masked-LM head, which give hidden states only.
bool frit_arch_has_logits(const frit_arch *arch, const frit_weights *weights);
// True if layers read nothing but the residual, so that a graph may begin with any of them.
bool frit_arch_can_begin_later(const frit_arch *arch, const frit_hparams *hp);
// True if rows of the model's text may be features of pictures (frit_build_options.media).
bool frit_arch_reads_media(const frit_arch *arch, const frit_hparams *hp);
frit_status frit_arch_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                            const frit_build_options *options);
