// SPDX-License-Identifier: MIT
// Activation inputs that a thread computes for itself.
#include "backend/cpu/ops/act_input.h"

static frit_thread_inputs *inputs_of(const frit_task_env *env, int thread)
{
    return (frit_thread_inputs *)(void *)(env->workspaces + env->workspace_bytes * (size_t)thread + env->inputs_offset);
}

float *frit_thread_row(const frit_task_env *env, int thread)
{
    return (float *)(void *)(inputs_of(env, thread) + 1);
}

bool frit_act_input_is_per_thread(const frit_act_input *input)
{
    return input->is_per_thread && frit_node_height(input->source) <= FRIT_PER_THREAD_ROWS;
}

frit_range frit_act_input_range(const frit_act_input *input)
{
    const int64_t height = frit_node_height(input->source);
    const int64_t n_decode = input->kind == FRIT_ACT_ALL ? 0 : frit_decode_height(input->env, input->source);
    return input->kind == FRIT_ACT_DECODE ? (frit_range){0, n_decode} : (frit_range){n_decode, height};
}

uint8_t *frit_act_input_row(const frit_act_input *input, int64_t t)
{
    const frit_range r = frit_act_input_range(input);
    if (t < r.begin || t >= r.end) return NULL;
    return frit_form_row(input->form, input->rows, t - r.begin, frit_node_width(input->source));
}

void frit_norm_row(const frit_kernels *kernels, const frit_node *norm, float *y, const float *x, const float *w,
                   const float *b)
{
    const int64_t n = frit_node_width(norm);
    if (norm->op == FRIT_OP_LAYER_NORM)
        kernels->layer_norm(y, x, w, b, n, norm->eps);
    else
        kernels->rms_norm(y, x, w, n, norm->eps);
}

static void compute_sum(const frit_act_input *input, int64_t t, float *y)
{
    const int64_t n = frit_node_width(input->sum.node);
    const frit_kernels *k = input->env->kernels;
    frit_norm_row(k, input->sum.node, y, input->summand + t * n, input->sum.w, input->sum.b);
    k->add(y, y, input->residual + t * n, n);
}

void frit_act_input_store_sum(const frit_act_input *input)
{
    const int64_t n = frit_node_width(input->sum.node), height = frit_node_height(input->sum.node);
    for (int64_t t = 0; frit_act_input_is_per_thread(input) && t < height; t++)
        compute_sum(input, t, input->stored + t * n);
}

static void compute_input(const frit_act_input *input, int thread, uint8_t *rows)
{
    const frit_kernels *k = input->env->kernels;
    const int64_t n = frit_node_width(input->source), height = frit_node_height(input->source);
    for (int64_t t = 0; t < height; t++) {
        const float *x = input->x + t * n;
        uint8_t *row = frit_form_row(input->form, rows, t, n);
        float *y = input->form == FRIT_FORM_F32 ? (float *)(void *)row : frit_thread_row(input->env, thread);
        if (input->sum.node) {
            float *sum = input->norm.node ? frit_thread_row(input->env, thread) + n : y;
            compute_sum(input, t, sum);
            x = sum;
        }
        if (input->norm.node) {
            frit_norm_row(k, input->norm.node, y, x, input->norm.w, input->norm.b);
            x = y;
        }
        if (input->form != FRIT_FORM_F32) k->convert[input->form](x, row, n);
    }
}

const uint8_t *frit_act_input_rows(const frit_act_input *input, int thread)
{
    if (!frit_act_input_is_per_thread(input)) return input->rows;
    frit_thread_inputs *own = inputs_of(input->env, thread);
    uint8_t *rows = (uint8_t *)own + input->per_thread_offset;
    const uint64_t wanted = (uint64_t)input->env->run << 32 | input->id;
    if (own->computed[input->form] == wanted) return rows;
    compute_input(input, thread, rows);
    own->computed[input->form] = wanted;
    return rows;
}
