// SPDX-License-Identifier: MIT
// Numbers of eight bits (F8_E4M3 or I8) times a scale: one for the tensor, one for each row, or one for each block of
// rows and columns. Matrices of F8_E4M3 become fp8_128, without loss, if no 128 columns have two scales.
#include "format/hf/quant/hf_quant.h"
#include "quant/blocks.h"

#include <stdio.h>

typedef struct scaled {
    frit_recipe base;                    // parts: codes, scales
    const float *f8;                     // NULL: integers
    int64_t n_rows, n_columns;           // of a matrix
    int64_t block_rows, block_columns;   // that share a scale
    int64_t scale_rows, scale_columns;   // of a matrix
    const frit_dtype_info *to;
} scaled;

// The index of the first scale of a row of codes.
static int64_t first_scale(const scaled *s, int64_t row)
{
    return (row / s->n_rows * s->scale_rows + row % s->n_rows / s->block_rows) * s->scale_columns;
}

static void make_blocks(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    enum { N = sizeof((frit_block_fp8_128){0}.qs) };
    const scaled *s = (const scaled *)recipe;
    frit_block_fp8_128 *block = (frit_block_fp8_128 *)(void *)rows;
    (void)scratch;
    for (int64_t i = begin; i < begin + n; i++) {
        const uint8_t *codes = (const uint8_t *)recipe->parts[0].data + i * s->n_columns;
        for (int64_t k = 0; k < s->n_columns; k += N, block++) {
            block->d = frit_hf_number_at(&recipe->parts[1], first_scale(s, i) + k / s->block_columns);
            memcpy(block->qs, codes + k, N);
        }
    }
}

static void make_rows(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const scaled *s = (const scaled *)recipe;
    const size_t row_bytes = (size_t)s->n_columns * (size_t)s->to->block_bytes;
    float *values = (float *)(void *)scratch;
    for (int64_t i = begin; i < begin + n; i++, rows += row_bytes) {
        const uint8_t *codes = (const uint8_t *)recipe->parts[0].data + i * s->n_columns;
        for (int64_t k = 0; k < s->n_columns;) {
            const float scale = frit_hf_number_at(&recipe->parts[1], first_scale(s, i) + k / s->block_columns);
            const int64_t rest = s->n_columns - k, end = k + (rest < s->block_columns ? rest : s->block_columns);
            for (; k < end; k++) values[k] = scale * (s->f8 ? s->f8[codes[k]] : (float)(int8_t)codes[k]);
        }
        s->to->encode(values, rows, s->n_columns, NULL);
    }
}

// Derives the size of blocks from the number of scales.
static bool find_blocks(const frit_hf_quant *q, scaled *s, int64_t n_matrices, int64_t n_scales)
{
    const int64_t rows = q->block_rows, columns = q->block_columns;
    s->block_rows = s->n_rows;
    s->block_columns = s->n_columns;
    if (n_scales % n_matrices != 0) return false;
    n_scales /= n_matrices;
    if (rows > 0 && columns > 0 &&
        n_scales == (s->n_rows + rows - 1) / rows * ((s->n_columns + columns - 1) / columns)) {
        s->block_rows = rows;
        s->block_columns = columns;
    } else if (n_scales == s->n_rows) {
        s->block_rows = 1;
    } else if (n_scales != 1) {
        return false;
    }
    s->scale_rows = (s->n_rows + s->block_rows - 1) / s->block_rows;
    s->scale_columns = (s->n_columns + s->block_columns - 1) / s->block_columns;
    return true;
}

static frit_status make(const frit_hf_quant *q, const frit_safetensors_entry *codes, frit_tensor *tensor)
{
    const bool is_f8 = strcmp(codes->type, "F8_E4M3") == 0;
    if (!is_f8 && strcmp(codes->type, "I8") != 0) return FRIT_OK;
    frit_arena *arena = &q->hf->ckpt->arena;
    scaled *s = frit_arena_new(arena, scaled, 1);
    frit_tensor *parts = frit_arena_new(arena, frit_tensor, 2);
    if (!s || !parts) return frit_fail_memory(sizeof *s, codes->name);
    const frit_safetensors_entry *inverse = frit_hf_beside(q, codes, "", "_scale_inv");
    FRIT_TRY(frit_hf_beside_tensor(q, codes, "", inverse ? "_scale_inv" : "_scale", &parts[1]));
    if (codes->n_dims < 2 || codes->n_dims > 3 || codes->n_bytes == 0 ||
        frit_dtype_get(parts[1].dtype)->block_elems != 1)
        return frit_hf_quant_refuse(q, codes, "is not a matrix of codes with scales");
    tensor->n_dims = codes->n_dims;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = i < codes->n_dims ? codes->shape[i] : 1;
    tensor->dtype = FRIT_DTYPE_I8;
    tensor->data = codes->data;
    tensor->n_bytes = codes->n_bytes;
    parts[0] = *tensor;
    s->n_rows = tensor->shape[tensor->n_dims - 2];
    s->n_columns = frit_tensor_width(tensor);
    const int64_t n_scales = frit_tensor_n_elems(&parts[1]);
    if (!find_blocks(q, s, codes->n_dims == 3 ? tensor->shape[0] : 1, n_scales)) {
        char found[96], scales[96];
        return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' has the shape %s and scales of the shape %s", codes->path,
                              codes->name, frit_tensor_shape_text(tensor, found),
                              frit_tensor_shape_text(&parts[1], scales));
    }
    const int64_t unit = frit_dtype_get(FRIT_DTYPE_FP8_128)->block_elems;
    const bool is_kept =
        is_f8 && s->n_columns % unit == 0 && (s->block_columns == s->n_columns || s->block_columns % unit == 0);
    s->base = (frit_recipe){.make = is_kept ? make_blocks : make_rows,
                            .parts = parts,
                            .n_parts = 2,
                            .scratch_bytes = (size_t)s->n_columns * sizeof(float) / 16 * 16 + 16};
    s->f8 = is_f8 ? q->f8 : NULL;
    tensor->dtype = is_kept ? FRIT_DTYPE_FP8_128 : q->dtype;
    s->to = frit_dtype_get(tensor->dtype);
    tensor->data = NULL;
    tensor->recipe = &s->base;
    tensor->n_bytes = (uint64_t)frit_tensor_n_rows(tensor) * frit_tensor_row_bytes(tensor);
    return FRIT_OK;
}

const frit_hf_scheme frit_hf_scaled = {
    .codes = "",
    .name = "",
    .companions = "|_scale_inv|.weight_scale|_proj_scale|.input_scale|.activation_scale|.k_scale|.v_scale|.q_scale|",
    .make = make,
};
