// SPDX-License-Identifier: MIT
// Encoders of pictures: the list, the input of their rows, and their graph.
#include "arch/media.h"

#include <math.h>
#include <stdlib.h>

// clang-format off
#define ENCODERS(X) \
    X(gemma3_vision) \
    X(gemma4_vision) \
    X(idefics3_vision) \
    X(internvl_vision) \
    X(lfm2_vl_vision) \
    X(llama4_vision) \
    X(llava_siglip_vision) \
    X(llava_vision) \
    X(mistral3_vision) \
    X(qwen2_vl_vision) \
    X(qwen2_5_vl_vision) \
    X(qwen3_vl_vision)
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
    const bool is_whole = arch->media->drops_rest || (grid.height % merge == 0 && grid.width % merge == 0);
    if (grid.height < merge || grid.width < merge || !is_whole)
        return frit_fail(FRIT_E_INVALID, "a picture of %d x %d patches, expected multiples of %d for an encoder %s",
                         (int)grid.height, (int)grid.width, (int)merge, arch->name);
    if (arch->media->has_places && !arch->media->resize_places && !arch->media->tap &&
        (grid.height != hp->media.side || grid.width != hp->media.side))
        return frit_fail(FRIT_E_INVALID, "a picture of %d x %d patches, expected %d x %d for an encoder %s",
                         (int)grid.height, (int)grid.width, (int)hp->media.side, (int)hp->media.side, arch->name);
    if (arch->media->has_turns && hp->layers[0].k_dim % 4 != 0)
        return frit_fail(FRIT_E_FORMAT, "heads of %d numbers, expected a multiple of 4 for an encoder %s",
                         (int)hp->layers[0].k_dim, arch->name);
    if (arch->media->is_bounded && (grid.height > hp->media.side || grid.width > hp->media.side))
        return frit_fail(FRIT_E_INVALID, "a picture of %d x %d patches, expected at most %d x %d for an encoder %s",
                         (int)grid.height, (int)grid.width, (int)hp->media.side, (int)hp->media.side, arch->name);
    out->n_rows = (int64_t)grid.height * grid.width;
    out->n_outs = (int64_t)(grid.height / merge) * (grid.width / merge);
    out->n_rows += arch->media->has_class;
    return FRIT_OK;
}

static int64_t n_turns(const frit_arch *arch, const frit_hparams *hp)
{
    return arch->media->has_turns ? hp->layers[0].k_dim : 0;
}

// Numbers that tell a row's position: rows of the table with their weights, or the position itself.
static int64_t place_width(const frit_arch *arch, const frit_hparams *hp)
{
    const int64_t n_taps = arch->media->tap ? arch->media->n_taps : 1;
    return arch->media->resize_places ? hp->n_embd : arch->media->has_places ? 2 * n_taps : 0;
}

int64_t frit_media_width(const frit_arch *arch, const frit_hparams *hp)
{
    return hp->n_embd_in + n_turns(arch, hp) + arch->media->has_segments + place_width(arch, hp);
}

int64_t frit_media_out_width(const frit_hparams *hp)
{
    return (int64_t)frit_hidden_width(hp) * (1 + hp->media.n_deep);
}

void frit_media_place_blocks(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows)
{
    const int32_t merge = hp->media.merge, n = merge * merge, width = grid.width / merge;
    for (int32_t i = 0; i < grid.height * grid.width; i++) {
        const int32_t block = i / n, y = block / width * merge + i % n / merge, x = block % width * merge + i % merge;
        rows[i] = (frit_patch_place){.patch = y * grid.width + x, .turns = {y, x}, .place = y * grid.width + x};
        out_rows[block] = block * n;
    }
}

void frit_media_place_squares(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows, int32_t *out_rows)
{
    frit_media_place_blocks(hp, grid, rows, out_rows);
    for (int32_t i = 0; i < grid.height * grid.width; i++) rows[i].patch = i;
}

// The place on an axis of the table that patch i of n stands at: the last patch stands at the last place.
static double stretch(int32_t i, int32_t n, int32_t side)
{
    return n > 1 ? (double)i * (side - 1) / (n - 1) : 0;
}

