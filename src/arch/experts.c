// SPDX-License-Identifier: MIT
// Mixtures of experts. The router scores all experts, the route contains the best ones and their weights, and the
// experts' products use the route.
#include "arch/arch.h"

frit_route frit_route_of(const frit_build *b)
{
    const frit_hparams *hp = b->hp;
    return (frit_route){.gating = hp->gating,
                        .n_used = hp->n_expert_used,
                        .n_groups = hp->n_expert_groups,
                        .n_groups_used = hp->n_expert_groups_used,
                        .normalize = hp->expert_normalize,
                        .scale = hp->expert_scale,
                        .jitter = hp->router_jitter};
}

// The product with the routed experts' matrices, with their scale and bias.
static frit_node *expert_linear(frit_build *b, const frit_weight *w, frit_node *x, frit_node *route,
                                frit_experts experts)
{
    frit_graph *g = b->g;
    frit_node *y = frit_experts_node(g, frit_weight_node(g, w->w), x, route, experts);
    if (w->scale) y = frit_scale_rows(g, y, frit_gather_experts(g, frit_weight_node(g, w->scale), route));
    y = frit_adapt(b, w, x, route, experts.begin, y);
    if (w->b) {
        frit_node *biases = frit_gather_experts(g, frit_weight_node(g, w->b), route);
        y = frit_add(g, y, frit_slice(g, biases, experts.begin, experts.n));
    }
    return y;
}

static frit_experts all_rows(const frit_weight *w)
{
    return (frit_experts){.n = frit_has(w) ? (int32_t)w->w->shape[1] : 0};
}

static frit_node *activate(frit_build *b, frit_node *gate, frit_node *up)
{
    if (gate && b->arch->glu) return b->arch->glu(b, gate, up);
    return gate ? frit_clamped_glu(b, gate, up, b->hp->act, b->lhp->clamp_exp) : frit_activate(b->g, up, b->hp->act);
}

frit_node *frit_experts_by_route(frit_build *b, const frit_ffn_weights *w, frit_node *x, frit_node *route)
{
    frit_node *gate = frit_has(&w->gate) ? expert_linear(b, &w->gate, x, route, all_rows(&w->gate)) : NULL;
    frit_node *up = expert_linear(b, &w->up, x, route, all_rows(&w->up));
    frit_node *h = activate(b, gate, up);
    return frit_mix(b->g, expert_linear(b, &w->down, h, route, all_rows(&w->down)), route, false);
}

// Experts in which gate and up are row ranges of one matrix.
static frit_node *fused_experts_by_route(frit_build *b, const frit_layer *w, frit_node *x, frit_node *route)
{
    const int32_t n = b->hp->n_ff_exp;
    frit_node *gate = expert_linear(b, &w->gate_up_experts, x, route, (frit_experts){.n = n});
    frit_node *up = expert_linear(b, &w->gate_up_experts, x, route, (frit_experts){.begin = n, .n = n});
    frit_node *h = activate(b, gate, up);
    return frit_mix(b->g, expert_linear(b, &w->experts.down, h, route, all_rows(&w->experts.down)), route, false);
}

frit_node *frit_routed_experts(frit_build *b, const frit_layer *w, frit_node *x, frit_node *scores)
{
    if (!scores) scores = frit_linear(b, &w->router, x);
    frit_node *bias = frit_has(&w->router_bias) ? frit_weight_node(b->g, w->router_bias.w) : NULL;
    frit_node *route = frit_route_node(b->g, scores, bias, frit_route_of(b));
    if (frit_has(&w->routed_down)) x = frit_linear(b, &w->routed_down, x);
    x = frit_has(&w->gate_up_experts) ? fused_experts_by_route(b, w, x, route)
                                      : frit_experts_by_route(b, &w->experts, x, route);
    if (frit_has(&w->routed_norm)) x = frit_norm(b, &w->routed_norm, x);
    if (frit_has(&w->routed_up)) x = frit_linear(b, &w->routed_up, x);
    return frit_has(&w->routed_bias) ? frit_add(b->g, x, frit_weight_node(b->g, w->routed_bias.w)) : x;
}

frit_node *frit_shared_experts(frit_build *b, const frit_layer *w, frit_node *x)
{
    frit_node *y;
    if (b->lhp->clamp_shexp != 0 && frit_has(&w->shared.gate)) {
        y = frit_clamped_glu(b, frit_linear(b, &w->shared.gate, x), frit_linear(b, &w->shared.up, x), b->hp->act,
                             b->lhp->clamp_shexp);
        y = frit_linear(b, &w->shared.down, y);
    } else {
        y = frit_feed_forward(b, &w->shared, x, b->hp->act);
    }
    if (!frit_has(&w->shared_gate)) return y;
    frit_node *gate = frit_activate(b->g, frit_linear(b, &w->shared_gate, x), FRIT_ACT_SIGMOID);
    return frit_scale_rows(b->g, y, gate);
}

frit_node *frit_feed_forward_or_experts(frit_build *b, const frit_layer *w, frit_node *x)
{
    if (!frit_has(&w->router)) return frit_feed_forward(b, &w->ffn, x, b->hp->act);
    frit_node *y = frit_routed_experts(b, w, x, NULL);
    if (!frit_has(&w->shared.up)) return y;
    y = frit_add(b->g, y, frit_shared_experts(b, w, x));
    return b->arch->averages_shared ? frit_scale(b->g, y, 0.5f) : y;
}
