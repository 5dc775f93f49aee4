// SPDX-License-Identifier: MIT
// arch/weights.h: the weights of a model, and the rows of weight lists: name, shape, flags. Lists consist of the macros
// in weight_rows.h.
#pragma once
#include "arch/hparams.h"

// A matrix with bias and scale: y = x w^T * scale + b. Bound by name: "NAME.weight", "NAME.bias" (optional),
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
    frit_weight norm;             // before down
} frit_ffn_weights;

typedef struct frit_recurrent_weights {
    frit_weight in, in_xz, in_zxs;   // as in files; in_xz and in_zxs are split into z, x and step
    frit_weight z, x, step;          // gate; input of the convolution; time steps
    frit_weight conv, conv_b, conv_q, conv_k, conv_v;
    frit_weight mix;   // projects x to b, c and time steps
    frit_weight dt, dt_b, dt_norm, b_norm, c_norm;
    frit_weight a, d, norm, out;
    frit_weight q, k, v, alpha, beta, alpha_beta, decay_a, decay_b, gate_a, gate_b;
    // RWKV 6 and 7: matrices that narrow and widen, with the vector that is added.
    frit_weight lerps, lerp_x, lerp[6], mix_a, mix_b;   // of inputs; `lerp` is computed: parts of lerps
    frit_weight decay_0, rate_0, rate_a, rate_b, value_0, value_a, value_b;
    frit_weight key_unit, key_rate, bonus;
    frit_weight lerp_k, lerp_v, lerp_r, ffn_lerp_k, ffn_lerp_r;   // token shift: weights of the token before
} frit_recurrent_weights;

typedef struct frit_hyper_weights {   // of hyper-connections: hyper.c
    frit_weight mix, scales, biases;
} frit_hyper_weights;

typedef struct frit_compressor_weights {   // of keys of blocks: deepseek4.c
    frit_weight kv, gate, biases, norm;
} frit_compressor_weights;

typedef struct frit_media_weights {   // of encoders of pictures: media.h
    frit_weight patch, input_norm, squares, merge_norm, merge_in, merge_mid, merge_out;
    frit_weight mean_norm, mean, deviation;   // of the mean of a block: norm, standardization
    frit_weight positions, class_row;         // learned; the vector of CLIP's first row
    frit_weight newline;                      // a row of the text that ends rows of tiles (LLaVA)
    const frit_tensor *squares_by_patch;      // f32, computed: `squares` with columns in the order of rows
    const frit_tensor *minus_mean;            // f32, computed
    const frit_tensor *places;                // f32, computed: positions, with class_row in one of them
} frit_media_weights;

typedef struct frit_next_weights {   // of layers for multi-token prediction: mtp.c
    frit_weight proj, embd_norm, hidden_norm, tok_embd, lm_head, out_norm;
} frit_next_weights;

typedef struct frit_layer {
    frit_weight attn_norm, attn_norm_2, q, k, v, o, q_norm, k_norm, sinks, post_attn_norm;
    frit_weight ffn_norm, post_ffn_norm;
    frit_weight attn_factors, ffn_factors;   // of what attention and feed-forward add, for each element
    frit_ffn_weights ffn;
    frit_weight act_scale;   // multiplies the activation
    frit_weight out_scale;
    frit_weight sub_norm;                        // between attention and o
    frit_weight head_gate;                       // of attention's output: one gate for each head, or for each element
    frit_weight attn_res_score, ffn_res_score;   // of the residual bank and the current residual
    frit_weight rel_bias;                        // of scores, for each bucket of distances
    const frit_tensor *rel_gains;                // of scores, for each distance: computed (t5.c)
    const frit_tensor *rel_k, *rel_q;            // keys and queries of distances: computed (deberta.c)
    frit_weight cross_norm, cross_q, cross_k, cross_v, cross_o;   // cross attention
    frit_weight unused;                                           // weights of parts that frit does not run
    frit_weight deep_norm, deep_in, deep_out;                     // of features of earlier layers (Qwen3-VL)
    frit_weight clips[7][4];                                      // limits of matrices' inputs and outputs (gemma4.c)
    // Fused matrices in files; bound as views q, k, v and gate, up.
    frit_weight qkv, gate_up, shared_gate_up;

    frit_weight router, router_bias, router_scale, expert_norm, post_expert_norm, dense_norm;
    frit_weight altup_router, altup_router_norm, altup_predict, altup_correct, altup_scale;
    frit_weight laurel_left, laurel_right, laurel_norm;
    frit_weight layer_gate, layer_proj, layer_norm;   // of per-layer embeddings
    frit_ffn_weights experts, shared, chunks;
    frit_weight gate_up_experts;                       // gate, then up
    frit_weight shared_gate;                           // the gate of the shared experts' output
    frit_weight routed_down, routed_norm, routed_up;   // projections to the experts' space and back
    frit_weight routed_bias;                           // of the experts' sum

    // MLA: q = q_b norm(q_a x); latent = norm(first part of kv_a x); RoPE rotates the rest of kv_a x. Expanded
    // attention computes keys and values as kv_b latent. In absorbed attention k_b projects queries into the latent
    // space and v_b projects the result back.
    frit_weight q_a, q_a_norm, q_b, kv_a, kv_a_norm, kv_b, k_b, v_b;
    frit_weight o_a;   // of groups of heads
    frit_compressor_weights compressor, index_compressor;
    frit_hyper_weights attn_hyper, ffn_hyper;
    frit_weight token_experts;   // experts of each token
    frit_weight index_q, index_k, index_norm, index_q_norm, index_weights;
    frit_recurrent_weights recurrent;
    frit_next_weights next;
} frit_layer;

