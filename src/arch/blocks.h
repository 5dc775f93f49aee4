// SPDX-License-Identifier: MIT
// arch/blocks.h: the building blocks of layer functions. Every function adds nodes to b->g and returns the result.
#pragma once
#include "arch/weights.h"

// The state of a graph under construction, as layer functions see it.
typedef struct frit_build {
    frit_graph *g;
    const frit_arch *arch;
    const frit_hparams *hp;
    const frit_weights *weights;
    const frit_layer_hparams *lhp;   // of this layer
    int32_t i_layer;
    frit_node *tokens, *positions;
    frit_node *embedding;   // input of the first layer
    frit_node *per_layer;   // per-layer embeddings, [T, n_layer * n_embd_layer]
    frit_node **written;    // [n_layer]: the kv_write nodes, which attention depends on
    frit_node *res_bank;    // residuals of earlier layers, [T, n_res_bank * n_embd]
    int32_t n_res_bank;
    frit_node *first_value;          // values of the first layer (RWKV 7)
    frit_node *chosen;               // positions chosen by this layer's indexer or an earlier one; NULL: all
    bool attn_temp;                  // this layer uses the attention temperature
    int32_t n_state;                 // numbers of the layer's state that its ops use so far
    frit_node *turns;                // cosines and sines that rows bring; NULL: RoPE by positions
    frit_node *ends;                 // what rows bring, with ends_at of frit_attend; NULL: rows of pictures do not
    int32_t ends_at;                 // see each other
    frit_node *segments;             // of an encoder of pictures (media.h)
    frit_node *deep;                 // features for the first layers; of an encoder: those that earlier layers gave
    int32_t n_deep;                  // of an encoder: how many
    bool encodes;                    // the encoder of an encoder-decoder
    const frit_adapters *adapters;   // NULL: none
} frit_build;

typedef enum frit_qk_norm {
    FRIT_QK_NORM_HEAD,    // per head, weights shared by all heads
    FRIT_QK_NORM_HEADS,   // per head, each with its own weights
    FRIT_QK_NORM_WHOLE,   // over all heads
} frit_qk_norm;

typedef struct frit_attention_options {
    bool no_rope;
    float scale;   // 0: hp->attn_scale, or 1 / sqrt(k_dim)
    frit_qk_norm qk_norm;
    bool norm_after_rope;   // QK norms follow RoPE
    bool bare_qk_norm;      // QK norms without weights
    bool norm_values;       // a norm without weights
    bool is_gated;          // each head of q is followed by its gate
    bool softplus_gate;     // the layer's head_gate is softplus, not sigmoid
} frit_attention_options;

// ------------------------------------------------------------------------------- layers (layers.c)

// x + attention(norm(x)), then x + feed_forward(norm(x)). Post norms apply to both branches if they are bound.
frit_node *frit_layer_sequential(frit_build *b, const frit_layer *w, frit_node *x);
// x + attention(norm(x)) + feed_forward(norm(x)), with separate norms if both are bound.
frit_node *frit_layer_parallel(frit_build *b, const frit_layer *w, frit_node *x);
// x + norm(attention(x)), then x + norm(feed_forward(x)).
frit_node *frit_layer_post_norm(frit_build *b, const frit_layer *w, frit_node *x);
// norm(x + attention(x)), then norm(x + feed_forward(x)).
frit_node *frit_layer_norm_sums(frit_build *b, const frit_layer *w, frit_node *x);
// x + mixer(norm(x)).
frit_node *frit_layer_mixer(frit_build *b, const frit_layer *w, frit_node *x);
// x + branch * residual_scale.
frit_node *frit_residual(frit_build *b, frit_node *x, frit_node *branch);

// Attention or MLA, or the architecture's `recurrent` in recurrent layers.
frit_node *frit_mixer(frit_build *b, const frit_layer *w, frit_node *x);

// ------------------------------------------------------------------------------- encoder-decoders (t5.c)

// Norms before attention and feed-forward; relative position bias; no RoPE.
frit_node *frit_layer_t5(frit_build *b, const frit_layer *w, frit_node *x);
// Computes the bias of scores for each distance, [n_head, 2 * rel_distance + 1], from a table of buckets.
frit_status frit_relative_gains(const frit_tensor **out, const frit_tensor *buckets, const frit_hparams *hp,
                                bool both_sides, frit_arena *arena);
