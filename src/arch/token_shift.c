// SPDX-License-Identifier: MIT
// Blocks of RWKV: token shift, channel mixing, narrow and wide matrices.
#include "arch/arch.h"

#include <stdio.h>

static const float group_eps = 64e-5f;   // files have no key for it

static frit_node *weight(frit_build *b, const frit_weight *w)
{
    return frit_weight_node(b->g, w->w);
}

frit_shifted frit_shift_tokens(frit_build *b, frit_node *x)
{
    frit_node *before = frit_shift(b->g, x, frit_take_state(b, b->hp->n_embd));
    return (frit_shifted){x, frit_add(b->g, before, frit_scale(b->g, x, -1))};
}

frit_node *frit_mix_shifted(frit_build *b, frit_shifted s, const frit_weight *lerp)
{
    return frit_add(b->g, s.x, frit_mul(b->g, s.way, weight(b, lerp)));
}

frit_node *frit_mix_channels(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_shifted s = frit_shift_tokens(b, x);
    frit_node *k = frit_linear(b, &layer->ffn.up, frit_mix_shifted(b, s, &layer->recurrent.ffn_lerp_k));
    k = frit_linear(b, &layer->ffn.down, frit_activate(b->g, k, FRIT_ACT_RELU2));
    if (!frit_has(&layer->ffn.gate)) return k;
    frit_node *gate = frit_linear(b, &layer->ffn.gate, frit_mix_shifted(b, s, &layer->recurrent.ffn_lerp_r));
    return frit_glu(b->g, gate, k, FRIT_ACT_SIGMOID);
}

frit_node *frit_narrow_wide(frit_build *b, const frit_weight *narrow, frit_act act, const frit_weight *wide,
                            const frit_weight *added, frit_node *x)
{
    x = frit_linear(b, narrow, x);
    if (act < FRIT_ACT_COUNT) x = frit_activate(b->g, x, act);
    x = frit_linear(b, wide, x);
    return added ? frit_add(b->g, x, weight(b, added)) : x;
}

frit_node *frit_norm_groups(frit_build *b, const frit_weight *w, frit_node *y)
{
    if (!y) return NULL;
    const int64_t n = y->shape[1] * y->shape[2];
    if (!frit_has(w)) return frit_reshape(b->g, y, 1, &n);
    y = frit_reshape(b->g, frit_layer_norm(b->g, y, NULL, NULL, group_eps), 1, &n);
    y = frit_mul(b->g, y, weight(b, w));
    return w->b ? frit_add(b->g, y, frit_weight_node(b->g, w->b)) : y;
}

frit_status frit_rwkv_adjust(frit_hparams *hp, int32_t n_shifts)
{
    frit_recurrent_params *r = &hp->recurrent;
    if (r->head_dim < 1 || hp->n_embd % r->head_dim != 0 || hp->n_embd > (1 << 30) / r->head_dim - n_shifts)
        return frit_fail(FRIT_E_FORMAT, "wkv.head_size is %d, expected a divisor of embedding_length %d",
                         (int)r->head_dim, (int)hp->n_embd);
    r->inner = hp->n_embd;
    r->rank = r->n_groups = hp->n_embd / r->head_dim;
    r->state = r->head_dim;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        hp->layers[i].is_recurrent = true;
        hp->layers[i].n_head = hp->layers[i].n_head_kv = 0;
        hp->layers[i].n_state = n_shifts * hp->n_embd + r->inner * r->head_dim;
    }
    return FRIT_OK;
}

static frit_status cut_lerps(frit_recurrent_weights *w, const frit_hparams *hp, int32_t layer, frit_arena *arena)
{
    const float *all = w->lerps.w->data;
    const int64_t n = hp->n_embd;
    for (int64_t i = 0; i < w->lerps.w->shape[0] / n; i++) {
        char name[48];
        snprintf(name, sizeof name, "blk.%d.time_mix_lerp.%d", (int)layer, (int)i);
        const char *copy = frit_arena_text(arena, name, strlen(name));
        float *values;
        if (!copy) return frit_fail_memory(sizeof name, "a tensor name");
        FRIT_TRY(frit_constant_new(&w->lerp[i].w, &values, copy, 1, &n, arena));
        memcpy(values, all + i * n, (size_t)n * sizeof *values);
    }
    return FRIT_OK;
}

frit_status frit_rwkv_compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_recurrent_weights *w = &weights->layers[i].recurrent;
        FRIT_TRY(cut_lerps(w, hp, i, arena));
        if (!frit_has(&w->bonus)) continue;
        frit_tensor *rows = frit_arena_new(arena, frit_tensor, 1);
        if (!rows) return frit_fail_memory(sizeof *rows, w->bonus.w->name);
        *rows = *w->bonus.w;
        rows->n_dims = 3;
        rows->shape[0] = hp->recurrent.rank;
        rows->shape[1] = 1;
        rows->shape[2] = hp->recurrent.head_dim;
        w->bonus.w = rows;
    }
    return FRIT_OK;
}
