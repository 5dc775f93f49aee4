// SPDX-License-Identifier: MIT
// RWKV 4. Token shift: the inputs of attention and feed-forward are mixed with the token before. Each channel is a mean
// of the values so far, weighted by keys and decayed by age. GGUF has no architecture name for RWKV 4: files that frit
// converts use the names of RWKV 6.
#include "arch/arch.h"

#include <math.h>

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_WEIGHTS_IN_OUT,
    FRIT_MODEL_WEIGHT(tok_norm, "token_embd_norm", N_EMBD, 1, 0),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_ROW_NORM(ffn_norm, "attn_norm_2"),
    FRIT_ROW_RECURRENT(lerp_k, "time_mix_lerp_k",     N_EMBD, 1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(lerp_v, "time_mix_lerp_v",     N_EMBD, 1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(lerp_r, "time_mix_lerp_r",     N_EMBD, 1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(a,      "time_mix_decay",      INNER,  1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(d,      "time_mix_first",      INNER,  1,      FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(k,      "time_mix_key",        INNER,  N_EMBD, 0),
    FRIT_ROW_RECURRENT(v,      "time_mix_value",      INNER,  N_EMBD, 0),
    FRIT_ROW_RECURRENT(q,      "time_mix_receptance", INNER,  N_EMBD, 0),
    FRIT_ROW_RECURRENT(out,    "time_mix_output",     N_EMBD, INNER,  0),
    FRIT_ROW_RECURRENT(ffn_lerp_k, "channel_mix_lerp_k", N_EMBD, 1,   FRIT_WEIGHT_FLAT),
    FRIT_ROW_RECURRENT(ffn_lerp_r, "channel_mix_lerp_r", N_EMBD, 1,   FRIT_WEIGHT_FLAT),
    FRIT_LAYER_WEIGHT(ffn.gate, "channel_mix_receptance", N_EMBD, N_EMBD, 0),
    FRIT_LAYER_WEIGHT(ffn.up,   "channel_mix_key",        N_FF,   N_EMBD, 0),
    FRIT_LAYER_WEIGHT(ffn.down, "channel_mix_value",      N_EMBD, N_FF,   0),
};
// clang-format on

static const char *const keys[] = {"ssm.inner_size", "rescale_every_n_layers"};

static frit_status adjust(frit_hparams *hp)
{
    if (hp->recurrent.inner < 1)
        return frit_fail(FRIT_E_FORMAT, "the width of time mixing is %d, expected 1 or more", (int)hp->recurrent.inner);
    for (int32_t i = 0; i < hp->n_layer; i++) {
        hp->layers[i].is_recurrent = true;
        hp->layers[i].n_head = hp->layers[i].n_head_kv = 0;
        hp->layers[i].n_state = 2 * hp->n_embd + 3 * hp->recurrent.inner;
    }
    return FRIT_OK;
}

static frit_node *mix_time(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_weights *w = &layer->recurrent;
    const frit_shifted s = frit_shift_tokens(b, x);
    frit_node *k = frit_linear(b, &w->k, frit_mix_shifted(b, s, &w->lerp_k)),
              *v = frit_linear(b, &w->v, frit_mix_shifted(b, s, &w->lerp_v));
    frit_node *gate = frit_linear(b, &w->q, frit_mix_shifted(b, s, &w->lerp_r));
    frit_node *y = frit_wkv(b->g, k, v, frit_weight_node(b->g, w->a.w), frit_weight_node(b->g, w->d.w),
                            frit_take_state(b, 3 * (int64_t)b->hp->recurrent.inner));
    return frit_linear(b, &w->out, frit_glu(b->g, gate, y, FRIT_ACT_SIGMOID));
}

// The residual would overflow f16, so it is halved after every `rescale_every` layers; later additions are scaled too.
static frit_node *layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    const int32_t every = b->hp->recurrent.rescale_every;
    const float factor = every > 0 ? ldexpf(1, -(b->i_layer / every)) : 1;
    x = frit_add(b->g, x, frit_scale(b->g, frit_mixer(b, w, frit_norm(b, &w->attn_norm, x)), factor));
    x = frit_add(b->g, x, frit_scale(b->g, frit_mix_channels(b, w, frit_norm(b, &w->ffn_norm, x)), factor));
    return every > 0 && (b->i_layer + 1) % every == 0 ? frit_scale(b->g, x, 0.5f) : x;
}

const frit_arch frit_arch_rwkv = {
    .name = "rwkv",
    .title = "RWKV 4",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .norm = FRIT_NORM_LAYER,
    .layer = layer,
    .recurrent = mix_time,
    .adjust = adjust,
};