// The cache layer of this layer's attention to itself, and the function of `write_source`.
int32_t frit_own_cache_layer(const frit_build *b);
frit_node *frit_write_source(frit_build *b, frit_node *x);
// Attention of an encoder or decoder without RoPE; k NULL: to the encoded source.
frit_node *frit_attend_encoded(frit_build *b, const frit_weight *q, const frit_weight *k, const frit_weight *v,
                               const frit_weight *o, frit_node *x, frit_attend attend);
frit_status frit_t5_compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena);

// ------------------------------------------------------------------------------- hyper-connections (hyper.c)

// Several residual streams [T, n * n_embd]. A branch (attention or feed-forward) reads a weighted sum of them; its
// output is added to streams that are mixed. The weights depend on the streams.
typedef struct frit_hyper_branch {
    frit_node *x;         // the input of the branch, [T, n_embd]
    frit_node *weights;   // [T, n, n + 1]
} frit_hyper_branch;
frit_node *frit_hyper_begin(frit_build *b, frit_node *x);   // for `begin`: all streams are the embedding
frit_hyper_branch frit_hyper_read(frit_build *b, const frit_hyper_weights *w, frit_node *streams);
frit_node *frit_hyper_write(frit_build *b, frit_hyper_branch branch, frit_node *streams, frit_node *y);
frit_node *frit_hyper_end(frit_build *b, frit_node *streams);   // for `end`: one stream

// ------------------------------------------------------------------------------- recurrent layers (recurrent.c)

