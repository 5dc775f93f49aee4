// SPDX-License-Identifier: MIT
// Layers with a recurrent state instead of keys and values: Mamba 1 and 2, gated delta nets, Kimi delta attention.
#include "arch/arch.h"

#include <math.h>

enum { MOST = 1 << 28 };   // upper bound of the numbers of one layer's state

static frit_status check_sizes(const frit_recurrent_params *r)
{
    if (r->inner < 1 || r->n_taps < 1)
        return frit_fail(FRIT_E_FORMAT, "recurrent layers have width %d and %d convolution taps, expected 1 or more",
                         (int)r->inner, (int)r->n_taps);
    if (r->rank > 0 && r->n_groups > 0 && (r->inner % r->rank != 0 || r->rank % r->n_groups != 0))
        return frit_fail(FRIT_E_FORMAT, "recurrent layers have width %d, %d heads and %d groups, expected multiples",
                         (int)r->inner, (int)r->rank, (int)r->n_groups);
    const double n = (double)r->n_channels * (r->n_taps - 1) + (double)r->inner * r->state;
    if (n <= MOST) return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT, "a recurrent layer's state has %.0f numbers, expected at most %d", n, (int)MOST);
}

frit_status frit_recurrent_adjust(frit_hparams *hp, bool parallel)
{
    frit_recurrent_params *r = &hp->recurrent;
    if (r->n_channels == 0) {
        const double n = (double)r->inner + 2.0 * r->n_groups * r->state;
        r->n_channels = n <= MOST ? (int32_t)n : MOST;
    }
    if (r->step_dim == 0) r->step_dim = r->rank;
    FRIT_TRY(check_sizes(r));
    for (int32_t i = 0; i < hp->n_layer; i++) {
        frit_layer_hparams *lhp = &hp->layers[i];
        if (!lhp->is_recurrent) continue;
        lhp->n_state = r->n_channels * (r->n_taps - 1) + r->inner * r->state;
        if (!parallel) lhp->n_head = lhp->n_head_kv = 0;
    }
    return FRIT_OK;
}

frit_status frit_hybrid_adjust(frit_hparams *hp)
{
    for (int32_t i = 0; i < hp->n_layer; i++) hp->layers[i].is_recurrent = hp->layers[i].n_head_kv == 0;
    return frit_recurrent_adjust(hp, false);
}

void frit_recurrent_by_interval(frit_hparams *hp, int32_t interval)
{
    bool is_listed = false;
    for (int32_t i = 0; i < hp->n_layer; i++) is_listed = is_listed || hp->layers[i].is_recurrent;
    if (hp->recurrent.interval > 0) interval = hp->recurrent.interval;
    for (int32_t i = 0; i < hp->n_layer && !is_listed; i++) hp->layers[i].is_recurrent = (i + 1) % interval != 0;
}

// ------------------------------------------------------------------------------- parts

static frit_node *weight(frit_build *b, const frit_weight *w)
{
    return frit_has(w) ? frit_weight_node(b->g, w->w) : NULL;
}

static frit_node *heads_of(frit_build *b, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n_head, dim});
}

static frit_node *flat(frit_build *b, frit_node *x)
{
    return x ? frit_reshape(b->g, x, 1, (int64_t[]){x->shape[1] * x->shape[2]}) : NULL;
}

frit_state frit_take_state(frit_build *b, int64_t n)
{
    const frit_state state = {.layer = b->i_layer, .offset = b->n_state};
    b->n_state += (int32_t)n;
    return state;
}

frit_node *frit_short_conv(frit_build *b, const frit_weight *taps, const frit_weight *bias, frit_node *x)
{
    if (!x) return NULL;
    const frit_state state = frit_take_state(b, x->shape[1] * (b->hp->recurrent.n_taps - 1));
    return frit_activate(b->g, frit_conv(b->g, x, weight(b, taps), weight(b, bias), state), FRIT_ACT_SILU);
}

static frit_node *norm_if(frit_build *b, const frit_weight *w, frit_node *x)
{
    const float eps = b->hp->recurrent.norm_eps;
    if (eps != 0 && !frit_has(w)) return frit_rms_norm(b->g, x, NULL, eps);
    return frit_has(w) || b->hp->recurrent.is_normed ? frit_norm(b, w, x) : x;
}

// ------------------------------------------------------------------------------- Mamba

