// SPDX-License-Identifier: MIT
// backend/recurrent_worlds.h: ops with states (conv, scan, delta, shift, wkv) of many shapes, some of whose sequences
// copy their states. The file that includes it has a function compare(world, limit, what) before that. every: 1 for all
// worlds, 3 for every third.
#pragma once
#include "backend/world_source.h"

#include <math.h>

// Some sequences copy their state after some of their rows.
static inline void copy_states(world *w)
{
    for (int i = 0; i < w->batch.n_seqs; i += 2) {
        w->seqs[i].n_copied = (w->seqs[i].n_rows + 1) / 2;
        w->seqs[i].copy_state = w->batch.n_seqs + i;
    }
}

static inline void compare_convolutions(uint64_t every)
{
    for (uint64_t seed = 0; seed < 8; seed += every) {
        world w;
        source s;
        open_any(&w, &s, seed);
        const int64_t n = seed < 4 ? 33 : 300, n_taps = 2 + (int64_t)seed % 4;
        world_states(&w, (int)(n * (n_taps - 1)) + 7);
        copy_states(&w);
        memset(w.past_states, 0, (size_t)w.layer.spec.n_state * (size_t)w.batch.n_seqs * sizeof(float));
        frit_node *taps = world_vector(&w, n * n_taps), *b = seed & 1 ? world_vector(&w, n) : NULL;
        w.graph.output = frit_conv(&w.graph, take(&s, n), taps, b, (frit_state){.offset = 7});
        compare(&w, 1e-12, "conv");
        world_close(&w);
    }
}

static inline frit_node *positive(world *w, frit_node *x)
{
    return frit_activate(&w->graph, x, FRIT_ACT_SOFTPLUS);
}

static inline frit_node *negative(world *w, frit_node *x)
{
    return frit_scale(&w->graph, positive(w, x), -1);
}

static inline frit_node *negative_vector(world *w, int64_t n)
{
    frit_node *node = world_vector(w, n);
    float *x = world_bytes(node->tensor);
    for (int64_t i = 0; i < n; i++) x[i] = -fabsf(x[i]);
    return node;
}

static inline void compare_scans(uint64_t every)
{
    static const int sizes[][4] = {{6, 5, 3, 16}, {8, 1, 1, 8}, {4, 16, 2, 128}, {2, 16, 2, 33}};   // H, P, G, N
    for (uint64_t seed = 0; seed < 8; seed += every) {
        world w;
        source s;
        const int *z = sizes[seed % 4], n_head = z[0];
        open_any(&w, &s, seed / 2);
        world_states(&w, n_head * z[1] * z[3]);
        copy_states(&w);
        frit_node *step = positive(&w, take(&s, n_head)), *a = negative_vector(&w, seed & 4 ? n_head : n_head * z[3]);
        w.graph.output = frit_scan(&w.graph, take_heads(&s, n_head, z[1]), step, a, take_heads(&s, z[2], z[3]),
                                   take_heads(&s, z[2], z[3]), (frit_state){0});
        compare(&w, 1e-11, "scan");
        world_close(&w);
    }
}

static inline void compare_delta_rules(uint64_t every)
{
    static const int sizes[][4] = {{6, 5, 3, 16}, {4, 64, 2, 128}, {2, 3, 1, 7}};
    for (uint64_t seed = 0; seed < 12; seed += every) {
        world w;
        source s;
        const int *z = sizes[seed % 3], n_head = z[0];
        open_any(&w, &s, seed / 3);
        world_states(&w, n_head * z[1] * z[3]);
        copy_states(&w);
        frit_node *g = seed % 4 == 0   ? negative_vector(&w, n_head)
                       : seed % 4 == 1 ? negative(&w, take(&s, n_head))
                                       : negative(&w, take_heads(&s, n_head, z[3]));
        frit_node *beta = seed & 2 ? frit_activate(&w.graph, take(&s, n_head), FRIT_ACT_SIGMOID) : NULL;
        frit_node *k = frit_rms_norm(&w.graph, take_heads(&s, z[2], z[3]), NULL, 0);
        k = frit_scale(&w.graph, k, 1 / sqrtf((float)z[3]));   // longer keys make the rule overshoot
        w.graph.output = frit_delta(&w.graph, take_heads(&s, n_head, z[1]), k, take_heads(&s, z[2], z[3]), g, beta,
                                    (frit_state){.interleaved = seed & 4});
        compare(&w, 1e-10, "delta");
        world_close(&w);
    }
}

static inline void compare_shifts_and_weighed_sums(uint64_t every)
{
    for (uint64_t seed = 0; seed < 4; seed += every) {
        world w;
        source s;
        const int n = 300;
        open_any(&w, &s, seed);
        world_states(&w, 4 * n);
        copy_states(&w);
        frit_node *x = frit_shift(&w.graph, take(&s, n), (frit_state){0});
        w.graph.output =
            frit_wkv(&w.graph, take(&s, n), x, negative_vector(&w, n), world_vector(&w, n), (frit_state){.offset = n});
        for (int i = 0; i < w.batch.n_seqs; i++)   // the sum of weights
            for (int k = 2 * n; k < 3 * n; k++) w.past_states[i * 4 * n + k] = fabsf(w.past_states[i * 4 * n + k]);
        compare(&w, 1e-11, "shift and wkv");
        world_close(&w);
    }
}
