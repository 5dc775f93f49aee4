// SPDX-License-Identifier: MIT
// arch/blocks.h: what layer functions are built of. Every function adds nodes to b->g and returns the result.
#pragma once
#include "arch/weights.h"

// What a layer function sees: the graph and where it stands.
typedef struct frit_build {
    frit_graph *g;
    const frit_arch *arch;
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