frit_node *frit_mamba(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    frit_graph *g = b->g;
    frit_node *z = frit_linear(b, &w->z, x);
    x = frit_short_conv(b, &w->conv, &w->conv_b, frit_linear(b, &w->x, x));
    frit_node *mixed = frit_linear(b, &w->mix, x);
    frit_node *step = norm_if(b, &w->dt_norm, frit_slice(g, mixed, 0, r->step_dim));
    frit_node *keys = norm_if(b, &w->b_norm, frit_slice(g, mixed, r->step_dim, r->state));
    frit_node *queries = norm_if(b, &w->c_norm, frit_slice(g, mixed, r->step_dim + r->state, r->state));
    step = frit_activate(g, frit_linear(b, &w->dt, step), FRIT_ACT_SOFTPLUS);
    frit_node *y = frit_scan(g, heads_of(b, x, r->inner, 1), step, weight(b, &w->a), heads_of(b, keys, 1, r->state),
                             heads_of(b, queries, 1, r->state), frit_take_state(b, (int64_t)r->inner * r->state));
    y = frit_add(g, flat(b, y), frit_mul(g, x, weight(b, &w->d)));
    return frit_linear(b, &w->out, frit_glu(g, z, y, FRIT_ACT_SILU));
}

// Applies a norm to each group of channels.
static frit_node *norm_groups(frit_build *b, const frit_weight *w, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const int64_t n_groups = r->n_groups > 0 ? r->n_groups : 1;
    if (!frit_has(w)) return x;
    x = heads_of(b, x, n_groups, r->inner / n_groups);
    return frit_mul(b->g, flat(b, frit_rms_norm(b->g, x, NULL, b->hp->rms_eps)), weight(b, w));
}

frit_node *frit_mamba2_core(frit_build *b, const frit_layer *layer, frit_node *z, frit_node *channels, frit_node *step)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t n_groups = r->n_groups, n = n_groups * r->state;
    frit_graph *g = b->g;
    channels = frit_short_conv(b, &w->conv, &w->conv_b, channels);
    frit_node *x = frit_slice(g, channels, 0, r->inner);
    frit_node *keys = heads_of(b, frit_slice(g, channels, r->inner, n), n_groups, r->state);
    frit_node *queries = heads_of(b, frit_slice(g, channels, r->inner + n, n), n_groups, r->state);
    step = frit_activate(g, frit_add(g, step, weight(b, &w->dt_b)), FRIT_ACT_SOFTPLUS);
    frit_node *y = frit_scan(g, heads_of(b, x, r->rank, r->inner / r->rank), step, weight(b, &w->a), keys, queries,
                             frit_take_state(b, (int64_t)r->inner * r->state));
    y = frit_add(g, flat(b, y), frit_mul(g, x, weight(b, &w->d)));
    y = norm_groups(b, &w->norm, frit_glu(g, z, y, FRIT_ACT_SILU));
    return frit_linear(b, &w->out, y);
}

frit_node *frit_mamba2(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_recurrent_weights *r = &w->recurrent;
    return frit_mamba2_core(b, w, frit_linear(b, &r->z, x), frit_linear(b, &r->x, x), frit_linear(b, &r->step, x));
}

// ------------------------------------------------------------------------------- delta rules

frit_node *frit_unit_heads(frit_build *b, frit_node *x)
{
    if (!x) return NULL;
    const float n = (float)x->shape[2];
    return frit_scale(b->g, frit_rms_norm(b->g, x, NULL, 1e-6f / n), 1 / sqrtf(n));
}

// norm(y) * act(gate), one norm for each head; then the output projection.
static frit_node *gated_out(frit_build *b, const frit_weight *norm, const frit_weight *out, frit_node *y,
                            frit_node *gate, frit_act act)
{
    const float eps = b->hp->recurrent.norm_eps != 0 ? b->hp->recurrent.norm_eps : b->hp->rms_eps;
    y = flat(b, frit_rms_norm(b->g, y, weight(b, norm), eps));
    return frit_linear(b, out, frit_glu(b->g, gate, y, act));
}

frit_node *frit_delta_net(frit_build *b, const frit_layer *layer, frit_node *z, frit_node *qkv, frit_node *alpha,
                          frit_node *beta, bool interleaved)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t n_groups = r->n_groups, n = n_groups * r->state;
    frit_graph *g = b->g;
    qkv = frit_short_conv(b, &w->conv, &w->conv_b, qkv);
    frit_node *q = frit_unit_heads(b, heads_of(b, frit_slice(g, qkv, 0, n), n_groups, r->state));
    frit_node *k = frit_unit_heads(b, heads_of(b, frit_slice(g, qkv, n, n), n_groups, r->state));
    frit_node *v = heads_of(b, frit_slice(g, qkv, 2 * n, r->inner), r->rank, r->inner / r->rank);
    q = frit_scale(g, q, 1 / sqrtf((float)r->state));
    alpha = frit_activate(g, frit_add(g, alpha, weight(b, &w->dt_b)), FRIT_ACT_SOFTPLUS);
    frit_state state = frit_take_state(b, (int64_t)r->inner * r->state);
    state.interleaved = interleaved;
    beta = frit_scale(g, frit_activate(g, beta, FRIT_ACT_SIGMOID), r->beta_scale != 0 ? r->beta_scale : 1);
    frit_node *y = frit_delta(g, v, k, q, frit_mul(g, alpha, weight(b, &w->a)), beta, state);
    return gated_out(b, &w->norm, &w->out, y, z, FRIT_ACT_SILU);
}

