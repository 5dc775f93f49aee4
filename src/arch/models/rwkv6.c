// SPDX-License-Identifier: MIT
// RWKV 6, and QRWKV 6, which has the feed-forward and the shared key heads of Qwen 2. How much of the token before is
// mixed into an input depends on the token; each element of a key decays at a rate of its own.
#include "arch/arch.h"

#include <math.h>

// clang-format off
#define TIME_ROWS \
    FRIT_WEIGHTS_IN_OUT, \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_ROW_RECURRENT(mix_a,   "time_mix_w1", MIX_RANKS, N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_LAYER_STACK(recurrent.mix_b, "time_mix_w2", N_LERPS, N_EMBD, MIX_RANK, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(lerp_x,  "time_mix_lerp_x",     N_EMBD, 1, FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(lerps,   "time_mix_lerp_fused", LERPS,  1, FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(decay_0, "time_mix_decay",      INNER,  1, 0), \
    FRIT_ROW_RECURRENT(decay_a, "time_mix_decay_w1", DECAY_RANK, N_EMBD,     FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(decay_b, "time_mix_decay_w2", INNER,      DECAY_RANK, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(q,       "time_mix_receptance", INNER,  N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(z,       "time_mix_gate",       INNER,  N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(out,     "time_mix_output",     N_EMBD, INNER,  FRIT_WEIGHT_UNSCALED)

static const frit_weight_row rows[] = {
    TIME_ROWS,
    FRIT_MODEL_WEIGHT(tok_norm, "token_embd_norm", N_EMBD, 1, 0),
    FRIT_ROW_RECURRENT(d,    "time_mix_first", INNER, 1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(k,    "time_mix_key",   INNER, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(v,    "time_mix_value", INNER, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(norm, "time_mix_ln",    INNER, 1,      0),
    FRIT_ROW_NORM(ffn_norm, "attn_norm_2"),
    FRIT_ROW_RECURRENT(ffn_lerp_k, "channel_mix_lerp_k", N_EMBD, 1, FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(ffn_lerp_r, "channel_mix_lerp_r", N_EMBD, 1, FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(ffn.gate, "channel_mix_receptance", N_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.up,   "channel_mix_key",        N_FF,   N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.down, "channel_mix_value",      N_EMBD, N_FF,   FRIT_WEIGHT_UNSCALED),
};

static const frit_weight_row qwen_rows[] = {
    TIME_ROWS,
    FRIT_ROW_RECURRENT(k, "time_mix_key",   SHARED, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_RECURRENT(v, "time_mix_value", SHARED, N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"wkv.head_size", "time_mix_extra_dim", "time_decay_extra_dim",
                                   "rescale_every_n_layers"};

static frit_status adjust(frit_hparams *hp)
{
    return frit_rwkv_adjust(hp, 2);
}

static frit_status adjust_qwen(frit_hparams *hp)
{
    const int32_t n_head = hp->layers[0].n_head, n_head_kv = hp->layers[0].n_head_kv;
    FRIT_TRY(frit_rwkv_adjust(hp, 1));
    hp->recurrent.n_groups = n_head_kv > 0 ? n_head_kv : hp->recurrent.rank;
    if (n_head == 0 || (n_head == hp->recurrent.rank && n_head % hp->recurrent.n_groups == 0)) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "attention.head_count is %d, expected embedding_length / wkv.head_size %d",
                     (int)n_head, (int)hp->recurrent.rank);
}

// The inputs of decays, keys, values, queries and gates: [T, 5 * n_embd].
static frit_node *mix_inputs(frit_build *b, const frit_recurrent_weights *w, frit_shifted s)
{
    frit_graph *g = b->g;
    const int64_t rank = b->hp->recurrent.mix_rank, n = b->hp->n_embd;
    frit_node *h = frit_linear(b, &w->mix_a, frit_mix_shifted(b, s, &w->lerp_x));
    h = frit_reshape(g, frit_activate(g, h, FRIT_ACT_TANH), 2, (int64_t[]){5, rank});
    return frit_reshape(g, frit_heads(g, frit_weight_node(g, w->mix_b.w), h), 1, (int64_t[]){5 * n});
}

static frit_node *mix_time(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    const frit_recurrent_params *r = &b->hp->recurrent;
    frit_graph *g = b->g;
    const bool is_qwen = !frit_has(&w->d);
    const frit_shifted s = frit_shift_tokens(b, x);
    frit_node *mixed = mix_inputs(b, w, s), *in[5];
    for (int i = 0; i < 5; i++) {
        frit_node *part = frit_slice(g, mixed, i * (int64_t)b->hp->n_embd, b->hp->n_embd);
        part = frit_add(g, part, frit_weight_node(g, w->lerp[i].w));
        in[i] = frit_add(g, s.x, frit_mul(g, s.way, part));
    }
    const int64_t sizes[] = {r->rank, r->head_dim}, shared[] = {is_qwen ? r->n_groups : r->rank, r->head_dim};
    frit_node *decay = frit_narrow_wide(b, &w->decay_a, FRIT_ACT_TANH, &w->decay_b, &w->decay_0, in[0]);
    frit_rwkv p = {.k = frit_reshape(g, frit_linear(b, &w->k, in[1]), 2, shared),
                   .v = frit_reshape(g, frit_linear(b, &w->v, in[2]), 2, shared),
                   .r = frit_reshape(g, frit_linear(b, &w->q, in[3]), 2, sizes),
                   .w = frit_reshape(g, decay, 2, sizes)};
    if (is_qwen)
        p.r = frit_scale(g, p.r, 1 / sqrtf((float)r->head_dim));
    else
        p.u = frit_weight_node(g, w->d.w);
    frit_state state = frit_take_state(b, (int64_t)r->inner * r->state);
    state.nested = true;
    state.complemented = is_qwen;
    frit_node *y = frit_norm_groups(b, &w->norm, frit_rwkv_node(g, p, state));
    y = frit_glu(g, frit_linear(b, &w->z, in[4]), y, is_qwen ? FRIT_ACT_SIGMOID : FRIT_ACT_SILU);
    return frit_linear(b, &w->out, y);
}

// Files scale the weights for a residual that is halved after every `rescale_every` layers.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const int32_t every = b->hp->recurrent.rescale_every;
    x = frit_add(b->g, x, frit_mixer(b, w, frit_norm(b, &w->attn_norm, x)));
    x = frit_add(b->g, x, frit_mix_channels(b, w, frit_norm(b, &w->ffn_norm, x)));
    return every > 0 && (b->i_layer + 1) % every == 0 ? frit_scale(b->g, x, 0.5f) : x;
}

const frit_arch frit_arch_rwkv6 = {
    .name = "rwkv6",
    .title = "RWKV 6",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .layer = layer,
    .recurrent = mix_time,
    .adjust = adjust,
    .compute = frit_rwkv_compute,
};

const frit_arch frit_arch_rwkv6qwen2 = {
    .name = "rwkv6qwen2",
    .title = "QRWKV 6",
    .rows = qwen_rows,
    .n_rows = FRIT_COUNT(qwen_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .layer = frit_layer_sequential,
    .recurrent = mix_time,
    .adjust = adjust_qwen,
    .compute = frit_rwkv_compute,
};
