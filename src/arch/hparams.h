// SPDX-License-Identifier: MIT
// arch/hparams.h: the hyperparameters of a model, and of each of its layers.
#pragma once
#include "graph/graph.h"

typedef struct frit_arch frit_arch;   // arch.h

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

frit_status frit_hparams_read(frit_hparams *hp, const frit_arch *arch, const frit_checkpoint *ckpt, frit_arena *arena);
// Fills hp->inv_freq and hp->rope_magnitude from hp->rope, for sequences of up to n_ctx positions. With dynamic NTK
// scaling the frequencies depend on it: transformers takes the length so far, but cached keys need one choice.
frit_status frit_rope_init(frit_hparams *hp, int32_t n_ctx, frit_arena *arena);

// How many layers the cache has: one for each of the model's, or two for each of a decoder's behind an encoder, its own
// keys and values and those of the source. Encoder layers use them in turn: nobody looks back at theirs.
int32_t frit_arch_n_cache_layers(const frit_hparams *hp);
// What each layer of the cache keeps between steps.
frit_status frit_arch_cache_specs(const frit_hparams *hp, frit_cache_spec *specs);
