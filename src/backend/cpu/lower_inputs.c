// SPDX-License-Identifier: MIT
// Lists the activation inputs of a plan and the fusions that compute them (act_input.h).
#include "backend/cpu/lower.h"

static int producer_of(const lowering *l, const frit_node *read)
{
    return l->plan->phases.fusion_of[read->id];
}

static bool is_prologue(const lowering *l, int k)
{
    return k != FRIT_NONE && frit_phases_is_prologue(&l->plan->phases, k);
}

static bool is_norm(const frit_node *node)
{
    return node->op == FRIT_OP_RMS_NORM || node->op == FRIT_OP_LAYER_NORM;
}

// True for products that can also compute their results in other forms, 32 columns at a time.
static bool makes_columns(const lowering *l, const frit_fusion *fusion)
{
    return fusion->n_nodes > 1 && frit_lower_is_product(l, fusion->nodes[0]);
}

// True if the fusion that computes `source` can also compute it in this form, a row or 32 columns at a time.
static bool makes_form(const lowering *l, const frit_node *source, frit_form form)
{
    const int k = producer_of(l, source);
    const frit_fusion *fusion = k == FRIT_NONE ? NULL : frit_lower_fusion(l, k);
    const int64_t n = frit_node_width(source);
    if (!fusion || frit_fusion_result(fusion) != frit_node_storage(source)) return false;
    if (!frit_lower_runs_fast(l, fusion->nodes[0]) || frit_node_width(frit_fusion_result(fusion)) != n ||
        form == FRIT_FORM_F32)
        return false;
    if (makes_columns(l, fusion)) return frit_form_column_bytes(form) > 0 && n % 32 == 0;
    return is_norm(fusion->nodes[0]) || fusion->n_nodes > 1;
}

int frit_lower_forms(const lowering *l, const frit_node *node, int i, frit_form forms[2])
{
    const frit_task_env *env = frit_lower_env(l, node);
    forms[0] = frit_linear_form(env->kernels, node, i);
    forms[1] = frit_linear_form(env->decode_kernels, node, i);
    return l->device->mixes_classes && forms[0] != forms[1] ? 2 : 1;
}

static bool makes_forms(const lowering *l, const frit_node *node, int i)
{
    frit_form forms[2];
    const int n = frit_lower_forms(l, node, i, forms);
    return makes_form(l, node->src[0], forms[0]) && (n < 2 || makes_form(l, node->src[0], forms[1]));
}

static void count_read(lowering *l, int reader, const frit_node *node, int i)
{
    const int k = producer_of(l, node->src[i]);
    if (k == FRIT_NONE || k == reader) return;
    const frit_fusion *fusion = frit_lower_fusion(l, k);
    if (frit_fusion_result(fusion) != frit_node_storage(node->src[i])) return;
    fusion_info *info = &l->infos[k];
    const bool whole = frit_node_width(node->src[i]) == frit_node_width(frit_fusion_result(fusion));
    const bool is_input = i == 0 && whole && frit_lower_is_product(l, node);
    info->n_reads++;
    const bool is_norm_of_sum = is_prologue(l, reader) && frit_lower_fusion(l, reader)->n_nodes == 1;
    if (is_prologue(l, k) && fusion->n_nodes > 1 && !is_input && !is_norm_of_sum) info->stores_sum = true;
    if (!is_input) return;
    bool produced = true;
    for (int m = 0; m < node->n_src; m++)
        if (frit_lower_asks_form(node, m)) produced = produced && makes_forms(l, node, m);
    info->n_produced += produced;
}

static void count_reads(lowering *l)
{
    const frit_phases *phases = &l->plan->phases;
    const frit_graph *g = l->plan->graph;
    for (int i = -1; i < g->n_results; i++) {
        const frit_node *read = i < 0 ? g->output : g->results[i];
        const int k = read ? producer_of(l, read) : FRIT_NONE;
        if (k == FRIT_NONE) continue;
        l->infos[k].n_reads++;
        l->infos[k].stores_sum = is_prologue(l, k) && phases->fusions[k].n_nodes > 1;
    }
    for (int k = 0; k < phases->n_fusions; k++)
        for (int n = 0; n < phases->fusions[k].n_nodes; n++) {
            const frit_node *node = phases->fusions[k].nodes[n];
            for (int i = 0; i < node->n_src; i++) count_read(l, k, node, i);
        }
}

static frit_act_input *find_input(const lowering *l, const frit_node *source, const frit_task_env *env, frit_form form)
{
    for (int i = 0; i < l->exec->n_inputs; i++) {
        frit_act_input *input = &l->exec->inputs[i];
        if (frit_node_storage(input->source) == frit_node_storage(source) && input->form == form && input->env == env &&
            frit_node_width(input->source) == frit_node_width(source))
            return input;
    }
    return NULL;
}

