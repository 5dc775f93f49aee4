// SPDX-License-Identifier: MIT
// Graphs and plans as text. Leaves are named where they are used; other nodes have a line and a number:
//
//     %7 = linear(%4, blk.0.attn_q.weight) [T, 64]
//
// A line of a plan begins with the offset of the result, if it is stored; "-" is a barrier between two phases. "<"
// begins a fusion of the prologue, ">" one of the epilogue, indented by its level; "|" continues the fusion of the line
// above.
#include "graph/node.h"
#include "graph/plan.h"

static const char *const act_names[FRIT_ACT_COUNT] = {
    [FRIT_ACT_SILU] = "silu", [FRIT_ACT_GELU] = "gelu",       [FRIT_ACT_GELU_TANH] = "gelu_tanh",
    [FRIT_ACT_RELU] = "relu", [FRIT_ACT_RELU2] = "relu2",     [FRIT_ACT_GELU_QUICK] = "gelu_quick",
    [FRIT_ACT_TANH] = "tanh", [FRIT_ACT_SIGMOID] = "sigmoid", [FRIT_ACT_SOFTPLUS] = "softplus",
};

// One function for each name in the attributes column of the op table.
static void print_none(const frit_node *node, frit_buf *out)
{
    (void)node;
    (void)out;
}

static void print_norm(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " eps=%g", (double)node->eps);
}

static void print_scale(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " factor=%g", (double)node->factor);
}

static void print_clamp(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " %g to %g", (double)node->clamp.low, (double)node->clamp.high);
}

static void print_relate(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " scale=%g span=%d", (double)node->relate.scale, (int)node->relate.span);
}

static void print_xielu(const frit_node *node, frit_buf *out)
{
    const frit_xielu *p = &node->xielu;
    frit_buf_printf(out, " positive=%g negative=%g beta=%g", (double)p->positive, (double)p->negative, (double)p->beta);
}

static void print_slice(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " begin=%lld", (long long)node->begin);
}

static void print_rows(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " n=%d", (int)node->n_taken);
}

static void print_route(const frit_node *node, frit_buf *out)
{
    static const char *const gatings[FRIT_GATING_COUNT] = {"none",          "softmax",  "sigmoid", "softmax_selected",
                                                           "sqrt_softplus", "near_best"};
    frit_buf_printf(out, " %s k=%d", gatings[node->route.gating], (int)node->route.n_used);
    if (node->route.n_groups > 1)
        frit_buf_printf(out, " groups=%d of %d", (int)node->route.n_groups_used, (int)node->route.n_groups);
}

static void print_experts(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " rows=%d from %d", (int)node->experts.n, (int)node->experts.begin);
}

static void print_experts_glu(const frit_node *node, frit_buf *out)
{
    const frit_experts_glu *glu = &node->experts_glu;
    frit_buf_printf(out, " %s rows=%d from %d and %d", act_names[glu->act], (int)glu->n, (int)glu->gate, (int)glu->up);
}

static void print_mix(const frit_node *node, frit_buf *out)
{
    if (node->plain) frit_buf_text(out, " plain");
}

static void print_times(const frit_node *node, frit_buf *out)
{
    if (node->factor != 0) frit_buf_printf(out, " factor=%g", (double)node->factor);
}

static void print_act(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " %s", act_names[node->act]);
}

static void print_rope(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " %s dim=%d", node->rope.style == FRIT_ROPE_NEOX ? "neox" : "interleaved",
                    (int)node->rope.dim);
    if (node->rope.offset != 0) frit_buf_printf(out, " offset=%d", (int)node->rope.offset);
    if (node->rope.shift != 0) frit_buf_printf(out, " shift=%d", (int)node->rope.shift);
    if (node->rope.is_back) frit_buf_text(out, " back");
    if (node->rope.magnitude != 1) frit_buf_printf(out, " magnitude=%g", (double)node->rope.magnitude);
}

static void print_cache(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " layer=%d", (int)node->layer);
}

static void print_choose(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " layer=%d n=%d", (int)node->choose.layer, (int)node->choose.n);
    if (node->choose.n_latest > 0) frit_buf_printf(out, " latest=%d", (int)node->choose.n_latest);
    if (node->choose.block > 1) frit_buf_printf(out, " block=%d", (int)node->choose.block);
}

static void print_hyper(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " n=%d iterations=%d", (int)node->hyper.n, (int)node->hyper.n_iterations);
}

static void print_state(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " layer=%d", (int)node->state.layer);
    if (node->state.offset != 0) frit_buf_printf(out, " offset=%d", (int)node->state.offset);
    if (node->state.block != 0) frit_buf_printf(out, " block=%d", (int)node->state.block);
    if (node->state.overlaps) frit_buf_text(out, " overlaps");
    if (node->state.interleaved) frit_buf_text(out, " interleaved");
}

