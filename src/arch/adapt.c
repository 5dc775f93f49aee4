// SPDX-License-Identifier: MIT
// Adapters in the graph. Architectures do not mention them: every product of a weight adds its adapters.
#include "arch/arch.h"

static frit_matrix_adapters *find(const frit_build *b, const frit_weight *w)
{
    const bool is_head = w == &b->weights->lm_head;
    int64_t at;
    if (!b->adapters || !w->w ||
        !frit_map_get(&b->adapters->index, frit_str_of(is_head ? "output.weight" : w->w->name), &at))
        return NULL;
    return &b->adapters->matrices[at];
}

// The first row of a weight that is a view of a larger tensor.
static int64_t first_row(const frit_weight *w, const frit_tensor *whole)
{
    const uint64_t row_bytes = whole->n_bytes / (uint64_t)whole->shape[0];
    if (whole->n_dims != 2 || row_bytes == 0) return 0;
    if (!whole->data) return w->w->first_row - whole->first_row;
    return (int64_t)((uint64_t)((const uint8_t *)w->w->data - (const uint8_t *)whole->data) / row_bytes);
}

frit_node *frit_adapt(frit_build *b, const frit_weight *w, frit_node *x, frit_node *route, int64_t begin, frit_node *y)
{
    frit_matrix_adapters *matrix = y ? find(b, w) : NULL;
    if (!matrix || matrix->n == 0) return y;
    frit_arena *arena = b->g->arena;
    frit_adapted *adapted = frit_arena_new(arena, frit_adapted, 1);
    frit_low_rank *parts = frit_arena_new(arena, frit_low_rank, (size_t)matrix->n);
    if (!adapted || !parts) return frit_adapt_up(b->g, y, NULL, NULL);   // the graph reports the failed allocation
    *adapted = (frit_adapted){
        .parts = parts, .n = matrix->n, .n_in = x->shape[x->n_dims - 1], .n_out = y->shape[y->n_dims - 1]};
    for (int32_t i = 0; i < matrix->n; i++) {
        parts[i] = matrix->parts[i];
        parts[i].first = adapted->n_h;
        parts[i].b_first = begin + first_row(w, matrix->base);
        adapted->n_h += parts[i].rank;
    }
    matrix->is_used = true;
    return frit_adapt_up(b->g, y, frit_adapt_down(b->g, x, route, adapted), adapted);
}
