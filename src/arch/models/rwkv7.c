// SPDX-License-Identifier: MIT
// RWKV 7, and ARWKV 7, which has the feed-forward of Qwen 2. Each head's state decays, forgets what it has along one
// key, and adds a value. Values are mixed with those of the first layer.
#include "arch/arch.h"

#include <math.h>

static const float slowest =
    -0.606531f;   // decays are exp(slowest * sigmoid): exp(-0.5) rounded, as in GGUF's reference

// clang-format off
#define TIME_ROWS \
    FRIT_WEIGHTS_IN_OUT, \
    FRIT_ROW_NORM(attn_norm, "attn_norm"), \
    FRIT_ROW_RECURRENT(decay_0,  "time_mix_w0", N_EMBD,     1,          0), \
    FRIT_ROW_RECURRENT(decay_a,  "time_mix_w1", DECAY_RANK, N_EMBD,     FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(decay_b,  "time_mix_w2", N_EMBD,     DECAY_RANK, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(rate_0,   "time_mix_a0", N_EMBD,     1,          0), \
    FRIT_ROW_RECURRENT(rate_a,   "time_mix_a1", RATE_RANK,  N_EMBD,     FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(rate_b,   "time_mix_a2", N_EMBD,     RATE_RANK,  FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(value_0,  "time_mix_v0", N_EMBD,     1,          0), \
    FRIT_ROW_RECURRENT(value_a,  "time_mix_v1", VALUE_RANK, N_EMBD,     FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(value_b,  "time_mix_v2", N_EMBD,     VALUE_RANK, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(gate_a,   "time_mix_g1", GATE_RANK,  N_EMBD,     FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(gate_b,   "time_mix_g2", N_EMBD,     GATE_RANK,  FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(lerps,    "time_mix_lerp_fused", LERPS, 1,       FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(key_unit, "time_mix_k_k", N_EMBD, 1,      0), \
    FRIT_ROW_RECURRENT(key_rate, "time_mix_k_a", N_EMBD, 1,      0), \
    FRIT_ROW_RECURRENT(bonus,    "time_mix_r_k", N_EMBD, 1,      0), \
    FRIT_ROW_RECURRENT(k,        "time_mix_key",        INNER,  N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(v,        "time_mix_value",      INNER,  N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(q,        "time_mix_receptance", INNER,  N_EMBD, FRIT_WEIGHT_UNSCALED), \
    FRIT_ROW_RECURRENT(norm,     "time_mix_ln",         INNER,  1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_ROW_RECURRENT(out,      "time_mix_output",     N_EMBD, INNER,  FRIT_WEIGHT_UNSCALED)

static const frit_weight_row rows[] = {
    TIME_ROWS,
    FRIT_MODEL_WEIGHT(tok_norm, "token_embd_norm", N_EMBD, 1, 0),
    FRIT_ROW_NORM(ffn_norm, "attn_norm_2"),
    FRIT_ROW_RECURRENT(ffn_lerp_k, "channel_mix_lerp_k", N_EMBD, 1, FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(ffn.up,   "channel_mix_key",   N_FF,   N_EMBD, FRIT_WEIGHT_UNSCALED),
    FRIT_LAYER_WEIGHT(ffn.down, "channel_mix_value", N_EMBD, N_FF,   FRIT_WEIGHT_UNSCALED),
};

static const frit_weight_row qwen_rows[] = {
    TIME_ROWS,
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(FRIT_WEIGHT_UNSCALED),
};
// clang-format on

static const char *const keys[] = {"wkv.head_size", "attention.decay_lora_rank", "attention.iclr_lora_rank",
                                   "attention.value_residual_mix_lora_rank", "attention.gate_lora_rank"};

static frit_status adjust(frit_hparams *hp)
{
    return frit_rwkv_adjust(hp, 2);
}

static frit_status adjust_qwen(frit_hparams *hp)
{
    return frit_rwkv_adjust(hp, 1);
}

static frit_node *weight(frit_build *b, const frit_weight *w)
{
    return frit_weight_node(b->g, w->w);
}

static frit_node *heads(frit_build *b, frit_node *x)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){b->hp->recurrent.rank, b->hp->recurrent.head_dim});
}

static frit_node *subtract(frit_build *b, frit_node *x, frit_node *y)
{
    return frit_add(b->g, x, frit_scale(b->g, y, -1));
}

// The layer's values, mixed with those of the first layer.
static frit_node *make_values(frit_build *b, const frit_recurrent_weights *w, frit_node *x)
{
    frit_node *v = frit_linear(b, &w->v, x);
    if (!b->first_value) return b->first_value = v;
    frit_node *share = frit_narrow_wide(b, &w->value_a, FRIT_ACT_COUNT, &w->value_b, &w->value_0, x);
    return frit_add(b->g, v, frit_glu(b->g, share, subtract(b, b->first_value, v), FRIT_ACT_SIGMOID));
}

// Heads of x * key_unit, divided by their L2 norms.
static frit_node *unit_keys(frit_build *b, const frit_recurrent_weights *w, frit_node *k)
{
    const float n = (float)b->hp->recurrent.head_dim;
    k = heads(b, frit_mul(b->g, k, weight(b, &w->key_unit)));
    return frit_scale(b->g, frit_rms_norm(b->g, k, NULL, 1e-24f / n), 1 / sqrtf(n));
}

// y + v (k . r . bonus), by head; the result is [T, H * D].
static frit_node *add_bonus(frit_build *b, const frit_recurrent_weights *w, frit_node *y, const frit_rwkv *x)
{
    frit_graph *g = b->g;
    frit_node *shares = frit_heads(g, weight(b, &w->bonus), frit_mul(g, x->k, x->r));
    frit_node *v = frit_scale_rows(g, x->v, shares);
    return frit_add(g, y, frit_reshape(g, v, 1, (int64_t[]){b->hp->recurrent.inner}));
}

static frit_node *mix_time(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    frit_graph *g = b->g;
    const frit_shifted s = frit_shift_tokens(b, x);
    frit_node *in[6] = {NULL};
    for (int i = 0; i < 6 && frit_has(&w->lerp[i]); i++) in[i] = frit_mix_shifted(b, s, &w->lerp[i]);
    frit_node *decay = frit_narrow_wide(b, &w->decay_a, FRIT_ACT_TANH, &w->decay_b, &w->decay_0, in[1]);
    frit_node *rate = frit_narrow_wide(b, &w->rate_a, FRIT_ACT_COUNT, &w->rate_b, &w->rate_0, in[4]);
    frit_node *k = frit_linear(b, &w->k, in[2]), *unit = unit_keys(b, w, k);
    frit_rwkv p = {.v = heads(b, make_values(b, w, in[3])), .r = heads(b, frit_linear(b, &w->q, in[0]))};
    rate = frit_activate(g, rate, FRIT_ACT_SIGMOID);
    frit_node *part = frit_mul(g, k, weight(b, &w->key_rate));
    p.k = heads(b, frit_add(g, k, subtract(b, frit_mul(g, rate, part), part)));
    p.w = heads(b, frit_scale(g, frit_activate(g, decay, FRIT_ACT_SIGMOID), slowest));
    p.a = frit_scale(g, unit, -1);
    p.b = frit_mul(g, unit, heads(b, rate));
    frit_node *y = frit_rwkv_node(g, p, frit_take_state(b, (int64_t)b->hp->recurrent.inner * b->hp->recurrent.state));
    y = add_bonus(b, w, frit_norm_groups(b, &w->norm, y), &p);
    if (frit_has(&w->gate_a))
        y = frit_mul(g, y, frit_narrow_wide(b, &w->gate_a, FRIT_ACT_SIGMOID, &w->gate_b, NULL, in[5]));
    return frit_linear(b, &w->out, y);
}

static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_add(b->g, x, frit_mixer(b, w, frit_norm(b, &w->attn_norm, x)));
    return frit_add(b->g, x, frit_mix_channels(b, w, frit_norm(b, &w->ffn_norm, x)));
}

const frit_arch frit_arch_rwkv7 = {
    .name = "rwkv7",
    .title = "RWKV 7",
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

const frit_arch frit_arch_arwkv7 = {
    .name = "arwkv7",
    .title = "ARWKV 7",
    .rows = qwen_rows,
    .n_rows = FRIT_COUNT(qwen_rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .layer = frit_layer_sequential,
    .recurrent = mix_time,
    .adjust = adjust_qwen,
    .compute = frit_rwkv_compute,
};
