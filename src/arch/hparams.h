// SPDX-License-Identifier: MIT
// arch/hparams.h: the hyperparameters of a model and of its layers.
#pragma once
#include "graph/graph.h"

typedef struct frit_arch frit_arch;   // arch.h

typedef enum frit_rope_scaling {
    FRIT_ROPE_PLAIN,
    FRIT_ROPE_LINEAR,
    FRIT_ROPE_YARN,
    FRIT_ROPE_DYNAMIC,
    FRIT_ROPE_LLAMA3,
    FRIT_ROPE_LONG,   // each pair has a factor, from one of two weights: up to the original context, or beyond it
} frit_rope_scaling;

typedef struct frit_rope_params {
    int32_t dim;   // rotated elements of a head
    float base;
    frit_rope_scaling scaling;
    float factor;                              // of context extension; 1: not extended
    int32_t n_ctx_orig;                        // context before extension
    float attn_factor;                         // multiplies the magnitude; 1 except with YaRN
    float ext_factor, beta_fast, beta_slow;    // YaRN
    float low_freq_factor, high_freq_factor;   // Llama 3
    float log_multiplier;                      // YaRN: the scale of attention grows with the context's extension
    bool no_truncate;                          // YaRN: the corrected range of pairs is not rounded
} frit_rope_params;

// Computed by rope.c for one context length.
typedef struct frit_rope_table {
    const frit_tensor *inv_freq;   // f32 [dim / 2]; NULL: not computed yet
    double base;                   // of the frequencies
    float magnitude;
} frit_rope_table;

typedef struct frit_layer_hparams {
    int32_t n_head, n_head_kv, n_ff;   // 0: the layer has no such part
    int32_t k_dim, v_dim;              // of one head
    int32_t window;                    // 0: full attention
    bool no_rope;
    bool is_rotated;   // from the file
    bool has_experts;
    bool is_recurrent;
    bool is_deep;                   // of an encoder of pictures: its results are part of the features
    float clamp_exp, clamp_shexp;   // limit of gate and up in experts and in shared experts; 0: no limit
    int32_t n_state;                // size of a recurrent layer's state, in numbers
    bool shares_kv;                 // uses the keys and values of layer kv_layer
    int32_t kv_layer;               // the layer itself, unless shares_kv is set
    int32_t block;                  // attention also reads keys of blocks of so many positions; 0: none
    bool v_in_k;                    // cached values are the first v_dim numbers of keys
    int32_t index_type;             // from the file: 1: own indexer, 0: an earlier layer's indexer, -1: not given
    bool has_index;                 // attention reads only the positions that an indexer chooses
    float sparsity;                 // Gaussian top-k: standard deviations above the mean; not finite: off
    frit_xielu xielu;               // as stored: before the softplus of its first two numbers
} frit_layer_hparams;

// Recurrent layers: a short convolution over `n_channels`, and a state of `state` numbers for each of `inner`.
typedef struct frit_recurrent_params {
    int32_t n_taps, inner, state, rank, n_groups;                     // rank: of time steps, or the number of heads
    int32_t n_channels;                                               // 0: inner + 2 * n_groups * state
    int32_t step_dim;                                                 // inputs of the projection of time steps; 0: rank
    int32_t head_dim;                                                 // of Kimi Delta Attention
    int32_t interval;                                                 // every interval-th layer has attention
    int32_t mix_rank, decay_rank, rate_rank, value_rank, gate_rank;   // of narrow matrices of RWKV 6 and 7
    bool is_normed;                                                   // steps, b and c have norms without weights
    float norm_eps;          // of these norms, or of a delta net's output; 0: as of other norms
    float beta_scale;        // of a delta net; 0: 1
    bool grouped_heads;      // adjacent value heads share a key head, as in grouped-query attention
    int32_t rescale_every;   // the residual is halved after this number of layers; 0: never
    bool is_bounded;         // decays have a lower bound
    bool is_negative;        // with is_bounded: `a` is stored negative
    float lower_bound;
} frit_recurrent_params;

