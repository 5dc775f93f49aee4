// SPDX-License-Identifier: MIT
// arch/arch.h: an architecture is a declaration: a list of weights and a function that reads like the paper.
//
// frit_arch_of gives the row for a checkpoint's general.architecture. frit_hparams_read fills the hyperparameters
// from metadata, by the table in hparams.c. frit_weights_bind finds every tensor that the rows name and checks its
// shape. frit_rope_init computes the rotation frequencies for a context length. frit_arch_build then writes the graph
// of a step: embedding, `layer` for each layer, final norm, output head.
//
//     FRIT_TRY(frit_arch_of(&arch, ckpt));
//     FRIT_TRY(frit_hparams_read(&hp, arch, ckpt, &arena));
//     FRIT_TRY(frit_weights_bind(&weights, arch, &hp, ckpt, &arena));
//     FRIT_TRY(frit_rope_init(&hp, n_ctx, &arena));                       // an engine does this on its copy of hp
//     frit_graph_init(&graph, &graph_arena, n_rows, n_outs);
//     FRIT_TRY(frit_arch_build(&graph, arch, &hp, &weights, NULL));
//
// Optional weights and hyperparameters decide behaviour; nothing outside an architecture's own file knows its name.
#pragma once
#include "graph/graph.h"

// ------------------------------------------------------------------------------- hyperparameters

typedef enum frit_rope_scaling {
    FRIT_ROPE_PLAIN,
    FRIT_ROPE_LINEAR,
    FRIT_ROPE_YARN,
    FRIT_ROPE_DYNAMIC,
    FRIT_ROPE_LLAMA3
} frit_rope_scaling;

typedef struct frit_rope_params {
    int32_t dim;   // elements of a head that rotate
    float base;
    frit_rope_scaling scaling;
    float factor;                              // context extension; 1: none
    int32_t n_ctx_orig;                        // context before extension
    float attn_factor;                         // YaRN: multiplies the magnitude that its rule gives
    float ext_factor, beta_fast, beta_slow;    // YaRN
    float low_freq_factor, high_freq_factor;   // Llama 3
} frit_rope_params;

typedef struct frit_layer_hparams {
    int32_t n_head, n_head_kv, n_ff;
    int32_t k_dim, v_dim;   // of one head
    int32_t window;         // 0: full attention
} frit_layer_hparams;

typedef struct frit_hparams {
    int32_t n_vocab, n_ctx_train, n_embd, n_layer, n_expert;
    float rms_eps, layer_norm_eps;   // where the file names only one, they are equal
    float attn_scale;                // 0: 1 / sqrt(k_dim)
    float attn_softcap, logit_softcap;
    float embd_scale, residual_scale, logit_scale;   // 0: 1
    frit_rope_params rope;
    frit_rope_style rope_style;   // the architecture's, unless the file says otherwise
    const float *inv_freq;        // [rope.dim / 2], from rope.c
    float rope_magnitude;
    frit_layer_hparams *layers;   // [n_layer]
} frit_hparams;

// ------------------------------------------------------------------------------- weights

// A matrix with what belongs to it: y = x w^T * scale + b. Bound by name: "NAME.weight", "NAME.bias" (optional),
// "NAME.scale" (optional; one number, or one for each row).
typedef struct frit_weight {
    const frit_tensor *w, *b, *scale;
} frit_weight;

static inline bool frit_has(const frit_weight *weight)
{
    return weight->w != NULL;
}

typedef struct frit_layer {
    frit_weight attn_norm, q, k, v, o, q_norm, k_norm, post_attn_norm;
    frit_weight qkv;   // fused q, k, v
    frit_weight ffn_norm, gate, up, down, post_ffn_norm;
} frit_layer;

typedef struct frit_weights {
    frit_weight tok_embd, out_norm, lm_head, rope_freqs;
    frit_layer *layers;   // [n_layer]
} frit_weights;

// Dimensions as the rows of a weight list name them; resolved per layer.
typedef enum frit_dim {
    FRIT_DIM_1,
    FRIT_DIM_N_VOCAB,
    FRIT_DIM_N_EMBD,
    FRIT_DIM_N_FF,
    FRIT_DIM_N_Q,   // all query heads
    FRIT_DIM_N_K,
    FRIT_DIM_N_V,
    FRIT_DIM_N_O,   // what attention gives: all query heads, of the values' size
    FRIT_DIM_N_QKV,
    FRIT_DIM_HEAD,   // one head of queries or keys
    FRIT_DIM_ROPE_PAIRS,
} frit_dim;

