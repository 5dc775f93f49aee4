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
    FRIT_ROPE_LLAMA3,
    FRIT_ROPE_LONG,   // factors for each pair, one set up to the original context and one beyond it, are weights
} frit_rope_scaling;

typedef struct frit_rope_params {
    int32_t dim;   // elements of a head that rotate
    float base;
    frit_rope_scaling scaling;
    float factor;                              // context extension; 1: none
    int32_t n_ctx_orig;                        // context before extension
    float attn_factor;                         // multiplies the magnitude, 1 but for YaRN
    float ext_factor, beta_fast, beta_slow;    // YaRN
    float low_freq_factor, high_freq_factor;   // Llama 3
    float log_multiplier;                      // YaRN: the scale of attention grows with the context's extension
    bool no_truncate;                          // YaRN: the corrected range of pairs is not rounded
} frit_rope_params;

// What rope.c computes of them for one context length.
typedef struct frit_rope_table {
    const float *inv_freq;   // [dim / 2]
    float magnitude;
} frit_rope_table;

typedef struct frit_layer_hparams {
    int32_t n_head, n_head_kv, n_ff;   // 0: the layer has no such part
    int32_t k_dim, v_dim;              // of one head
    int32_t window;                    // 0: full attention
    bool no_rope;
    bool has_experts;
    bool is_recurrent;
    float clamp_exp, clamp_shexp;   // of gates and what they gate, in experts and shared ones; 0: none
    int32_t n_state;                // numbers that a recurrent layer keeps of a session
    bool shares_kv;                 // looks at the keys and values of layer kv_layer
    int32_t kv_layer;               // likewise; of other layers itself, where an architecture shares any
    bool v_in_k;                    // cached values are the first v_dim numbers of keys
    int32_t index_type;             // as the file says: 1: an indexer of its own, 0: an earlier layer's, -1: nothing
    bool has_index;                 // chooses the positions that it looks at
    float sparsity;                 // gates keep what lies so many deviations above the mean; not finite: all
    frit_xielu xielu;               // as learned: before the softplus of its first two numbers
} frit_layer_hparams;

// Recurrent layers: a short convolution over `n_channels`, and a state of `state` numbers for each of `inner`.
typedef struct frit_recurrent_params {
    int32_t n_taps, inner, state, rank, n_groups;   // rank: of time steps, or how many heads
    int32_t n_channels;                             // 0: inner + 2 * n_groups * state
    int32_t step_dim;                               // numbers that make time steps; 0: rank
    int32_t head_dim;                               // of delta attention with decays of channels
    int32_t interval;                               // each such layer has attention
    bool is_normed;                                 // steps, b and c, without weights
    bool by_neighbours;                             // heads of values share those of keys with their neighbours
    int32_t rescale_every;                          // numbers are halved after so many layers; 0: never
    bool is_bounded;                                // decays have a lower bound
    bool is_negative;                               // and `a` is negative as without one
    float lower_bound;
} frit_recurrent_params;

// Sparse attention: indexer.c.
typedef struct frit_index_params {
    int32_t n_head, dim;   // of the indexer
    int32_t n_chosen;      // positions
    frit_rope_style rope_style;
} frit_index_params;

typedef enum frit_norm_kind { FRIT_NORM_RMS, FRIT_NORM_LAYER } frit_norm_kind;

