// SPDX-License-Identifier: MIT
// Reference rotary embedding: rotates pair i of a head by position * inv_freq[i] / factor[i].
#include "backend/cpu/ref/ref.h"

#include <math.h>
#include <string.h>

void frit_ref_rope(const frit_task *task, frit_share share)
{
    const frit_rope *rope = &task->node->rope;
    const int64_t head_dim = frit_node_width(task->node), n_heads = frit_node_height(task->node) / task->node->shape[0];
    const int64_t n_pairs = rope->dim / 2;
    const int32_t *positions = frit_task_ids(task, 1);
    const float *inv_freq = task->x[2], *factors = task->x[3];

    frit_range r = frit_split(frit_node_height(task->node), 1, share);
    for (int64_t row = r.begin; row < r.end; row++) {
        const float *x = task->x[0] + row * head_dim;
        float *y = task->y + row * head_dim;
        memcpy(y, x, (size_t)head_dim * sizeof(float));   // elements that do not rotate
        for (int64_t i = 0; i < n_pairs; i++) {
            const double angle = (double)(positions[row / n_heads] + rope->shift) *
                                 (rope->is_back ? -inv_freq[i] : inv_freq[i]) / (factors ? factors[i] : 1);
            const double c = cos(angle) * rope->magnitude, s = sin(angle) * rope->magnitude;
            const int64_t a = rope->offset + (rope->style == FRIT_ROPE_INTERLEAVED ? 2 * i : i);
            const int64_t b = rope->offset + (rope->style == FRIT_ROPE_INTERLEAVED ? 2 * i + 1 : i + n_pairs);
            y[a] = (float)(x[a] * c - x[b] * s);
            y[b] = (float)(x[a] * s + x[b] * c);
        }
    }
}