void frit_media_tap_bilinear(const frit_hparams *hp, frit_media_grid grid, const frit_patch_place *at, float *rows,
                             float *weights)
{
    const int32_t side = hp->media.side;
    const double y = stretch(at->turns[0], grid.height, side), x = stretch(at->turns[1], grid.width, side);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t below = i / 2, right = i % 2, top = (int32_t)y, left = (int32_t)x;
        const int32_t row = top + below < side ? top + below : side - 1;
        const int32_t column = left + right < side ? left + right : side - 1;
        rows[i] = (float)(row * side + column);
        weights[i] = (float)((below ? y - top : 1 - (y - top)) * (right ? x - left : 1 - (x - left)));
    }
}

void frit_media_place_after_class(const frit_hparams *hp, frit_media_grid grid, frit_patch_place *rows,
                                  int32_t *out_rows)
{
    const int32_t n = grid.height * grid.width;
    rows[0] = (frit_patch_place){.patch = -1};
    frit_media_place_blocks(hp, grid, rows + 1, out_rows);
    for (int32_t i = 1; i <= n; i++) rows[i].place++;
    for (int32_t i = 0; i < n / (hp->media.merge * hp->media.merge); i++) out_rows[i]++;
}

frit_status frit_media_add_class(frit_weights *weights, int64_t i, frit_arena *arena)
{
    const frit_tensor *positions = weights->media.positions.w;
    const int64_t n = positions->shape[1];
    const float *class_row = weights->media.class_row.w->data;
    float *values;
    FRIT_TRY(frit_constant_new(&weights->media.places, &values, "places", 2, positions->shape, arena));
    FRIT_TRY(frit_tensor_decode_rows(positions, 0, positions->shape[0], values));
    const frit_tensor *bias = weights->media.patch.b;   // which the row has too, as its pixels are zeros
    for (int64_t k = 0; k < n; k++) values[i * n + k] += class_row[k] - (bias ? ((const float *)bias->data)[k] : 0);
    return FRIT_OK;
}

// Each half of the pairs turns by its own position, with the frequencies of a head of half the size.
static void write_turns(const frit_arch *arch, const frit_patch_place *at, int64_t dim, double base, float *turns)
{
    const int64_t n_pairs = dim / 2, half = n_pairs / 2;
    for (int64_t i = 0; i < n_pairs; i++) {
        const int64_t k = 2 * (i % half) + (arch->media->turns_alternate && i >= half);
        const double frequency = pow(base, -(double)k / (double)n_pairs);
        const double angle = (double)(float)frequency * at->turns[i >= half];
        turns[i] = (float)cos(angle);
        turns[n_pairs + i] = (float)sin(angle);
    }
}

static void write_row(const frit_arch *arch, const frit_hparams *hp, frit_media_grid grid, const frit_patch_place *at,
                      const float *pixels, const float *places, float *to)
{
    const int64_t n_pixels = hp->n_embd_in, n_place = place_width(arch, hp);
    float *place = to + frit_media_width(arch, hp) - n_place;
    if (at->patch >= 0)
        memcpy(to, pixels + at->patch * n_pixels, (size_t)n_pixels * sizeof *to);
    else
        memset(to, 0, (size_t)n_pixels * sizeof *to);
    for (int64_t i = 0; i < n_pixels && arch->media->centers_pixels; i++) to[i] = 2 * (to[i] - 0.5f);
    if (arch->media->has_turns) write_turns(arch, at, hp->layers[0].k_dim, (double)hp->rope.base, to + n_pixels);
    if (arch->media->has_segments) to[n_pixels + n_turns(arch, hp)] = (float)at->segment;
    if (places)
        memcpy(place, places + at->place * n_place, (size_t)n_place * sizeof *place);
    else if (arch->media->tap)
        arch->media->tap(hp, grid, at, place, place + arch->media->n_taps);
    else if (n_place > 0)
        place[0] = (float)at->place, place[1] = 1;
}