// Sparse attention: indexer.c.
typedef struct frit_index_params {
    int32_t n_head, dim;       // of the indexer
    int32_t n_chosen;          // positions, or blocks
    int32_t block, n_latest;   // positions of a block, and the latest blocks, which are always chosen
    frit_rope_style rope_style;
} frit_index_params;

// The layers of a text in which the rows of a picture see each other.
typedef enum frit_seeing { FRIT_SEEING_NONE, FRIT_SEEING_WINDOWS, FRIT_SEEING_ALL, FRIT_SEEING_COUNT } frit_seeing;

// Encoders of pictures: media.h; and what a text has for pictures.
typedef struct frit_media_params {
    int32_t side;          // patches on a side of a tile, for which positions are learned; 0: none are
    int32_t n_unused;      // last layers that the text does not read
    int32_t n_projector;   // width between the matrices that follow the encoder; 0: there is no such width
    int32_t merge;         // patches on a side of the block that a row of the text stands for
    int32_t n_deep;        // results of earlier layers in each result, for the text's first layers (Qwen3-VL)
    int32_t seeing;        // frit_seeing
    int32_t padding;       // the token whose per-layer embeddings rows of pictures have (Gemma 4)
} frit_media_params;

typedef enum frit_norm_kind { FRIT_NORM_RMS, FRIT_NORM_LAYER } frit_norm_kind;

typedef struct frit_hparams {
    int32_t n_vocab, n_ctx_train, n_embd, n_layer;
    int32_t n_embd_in, n_embd_out;       // width of the table of embeddings, and of results; 0: n_embd
    int32_t n_layer_enc, n_layer_dec;    // of n_layer, in encoder-decoders and their encoders alone
    int32_t rel_buckets, rel_distance;   // relative positions: buckets, and the largest distance
    int32_t decoder_start;               // the token that a decoder begins with
    int32_t n_layer_next;                // layers after the last, for multi-token prediction (mtp.c)
    bool is_next;                        // the model is a single layer for multi-token prediction
    frit_norm_kind norm;                 // the architecture's, unless the file has one
    frit_act act;                        // of the feed-forward; the architecture's, unless the file has one
    float rms_eps, layer_norm_eps;       // equal if the file has only one
    float attn_scale;                    // 0: 1 / sqrt(k_dim)
    float value_scale;                   // of attention's values; 0: 1
    bool gates_elements;                 // attn_gate has a gate for each element, not for each head
    float attn_softcap, attn_clamp, attn_alibi, logit_softcap;
    float embd_scale, residual_scale, logit_scale;   // 0: 1
    bool is_parallel;                                // attention and feed-forward read the same input
    bool is_causal;                                  // from the file
    bool is_bidirectional;                           // every token attends to all others
    bool has_no_cache;                               // attention reads rows of the step, no keys and values of a cache
    int32_t pooling;                                 // frit_pooling of embeddings; -1: not in the file
    int32_t n_loops;                                 // number of times that all layers run; 0: once
    bool is_rope_listed;                             // the file lists the layers with RoPE
    bool is_rope_finetuned;                          // false in some hybrid models: layers have no RoPE
    int32_t n_ctx;                                   // the context of rope.c's tables
    int32_t attn_chunk;                              // 0: none; layers with a window attend within their chunk instead
    float attn_temp_scale, attn_temp_offset;         // attention temperature: frit_attend in graph.h
    int32_t attn_temp_length;

    int32_t n_expert, n_expert_used, n_expert_shared, n_expert_groups, n_expert_groups_used;
    int32_t n_ff_exp, n_ff_shexp;         // of one expert, and of all shared experts together
    int32_t n_layer_dense, expert_step;   // layers from n_layer_dense on have experts, or every expert_step-th of them
    frit_gating gating;
    bool expert_normalize;
    float expert_scale;   // 0: 1
    float router_jitter;
    int32_t n_expert_latent;                     // width of the experts' input; 0: n_embd
    int32_t n_ff_chunk_exp, expert_group_size;   // of experts that groups of experts share (GroveMoE)
    float expert_group_scale;

    int32_t q_rank, kv_rank;        // MLA; q_rank 0: queries are not compressed
    int32_t k_dim_mla, v_dim_mla;   // of an expanded head, if the file has absorbed weights

    int32_t o_groups, o_rank;            // of attention's output: groups of heads, and what each is projected to
    int32_t near_window;                 // of layers with blocks
    float block_rope_base;               // of layers with blocks
    int32_t n_layer_hash;                // the first layers, in which the token determines the experts
    int32_t n_hyper, hyper_iterations;   // hyper-connections: residual streams; 0: none
    float hyper_eps;

    int32_t n_layer_shared_kv;       // the last layers, which use keys and values of earlier layers
    int32_t k_dim_swa, v_dim_swa;    // of layers with a window; 0: as in other layers
    int32_t n_altup, altup_active;   // residual streams, and the one that layers compute
    int32_t laurel_rank;
    int32_t n_embd_layer;                // of per-layer embeddings; 0: none
    int32_t res_bank_interval;           // layers between entries of the residual bank; 0: no bank
    float situ_beta, situ_linear_beta;   // caps of SiTU's gate and up; situ_linear_beta 0: no cap
    frit_index_params index;
    frit_media_params media;
    frit_recurrent_params recurrent;
    frit_rope_params rope, rope_swa;              // rope_swa: of layers with a window
    bool is_swa_plain;                            // RoPE of layers with a window is not scaled
    frit_rope_style rope_style;                   // the architecture's, unless the file has one
    int32_t rope_sections[4];                     // sections of M-RoPE; equal to plain RoPE for text
    bool is_rope_mixed;                           // pairs of the sections take turns, as long as they last
    frit_rope_table rope_table, rope_swa_table;   // from rope.c
    frit_layer_hparams *layers;                   // [n_layer + n_layer_next]
} frit_hparams;