typedef struct frit_weights {
    frit_weight tok_embd, type_embd, pos_embd, tok_norm, tok_proj, out_norm, out_proj, enc_norm, lm_head;
    frit_weight enc_pos, dec_pos, enc_tok_norm, dec_tok_norm;   // of encoder-decoders with tables of positions
    frit_weight mlm_dense, mlm_norm;                            // of a masked-LM head, before lm_head
    frit_weight rel_bias;   // of all layers: biases of scores, or embeddings, for each bucket of distances
    frit_weight rel_norm;   // of these embeddings
    frit_weight rope_freqs, rope_long, rope_short;
    frit_weight altup_proj, altup_merge;   // of all streams except the first
    frit_weight layer_embd, layer_proj,
        layer_proj_norm;     // per-layer embeddings of all layers, and their projection of x
    frit_weight res_score;   // of the residual bank after the last layer
    frit_hyper_weights out_hyper;
    frit_media_weights media;
    frit_layer *layers;    // [n_layer + n_layer_next]
    bool has_next;         // the first layer for multi-token prediction is bound
    const char *no_next;   // the reason if it is not bound; NULL: the file has none
} frit_weights;

// Names of dimensions in the rows of a weight list; each is resolved for a layer.
typedef enum frit_dim {
    FRIT_DIM_1,
    FRIT_DIM_N_VOCAB,
    FRIT_DIM_N_EMBD,
    FRIT_DIM_EMBD_IN,     // of the table of embeddings
    FRIT_DIM_PLACES,      // learned positions of an encoder, without a class row
    FRIT_DIM_PLACES_1,    // and with one
    FRIT_DIM_SIDES,       // learned positions of columns, then of rows
    FRIT_DIM_MERGED,      // of the rows of a block of patches, side by side
    FRIT_DIM_DEEP,        // the same in as many first layers as give features, otherwise 0
    FRIT_DIM_PROJECTOR,   // between the matrices that follow an encoder of pictures
    FRIT_DIM_EMBD_OUT,    // of the last hidden state after its projection
    FRIT_DIM_N_CTX,
    FRIT_DIM_N_FF,
    FRIT_DIM_N_FF_2,   // gate and up
    FRIT_DIM_N_FF_EXP,
    FRIT_DIM_N_FF_EXP_2,
    FRIT_DIM_N_FF_SHEXP,
    FRIT_DIM_N_FF_SHEXP_2,
    FRIT_DIM_N_FF_CHUNK,
    FRIT_DIM_N_EXPERT,
    FRIT_DIM_EXPERT_IN,
    FRIT_DIM_LATENT,   // of experts in a narrower space; 0 in other models
    FRIT_DIM_N_CHUNK_EXPERT,
    FRIT_DIM_N_HEAD,
    FRIT_DIM_Q_RANK,
    FRIT_DIM_KV_RANK,
    FRIT_DIM_KV_A,      // the latent vector and the rotated part
    FRIT_DIM_N_KV_B,    // keys without the rotated part, and values, of all heads
    FRIT_DIM_N_Q_MLA,   // of expanded heads
    FRIT_DIM_N_O_MLA,
    FRIT_DIM_NOPE_MLA,   // the unrotated part of one key head
    FRIT_DIM_V_MLA,
    FRIT_DIM_ALTUP,
    FRIT_DIM_ALTUP_REST,
    FRIT_DIM_ALTUP_SQUARE,
    FRIT_DIM_LAUREL,
    FRIT_DIM_LAYER_EMBD,
    FRIT_DIM_LAYERS_EMBD,   // of all layers
    FRIT_DIM_LAYER_NORM,    // n_embd where layers have embeddings, otherwise 0
    FRIT_DIM_RES_BANK,      // 1 where the model has a residual bank
    FRIT_DIM_HYPER,         // residual streams
    FRIT_DIM_HYPER_MIX,     // weights of a branch: of its input, its output, and the streams
    FRIT_DIM_HYPER_IN,      // all streams
    FRIT_DIM_HYPER_PARTS,
    FRIT_DIM_BLOCK_HEAD,   // a block's key
    FRIT_DIM_COMPRESSED,   // what keys of blocks are made of
    FRIT_DIM_COMPRESSED_BLOCK,
    FRIT_DIM_INDEX_HEAD,   // the same of the indexer
    FRIT_DIM_INDEX_COMPRESSED,
    FRIT_DIM_INDEX_COMPRESSED_BLOCK,
    FRIT_DIM_O_GROUPS,
    FRIT_DIM_O_GROUP,   // the heads of a group
    FRIT_DIM_O_RANK,
    FRIT_DIM_O_RANKS,
    FRIT_DIM_N_EXPERT_USED,
    FRIT_DIM_INDEX_HEADS,
    FRIT_DIM_INDEX,   // one head of an indexer
    FRIT_DIM_N_INDEX_Q,
    FRIT_DIM_N_Q,     // all query heads
    FRIT_DIM_N_Q_2,   // queries, and a gate for each
    FRIT_DIM_N_K,
    FRIT_DIM_N_V,
    FRIT_DIM_N_O,   // attention's output: the values of all query heads
    FRIT_DIM_N_QKV,
    FRIT_DIM_N_EMBD_2,
    FRIT_DIM_N_EMBD_3,
    FRIT_DIM_HEAD,   // one head of queries or keys
    FRIT_DIM_GATE,   // gates of attention's output: of heads or elements
    FRIT_DIM_ROPE_PAIRS,
    FRIT_DIM_ROPE_PAIRS_SWA,
    FRIT_DIM_SHARED,    // keys or values of heads that share them, of recurrent layers
    FRIT_DIM_N_LERPS,   // inputs of RWKV's time mixing
    FRIT_DIM_LERPS,     // their weights
    FRIT_DIM_MIX_RANK,
    FRIT_DIM_MIX_RANKS,
    FRIT_DIM_DECAY_RANK,
    FRIT_DIM_RATE_RANK,
    FRIT_DIM_VALUE_RANK,
    FRIT_DIM_GATE_RANK,
    FRIT_DIM_N_BUCKETS,
    // Dimensions of recurrent layers; 0 in models without them.
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
    FRIT_DIM_KEYS,         // of a delta net
    FRIT_DIM_HEAD_WIDTH,   // channels of a head
} frit_dim;