static void print_attend(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " layer=%d scale=%g", (int)node->attend.layer, (double)node->attend.scale);
    if (node->attend.softcap != 0) frit_buf_printf(out, " softcap=%g", (double)node->attend.softcap);
    if (node->attend.window != 0) frit_buf_printf(out, " window=%d", (int)node->attend.window);
    if (node->attend.chunk != 0) frit_buf_printf(out, " chunk=%d", (int)node->attend.chunk);
    if (node->attend.alibi != 0) frit_buf_printf(out, " alibi=%g", (double)node->attend.alibi);
    if (node->attend.temp_scale != 0) frit_buf_printf(out, " temp_scale=%g", (double)node->attend.temp_scale);
    if (node->attend.bidirectional) frit_buf_text(out, " bidirectional");
    if (node->attend.cross) frit_buf_text(out, " cross");
    if (node->attend.block != 0) frit_buf_printf(out, " block=%d", (int)node->attend.block);
    if (node->attend.reach != 0) frit_buf_printf(out, " reach=%d", (int)node->attend.reach);
    if (node->attend.ends_at != 0) frit_buf_printf(out, " ends_at=%d", (int)node->attend.ends_at);
}

static void print_adapted(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " matrix=%d", (int)node->adapted[0].matrix);
    if (node->adapted[0].first_row != 0) frit_buf_printf(out, " first=%lld", (long long)node->adapted[0].first_row);
}

static void print_ranks(const frit_node *node, frit_buf *out)
{
    frit_buf_printf(out, " ranks=%d", (int)node->ranks.n);
    if (node->op != FRIT_OP_REDUCE)
        frit_buf_printf(out, " parts=%d axis=%d", (int)node->ranks.n_parts, (int)node->ranks.axis);
}

static void (*const print_attributes[])(const frit_node *node, frit_buf *out) = {
#define OP(NAME, name, min_src, max_src, sources, attr, shape, rows, cut, formula) print_##attr,
#include "graph/ops.def"
#undef OP
};

// Plans have no lines for aliases, so their source is named.
static void print_source(const frit_node *node, bool in_plan, frit_buf *out)
{
    if (in_plan) node = frit_node_storage(node);
    static const char *const inputs[] = {"tokens", "positions", "out_rows", "input", "written"};
    if (node->op == FRIT_OP_INPUT && node->input == FRIT_INPUT_RESULT)
        frit_buf_printf(out, "input %%%d", node->id);
    else if (node->op == FRIT_OP_INPUT)
        frit_buf_text(out, inputs[node->input]);
    else if (node->op == FRIT_OP_WEIGHT)
        frit_buf_text(out, node->tensor->name ? node->tensor->name : "?");
    else
        frit_buf_printf(out, "%%%d", node->id);
}

static void print_node(const frit_node *node, bool in_plan, frit_buf *out)
{
    char shape[96];
    frit_buf_printf(out, "%%%d = %s(", node->id, frit_op_get(node->op)->name);
    for (int i = 0; i < node->n_src; i++) {
        if (i > 0) frit_buf_text(out, ", ");
        print_source(node->src[i], in_plan, out);
    }
    frit_buf_printf(out, ") %s", frit_node_shape_text(node, shape));
    print_attributes[node->op](node, out);
    frit_buf_char(out, '\n');
}

void frit_graph_print(const frit_graph *graph, frit_buf *out)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        if (!frit_node_is_leaf(graph->nodes[i])) print_node(graph->nodes[i], false, out);
    }
    if (graph->output) frit_buf_printf(out, "output %%%d\n", graph->output->id);
}

static void print_fusion(const frit_plan *plan, const frit_fusion *fusion, char role, frit_buf *out)
{
    for (int i = 0; i < fusion->n_nodes; i++) {
        const frit_node *node = fusion->nodes[i];
        if (plan->offsets[node->id] == UINT64_MAX)
            frit_buf_printf(out, "%10s", "");
        else
            frit_buf_printf(out, "%10llu", (unsigned long long)plan->offsets[node->id]);
        frit_buf_printf(out, " %c %*s", i > 0 ? '|' : role, 2 * fusion->level, "");
        print_node(node, true, out);
    }
}

void frit_plan_print(const frit_plan *plan, frit_buf *out)
{
    const frit_phases *phases = &plan->phases;
    for (int i = 0; i < phases->n; i++) {
        const frit_phase *phase = &phases->list[i];
        if (i > 0) frit_buf_text(out, "-\n");
        for (int k = 0; k < phase->n_prologue; k++) print_fusion(plan, &phase->prologue[k], '<', out);
        for (int k = 0; k < phase->n_products; k++) print_fusion(plan, &phase->products[k], ' ', out);
        for (int k = 0; k < phase->n_epilogue; k++) print_fusion(plan, &phase->epilogue[k], '>', out);
    }
    for (int i = 0; i < plan->graph->n_results; i++) {
        frit_buf_text(out, "result ");
        print_source(plan->graph->results[i], true, out);
        frit_buf_char(out, '\n');
    }
    frit_buf_text(out, "output ");
    if (plan->graph->output)
        print_source(plan->graph->output, true, out);
    else
        frit_buf_text(out, "none");
    frit_buf_printf(out, ", %d phases, %d fusions, %llu bytes\n", phases->n, phases->n_fusions,
                    (unsigned long long)plan->scratch_bytes);
}