const frit_act_input *frit_lower_find_input(const lowering *l, const frit_node *node, frit_form form)
{
    return find_input(l, node->src[0], frit_lower_env(l, node), form);
}

// Sets the part of an input that the phase's prologue computes: a norm, a sum of a residual and a norm, or its norm.
static void set_prologue(const lowering *l, frit_act_input *input)
{
    const int k = producer_of(l, input->source);
    if (!is_prologue(l, k)) return;
    const frit_fusion *fusion = frit_lower_fusion(l, k), *sum = fusion;
    if (fusion->n_nodes == 1) {
        input->norm.node = fusion->nodes[0];
        const int from = producer_of(l, fusion->nodes[0]->src[0]);
        sum = is_prologue(l, from) ? frit_lower_fusion(l, from) : NULL;
    }
    if (sum) input->sum.node = sum->nodes[0];
}

static void add_input(lowering *l, int k, const frit_node *node, frit_form form, frit_act_rows kind)
{
    const frit_node *source = node->src[0];
    const frit_task_env *env = frit_lower_env(l, node);
    const int producer = producer_of(l, source), phase = frit_lower_fusion(l, k)->phase;
    if (form == FRIT_FORM_F32 && !is_prologue(l, producer)) return;   // read directly
    frit_act_input *input = find_input(l, source, env, form);
    if (!input) {
        const bool in_prologue = is_prologue(l, producer), produced = in_prologue || makes_form(l, source, form);
        input = &l->exec->inputs[l->exec->n_inputs];
        *input = (frit_act_input){.source = source,
                                  .env = env,
                                  .form = form,
                                  .kind = form == FRIT_FORM_F32 ? FRIT_ACT_ALL : kind,
                                  .is_per_thread = env == &l->exec->decode && (in_prologue || !produced) &&
                                                   !frit_form_is_tiled(form),
                                  .id = (uint32_t)l->exec->n_inputs + 1};
        set_prologue(l, input);
        l->inputs[l->exec->n_inputs++] = (input_info){.first = produced ? frit_lower_fusion(l, producer)->phase : phase,
                                                      .last = phase,
                                                      .producer = produced ? producer : FRIT_NONE,
                                                      .buffer = FRIT_NONE};
    }
    // One product may read the decode rows in a form, and another all rows.
    if (input->kind != kind) input->kind = FRIT_ACT_ALL;
    input->is_per_thread = input->is_per_thread && frit_cpu_ops[node->op].own_input;
    l->inputs[input - l->exec->inputs].last = phase;
}

static void assign_buffer(lowering *l, int i)
{
    const frit_act_input *input = &l->exec->inputs[i];
    input_info *info = &l->inputs[i];
    int s = 0;
    while (s < l->n_buffers && (l->buffers[s].form != input->form || l->buffers[s].last >= info->first)) s++;
    if (s == l->n_buffers) l->buffers[l->n_buffers++] = (input_buffer){.form = input->form, .last = FRIT_NONE};
    info->buffer = s;
    l->buffers[s].last = info->last;
    frit_widen(&l->buffers[s].n_bytes,
               frit_form_bytes_of_rows(input->form, frit_node_height(input->source), frit_node_width(input->source)));
}

// A node of a prologue runs for all its inputs, or threads compute all inputs for themselves.
static void agree_on_threads(lowering *l)
{
    frit_act_input *inputs = l->exec->inputs;
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < l->exec->n_inputs; i++)
            for (int k = 0; k < l->exec->n_inputs; k++) {
                const bool same_norm = inputs[i].norm.node && inputs[i].norm.node == inputs[k].norm.node;
                const bool same_sum = inputs[i].sum.node && inputs[i].sum.node == inputs[k].sum.node;
                if ((!same_norm && !same_sum) || inputs[i].is_per_thread || !inputs[k].is_per_thread) continue;
                inputs[k].is_per_thread = false;
                changed = true;
            }
    }
}

static void add_inputs(lowering *l, int k, const frit_node *node, int i)
{
    frit_form forms[2];
    const int n = frit_lower_forms(l, node, i, forms);
    add_input(l, k, node, forms[0], n > 1 ? FRIT_ACT_PREFILL : FRIT_ACT_ALL);
    if (n > 1) add_input(l, k, node, forms[1], FRIT_ACT_DECODE);
}

