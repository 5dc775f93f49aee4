// SPDX-License-Identifier: MIT
// The encoder of Mistral Small 3.1 and 3.2 and of Ministral 3: Pixtral's, for pictures of any size, with RMSNorm,
// gates, and rotations by rows and columns. A matrix merges squares of patches, then a projector follows.
#include "arch/media.h"
#include "format/rows.h"

// clang-format off
static const frit_weight_row rows[] = {
    FRIT_MODEL_WEIGHT(media.patch, "patch_embd", N_EMBD, EMBD_IN, 0),
    FRIT_MODEL_WEIGHT(media.input_norm, "input_norm", N_EMBD, 1, 0),
    FRIT_ROW_NORM(attn_norm, "attn_norm"),
    FRIT_WEIGHTS_QKV(0),
    FRIT_ROW_O(0),
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),
    FRIT_WEIGHTS_GATED(0),
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD, 1, 0),
    FRIT_MODEL_WEIGHT(media.squares, "merge_squares", N_EMBD, MERGED, FRIT_WEIGHT_TABLE),
    FRIT_MODEL_WEIGHT(media.merge_in, "merge_in", EMBD_OUT, N_EMBD, 0),
    FRIT_MODEL_WEIGHT(media.merge_out, "merge_out", EMBD_OUT, EMBD_OUT, 0),
};
// clang-format on

static const char *const keys[] = {"embedding_length_input", "embedding_length_out", "spatial_merge_size"};

// Reorders the columns: the file has element 0 of all patches of a square first, the step's rows have patch after
// patch.
static frit_status compute(frit_weights *weights, const frit_hparams *hp, frit_arena *arena)
{
    const frit_tensor *squares = weights->media.squares.w;
    const int64_t n_out = squares->shape[0], n_in = squares->shape[1], n = hp->n_embd, n_square = n_in / n;
    float *values, *row = frit_arena_new(arena, float, (size_t)n_in);
    if (!row) return frit_fail_memory((size_t)n_in * sizeof *row, "a row of weights");
    FRIT_TRY(frit_constant_new(&weights->media.squares_by_patch, &values, "merge_squares by patch", 2, squares->shape,
                               arena));
    for (int64_t o = 0; o < n_out; o++) {
        FRIT_TRY(frit_tensor_decode_rows(squares, o, 1, row));
        for (int64_t i = 0; i < n_in; i++) values[o * n_in + i % n_square * n + i / n_square] = row[i];
    }
    return FRIT_OK;
}

static frit_node *begin(frit_build *b, frit_node *x)
{
    return frit_norm(b, &b->weights->media.input_norm, x);
}

static frit_node *end(frit_build *b, frit_node *x)
{
    const frit_media_weights *w = &b->weights->media;
    x = frit_rms_norm(b->g, x, frit_weight_node(b->g, b->weights->out_norm.w), b->hp->layer_norm_eps);
    x = frit_matmul(b->g, frit_weight_node(b->g, w->squares_by_patch), frit_media_blocks(b, x), NULL);
    return frit_linear(b, &w->merge_out, frit_activate(b->g, frit_linear(b, &w->merge_in, x), FRIT_ACT_GELU));
}

const frit_arch frit_arch_mistral3_vision = {
    .name = "mistral3_vision",
    .title = "the encoder of Mistral Small 3.1 and Ministral 3",
    .rows = rows,
    .n_rows = FRIT_COUNT(rows),
    .keys = keys,
    .n_keys = FRIT_COUNT(keys),
    .rope_style = FRIT_ROPE_NEOX,
    .norm = FRIT_NORM_RMS,
    .act = FRIT_ACT_GELU,
    .begin = begin,
    .layer = frit_media_layer,
    .end = end,
    .compute = compute,
    .media = &(const frit_media_arch){.has_turns = true, .turns_alternate = true, .place = frit_media_place_blocks},
};
