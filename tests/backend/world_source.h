// SPDX-License-Identifier: MIT
// backend/world_source.h: inputs of ops in tests: a world of one to four sequences, and pieces of its random rows.
//
//     open_any(&w, &s, seed);
//     frit_node *x = take(&s, 96), *heads = take_heads(&s, 4, 32);
#pragma once
#include "backend/world.h"

enum { WIDTH = 8192 };   // numbers of a row; ops use a part of them

typedef struct source {
    world *w;
    frit_node *rows;   // [T, WIDTH]
    int64_t at;
} source;

static inline void open_any(world *w, source *s, uint64_t seed)
{
    static int shapes[][4][2] = {{{0, 1}}, {{0, 7}}, {{5, 1}, {40, 1}, {0, 1}}, {{0, 9}, {31, 2}, {64, 1}, {3, 25}}};
    static const int n_seqs[] = {1, 1, 3, 4};
    world_open(w, n_seqs[seed % 4], shapes[seed % 4], seed);
    *s = (source){.w = w, .rows = world_rows(w, WIDTH)};
}

static inline frit_node *take(source *s, int64_t n)
{
    assert_true(s->at + n <= WIDTH);
    s->at += n;
    return frit_slice(&s->w->graph, s->rows, s->at - n, n);
}

static inline frit_node *take_heads(source *s, int64_t n_heads, int64_t dim)
{
    return frit_reshape(&s->w->graph, take(s, n_heads * dim), 2, (int64_t[]){n_heads, dim});
}

// Heads that rotate by given cosines and sines: both kinds of pairs, all numbers or some of them.
static inline frit_node *random_turn(source *s, int i)
{
    const frit_rope rope = {.style = i % 2 ? FRIT_ROPE_NEOX : FRIT_ROPE_INTERLEAVED,
                            .dim = i < 2 ? 24 : 16,
                            .offset = i < 2 ? 0 : 8,
                            .magnitude = 1};
    return frit_rotate_by(&s->w->graph, take_heads(s, 3, 24), take(s, rope.dim), rope);
}
