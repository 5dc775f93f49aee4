// SPDX-License-Identifier: MIT
// Products of experts and heads: a stack of matrices, each multiplied by some of the rows.
//
// Rows are first sorted by expert in the kernel's form (dispatch.h), so that a matrix is read once for the rows of all
// sessions. A phase has the work of all experts of the layer:
//
//     experts, experts_glu     pieces of the rows of every expert that has a row
//     experts_mix              pieces of the result's columns: each walks all experts and adds the sum of each row in
//                              the order of experts
//     heads                    pieces of the rows of every head
#include "backend/cpu/ops/adapt.h"
#include "backend/cpu/ops/dispatch.h"
#include "backend/cpu/ops/fast.h"
#include "backend/cpu/pack/matrix.h"
#include "backend/cpu/pack/pack.h"
#include "base/minmax.h"

#include <string.h>

enum {
    PIECE_ROWS = 2 * FRIT_PANEL_ROWS,
    TILE_RESULTS = PIECE_ROWS * FRIT_MATRIX_TOKENS,
    PREFILL_TOKENS = 256,   // two tiles of results fit side by side
};

// A stack of matrices of a task for decode kernels and for prefill kernels, with the activations of each.
typedef struct stack {
    frit_matrix matrix[2];
    const uint8_t *rows[2];
    int64_t height;   // rows of one matrix
    int64_t begin;    // first row of the product
} stack;

static stack open_stack(const frit_task *task, int source, int64_t begin, uint8_t *workspace)
{
    const frit_tensor *tensor = task->node->src[source]->tensor;
    stack s = {.height = tensor->shape[1], .begin = begin};
    for (int prefill = 0; prefill < 2; prefill++) {
        const frit_kernels *kernels = prefill ? task->env->kernels : task->env->decode_kernels;
        s.matrix[prefill] = frit_matrix_open(kernels, tensor, task->w[source], workspace);
        s.rows[prefill] = task->forms[s.matrix[prefill].form];
    }
    return s;
}

// Multiplies n_x sorted rows from `at_row` on by n_w rows of a matrix.
static void multiply_rows(const stack *s, int64_t matrix, bool prefill, int64_t o, int64_t n_w, int64_t at_row,
                          int64_t n_x, float *y, size_t y_stride)
{
    const frit_matrix *m = &s->matrix[prefill];
    frit_matrix_multiply(m, matrix * s->height + s->begin + o, n_w, s->rows[prefill] + (size_t)at_row * m->x_stride,
                         n_x, y, y_stride);
}

static int64_t block_tokens(const stack *s, bool prefill)
{
    return frit_min_i64(frit_matrix_block_tokens(&s->matrix[prefill]), PREFILL_TOKENS);
}

static int64_t tile_rows(const stack *s, bool prefill, int64_t n_x)
{
    return s->matrix[prefill].unpacks ? FRIT_MATRIX_UNPACKED_ROWS
                                      : TILE_RESULTS / n_x / FRIT_PANEL_ROWS * FRIT_PANEL_ROWS;
}

static int at_most(int64_t n)
{
    return n < FRIT_MAX_PIECES ? (int)n : FRIT_MAX_PIECES;
}

static int64_t pieces_of(int64_t n_out)
{
    return (n_out + PIECE_ROWS - 1) / PIECE_ROWS;
}

// Reads of packed matrices begin at a panel.
bool frit_experts_fit(const frit_node *node)
{
    const frit_experts *e = &node->experts;
    const frit_experts_glu *glu = &node->experts_glu;
    if (node->op == FRIT_OP_EXPERTS_GLU) return glu->gate % FRIT_PANEL_ROWS == 0 && glu->up % FRIT_PANEL_ROWS == 0;
    return e->begin % FRIT_PANEL_ROWS == 0;
}

// ------------------------------------------------------------------------------- sorting rows