enum {
    FRIT_WEIGHT_OPTIONAL = 1,
    FRIT_WEIGHT_OR_TOK_EMBD = 2,   // absent: the embedding table is used (tied)
    FRIT_WEIGHT_LAYER = 4,         // one for each layer: "blk.N.NAME"
    FRIT_WEIGHT_TABLE = 8,         // read row by row, not multiplied: has neither bias nor scale
    // What a "NAME.scale" means depends on who wrote the file. Beside NVFP4 it belongs to the number format: the
    // matrix is w * scale. Beside other types it belongs to the architecture, and some graphs of llama.cpp, which
    // defines these files, multiply after the bias or do not read it.
    FRIT_WEIGHT_SCALE_LAST = 16,   // y = (x w^T + b) * scale
    FRIT_WEIGHT_UNSCALED = 32,     // y = x w^T + b
};

typedef struct frit_weight_row {
    size_t offset;      // in frit_weights or frit_layer
    const char *name;   // in the file, without ".weight"
    frit_dim out, in;   // [out, in]; in == FRIT_DIM_1: a vector [out]
    unsigned flags;
} frit_weight_row;

// clang-format off
#define FRIT_MODEL_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_weights, field), name, FRIT_DIM_##out, FRIT_DIM_##in, flags}
#define FRIT_LAYER_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_layer, field), name, FRIT_DIM_##out, FRIT_DIM_##in, (flags) | FRIT_WEIGHT_LAYER}
// clang-format on

// ------------------------------------------------------------------------------- building

// What a layer function sees: the graph and where it stands.
typedef struct frit_build {
    frit_graph *g;
    const frit_hparams *hp;
    const frit_weights *weights;
    const frit_layer_hparams *lhp;   // of this layer
    int32_t i_layer;
    frit_node *tokens, *positions;
} frit_build;

typedef struct frit_arch {
    const char *name;    // general.architecture
    const char *title;   // for people: "Llama 1 to 3, Mistral"
    const frit_weight_row *rows;
    size_t n_rows;
    const char *const *keys;   // the optional keys it honours: rows marked CHOSEN in hparams.c
    size_t n_keys;
    frit_rope_style rope_style;
    frit_node *(*layer)(frit_build *b, const frit_layer *w, frit_node *x);
    frit_status (*adjust)(frit_hparams *hp);   // after reading, before binding; may be NULL
} frit_arch;

// The architecture of a checkpoint; FRIT_E_UNSUPPORTED names the nearest known ones.
frit_status frit_arch_of(const frit_arch **out, const frit_checkpoint *ckpt);
const frit_arch *frit_arch_find(const char *name);   // NULL if unknown
const frit_arch *frit_arch_get(size_t i);            // row i of the list; NULL past the end
frit_status frit_hparams_read(frit_hparams *hp, const frit_arch *arch, const frit_checkpoint *ckpt, frit_arena *arena);
// Fills hp->inv_freq and hp->rope_magnitude from hp->rope, for sequences of up to n_ctx positions. With dynamic NTK
// scaling the frequencies depend on it: transformers takes the length so far, but cached keys need one choice.
frit_status frit_rope_init(frit_hparams *hp, int32_t n_ctx, frit_arena *arena);
// Vectors (norms, biases, factors) become f32 and must be finite. Every tensor of the file must have a row.
frit_status frit_weights_bind(frit_weights *weights, const frit_arch *arch, const frit_hparams *hp,
                              const frit_checkpoint *ckpt, frit_arena *arena);
// What each layer keeps between steps: [n_layer].
frit_status frit_arch_cache_specs(const frit_hparams *hp, frit_cache_spec *specs);

typedef struct frit_build_options {
    bool hidden;   // the output is the last hidden state after the final norm, not logits
} frit_build_options;
frit_status frit_arch_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                            const frit_build_options *options);

// ------------------------------------------------------------------------------- blocks (blocks.c)

typedef struct frit_attention_options {
    bool no_rope;
    float scale;   // 0: hp->attn_scale, or 1 / sqrt(k_dim)
} frit_attention_options;

// q, k, v (with bias, q_norm, k_norm where bound), rope, cache, attention, o. x is already normed.
frit_node *frit_attention(frit_build *b, const frit_layer *w, frit_node *x, frit_attention_options options);

typedef struct frit_ffn_options {
    frit_act act;   // gated where a gate is bound
} frit_ffn_options;
frit_node *frit_feed_forward(frit_build *b, const frit_layer *w, frit_node *x, frit_ffn_options options);

// y = x w^T (+ bias, scale, adapters).
frit_node *frit_linear(frit_build *b, const frit_weight *w, frit_node *x);
// The norm that the weight asks for: RMSNorm, or LayerNorm where it has a bias.
frit_node *frit_norm(frit_build *b, const frit_weight *w, frit_node *x);