frit_status frit_kda_adjust(frit_hparams *hp)
{
    frit_recurrent_params *r = &hp->recurrent;
    for (int32_t i = 0; i < hp->n_layer; i++)
        if (r->rank < hp->layers[i].n_head) r->rank = hp->layers[i].n_head;
    if (r->rank < 1 || r->head_dim < 1 || r->head_dim > MOST / 3 / r->rank)
        return frit_fail(FRIT_E_FORMAT, "delta attention has %d heads of %d numbers, expected 1 to %d numbers in all",
                         (int)r->rank, (int)r->head_dim, (int)(MOST / 3));
    r->state = r->head_dim;
    r->inner = r->rank * r->head_dim;
    r->n_channels = 3 * r->inner;
    FRIT_TRY(frit_hybrid_adjust(hp));
    return frit_mla_adjust(hp);
}

// The product with one matrix, or with two low-rank matrices if the file has them.
static frit_node *narrow(frit_build *b, const frit_weight *first, const frit_weight *second, frit_node *x)
{
    x = frit_linear(b, first, x);
    return frit_has(second) ? frit_linear(b, second, x) : x;
}

// Computes logarithms of decays, [T, rank, head_dim].
static frit_node *kda_decays(frit_build *b, const frit_recurrent_weights *w, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    frit_graph *g = b->g;
    x = frit_add(g, narrow(b, &w->decay_a, &w->decay_b, x), weight(b, &w->dt_b));
    if (!r->is_bounded) return frit_mul(g, frit_activate(g, x, FRIT_ACT_SOFTPLUS), weight(b, &w->a));
    x = frit_scale(g, frit_mul(g, x, weight(b, &w->a)), r->is_negative ? -1 : 1);
    return frit_scale(g, frit_activate(g, x, FRIT_ACT_SIGMOID), r->lower_bound);
}

frit_node *frit_kda(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    const int64_t n_head = r->rank, dim = r->head_dim;
    frit_graph *g = b->g;
    frit_node *q = heads_of(b, frit_short_conv(b, &w->conv_q, &w->conv_b, frit_linear(b, &w->q, x)), n_head, dim);
    frit_node *k = heads_of(b, frit_short_conv(b, &w->conv_k, &w->conv_b, frit_linear(b, &w->k, x)), n_head, dim);
    frit_node *v = heads_of(b, frit_short_conv(b, &w->conv_v, &w->conv_b, frit_linear(b, &w->v, x)), n_head, dim);
    q = frit_scale(g, frit_unit_heads(b, q), 1 / sqrtf((float)dim));
    k = frit_unit_heads(b, k);
    frit_node *decays = heads_of(b, kda_decays(b, w, x), n_head, dim);
    frit_node *beta = frit_activate(g, frit_linear(b, &w->beta, x), FRIT_ACT_SIGMOID);
    frit_node *y = frit_delta(g, v, k, q, decays, beta, frit_take_state(b, (int64_t)r->inner * r->state));
    return gated_out(b, &w->norm, &w->out, y, narrow(b, &w->gate_a, &w->gate_b, x), FRIT_ACT_SIGMOID);
}

// ------------------------------------------------------------------------------- gated convolutions

frit_status frit_gated_conv_adjust(frit_hparams *hp)
{
    hp->recurrent.inner = hp->recurrent.n_channels = hp->n_embd;
    return frit_hybrid_adjust(hp);
}

frit_node *frit_gated_conv(frit_build *b, const frit_layer *layer, frit_node *x)
{
    const frit_recurrent_params *r = &b->hp->recurrent;
    const frit_recurrent_weights *w = &layer->recurrent;
    frit_graph *g = b->g;
    frit_node *parts = frit_linear(b, &w->in, x);
    x = frit_mul(g, frit_slice(g, parts, 0, r->inner), frit_slice(g, parts, 2 * (int64_t)r->inner, r->inner));
    x = frit_conv(g, x, weight(b, &w->conv), NULL, frit_take_state(b, (int64_t)r->inner * (r->n_taps - 1)));
    return frit_linear(b, &w->out, frit_mul(g, frit_slice(g, parts, r->inner, r->inner), x));
}