// For `adjust`, after is_recurrent and hp->recurrent are set: checks sizes. Without `parallel`, recurrent layers get no
// attention heads.
frit_status frit_recurrent_adjust(frit_hparams *hp, bool parallel);
// frit_recurrent_adjust for models in which layers without keys are recurrent.
frit_status frit_hybrid_adjust(frit_hparams *hp);
// Takes the next n numbers of the layer's state.
frit_state frit_take_state(frit_build *b, int64_t n);
// silu(conv(x)); the convolution continues from the session's state.
frit_node *frit_short_conv(frit_build *b, const frit_weight *taps, const frit_weight *bias, frit_node *x);
frit_node *frit_mamba(frit_build *b, const frit_layer *w, frit_node *x);
frit_node *frit_mamba2(frit_build *b, const frit_layer *w, frit_node *x);
// Mamba 2 after its input projection: gate z [T, inner], steps before softplus [T, rank].
frit_node *frit_mamba2_core(frit_build *b, const frit_layer *w, frit_node *z, frit_node *channels, frit_node *step);
// c * conv(b * x), where b, c and x are projections of the layer's input.
frit_node *frit_gated_conv(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_gated_conv_adjust(frit_hparams *hp);
// For files without the key: all layers are recurrent except every hp->recurrent.interval-th.
void frit_recurrent_by_interval(frit_hparams *hp, int32_t interval);
// Each head of [T, H, D] divided by its L2 norm.
frit_node *frit_unit_heads(frit_build *b, frit_node *x);
// Kimi Delta Attention: a decay for each channel of a key.
frit_node *frit_kda(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_kda_adjust(frit_hparams *hp);
// Gated delta net: z is the gate, qkv the input of the convolution, alpha and beta [T, rank].
frit_node *frit_delta_net(frit_build *b, const frit_layer *w, frit_node *z, frit_node *qkv, frit_node *alpha,
                          frit_node *beta, bool interleaved);

// ------------------------------------------------------------------------------- RWKV (token_shift.c)

typedef struct frit_shifted {
    frit_node *x, *way;   // the input of a branch, and its difference from the token before
} frit_shifted;
frit_shifted frit_shift_tokens(frit_build *b, frit_node *x);
// x + way * lerp.
frit_node *frit_mix_shifted(frit_build *b, frit_shifted s, const frit_weight *lerp);
// Feed-forward with squared ReLU of an input that is mixed with the token before.
frit_node *frit_mix_channels(frit_build *b, const frit_layer *layer, frit_node *x);
// wide(narrow(x)), with an activation between them if `act` is below FRIT_ACT_COUNT, plus `added`.
frit_node *frit_narrow_wide(frit_build *b, const frit_weight *narrow, frit_act act, const frit_weight *wide,
                            const frit_weight *added, frit_node *x);
// Norms each head of y [T, H, D] and applies weight and bias, if they are bound. Result [T, H * D].
frit_node *frit_norm_groups(frit_build *b, const frit_weight *w, frit_node *y);
// For `adjust`: all layers are recurrent, with n_shifts token shifts and heads of recurrent.head_dim.
frit_status frit_rwkv_adjust(frit_hparams *hp, int32_t n_shifts);
// For `compute`: the parts of `lerps`, and `bonus` as one row for each head.
frit_status frit_rwkv_compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena);

// ------------------------------------------------------------------------------- blocks (blocks.c, experts.c, mla.c)

// q, k, v (with bias, q_norm, k_norm if bound), rope, cache, attention, o. x is already normed.
frit_node *frit_attention(frit_build *b, const frit_layer *w, frit_node *x, frit_attention_options options);
// Multiplies attention's output y by f(head_gate x): one gate for each head, or for each element of each head.
frit_node *frit_gate_heads(frit_build *b, const frit_layer *w, frit_node *y, frit_node *x, frit_act act);
// Multi-head latent attention; absorbed if k_b is bound.
frit_status frit_mla_adjust(frit_hparams *hp);   // for `adjust`: sizes of expanded heads, and their scale
frit_node *frit_attention_mla(frit_build *b, const frit_layer *w, frit_node *x);
// The positions that this layer's indexer chooses: x is attention's input, `compressed` its compressed queries.
frit_node *frit_choose_positions(frit_build *b, const frit_layer *w, frit_node *x, frit_node *compressed);
frit_status frit_indexer_adjust(frit_hparams *hp);   // for `adjust`, instead of frit_mla_adjust
// Writes k, v [T, H_kv, D] to the cache of this layer and attends to it. The result is [T, n].
frit_node *frit_attend_cached(frit_build *b, const frit_layer *w, frit_node *q, frit_node *k, frit_node *v,
                              float scale);
// RoPE of this layer on rope.dim elements of each head [T, H, D], starting at `offset`.
frit_node *frit_rope_heads(frit_build *b, frit_node *x, int32_t offset);
frit_node *frit_rope_heads_as(frit_build *b, frit_node *x, int32_t offset, frit_rope_style style);
// With style, offset, shift and is_back of `rope`; the other numbers are the layer's.
frit_node *frit_rope_heads_by(frit_build *b, frit_node *x, frit_rope rope);

// act(gate) * up, with gate <= limit and -limit <= up <= limit; 0: no limit.
frit_node *frit_clamped_glu(frit_build *b, frit_node *gate, frit_node *up, frit_act act, float limit);
// gate * sigmoid(1.702 gate) * (up + 1), with gate <= 7 and -7 <= up <= 7.
frit_node *frit_glu_plus_one(frit_build *b, frit_node *gate, frit_node *up);
// down(act(gate) * up), or down(act(up)) if no gate is bound.
frit_node *frit_feed_forward(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_act act);
// The layer's experts if it has any, otherwise its feed-forward.
frit_node *frit_feed_forward_or_experts(frit_build *b, const frit_layer *w, frit_node *x);
frit_route frit_route_of(const frit_build *b);   // from the architecture and the file
// The output of the experts that `scores` choose (NULL: the router's scores of x). Experts in a narrower space read
// routed_down x, and routed_up projects their output back.
frit_node *frit_routed_experts(frit_build *b, const frit_layer *w, frit_node *x, frit_node *scores);
frit_node *frit_experts_by_route(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_node *route);
frit_node *frit_shared_experts(frit_build *b, const frit_layer *w, frit_node *x);

// Adds the adapters of w to y, the product of x and rows of w from `begin` on. `route` is given for experts. Returns y
// if w has no adapters.
frit_node *frit_adapt(frit_build *b, const frit_weight *w, frit_node *x, frit_node *route, int64_t begin, frit_node *y);
// Per-layer embeddings (per_layer.c): frit_per_layer_begin for `begin`, and the term that a layer adds to x.
frit_node *frit_per_layer_begin(frit_build *b, frit_node *x);
frit_node *frit_per_layer(frit_build *b, const frit_layer *w, frit_node *x);
frit_status frit_share_kv(
    frit_hparams *hp);   // for `adjust`: the last layers use the cache of the last layer of their kind
// y = x w^T (+ bias, scale, adapters).
frit_node *frit_linear(frit_build *b, const frit_weight *w, frit_node *x);
// The model's norm, with weight and bias if bound.
frit_node *frit_norm(frit_build *b, const frit_weight *w, frit_node *x);
