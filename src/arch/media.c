// SPDX-License-Identifier: MIT
// Encoders of pictures: the list, the input of their rows, and their graph.
#include "arch/media.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
#define ENCODERS(X) \
    X(idefics3_vision) \
    X(llava_vision) \
    X(mistral3_vision) \
    X(qwen2_vl_vision) \
    X(qwen2_5_vl_vision)
// clang-format on

#define DECLARE(name) extern const frit_arch frit_arch_##name;
ENCODERS(DECLARE)
#undef DECLARE

const frit_arch *frit_media_arch_find(const char *name)
{
    static const frit_arch *const list[] = {
#define ROW(name) &frit_arch_##name,
        ENCODERS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < FRIT_COUNT(list); i++)
        if (strcmp(list[i]->name, name) == 0) return list[i];
    return NULL;
}

// ------------------------------------------------------------------------------- rows

frit_status frit_media_count(const frit_arch *arch, const frit_hparams *hp, frit_media_grid grid, frit_media_size *out)
{
    const int32_t merge = hp->media.merge;
    if (grid.height < 1 || grid.width < 1 || grid.height % merge != 0 || grid.width % merge != 0)
        return frit_fail(FRIT_E_INVALID, "a picture of %d x %d patches, expected multiples of %d for an encoder %s",
                         (int)grid.height, (int)grid.width, (int)merge, arch->name);
    if (arch->media->has_places && (grid.height != hp->media.side || grid.width != hp->media.side))
        return frit_fail(FRIT_E_INVALID, "a picture of %d x %d patches, expected %d x %d for an encoder %s",
                         (int)grid.height, (int)grid.width, (int)hp->media.side, (int)hp->media.side, arch->name);
    out->n_rows = (int64_t)grid.height * grid.width;
    out->n_outs = out->n_rows / ((int64_t)merge * merge);
    out->n_rows += arch->media->has_class;
    return FRIT_OK;
}

static int64_t n_turns(const frit_arch *arch, const frit_hparams *hp)
{
    return arch->media->has_turns ? hp->layers[0].k_dim : 0;
}

int64_t frit_media_width(const frit_arch *arch, const frit_hparams *hp)
{
    return hp->n_embd_in + n_turns(arch, hp) + arch->media->has_segments + 2 * arch->media->has_places;
}

void frit_media_place_blocks(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows)
{
    const int32_t merge = hp->media.merge, n = merge * merge, width = grid.width / merge;
    for (int32_t i = 0; i < grid.height * grid.width; i++) {
        const int32_t block = i / n, y = block / width * merge + i % n / merge, x = block % width * merge + i % merge;
        rows[i] = (frit_patch_place){.patch = y * grid.width + x, .y = y, .x = x};
        out_rows[block] = block * n;
    }
}

// Half of the pairs turn by the row's y, the others by its x, with the frequencies of a head of half the size.
static void write_turns(const frit_arch *arch, const frit_patch_place *at, int64_t dim, double base, float *turns)
{
    const int64_t n_pairs = dim / 2, half = n_pairs / 2;
    for (int64_t i = 0; i < n_pairs; i++) {
        const int64_t k = 2 * (i % half) + (arch->media->turns_alternate && i >= half);
        const double frequency = pow(base, -(double)k / (double)n_pairs);
        const double angle = (double)(float)frequency * (i < half ? at->y : at->x);
        turns[i] = (float)cos(angle);
        turns[n_pairs + i] = (float)sin(angle);
    }
}