void frit_lower_list_inputs(lowering *l)
{
    const frit_phases *phases = &l->plan->phases;
    count_reads(l);
    for (int k = 0; k < phases->n_fusions; k++)
        for (int n = 0; n < phases->fusions[k].n_products; n++) {
            const frit_node *node = phases->fusions[k].nodes[n];
            for (int i = 0; frit_lower_is_product(l, node) && i < node->n_src; i++)
                if (frit_lower_asks_form(node, i)) add_inputs(l, k, node, i);
        }
    agree_on_threads(l);
    for (int i = 0; i < l->exec->n_inputs; i++) {
        const frit_act_input *input = &l->exec->inputs[i];
        const int64_t n = frit_node_width(input->source);
        if (input->form != FRIT_FORM_F32) assign_buffer(l, i);
        if (l->inputs[i].producer != FRIT_NONE) frit_widen(&l->thread_row_bytes, 2 * (uint64_t)n * sizeof(float));
        if (input->is_per_thread)
            frit_widen(&l->per_thread_bytes[input->form],
                       frit_form_bytes_of_rows(input->form, FRIT_PER_THREAD_ROWS, n));
    }
}

static void point_norm(const lowering *l, frit_act_norm *norm)
{
    if (norm->node && norm->node->n_src > 1) norm->w = frit_lower_activations(l, norm->node->src[1]);
    if (norm->node && norm->node->n_src > 2) norm->b = frit_lower_activations(l, norm->node->src[2]);
}

void frit_lower_point_inputs(lowering *l)
{
    for (int i = 0; i < l->exec->n_inputs; i++) {
        frit_act_input *input = &l->exec->inputs[i];
        input->x = frit_lower_activations(l, input->norm.node ? input->norm.node->src[0] : input->source);
        point_norm(l, &input->norm);
        point_norm(l, &input->sum);
        if (input->sum.node) {
            const frit_fusion *fusion = frit_lower_fusion(l, producer_of(l, input->sum.node));
            const frit_node *add = frit_fusion_result(fusion);
            input->summand = frit_lower_activations(l, input->sum.node->src[0]);
            input->residual = frit_lower_activations(l, add->src[add->src[0] == input->sum.node]);
            input->stored = (float *)(void *)(l->exec->scratch.bytes + l->plan->offsets[add->id]);
        }
        if (input->form == FRIT_FORM_F32)
            input->rows = (uint8_t *)(uintptr_t)frit_lower_activations(l, input->source);
        else
            input->rows = l->exec->scratch.bytes + l->buffers[l->inputs[i].buffer].offset;
        input->per_thread_offset = (size_t)l->per_thread_offsets[input->form];
    }
}

// If other nodes read a sum that threads compute for themselves, the first product that reads it stores it.
static void set_stored_sum(const lowering *l, int k, frit_task *task)
{
    for (int form = 0; frit_lower_is_product(l, task->node) && form < FRIT_FORM_COUNT; form++) {
        const frit_act_input *input = task->inputs[form];
        fusion_info *info = input && input->sum.node ? &l->infos[producer_of(l, input->sum.node)] : NULL;
        if (!info || !info->stores_sum) continue;
        if (frit_lower_fusion(l, producer_of(l, input->sum.node))->phase != frit_lower_fusion(l, k)->phase) continue;
        info->stores_sum = false;
        task->stores = input;
        return;
    }
}

void frit_lower_set_inputs(const lowering *l, int k, frit_task *task)
{
    const frit_node *node = task->node;
    const frit_fusion *fusion = frit_lower_fusion(l, k);
    const fusion_info *info = &l->infos[k];
    for (int i = 0; frit_lower_is_product(l, node) && i < node->n_src; i++) {
        frit_form forms[2];
        const int n = frit_lower_asks_form(node, i) ? frit_lower_forms(l, node, i, forms) : 0;
        for (int f = 0; f < n; f++) {
            const frit_act_input *input = frit_lower_find_input(l, node, forms[f]);
            if (!input) continue;
            task->inputs[input->form] = input;
            task->forms[input->form] = input->rows;
        }
    }
    set_stored_sum(l, k, task);
    if (node != fusion->nodes[0]) return;   // the second product of GLU
    bool makes_f32 = false;
    for (int i = 0; i < l->exec->n_inputs; i++) {
        const frit_act_input *input = &l->exec->inputs[i];
        if (input->sum.node == node) task->inputs[input->form] = input;
        if (l->inputs[i].producer != k) continue;
        if (input->form == FRIT_FORM_F32)
            makes_f32 = true;
        else
            task->produced[input->form] = input;
        if (is_prologue(l, k)) task->inputs[input->form] = input;
        if (makes_columns(l, fusion)) task->unit = 32;
    }
    const bool is_read = makes_f32 || info->n_reads > info->n_produced;
    float **result = task->n_fused > 0 && !makes_columns(l, fusion) ? &task->fused[task->n_fused - 1].y : &task->y;
    if (info->n_produced > 0 && !is_read) *result = NULL;
}
