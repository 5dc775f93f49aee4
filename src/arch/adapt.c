// SPDX-License-Identifier: MIT
// Adapters in the graph. Architectures do not mention them: every product of a weight has room for its adapters.
#include "arch/arch.h"

int32_t frit_adapters_matrix(const frit_checkpoint *ckpt, const char *name, const frit_tensor **base)
{
    *base = frit_checkpoint_find(ckpt, name);
    if (*base) return (int32_t)(*base - ckpt->tensors);
    *base = strcmp(name, "output.weight") == 0 ? frit_checkpoint_find(ckpt, "token_embd.weight") : NULL;
    return *base ? (int32_t)ckpt->n_tensors : -1;
}

// The index in `whole` of the first row of a weight that may be a view of it.
static int64_t first_row(const frit_weight *w, const frit_tensor *whole)
{
    const uint64_t row_bytes = whole->n_bytes / (uint64_t)whole->shape[0];
    if (whole->n_dims != 2 || row_bytes == 0) return 0;
    if (!whole->data) return w->w->first_row - whole->first_row;
    return (int64_t)((uint64_t)((const uint8_t *)w->w->data - (const uint8_t *)whole->data) / row_bytes);
}

frit_node *frit_adapt(frit_build *b, const frit_weight *w, frit_node *x, frit_node *route, int64_t begin, frit_node *y)
{
    const frit_adapters *adapters = b->adapters;
    if (!y || !w->w || !adapters || adapters->n_h == 0) return y;
    if (!route && x->n_dims > 2) return y;   // heads, one by one
    const frit_tensor *base;
    const bool is_head = w == &b->weights->lm_head;
    const int32_t matrix = frit_adapters_matrix(adapters->ckpt, is_head ? "output.weight" : w->w->name, &base);
    if (matrix < 0) return y;
    if (adapters->is_used) adapters->is_used[matrix] = true;
    const frit_adapted adapted = {.matrix = matrix, .n_h = adapters->n_h, .first_row = begin + first_row(w, base)};
    return frit_adapt_up(b->g, y, frit_adapt_down(b->g, x, route, adapted), adapted);
}