frit_status frit_media_place(const frit_arch *arch, const frit_hparams *hp, frit_media_grid grid, const float *pixels,
                             const frit_media_rows *out)
{
    frit_media_size size;
    FRIT_TRY(frit_media_count(arch, hp, grid, &size));
    frit_patch_place *rows = calloc((size_t)size.n_rows, sizeof *rows);
    if (!rows) return frit_fail_memory((size_t)size.n_rows * sizeof *rows, "the rows of a picture");
    arch->media->place(hp, grid, rows, out->out_rows);
    const int64_t n_pixels = hp->n_embd_in, width = frit_media_width(arch, hp);
    for (int64_t i = 0; i < size.n_rows; i++) {
        float *to = out->given + i * width;
        if (rows[i].patch >= 0)
            memcpy(to, pixels + rows[i].patch * n_pixels, (size_t)n_pixels * sizeof *to);
        else
            memset(to, 0, (size_t)n_pixels * sizeof *to);
        if (arch->media->has_places) {   // a row of the table, once
            to[width - 2] =
                (float)(rows[i].y * hp->media.side + rows[i].x + (arch->media->has_class && rows[i].patch >= 0));
            to[width - 1] = 1;
        }
        if (arch->media->has_turns)
            write_turns(arch, &rows[i], hp->layers[0].k_dim, (double)hp->rope.base, to + n_pixels);
        if (arch->media->has_segments) to[n_pixels + n_turns(arch, hp)] = (float)rows[i].segment;
    }
    free(rows);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------- graph

static frit_node *heads_of(frit_build *b, const frit_weight *w, frit_node *x, int64_t n_head, int64_t dim)
{
    return frit_reshape(b->g, frit_linear(b, w, x), 2, (int64_t[]){n_head, dim});
}

static frit_node *rotate(frit_build *b, frit_node *x)
{
    const frit_rope rope = {.style = b->hp->rope_style, .dim = b->lhp->k_dim, .magnitude = 1};
    return b->turns ? frit_rotate_by(b->g, x, b->turns, rope) : x;
}

static frit_node *attention(frit_build *b, const frit_layer *w, frit_node *x)
{
    const frit_layer_hparams *l = b->lhp;
    frit_node *q = rotate(b, heads_of(b, &w->q, x, l->n_head, l->k_dim));
    frit_node *k = rotate(b, heads_of(b, &w->k, x, l->n_head_kv, l->k_dim));
    frit_node *v = heads_of(b, &w->v, x, l->n_head_kv, l->v_dim);
    frit_node *segments = l->window > 0 ? b->segments : NULL;
    x = frit_attend_uncached(b->g, q, k, v, segments, 1 / sqrtf((float)l->k_dim));
    return frit_linear(b, &w->o, frit_reshape(b->g, x, 1, (int64_t[]){(int64_t)l->n_head * l->v_dim}));
}

frit_node *frit_media_layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = frit_add(b->g, x, attention(b, w, frit_norm(b, &w->attn_norm, x)));
    return frit_add(b->g, x, frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act));
}

frit_node *frit_media_blocks(frit_build *b, frit_node *x)
{
    const int32_t n = b->hp->media.merge * b->hp->media.merge;
    return frit_take_blocks(b->g, x, frit_input_node(b->g, FRIT_INPUT_OUT_ROWS), n);
}

frit_node *frit_media_merge(frit_build *b, frit_node *x)
{
    x = frit_media_blocks(b, frit_norm(b, &b->weights->out_norm, x));
    x = frit_activate(b->g, frit_linear(b, &b->weights->media.merge_in, x), FRIT_ACT_GELU);
    return frit_linear(b, &b->weights->media.merge_out, x);
}

frit_status frit_media_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights)
{
    frit_build b = {.g = g, .arch = arch, .hp = hp, .weights = weights};
    const int64_t turns = n_turns(arch, hp);
    frit_node *given = frit_given_node(g, frit_media_width(arch, hp));
    frit_node *x = frit_linear(&b, &weights->media.patch, frit_slice(g, given, 0, hp->n_embd_in));
    if (turns > 0) b.turns = frit_slice(g, given, hp->n_embd_in, turns);
    if (arch->media->has_segments) b.segments = frit_slice(g, given, hp->n_embd_in + turns, 1);
    if (arch->media->has_places) {
        const int64_t first = frit_media_width(arch, hp) - 2;
        const frit_tensor *table = weights->media.places ? weights->media.places : weights->media.positions.w;
        x = frit_add(g, x, frit_embed_mix(g, frit_weight_node(g, table), frit_slice(g, given, first, 2)));
    }
    if (arch->begin) x = arch->begin(&b, x);
    for (b.i_layer = 0; b.i_layer < hp->n_layer - hp->media.n_unused; b.i_layer++) {
        b.lhp = &hp->layers[b.i_layer];
        g->depth = b.i_layer;
        x = arch->layer(&b, &weights->layers[b.i_layer], x);
    }
    g->depth = b.i_layer;
    g->output = arch->end(&b, x);
    return frit_graph_check(g);
}