// True if rotations of pictures depend on time, row and column (M-RoPE).
static inline bool frit_has_rope_axes(const frit_hparams *hp)
{
    return hp->rope_sections[0] > 0 && hp->rope_sections[1] > 0;
}

// Returns the number of elements of the features that stand for a token of a text with pictures.
static inline int64_t frit_feature_width(const frit_hparams *hp)
{
    return (int64_t)hp->n_embd * (1 + hp->media.n_deep);
}

// Returns how many numbers a row of a text with pictures brings: a flag, features, turns, and the end of the positions
// that it sees.
static inline int64_t frit_soft_row_width(const frit_hparams *hp)
{
    const int64_t n_turns = frit_has_rope_axes(hp) ? hp->rope.dim : 0;
    return 1 + frit_feature_width(hp) + n_turns + (hp->media.seeing != FRIT_SEEING_NONE);
}

// Returns the number of elements of the hidden states that an encoder gives.
static inline int32_t frit_hidden_width(const frit_hparams *hp)
{
    return hp->n_embd_out > 0 ? hp->n_embd_out : hp->n_embd;
}

frit_status frit_hparams_read(frit_hparams *hp, const frit_arch *arch, const frit_checkpoint *ckpt, frit_arena *arena);
// Fills hp->rope_table and hp->rope_swa_table for sequences of up to n_ctx positions. With dynamic NTK scaling the
// frequencies depend on n_ctx: transformers uses the current length, but cached keys need one choice.
frit_status frit_rope_init(frit_hparams *hp, int32_t n_ctx, frit_arena *arena);

// The number of layers of the cache: one for each layer of the model. Encoder-decoders have two for each decoder layer,
// for self attention and cross attention. Encoder layers share these cache layers, because no later step reads their
// keys and values.
int32_t frit_arch_n_cache_layers(const frit_hparams *hp);
// Describes what each layer of the cache stores between steps.
frit_status frit_arch_cache_specs(const frit_hparams *hp, frit_cache_spec *specs);