enum {
    FRIT_WEIGHT_OPTIONAL = 1 << 0,
    FRIT_WEIGHT_OR_TOK_EMBD = 1 << 1,   // absent: the embedding table is used (tied)
    FRIT_WEIGHT_LAYER = 1 << 2,         // one for each layer: "blk.N.NAME"
    FRIT_WEIGHT_TABLE = 1 << 3,         // read row by row, not multiplied: no bias, no scale, possibly a multiplier
    // The meaning of "NAME.scale" depends on the type. With NVFP4 it is part of the number format: the matrix is w *
    // scale. With other types it is part of the architecture; llama.cpp, which defines these files, multiplies after
    // the bias or ignores it in some architectures.
    FRIT_WEIGHT_SCALE_LAST = 1 << 4,    // y = (x w^T + b) * scale
    FRIT_WEIGHT_UNSCALED = 1 << 5,      // y = x w^T + b
    FRIT_WEIGHT_UNBIASED = 1 << 6,      // y = x w^T: files may have a bias, which is ignored
    FRIT_WEIGHT_OR_FUSED = 1 << 7,      // may be absent if the layer has the fused weight
    FRIT_WEIGHT_DENSE = 1 << 8,         // may be absent in layers with experts
    FRIT_WEIGHT_EXPERT = 1 << 9,        // is absent in layers without experts
    FRIT_WEIGHT_STACK = 1 << 10,        // [n_expert, out, in], or n_head matrices
    FRIT_WEIGHT_WHOLE_NAME = 1 << 11,   // the name is complete: no ".weight" follows
    FRIT_WEIGHT_SPREAD = 1 << 12,       // a vector whose numbers are repeated to the full size
    FRIT_WEIGHT_INVERSE = 1 << 13,      // a vector of divisors, bound as factors
    FRIT_WEIGHT_FLAT = 1 << 14,         // a vector that files may store in two dimensions
    FRIT_WEIGHT_OWN_KV = 1 << 15,       // may be absent in layers that share keys and values
    FRIT_WEIGHT_OWN_INDEX = 1 << 16,    // may be absent in layers that use an earlier layer's positions
    FRIT_WEIGHT_FIRST_ROW = 1 << 17,    // only the first row of a matrix, bound as a vector
    FRIT_WEIGHT_ENC = 1 << 18,          // of encoder layers, the first n_layer_enc: "enc.blk.N.NAME"
    FRIT_WEIGHT_DEC = 1 << 19,          // of decoder layers, after the encoder's: "dec.blk.N.NAME"
    FRIT_WEIGHT_IF_FITS = 1 << 20,      // of a fused matrix: absent if its tensor has another shape
};