typedef struct frit_hparams {
    int32_t n_vocab, n_ctx_train, n_embd, n_layer;
    int32_t n_layer_enc, n_layer_dec;    // of n_layer, where the file has both, or an encoder under an encoder's names
    int32_t rel_buckets, rel_distance;   // relative positions: kinds of distances, and where they end
    int32_t decoder_start;               // the token that a decoder begins with
    int32_t n_layer_next;                // layers behind the last that predict further tokens; not run
    frit_norm_kind norm;                 // the architecture's, unless the file says otherwise
    frit_act act;                        // of the feed-forward; likewise
    float rms_eps, layer_norm_eps;       // where the file names only one, they are equal
    float attn_scale;                    // 0: 1 / sqrt(k_dim)
    float attn_softcap, attn_clamp, attn_alibi, logit_softcap;
    float embd_scale, residual_scale, logit_scale;   // 0: 1
    bool is_parallel;                                // attention and feed-forward read the same input
    bool is_causal;                                  // as the file says
    bool is_bidirectional;                           // every token sees all others
    int32_t pooling;                                 // frit_pooling of embeddings; -1: the file does not say
    int32_t n_loops;                                 // of all layers; 0: 1
    bool is_rope_listed;                             // the file says of each layer whether it rotates
    bool is_rope_finetuned;                          // false in some hybrid models, which then do not rotate
    int32_t n_ctx;                                   // that rope.c made its tables for
    int32_t attn_chunk;                              // 0: none; layers with a window see their chunk instead
    float attn_temp_scale, attn_temp_offset;         // attention temperature: frit_attend in graph.h
    int32_t attn_temp_length;

    int32_t n_expert, n_expert_used, n_expert_shared, n_expert_groups, n_expert_groups_used;
    int32_t n_ff_exp, n_ff_shexp;         // of one expert, and of all shared ones together
    int32_t n_layer_dense, expert_step;   // layers from n_layer_dense on have experts, or each expert_step-th
    frit_gating gating;
    bool expert_normalize;
    float expert_scale;   // 0: 1
    float router_jitter;
    int32_t n_expert_latent;                     // what experts read; 0: as wide as the model
    int32_t n_ff_chunk_exp, expert_group_size;   // experts of groups, beside the others
    float expert_group_scale;

    int32_t q_rank, kv_rank;        // latent attention; q_rank 0: queries are not compressed
    int32_t k_dim_mla, v_dim_mla;   // of a head once expanded, where the file keeps attention absorbed

    int32_t n_layer_shared_kv;       // last layers, which look at keys and values of earlier ones
    int32_t k_dim_swa, v_dim_swa;    // of layers with a window; 0: as the others
    int32_t n_altup, altup_active;   // streams of residuals, and the one that layers compute
    int32_t laurel_rank;
    int32_t n_embd_layer;                // of the embeddings of each layer; 0: there are none
    int32_t res_bank_interval;           // layers between entries of the residual bank; 0: no bank
    float situ_beta, situ_linear_beta;   // what SiTU's gate and what it gates are capped at; the second 0: not at all
    frit_index_params index;
    frit_recurrent_params recurrent;
    frit_rope_params rope, rope_swa;              // rope_swa: of layers with a window
    frit_rope_style rope_style;                   // the architecture's, unless the file says otherwise
    int32_t rope_sections[4];                     // sections of M-RoPE: for text it is plain
    frit_rope_table rope_table, rope_swa_table;   // from rope.c
    frit_layer_hparams *layers;                   // [n_layer]
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

typedef struct frit_ffn_weights {
    frit_weight gate, up, down;   // of experts: [n_expert, n_out, n_in]
} frit_ffn_weights;

typedef struct frit_recurrent_weights {
    frit_weight in, in_xz, in_zxs;   // as files have them; the last two are cut into z, x and step
    frit_weight z, x, step;          // gate; what the convolution reads; time steps
    frit_weight conv, conv_b, conv_q, conv_k, conv_v;
    frit_weight mix;   // what makes b, c and time steps of x
    frit_weight dt, dt_b, dt_norm, b_norm, c_norm;
    frit_weight a, d, norm, out;
    frit_weight q, k, v, alpha, beta, alpha_beta, decay_a, decay_b, gate_a, gate_b;
    frit_weight lerp_k, lerp_v, lerp_r, ffn_lerp_k, ffn_lerp_r;   // how far what is read moves to the row before
} frit_recurrent_weights;

typedef struct frit_layer {
    frit_weight attn_norm, attn_norm_2, q, k, v, o, q_norm, k_norm, sinks, post_attn_norm;
    frit_weight ffn_norm, post_ffn_norm;
    frit_ffn_weights ffn;
    frit_weight act_scale;   // multiplies the activation
    frit_weight out_scale;
    frit_weight head_gate;   // of what attention gives: a number for each head, or for each of its numbers
    frit_weight attn_res_score, ffn_res_score;                    // of the residual bank and the current residual
    frit_weight rel_bias;                                         // of scores, for each kind of distance
    frit_weight cross_norm, cross_q, cross_k, cross_v, cross_o;   // of a decoder's attention to what was encoded
    frit_weight unused;                                           // of models that do more than frit runs
    // In files only: the binder cuts them into q, k, v and gate, up.
    frit_weight qkv, gate_up;

    frit_weight router, router_bias, router_scale, expert_norm, post_expert_norm, dense_norm;
    frit_weight altup_router, altup_router_norm, altup_predict, altup_correct, altup_scale;
    frit_weight laurel_left, laurel_right, laurel_norm;
    frit_weight layer_gate, layer_proj, layer_norm;   // of the layer's own embeddings
    frit_ffn_weights experts, shared, chunks;
    frit_weight gate_up_experts;                       // gate, then up
    frit_weight shared_gate;                           // a number that weighs what the shared experts give
    frit_weight routed_down, routed_norm, routed_up;   // to where experts read, and back

    // Latent attention: q = q_b norm(q_a x); latent = norm(first part of kv_a x), the rest of it rotates. Keys and
    // values are kv_b latent, or, absorbed, k_b takes queries to the latent space and v_b takes the result back.
    frit_weight q_a, q_a_norm, q_b, kv_a, kv_a_norm, kv_b, k_b, v_b;
    frit_weight index_q, index_k, index_norm, index_weights;
    frit_recurrent_weights recurrent;
} frit_layer;

typedef struct frit_weights {
    frit_weight tok_embd, type_embd, pos_embd, tok_norm, out_norm, enc_norm, lm_head;
    frit_weight rope_freqs, rope_long, rope_short;
    frit_weight altup_proj, altup_merge;                   // of all streams but the first
    frit_weight layer_embd, layer_proj, layer_proj_norm;   // embeddings of all layers, and what x adds to them
    frit_weight res_score;                                 // of residuals behind the last layer
    frit_layer *layers;                                    // [n_layer]
} frit_weights;

// Dimensions as the rows of a weight list name them; resolved per layer.
typedef enum frit_dim {
    FRIT_DIM_1,
    FRIT_DIM_N_VOCAB,
    FRIT_DIM_N_EMBD,
    FRIT_DIM_N_CTX,
    FRIT_DIM_N_FF,
    FRIT_DIM_N_FF_2,   // gate and up
    FRIT_DIM_N_FF_EXP,
    FRIT_DIM_N_FF_EXP_2,
    FRIT_DIM_N_FF_SHEXP,
    FRIT_DIM_N_FF_CHUNK,
    FRIT_DIM_N_EXPERT,
    FRIT_DIM_EXPERT_IN,
    FRIT_DIM_N_CHUNK_EXPERT,
    FRIT_DIM_N_HEAD,
    FRIT_DIM_Q_RANK,
    FRIT_DIM_KV_RANK,
    FRIT_DIM_KV_A,      // the latent vector and what rotates
    FRIT_DIM_N_KV_B,    // keys without what rotates, and values, of all heads
    FRIT_DIM_N_Q_MLA,   // of expanded heads
    FRIT_DIM_N_O_MLA,
    FRIT_DIM_NOPE_MLA,   // of one head of keys, what does not rotate
    FRIT_DIM_V_MLA,
    FRIT_DIM_ALTUP,
    FRIT_DIM_ALTUP_REST,
    FRIT_DIM_ALTUP_SQUARE,
    FRIT_DIM_LAUREL,
    FRIT_DIM_LAYER_EMBD,
    FRIT_DIM_LAYERS_EMBD,   // of all layers
    FRIT_DIM_LAYER_NORM,    // as wide as the model, where layers have embeddings
    FRIT_DIM_RES_BANK,      // 1 where the model has a residual bank
    FRIT_DIM_INDEX_HEADS,
    FRIT_DIM_INDEX,   // one head of an indexer
    FRIT_DIM_N_INDEX_Q,
    FRIT_DIM_N_Q,     // all query heads
    FRIT_DIM_N_Q_2,   // and a gate for each
    FRIT_DIM_N_K,
    FRIT_DIM_N_V,
    FRIT_DIM_N_O,   // what attention gives: all query heads, of the values' size
    FRIT_DIM_N_QKV,
    FRIT_DIM_N_EMBD_3,
    FRIT_DIM_HEAD,   // one head of queries or keys
    FRIT_DIM_ROPE_PAIRS,
    FRIT_DIM_N_BUCKETS,
    // Of recurrent layers; 0 in others.
    FRIT_DIM_RECURRENT_1,
    FRIT_DIM_INNER,
    FRIT_DIM_INNER_2,
    FRIT_DIM_INNER_3,
    FRIT_DIM_CHANNELS,
    FRIT_DIM_TAPS,         // of all channels
    FRIT_DIM_INNER_TAPS,   // of one of three convolutions
    FRIT_DIM_IN_ZXS,       // gate, channels and steps
    FRIT_DIM_IN_QKVZ,      // channels and gate
    FRIT_DIM_STATE,
    FRIT_DIM_STATES,   // of all channels
    FRIT_DIM_RANK,
    FRIT_DIM_RANK_2,
    FRIT_DIM_STEP,
    FRIT_DIM_MIX,   // steps, b and c
    FRIT_DIM_DELTA_HEAD,
} frit_dim;

enum {
    FRIT_WEIGHT_OPTIONAL = 1 << 0,
    FRIT_WEIGHT_OR_TOK_EMBD = 1 << 1,   // absent: the embedding table is used (tied)
    FRIT_WEIGHT_LAYER = 1 << 2,         // one for each layer: "blk.N.NAME"
    FRIT_WEIGHT_TABLE = 1 << 3,   // read row by row, not multiplied: has neither bias nor scale, but maybe a multiplier
    // What a "NAME.scale" means depends on who wrote the file. Beside NVFP4 it belongs to the number format: the
    // matrix is w * scale. Beside other types it belongs to the architecture, and some graphs of llama.cpp, which
    // defines these files, multiply after the bias or do not read it.
    FRIT_WEIGHT_SCALE_LAST = 1 << 4,    // y = (x w^T + b) * scale
    FRIT_WEIGHT_UNSCALED = 1 << 5,      // y = x w^T + b
    FRIT_WEIGHT_UNBIASED = 1 << 6,      // y = x w^T: such files may carry a bias that is not read
    FRIT_WEIGHT_OR_FUSED = 1 << 7,      // may be absent where the fused weight of its layer is there
    FRIT_WEIGHT_DENSE = 1 << 8,         // may be absent in layers with experts
    FRIT_WEIGHT_EXPERT = 1 << 9,        // is absent in layers without experts
    FRIT_WEIGHT_STACK = 1 << 10,        // [n_expert, out, in], or n_head such matrices
    FRIT_WEIGHT_WHOLE_NAME = 1 << 11,   // the name has no ".weight" behind it
    FRIT_WEIGHT_SPREAD = 1 << 12,       // a vector of fewer numbers, each of which is repeated
    FRIT_WEIGHT_INVERSE = 1 << 13,      // a vector of divisors: bound as factors
    FRIT_WEIGHT_FLAT = 1 << 14,         // a vector that files may have in two dimensions
    FRIT_WEIGHT_OWN_KV = 1 << 15,       // may be absent in layers that share keys and values
    FRIT_WEIGHT_OWN_INDEX = 1 << 16,    // may be absent in layers that take the positions of an earlier one
    FRIT_WEIGHT_FIRST_ROW = 1 << 17,    // a matrix of which nothing but the first row is read: bound as a vector
    FRIT_WEIGHT_ENC = 1 << 18,          // of encoder layers, the first n_layer_enc: "enc.blk.N.NAME"
    FRIT_WEIGHT_DEC = 1 << 19,          // of the layers behind them: "dec.blk.N.NAME"
};

// A row whose dimensions are 0 in a layer is absent there.
typedef struct frit_weight_row {
    size_t offset;      // in frit_weights or frit_layer
    const char *name;   // in the file, without ".weight"
    frit_dim out, in;   // [out, in]; in == FRIT_DIM_1: a vector [out]
    unsigned flags;
    frit_dim n;   // of a stack
} frit_weight_row;

// clang-format off
#define FRIT_MODEL_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_weights, field), name, FRIT_DIM_##out, FRIT_DIM_##in, flags, FRIT_DIM_1}
#define FRIT_MODEL_STACK(field, name, n, out, in, flags)                                           \
    {offsetof(frit_weights, field), name, FRIT_DIM_##out, FRIT_DIM_##in, (flags) | FRIT_WEIGHT_STACK, FRIT_DIM_##n}
#define FRIT_LAYER_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_layer, field), name, FRIT_DIM_##out, FRIT_DIM_##in, (flags) | FRIT_WEIGHT_LAYER, FRIT_DIM_1}
#define FRIT_LAYER_STACK(field, name, n, out, in, flags)                                           \
    {offsetof(frit_layer, field), name, FRIT_DIM_##out, FRIT_DIM_##in,                             \
     (flags) | FRIT_WEIGHT_LAYER | FRIT_WEIGHT_STACK, FRIT_DIM_##n}

// Rows that many architectures share. `flags` say what becomes of biases and scales beside the matrices.
#define FRIT_ROWS_IN_OUT                                                                           \
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",  N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),                \
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD,  1,      0),                                \
    FRIT_MODEL_WEIGHT(lm_head,  "output",      N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD)
#define FRIT_ROWS_MODEL                                                                            \
    FRIT_ROWS_IN_OUT,                                                                              \
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs",         ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(rope_long,  "rope_factors_long",  ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(rope_short, "rope_factors_short", ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL)
#define FRIT_ROW_NORM(field, name)                                                                 \
    FRIT_LAYER_WEIGHT(field, name, N_EMBD, 1, 0)
#define FRIT_ROWS_QKV(flags)                                                                       \
    FRIT_LAYER_WEIGHT(qkv, "attn_qkv", N_QKV, N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_LAYER_WEIGHT(q,   "attn_q",   N_Q,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED),             \
    FRIT_LAYER_WEIGHT(k,   "attn_k",   N_K,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED),             \
    FRIT_LAYER_WEIGHT(v,   "attn_v",   N_V,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED)
#define FRIT_ROW_O(flags)                                                                          \
    FRIT_LAYER_WEIGHT(o, "attn_output", N_EMBD, N_O, flags)
#define FRIT_ROWS_MLA_IN                                                                           \
    FRIT_LAYER_WEIGHT(q,         "attn_q",         N_Q_MLA, N_EMBD,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(q_a,       "attn_q_a",       Q_RANK,  N_EMBD,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(q_a_norm,  "attn_q_a_norm",  Q_RANK,  1,       0),                           \
    FRIT_LAYER_WEIGHT(q_b,       "attn_q_b",       N_Q_MLA, Q_RANK,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(kv_a,      "attn_kv_a_mqa",  KV_A,    N_EMBD,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(kv_a_norm, "attn_kv_a_norm", KV_RANK, 1,       0),                           \
    FRIT_LAYER_STACK(k_b, "attn_k_b", N_HEAD, KV_RANK, NOPE_MLA, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_STACK(v_b, "attn_v_b", N_HEAD, V_MLA,   KV_RANK,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(kv_b,      "attn_kv_b",      N_KV_B,  KV_RANK, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL)
#define FRIT_ROWS_MLA                                                                              \
    FRIT_ROWS_MLA_IN,                                                                              \
    FRIT_LAYER_WEIGHT(o, "attn_output", N_EMBD, N_O_MLA, 0)
#define FRIT_ROWS_INDEXER                                                                          \
    FRIT_LAYER_WEIGHT(index_q,       "indexer.attn_q_b", N_INDEX_Q,   Q_RANK, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED), \
    FRIT_LAYER_WEIGHT(index_k,       "indexer.attn_k",   INDEX,       N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED), \
    FRIT_LAYER_WEIGHT(index_norm,    "indexer.k_norm",   INDEX,       1,      FRIT_WEIGHT_OWN_INDEX), \
    FRIT_LAYER_WEIGHT(index_weights, "indexer.proj",     INDEX_HEADS, N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED)
#define FRIT_ROWS_PER_LAYER                                                                        \
    FRIT_MODEL_WEIGHT(layer_embd,      "per_layer_token_embd", N_VOCAB,     LAYERS_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(layer_proj,      "per_layer_model_proj", LAYERS_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),   \
    FRIT_MODEL_WEIGHT(layer_proj_norm, "per_layer_proj_norm",  LAYER_EMBD,  1, 0),                 \
    FRIT_LAYER_WEIGHT(layer_gate,      "inp_gate",             LAYER_EMBD,  N_EMBD, 0),            \
    FRIT_LAYER_WEIGHT(layer_proj,      "proj",                 N_EMBD,      LAYER_EMBD, 0),        \
    FRIT_LAYER_WEIGHT(layer_norm,      "post_norm",            LAYER_NORM,  1, 0)
#define FRIT_ROWS_HEAD_NORMS                                                                       \
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, 0),                                          \
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, 0)
#define FRIT_ROWS_GATED(flags)                                                                     \
    FRIT_LAYER_WEIGHT(ffn.gate, "ffn_gate", N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_ROWS_UNGATED(flags)                                                                   \
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_ROWS_GATE_IN_UP(flags)                                                                \
    FRIT_LAYER_WEIGHT(gate_up,  "ffn_up",   N_FF_2, N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_ROWS_EXPERTS(flags)                                                                   \
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT),               \
    FRIT_LAYER_WEIGHT(router_bias, "exp_probs_b.bias", N_EXPERT, 1,                                \
                      FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT),                              \
    FRIT_LAYER_STACK(gate_up_experts, "ffn_gate_up_exps", N_EXPERT, N_FF_EXP_2, N_EMBD,            \
                     (flags) | FRIT_WEIGHT_OPTIONAL),                                              \
    FRIT_LAYER_STACK(experts.gate, "ffn_gate_exps", N_EXPERT, N_FF_EXP, N_EMBD,                    \
                     (flags) | FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),                         \
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD,                    \
                     (flags) | FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),                         \
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, N_EMBD, N_FF_EXP,                    \
                     (flags) | FRIT_WEIGHT_EXPERT)
#define FRIT_ROWS_SHARED_EXPERT(flags)                                                             \
    FRIT_LAYER_WEIGHT(shared.gate, "ffn_gate_shexp", N_FF_SHEXP, N_EMBD, (flags) | FRIT_WEIGHT_EXPERT), \
    FRIT_LAYER_WEIGHT(shared.up,   "ffn_up_shexp",   N_FF_SHEXP, N_EMBD, (flags) | FRIT_WEIGHT_EXPERT), \
    FRIT_LAYER_WEIGHT(shared.down, "ffn_down_shexp", N_EMBD, N_FF_SHEXP, (flags) | FRIT_WEIGHT_EXPERT)
// DeepSeek's and who follows: latent attention, and experts behind dense layers.
#define FRIT_ROWS_MLA_EXPERTS(flags)                                                               \
    FRIT_ROWS_MODEL,                                                                               \
    FRIT_ROW_NORM(attn_norm, "attn_norm"),                                                         \
    FRIT_ROWS_MLA,                                                                                 \
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),                                                           \
    FRIT_ROWS_GATED(flags),                                                                        \
    FRIT_ROWS_EXPERTS(flags),                                                                      \
    FRIT_ROWS_SHARED_EXPERT(flags)
#define FRIT_ROW_RECURRENT(field, name, out, in, flags)                                            \
    FRIT_LAYER_WEIGHT(recurrent.field, name, out, in, flags)
#define FRIT_ROWS_CONV                                                                             \
    FRIT_ROW_RECURRENT(conv,   "ssm_conv1d",      TAPS,     1, FRIT_WEIGHT_FLAT | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(conv_b, "ssm_conv1d.bias", CHANNELS, 1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_OPTIONAL)
#define FRIT_ROWS_MAMBA                                                                            \
    FRIT_ROW_RECURRENT(in_xz,   "ssm_in",      INNER_2,  N_EMBD, 0),                               \
    FRIT_ROWS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(mix,     "ssm_x",       MIX,      INNER,  FRIT_WEIGHT_UNSCALED),            \
    FRIT_ROW_RECURRENT(dt,      "ssm_dt",      INNER,    STEP,   FRIT_WEIGHT_UNSCALED),            \
    FRIT_ROW_RECURRENT(dt_norm, "ssm_dt_norm", STEP,     1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(b_norm,  "ssm_b_norm",  STATE,    1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(c_norm,  "ssm_c_norm",  STATE,    1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(a,       "ssm_a",       STATES,   1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(d,       "ssm_d",       INNER,    1, FRIT_WEIGHT_WHOLE_NAME),               \
    FRIT_ROW_RECURRENT(out,     "ssm_out",     N_EMBD,   INNER,  0)
#define FRIT_ROWS_MAMBA2                                                                           \
    FRIT_ROW_RECURRENT(in_zxs,  "ssm_in",      IN_ZXS,   N_EMBD, 0),                               \
    FRIT_ROWS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(dt_b,    "ssm_dt.bias", RANK,     1, FRIT_WEIGHT_WHOLE_NAME),               \
    FRIT_ROW_RECURRENT(a,       "ssm_a",       RANK,     1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(d,       "ssm_d",       INNER,    1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT | FRIT_WEIGHT_SPREAD), \
    FRIT_ROW_RECURRENT(norm,    "ssm_norm",    INNER,    1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(out,     "ssm_out",     N_EMBD,   INNER,  0)
#define FRIT_ROWS_SHORT_CONV                                                                       \
    FRIT_ROW_RECURRENT(in,   "shortconv.in_proj",  INNER_3, N_EMBD, FRIT_WEIGHT_UNSCALED),         \
    FRIT_ROW_RECURRENT(conv, "shortconv.conv",     TAPS,    1,      FRIT_WEIGHT_FLAT),             \
    FRIT_ROW_RECURRENT(out,  "shortconv.out_proj", N_EMBD,  INNER,  FRIT_WEIGHT_UNSCALED)
#define FRIT_ROWS_KDA                                                                              \
    FRIT_ROW_RECURRENT(q,       "attn_q",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(k,       "attn_k",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(v,       "attn_v",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(conv_q,  "ssm_conv1d_q", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(conv_k,  "ssm_conv1d_k", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(conv_v,  "ssm_conv1d_v", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(a,       "ssm_a",        INNER,       1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT | FRIT_WEIGHT_SPREAD), \
    FRIT_ROW_RECURRENT(dt_b,    "ssm_dt.bias",  INNER,       1,      FRIT_WEIGHT_WHOLE_NAME),      \
    FRIT_ROW_RECURRENT(beta,    "ssm_beta",     RANK,        N_EMBD, FRIT_WEIGHT_UNSCALED),        \
    FRIT_ROW_RECURRENT(norm,    "ssm_norm",     DELTA_HEAD,  1,      0),                           \
    FRIT_ROW_RECURRENT(out,     "attn_output",  N_EMBD,      INNER,  FRIT_WEIGHT_UNSCALED)
#define FRIT_ROWS_DELTA_NET(flags)                                                                 \
    FRIT_ROW_RECURRENT(x,    "attn_qkv",    CHANNELS,   N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_ROW_RECURRENT(z,    "attn_gate",   INNER,      N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_ROWS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(dt_b, "ssm_dt.bias", RANK,       1, FRIT_WEIGHT_WHOLE_NAME),                \
    FRIT_ROW_RECURRENT(a,    "ssm_a",       RANK,       1, FRIT_WEIGHT_WHOLE_NAME),                \
    FRIT_ROW_RECURRENT(norm, "ssm_norm",    DELTA_HEAD, 1, 0)
#define FRIT_ROWS_GATED_QKV                                                                        \
    FRIT_LAYER_WEIGHT(q, "attn_q", N_Q_2, N_EMBD, FRIT_WEIGHT_UNBIASED),                                              \
    FRIT_LAYER_WEIGHT(k, "attn_k", N_K,   N_EMBD, FRIT_WEIGHT_UNBIASED),                                              \
    FRIT_LAYER_WEIGHT(v, "attn_v", N_V,   N_EMBD, FRIT_WEIGHT_UNBIASED)
#define FRIT_ROWS_T5(flags)                                                                        \
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm",  N_EMBD,    1,      flags),                          \
    FRIT_LAYER_WEIGHT(q,         "attn_q",     N_Q,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(k,         "attn_k",     N_K,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(v,         "attn_v",     N_V,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(o,         "attn_o",     N_EMBD,    N_O,    flags),                          \
    FRIT_LAYER_WEIGHT(rel_bias,  "attn_rel_b", N_BUCKETS, N_HEAD, (flags) | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(ffn_norm,  "ffn_norm",   N_EMBD,    1,      flags),                          \
    FRIT_LAYER_WEIGHT(ffn.gate,  "ffn_gate",   N_FF,      N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(ffn.up,    "ffn_up",     N_FF,      N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(ffn.down,  "ffn_down",   N_EMBD,    N_FF,   flags)
#define FRIT_KEYS_MLA                                                                              \
    "attention.q_lora_rank", "attention.kv_lora_rank", "attention.key_length_mla", "attention.value_length_mla"
#define FRIT_KEYS_MLA_EXPERTS FRIT_KEYS_MLA, "expert_weights_norm", "leading_dense_block_count"
#define FRIT_KEYS_INDEXER                                                                          \
    "attention.indexer.head_count", "attention.indexer.key_length", "attention.indexer.top_k"
#define FRIT_KEYS_MAMBA  "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank"
#define FRIT_KEYS_MAMBA2 FRIT_KEYS_MAMBA, "ssm.group_count"
// clang-format on

// ------------------------------------------------------------------------------- adapters (adapt.c)

// What the adapters of an engine add to one tensor of the model.
typedef struct frit_matrix_adapters {
    const char *name;          // of the tensor; the head's is "output.weight", also where it shares the table
    const frit_tensor *base;   // the whole of it
    frit_low_rank *parts;      // in the order of adapters; `first` and `b_first` are set where a graph is built
    int32_t n;
    bool is_used;   // set by a graph that adds it
} frit_matrix_adapters;

typedef struct frit_adapters {
    frit_matrix_adapters *matrices;
    size_t n;
    frit_map index;          // name -> place in `matrices`
    frit_steering *layers;   // [n_layer]: control vectors; NULL: none
} frit_adapters;

// ------------------------------------------------------------------------------- building

// What a layer function sees: the graph and where it stands.
typedef struct frit_build {
    frit_graph *g;
    const struct frit_arch *arch;
    const frit_hparams *hp;
    const frit_weights *weights;
    const frit_layer_hparams *lhp;   // of this layer
    int32_t i_layer;
    frit_node *tokens, *positions;
    frit_node *embedding;   // what the first layer reads
    frit_node *per_layer;   // embeddings of all layers, [T, n_layer * n_embd_layer]
    frit_node **written;    // [n_layer]: what orders attention after a layer's keys and values
    frit_node *res_bank;    // residuals of earlier layers, [T, n_res_bank * n_embd]
    int32_t n_res_bank;
    frit_node *chosen;               // positions that attention looks at, of this layer or an earlier one; NULL: all
    bool attn_temp;                  // this layer uses the attention temperature
    int32_t n_state;                 // numbers of the layer's state that its ops have taken
    const float *bias;               // of scores, as graph.h has it
    const frit_adapters *adapters;   // NULL: none
} frit_build;

typedef enum frit_qk_norm {
    FRIT_QK_NORM_HEAD,    // of each head, one weight for all
    FRIT_QK_NORM_HEADS,   // of each head, with weights of its own
    FRIT_QK_NORM_WHOLE,   // of all heads together
} frit_qk_norm;

typedef struct frit_attention_options {
    bool no_rope;
    float scale;   // 0: hp->attn_scale, or 1 / sqrt(k_dim)
    frit_qk_norm qk_norm;
    bool norm_after_rope;   // of queries and keys
    bool bare_qk_norm;      // without weights
    bool norm_values;       // likewise
    bool is_gated;          // each head of q has a gate behind it
} frit_attention_options;

// How an architecture's windows lie, where attention.sliding_window and its pattern do not say.
typedef struct frit_windows {
    int32_t period;       // one layer of so many sees everything; 0: no pattern
    bool first_is_full;   // of a period; otherwise the last
    int32_t size;         // where the file has none
    bool plain_rope;      // layers with a window do not have the others' scaling
    float rope_base;      // of layers with a window, where the file has none; 0: as the others
} frit_windows;

typedef struct frit_arch {
    const char *name;    // general.architecture
    const char *title;   // for people: "Llama 1 to 3, Mistral"
    const frit_weight_row *rows;
    size_t n_rows;
    const char *const *keys;   // the optional keys it honours: rows marked CHOSEN in hparams.c
    size_t n_keys;
    frit_rope_style rope_style;
    frit_norm_kind norm;
    frit_act act;   // of the feed-forward
    frit_attention_options attention;
    frit_windows windows;
    frit_gating gating;        // where the file does not say; NONE: softmax
    bool expert_normalize;     // weights of the experts used are divided by their sum
    bool norm_embedding;       // without weights
    bool is_encoder;           // every token sees all others, and there are no logits: the result is hidden states
    bool is_encoder_decoder;   // an encoder's layers, then a decoder's, which look at what was encoded
    bool ranks_by_mean;        // a classification head reads the mean through GELU, not the first token through tanh
    bool no_out_norm;          // behind the last layer: layers end with a norm
    bool qkv_in_thirds;        // fused q, k and v begin at thirds of the rows, however many there are of each
    frit_node *(*glu)(frit_build *b, frit_node *gate, frit_node *up);   // of experts, where `act` does not say it all
    frit_node *(*begin)(frit_build *b, frit_node *x);   // of embeddings makes what the first layer reads; may be NULL
    frit_node *(*layer)(frit_build *b, const frit_layer *w, frit_node *x);
    frit_node *(*end)(frit_build *b, frit_node *x);   // behind the last layer, before the norm; may be NULL
    frit_node *(*write_source)(frit_build *b,
                               frit_node *x);   // of an encoder-decoder: keys and values of what was encoded
    frit_node *(*recurrent)(frit_build *b, const frit_layer *w,
                            frit_node *x);     // instead of attention, where a layer is
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

// dims.c: what rows mean for a model. Dimensions are 0 where a layer has no such part.
int64_t frit_dim_size(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim);
bool frit_weight_may_be_absent(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer);
void frit_weight_name(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer, char base[96],
                      char name[128]);   // without and with ".weight"

// Every tensor that a file may have by the rows, fused forms too, with the shape that GGUF files give it.
typedef struct frit_listed_tensor {
    char name[128];
    int n_dims;
    int64_t shape[FRIT_MAX_DIMS];
    const frit_weight_row *row;
    int32_t i_layer;
    bool may_be_absent;
} frit_listed_tensor;
typedef frit_status (*frit_listed_fn)(void *ctx, const frit_listed_tensor *tensor);
frit_status frit_arch_list(const frit_arch *arch, const frit_hparams *hp, frit_listed_fn fn, void *ctx);

// How many layers the cache has: one for each of the model's, or two for each of a decoder's behind an encoder, its own
// keys and values and those of the source. Encoder layers use them in turn: nobody looks back at theirs.
int32_t frit_arch_n_cache_layers(const frit_hparams *hp);
// What each layer of the cache keeps between steps.
frit_status frit_arch_cache_specs(const frit_hparams *hp, frit_cache_spec *specs);

typedef struct frit_build_options {
    bool hidden;                     // the output is the last hidden state after the final norm, not logits
    bool encode;                     // of an encoder-decoder: its encoder, which gives hidden states
    const frit_adapters *adapters;   // must outlive the graph; NULL: none
} frit_build_options;
frit_status frit_arch_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                            const frit_build_options *options);

// ------------------------------------------------------------------------------- layers (layers.c)

// x + attention(norm(x)), then x + feed_forward(norm(x)); what each gives is normed where post norms are bound.
frit_node *frit_layer_sequential(frit_build *b, const frit_layer *w, frit_node *x);
// x + attention(norm(x)) + feed_forward(norm(x)), with a norm of its own for either where it is bound.
frit_node *frit_layer_parallel(frit_build *b, const frit_layer *w, frit_node *x);
// x + norm(attention(x)), then x + norm(feed_forward(x)).
frit_node *frit_layer_post_norm(frit_build *b, const frit_layer *w, frit_node *x);
// norm(x + attention(x)), then norm(x + feed_forward(x)).
frit_node *frit_layer_norm_sums(frit_build *b, const frit_layer *w, frit_node *x);
// x + mixer(norm(x)).
frit_node *frit_layer_mixer(frit_build *b, const frit_layer *w, frit_node *x);
// x + branch * residual_scale.
frit_node *frit_residual(frit_build *b, frit_node *x, frit_node *branch);

// Attention, latent or not, or what the architecture has in its place in recurrent layers.
frit_node *frit_mixer(frit_build *b, const frit_layer *w, frit_node *x);

// ------------------------------------------------------------------------------- encoder-decoders (t5.c)

// Norms before attention and feed-forward; what scores gain depends on the distance; nothing rotates.
frit_node *frit_layer_t5(frit_build *b, const frit_layer *w, frit_node *x);

// ------------------------------------------------------------------------------- recurrent layers (recurrent.c)

// For `adjust`, once it is known which layers are recurrent and what hp->recurrent holds: checks sizes, and takes the
// heads of recurrent layers away but where `beside` says that they have attention too.
frit_status frit_recurrent_adjust(frit_hparams *hp, bool beside);
// The same where layers without keys are recurrent.
frit_status frit_hybrid_adjust(frit_hparams *hp);
// The next n numbers of the layer's state.
frit_state frit_take_state(frit_build *b, int64_t n);
// silu(conv(x)), with what came before.
frit_node *frit_short_conv(frit_build *b, const frit_weight *taps, const frit_weight *bias, frit_node *x);
frit_node *frit_mamba(frit_build *b, const frit_layer *w, frit_node *x);
frit_node *frit_mamba2(frit_build *b, const frit_layer *w, frit_node *x);
// The same from channels and steps on: gate z [T, inner], steps before softplus [T, rank].
frit_node *frit_mamba2_core(frit_build *b, const frit_layer *w, frit_node *z, frit_node *channels, frit_node *step);
// c * conv(b * x), where b, c and x are made of what the layer reads.
frit_node *frit_gated_conv(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_gated_conv_adjust(frit_hparams *hp);
// Where neither the file nor its keys say which layers are recurrent: all but each hp->recurrent.interval-th.
void frit_recurrent_by_interval(frit_hparams *hp, int32_t interval);
// Each head of [T, H, D] divided by its length.
frit_node *frit_unit_heads(frit_build *b, frit_node *x);
// Delta attention with a decay for each channel of a key (Kimi Delta Attention).
frit_node *frit_kda(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_kda_adjust(frit_hparams *hp);
// Gated delta net: z the gate, qkv before the convolution, alpha and beta [T, rank].
frit_node *frit_delta_net(frit_build *b, const frit_layer *w, frit_node *z, frit_node *qkv, frit_node *alpha,
                          frit_node *beta, bool in_turn);

// ------------------------------------------------------------------------------- blocks (blocks.c, experts.c, mla.c)

// q, k, v (with bias, q_norm, k_norm where bound), rope, cache, attention, o. x is already normed.
frit_node *frit_attention(frit_build *b, const frit_layer *w, frit_node *x, frit_attention_options options);
// The same with latent keys and values; absorbed where k_b is bound.
frit_status frit_mla_adjust(frit_hparams *hp);   // for `adjust`: what heads are once expanded, and their scale
frit_node *frit_attention_mla(frit_build *b, const frit_layer *w, frit_node *x);
// The positions that this layer's indexer chooses: x is what attention reads, `compressed` its compressed queries.
frit_node *frit_choose_positions(frit_build *b, const frit_layer *w, frit_node *x, frit_node *compressed);
frit_status frit_indexer_adjust(frit_hparams *hp);   // for `adjust`, in the place of frit_mla_adjust
// Writes k, v [T, H_kv, D] to the cache of this layer and gives attention over it, [T, n].
frit_node *frit_attend_cached(frit_build *b, const frit_layer *w, frit_node *q, frit_node *k, frit_node *v,
                              float scale);
// Rotates rope.dim elements of each head [T, H, D], from `offset` on, as this layer does.
frit_node *frit_rope_heads(frit_build *b, frit_node *x, int32_t offset);
frit_node *frit_rope_heads_as(frit_build *b, frit_node *x, int32_t offset, frit_rope_style style);

// act(gate) * up, either at most `limit` and the latter not below -limit; 0: no limit.
frit_node *frit_clamped_glu(frit_build *b, frit_node *gate, frit_node *up, frit_act act, float limit);
// down(act(gate) * up), or down(act(up)) where no gate is bound.
frit_node *frit_feed_forward(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_act act);
// The layer's feed-forward, or its experts where it has them.
frit_node *frit_feed_forward_or_experts(frit_build *b, const frit_layer *w, frit_node *x);
frit_route frit_route_of(const frit_build *b);   // as the architecture and the file say
// The experts that `scores` choose (NULL: what the router makes of x).
frit_node *frit_routed_experts(frit_build *b, const frit_layer *w, frit_node *x, frit_node *scores);
frit_node *frit_experts_by_route(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_node *route);
frit_node *frit_shared_experts(frit_build *b, const frit_layer *w, frit_node *x);

// y and what adapters add to it, the product of x and rows of w from `begin` on; route: of experts. y itself if there
// are no adapters of w.
frit_node *frit_adapt(frit_build *b, const frit_weight *w, frit_node *x, frit_node *route, int64_t begin, frit_node *y);
// Embeddings of each layer (per_layer.c): for `begin`; and what the layer's own add to x.
frit_node *frit_per_layer_begin(frit_build *b, frit_node *x);
frit_node *frit_per_layer(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_share_kv(frit_hparams *hp);   // for `adjust`: the last layers look where those of their kind did
// y = x w^T (+ bias, scale, adapters).
frit_node *frit_linear(frit_build *b, const frit_weight *w, frit_node *x);
// The model's norm, with weight and bias where they are bound.
frit_node *frit_norm(frit_build *b, const frit_weight *w, frit_node *x);