int64_t frit_sorted_rows(const frit_node *node)
{
    const frit_tensor *w = node->src[1]->tensor;
    if (node->op == FRIT_OP_HEADS)
        return (node->shape[0] + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS * node->shape[1];
    return frit_dispatch_rows(node->shape[0], frit_node_route(node)->shape[2], w->shape[0]);
}

size_t frit_dispatch_node_bytes(const frit_node *node)
{
    return frit_dispatch_bytes(node->shape[0], frit_node_route(node)->shape[2], node->src[1]->tensor->shape[0]);
}

// Copies a row in a form to another row.
static void copy_row(frit_form form, const uint8_t *from, uint8_t *to, int64_t n)
{
    const size_t n_bytes = frit_form_bytes(form, n);
    if (!frit_form_is_tiled(form)) {
        memcpy(to, from, n_bytes);
        return;
    }
    for (size_t i = 0; i < n_bytes / 64; i++) memcpy(to + i * FRIT_TILE_BYTES, from + i * FRIT_TILE_BYTES, 64);
}

static void convert_row(const frit_task *task, frit_form form, const float *x, int64_t at_row, int64_t n)
{
    uint8_t *to = frit_form_row(form, task->forms[form], at_row, n);
    if (form == FRIT_FORM_F32)
        memcpy(to, x, (size_t)n * sizeof *x);
    else
        task->env->kernels->convert[form](x, to, n);
}

static bool has_own_rows(const frit_node *node)
{
    return node->src[0]->n_dims == 3;
}

int frit_convert_sorted_pieces(const frit_task *task)
{
    const frit_node *node = task->node;
    return at_most(node->shape[0] * (has_own_rows(node) ? node->src[0]->shape[1] : 1));
}

// Called before the phase begins, by one thread.
int frit_dispatch_and_convert_pieces(const frit_task *task)
{
    frit_dispatch_make(task, task->node->src[1]->tensor->shape[0]);
    return frit_convert_sorted_pieces(task);
}

void frit_fast_convert_sorted(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const frit_dispatch *dispatch = task->dispatch;
    const int64_t n = frit_node_width(node->src[0]);
    const int64_t n_used = frit_node_route(node)->shape[2], n_each = has_own_rows(node) ? 1 : n_used;
    frit_form forms[2];
    for (int prefill = 0; prefill < 2; prefill++)
        forms[prefill] =
            frit_matrix_form(prefill ? task->env->kernels : task->env->decode_kernels, node->src[1]->tensor);
    const frit_range r = frit_split(dispatch->n_assignments, n_each, share);
    for (int64_t row = r.begin; row < r.end; row += n_each) {
        const uint8_t *made[FRIT_FORM_COUNT] = {NULL};   // by form: the row of an earlier assignment, to copy
        for (int64_t assignment = row; assignment < row + n_each; assignment++) {
            const frit_form form = forms[dispatch->prefill[assignment]];
            uint8_t *to = frit_form_row(form, task->forms[form], dispatch->sorted[assignment], n);
            if (made[form])
                copy_row(form, made[form], to, n);
            else
                convert_row(task, form, task->x[0] + row / n_each * n, dispatch->sorted[assignment], n);
            made[form] = to;
        }
    }
}

// Sorts the rows of HEADS by head.
static int64_t head_row(const frit_node *node, int64_t head)
{
    return head * ((node->shape[0] + FRIT_TILE_ROWS - 1) / FRIT_TILE_ROWS * FRIT_TILE_ROWS);
}

// How many of a node's rows are decode rows, if decode kernels and prefill kernels read different forms.
static int64_t count_decode_rows(const frit_task *task, bool forms_differ)
{
    return forms_differ ? frit_n_decode_rows(task->env, task->node) : 0;
}

// Stores the rows of each class consecutively.
void frit_fast_convert_heads(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n = frit_node_width(node->src[0]), n_head = node->shape[1];
    const frit_form prefill = frit_matrix_form(task->env->kernels, node->src[1]->tensor);
    const frit_form decode = frit_matrix_form(task->env->decode_kernels, node->src[1]->tensor);
    const int64_t n_decode = count_decode_rows(task, decode != prefill);
    const frit_range r = frit_split(node->shape[0] * n_head, 1, share);
    for (int64_t i = r.begin; i < r.end; i++) {
        const int64_t t = i / n_head, first = head_row(node, i % n_head);
        if (t < n_decode)
            convert_row(task, decode, task->x[0] + i * n, first + t, n);
        else
            convert_row(task, prefill, task->x[0] + i * n, first + t - n_decode, n);
    }
}

// ------------------------------------------------------------------------------- products

// Multiplies rows [o, end) of an expert's matrices by the rows of a group.
typedef void (*group_fn)(const frit_task *task, const stack *stacks, const frit_expert_group *group, int64_t o,
                         int64_t end, float *results);

static void walk_groups(const frit_task *task, const stack *stacks, group_fn fn, frit_share share)
{
    const frit_dispatch *dispatch = task->dispatch;
    const int64_t n_out = frit_node_width(task->node), n_pieces = pieces_of(n_out);
    const frit_range r = frit_split(dispatch->n_groups * n_pieces, 1, share);
    for (int64_t i = r.begin, next; i < r.end; i = next) {
        const int64_t g = i / n_pieces, first = i % n_pieces;
        next = frit_min_i64((g + 1) * n_pieces, r.end);
        fn(task, stacks, &dispatch->groups[g], first * PIECE_ROWS, frit_min_i64((first + next - i) * PIECE_ROWS, n_out),
           frit_matrix_results(frit_task_workspace(task, share)));
    }
}

int frit_experts_pieces(const frit_task *task)
{
    return at_most(((const frit_dispatch *)task->dispatch)->n_groups * pieces_of(frit_node_width(task->node)));
}

static float weight_of(const float *route, int64_t n_used, int64_t assignment)
{
    return route[assignment / n_used * 2 * n_used + n_used + assignment % n_used];
}

static void multiply_group(const frit_task *task, const stack *s, const frit_expert_group *group, int64_t o,
                           int64_t end, float *results)
{
    const frit_kernels *k = task->env->kernels;
    const frit_dispatch *dispatch = task->dispatch;
    const int64_t n_out = frit_node_width(task->node), n_used = task->node->shape[1];
    const int64_t n_block = block_tokens(s, group->prefill);
    for (int64_t t = 0; t < group->n; t += n_block) {
        const int64_t n_x = frit_min_i64(n_block, group->n - t), n_tile = tile_rows(s, group->prefill, n_x);
        for (int64_t at = o, n_w; at < end; at += n_w) {
            n_w = frit_min_i64(n_tile, end - at);
            multiply_rows(s, group->expert, group->prefill, at, n_w, group->first + t, n_x, results, (size_t)n_w);
            for (int64_t i = 0; i < n_x; i++) {
                const int64_t assignment = dispatch->assignments[group->first + t + i];
                float *y = task->y + assignment * n_out + at;
                frit_adapt_assignment(task, 0, assignment, group->expert, at, n_w, results + i * n_w);
                if (task->node->experts.weigh)
                    k->scale(y, results + i * n_w, weight_of(task->x[2], n_used, assignment), n_w);
                else
                    memcpy(y, results + i * n_w, (size_t)n_w * sizeof *y);
            }
        }
    }
}

void frit_fast_experts(const frit_task *task, frit_share share)
{
    const stack s = open_stack(task, 1, task->node->experts.begin, frit_task_workspace(task, share));
    walk_groups(task, &s, multiply_group, share);
}

static void multiply_group_glu(const frit_task *task, const stack *s, const frit_expert_group *group, int64_t o,
                               int64_t end, float *gates)
{
    const frit_kernels *k = task->env->kernels;
    const frit_dispatch *dispatch = task->dispatch;
    const frit_experts_glu *glu = &task->node->experts_glu;
    const int64_t n_out = frit_node_width(task->node), n_used = task->node->shape[1];
    const int64_t n_block = frit_min_i64(block_tokens(&s[0], group->prefill), block_tokens(&s[1], group->prefill));
    float *ups = gates + PREFILL_TOKENS * FRIT_MATRIX_UNPACKED_ROWS;
    for (int64_t t = 0; t < group->n; t += n_block) {
        const int64_t n_x = frit_min_i64(n_block, group->n - t);
        const int64_t n_tile =
            frit_min_i64(tile_rows(&s[0], group->prefill, n_x), tile_rows(&s[1], group->prefill, n_x));
        for (int64_t at = o, n_w; at < end; at += n_w) {
            n_w = frit_min_i64(n_tile, end - at);
            multiply_rows(&s[0], group->expert, group->prefill, at, n_w, group->first + t, n_x, gates, (size_t)n_w);
            multiply_rows(&s[1], group->expert, group->prefill, at, n_w, group->first + t, n_x, ups, (size_t)n_w);
            for (int64_t i = 0; i < n_x; i++) {
                const int64_t assignment = dispatch->assignments[group->first + t + i];
                float *gate = gates + i * n_w, *up = ups + i * n_w;
                frit_adapt_assignment(task, 0, assignment, group->expert, at, n_w, gate);
                frit_adapt_assignment(task, 1, assignment, group->expert, at, n_w, up);
                if (glu->weigh) {
                    const float weight = weight_of(task->x[3], n_used, assignment);
                    k->scale(gate, gate, weight, n_w);
                    k->scale(up, up, weight, n_w);
                }
                k->act[glu->act](gate, gate, n_w);
                k->mul(task->y + assignment * n_out + at, gate, up, n_w);
            }
        }
    }
}

void frit_fast_experts_glu(const frit_task *task, frit_share share)
{
    const frit_experts_glu *glu = &task->node->experts_glu;
    uint8_t *workspace = frit_task_workspace(task, share);
    const stack stacks[2] = {open_stack(task, 1, glu->gate, workspace), open_stack(task, 2, glu->up, workspace)};
    walk_groups(task, stacks, multiply_group_glu, share);
}

int frit_experts_mix_pieces(const frit_task *task)
{
    return task->node->shape[0] > 0 ? at_most(pieces_of(frit_node_width(task->node))) : 0;
}

static void mix_group(const frit_task *task, const stack *s, const frit_expert_group *group, int64_t o, int64_t end,
                      float *results)
{
    const frit_kernels *k = task->env->kernels;
    const frit_dispatch *dispatch = task->dispatch;
    const int64_t n_out = frit_node_width(task->node), n_used = task->node->src[0]->shape[1];
    const int64_t n_block = block_tokens(s, group->prefill);
    for (int64_t t = 0; t < group->n; t += n_block) {
        const int64_t n_x = frit_min_i64(n_block, group->n - t), n_tile = tile_rows(s, group->prefill, n_x);
        for (int64_t at = o, n_w; at < end; at += n_w) {
            n_w = frit_min_i64(n_tile, end - at);
            multiply_rows(s, group->expert, group->prefill, at, n_w, group->first + t, n_x, results, (size_t)n_w);
            for (int64_t i = 0; i < n_x; i++) {
                const int64_t assignment = dispatch->assignments[group->first + t + i];
                float *sum = results + i * n_w, *y = task->y + assignment / n_used * n_out + at;
                frit_adapt_assignment(task, 0, assignment, group->expert, at, n_w, sum);
                if (task->node->experts.weigh) k->scale(sum, sum, weight_of(task->x[2], n_used, assignment), n_w);
                k->add(y, y, sum, n_w);
            }
        }
    }
}

void frit_fast_experts_mix(const frit_task *task, frit_share share)
{
    uint8_t *workspace = frit_task_workspace(task, share);
    const stack s = open_stack(task, 1, task->node->experts.begin, workspace);
    const frit_dispatch *dispatch = task->dispatch;
    const int64_t n_out = frit_node_width(task->node);
    const frit_range r = frit_split(n_out, FRIT_PANEL_ROWS, share);
    if (r.begin == r.end) return;
    for (int64_t t = 0; t < task->node->shape[0]; t++)
        memset(task->y + t * n_out + r.begin, 0, (size_t)(r.end - r.begin) * sizeof(float));
    for (int32_t g = 0; g < dispatch->n_groups; g++)
        mix_group(task, &s, &dispatch->groups[g], r.begin, r.end, frit_matrix_results(workspace));
}

int frit_heads_pieces(const frit_task *task)
{
    const frit_node *node = task->node;
    return node->shape[0] > 0 ? at_most(node->shape[1] * pieces_of(node->shape[2])) : 0;
}

// Computes columns of some rows of a head.
static void multiply_head(const frit_task *task, const stack *s, int64_t h, bool prefill, frit_range rows,
                          frit_range columns)
{
    const int64_t n_head = task->node->shape[1], n_out = task->node->shape[2];
    const int64_t n_block = frit_matrix_block_tokens(&s->matrix[prefill]);
    for (int64_t t = rows.begin; t < rows.end; t += n_block)
        multiply_rows(s, h, prefill, columns.begin, columns.end - columns.begin,
                      head_row(task->node, h) + t - rows.begin, frit_min_i64(n_block, rows.end - t),
                      task->y + (t * n_head + h) * n_out + columns.begin, (size_t)(n_head * n_out));
}

void frit_fast_heads(const frit_task *task, frit_share share)
{
    const frit_node *node = task->node;
    const int64_t n_rows = node->shape[0], n_head = node->shape[1], n_out = node->shape[2];
    const int64_t n_pieces = pieces_of(n_out);
    const stack s = open_stack(task, 1, 0, frit_task_workspace(task, share));
    const int64_t n_decode = count_decode_rows(task, s.matrix[0].form != s.matrix[1].form);
    const frit_range r = frit_split(n_head * n_pieces, 1, share);
    for (int64_t i = r.begin, next; i < r.end; i = next) {
        const int64_t h = i / n_pieces, first = i % n_pieces;
        next = frit_min_i64((h + 1) * n_pieces, r.end);
        const int64_t o = first * PIECE_ROWS, end = frit_min_i64((first + next - i) * PIECE_ROWS, n_out);
        multiply_head(task, &s, h, true, (frit_range){n_decode, n_rows}, (frit_range){o, end});
        multiply_head(task, &s, h, false, (frit_range){0, n_decode}, (frit_range){o, end});
    }
}