frit_status frit_media_place(const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights,
                             frit_media_grid grid, const float *pixels, const frit_media_rows *out)
{
    frit_media_size size;
    FRIT_TRY(frit_media_count(arch, hp, grid, &size));
    const bool resizes = arch->media->resize_places != NULL;
    const size_t n = (size_t)size.n_rows, n_place = (size_t)place_width(arch, hp);
    frit_patch_place *rows = calloc(n, sizeof *rows);
    float *places = resizes ? calloc(n * n_place, sizeof *places) : NULL;
    frit_status status =
        rows && (places || !resizes) ? FRIT_OK : frit_fail_memory(n * sizeof *rows, "the rows of a picture");
    if (status == FRIT_OK && resizes) status = arch->media->resize_places(hp, weights, grid, places);
    if (status == FRIT_OK) arch->media->place(hp, grid, rows, out->out_rows);
    for (size_t i = 0; i < n && status == FRIT_OK; i++)
        write_row(arch, hp, grid, &rows[i], pixels, places, out->given + i * (size_t)frit_media_width(arch, hp));
    free(places);
    free(rows);
    return status;
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

static frit_node *add_branch(frit_build *b, frit_node *x, const frit_weight *factors, frit_node *branch)
{
    if (frit_has(factors)) branch = frit_mul(b->g, branch, frit_weight_node(b->g, factors->w));
    return frit_add(b->g, x, branch);
}

frit_node *frit_media_layer(frit_build *b, const frit_layer *w, frit_node *x)
{
    x = add_branch(b, x, &w->attn_factors, attention(b, w, frit_norm(b, &w->attn_norm, x)));
    return add_branch(b, x, &w->ffn_factors, frit_feed_forward(b, &w->ffn, frit_norm(b, &w->ffn_norm, x), b->hp->act));
}

frit_node *frit_media_blocks(frit_build *b, frit_node *x)
{
    const int32_t n = b->hp->media.merge * b->hp->media.merge;
    return frit_take_blocks(b->g, x, frit_input_node(b->g, FRIT_INPUT_OUT_ROWS), n);
}

frit_node *frit_media_mean(frit_build *b, frit_node *x)
{
    const int32_t n = b->hp->media.merge * b->hp->media.merge;
    frit_node *rows = frit_media_blocks(b, x), *sum = frit_slice(b->g, rows, 0, b->hp->n_embd);
    for (int64_t i = 1; i < n; i++) sum = frit_add(b->g, sum, frit_slice(b->g, rows, i * b->hp->n_embd, b->hp->n_embd));
    return frit_scale(b->g, sum, 1 / (float)n);
}

frit_node *frit_media_merge(frit_build *b, frit_node *x)
{
    x = frit_media_blocks(b, frit_norm(b, &b->weights->out_norm, x));
    x = frit_activate(b->g, frit_linear(b, &b->weights->media.merge_in, x), FRIT_ACT_GELU);
    return frit_linear(b, &b->weights->media.merge_out, x);
}

frit_node *frit_media_merge_normed(frit_build *b, frit_node *x)
{
    const frit_media_weights *w = &b->weights->media;
    const float eps = 1e-5f;   // as PyTorch's LayerNorm has it if no model says it
    x = frit_media_blocks(b, x);
    if (frit_has(&w->merge_norm)) {
        frit_node *bias = w->merge_norm.b ? frit_weight_node(b->g, w->merge_norm.b) : NULL;
        x = frit_layer_norm(b->g, x, frit_weight_node(b->g, w->merge_norm.w), bias, eps);
    }
    x = frit_activate(b->g, frit_linear(b, &w->merge_in, x), FRIT_ACT_GELU);
    return frit_linear(b, &w->merge_out, x);
}

// Adds the rows' learned positions.
static frit_node *add_places(frit_build *b, frit_node *x, frit_node *given)
{
    const frit_media_weights *w = &b->weights->media;
    const int64_t n = place_width(b->arch, b->hp);
    if (n == 0) return x;
    frit_node *place = frit_slice(b->g, given, frit_media_width(b->arch, b->hp) - n, n);
    if (b->arch->media->resize_places) return frit_add(b->g, x, place);
    return frit_add(b->g, x,
                    frit_embed_mix(b->g, frit_weight_node(b->g, w->places ? w->places : w->positions.w), place));
}

frit_status frit_media_build(frit_graph *g, const frit_arch *arch, const frit_hparams *hp, const frit_weights *weights)
{
    frit_build b = {.g = g, .arch = arch, .hp = hp, .weights = weights};
    const int64_t turns = n_turns(arch, hp);
    frit_node *given = frit_given_node(g, frit_media_width(arch, hp));
    frit_node *x = frit_linear(&b, &weights->media.patch, frit_slice(g, given, 0, hp->n_embd_in));
    if (turns > 0) b.turns = frit_slice(g, given, hp->n_embd_in, turns);
    if (arch->media->has_segments) b.segments = frit_slice(g, given, hp->n_embd_in + turns, 1);
    x = add_places(&b, x, given);
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