// One row of a weight list. The weight is absent in layers in which a dimension of its row is 0.
typedef struct frit_weight_row {
    size_t offset;      // in frit_weights or frit_layer
    const char *name;   // in the file, without ".weight"
    frit_dim out, in;   // [out, in]; in == FRIT_DIM_1: a vector [out]
    unsigned flags;
    frit_dim n;   // of a stack
} frit_weight_row;

// Binds all weights. Vectors (norms, biases, factors) become f32 and must be finite. Every tensor of the file must have
// a row. Computes the architecture's constants.
frit_status frit_weights_bind(frit_weights *weights, const frit_arch *arch, const frit_hparams *hp,
                              const frit_checkpoint *ckpt, frit_arena *arena);

// Creates a computed constant: f32 numbers, which the caller fills. It lives as long as the arena. The arena must
// belong to the model or to an engine, because devices find loaded constants by address (frit_tensor_is_same).
frit_status frit_constant_new(const frit_tensor **out, float **values, const char *name, int n_dims,
                              const int64_t *shape, frit_arena *arena);

// dims.c: rows resolved for a model. A dimension is 0 if a layer has no such part.
int64_t frit_dim_size(const frit_hparams *hp, const frit_layer_hparams *lhp, frit_dim dim);
bool frit_weight_may_be_absent(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer);
void frit_weight_name(const frit_weight_row *row, const frit_hparams *hp, int32_t i_layer, char base[96],
                      char name[128]);   // without and with ".weight"

// A tensor that a file may have, with its shape in GGUF files. Fused forms are listed too.
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

// ------------------------------------------------------------------------------- adapters (adapt.c)

// Adapters that a graph has room for. Matrices are numbered as the tensors of the model's checkpoint; the output head
// follows if it is tied to the embedding.
typedef struct frit_adapters {
    const frit_checkpoint *ckpt;
    int32_t n_h;     // upper bound of the sum of the ranks of a sequence's adapters; 0: none
    bool steers;     // has room for control vectors
    bool *is_used;   // [ckpt->n_tensors + 1], set for the matrices that the graph multiplies by; may be NULL
} frit_adapters;
// Returns the number of a matrix by its tensor's name, and the tensor; -1: the model has no such tensor.
int32_t frit_adapters_matrix(const frit_checkpoint *ckpt, const char *name, const frit_tensor **base);
