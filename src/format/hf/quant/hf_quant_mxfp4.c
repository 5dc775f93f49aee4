// SPDX-License-Identifier: MIT
// MXFP4: 32 numbers of four bits share a power of two. Folders store blocks [.., n / 32, 16], with two adjacent numbers
// in a byte, and scales [.., n / 32]. Blocks of GGUF's type have the scale first, then numbers i and i + 16 in one
// byte. The numbers stay unchanged.
#include "format/hf/quant/hf_quant.h"

enum { BLOCK = 32, BLOCK_BYTES = 17, CODE_BYTES = 16 };

static int nibble(const uint8_t *codes, int i)
{
    return codes[i / 2] >> i % 2 * 4 & 15;
}

static void make_rows(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    (void)scratch;
    const frit_tensor *blocks = &recipe->parts[0];
    const int64_t per_row = blocks->shape[blocks->n_dims - 2];
    const uint8_t *codes = (const uint8_t *)blocks->data + begin * per_row * CODE_BYTES;
    const uint8_t *scales = (const uint8_t *)recipe->parts[1].data + begin * per_row;
    for (int64_t b = 0; b < n * per_row; b++, codes += CODE_BYTES, rows += BLOCK_BYTES) {
        rows[0] = scales[b];
        for (int i = 0; i < CODE_BYTES; i++)
            rows[1 + i] = (uint8_t)(nibble(codes, i) | nibble(codes, i + CODE_BYTES) << 4);
    }
}

static frit_status make(const frit_hf_quant *q, const frit_safetensors_entry *codes, frit_tensor *tensor)
{
    const frit_safetensors_entry *scales = frit_hf_beside(q, codes, "_blocks", "_scales");
    frit_recipe *recipe = frit_arena_new(&q->hf->ckpt->arena, frit_recipe, 1);
    frit_tensor *parts = frit_arena_new(&q->hf->ckpt->arena, frit_tensor, 2);
    const int n = codes->n_dims;
    bool fits = scales && n >= 3 && n <= FRIT_MAX_DIMS && scales->n_dims == n - 1 &&
                codes->shape[n - 1] == CODE_BYTES && strcmp(codes->type, "U8") == 0 &&
                strcmp(scales->type, "U8") == 0 && codes->n_bytes > 0;
    for (int i = 0; i < n - 1 && fits; i++) fits = codes->shape[i] == scales->shape[i];
    if (!fits)
        return frit_hf_quant_refuse(q, codes, "has another shape than blocks of 16 bytes with one scale byte each");
    if (!recipe || !parts) return frit_fail_memory(sizeof *recipe, codes->name);
    *recipe = (frit_recipe){.make = make_rows, .parts = parts, .n_parts = 2};
    for (int k = 0; k < 2; k++) {
        const frit_safetensors_entry *entry = k == 0 ? codes : scales;
        parts[k] = (frit_tensor){.name = entry->name,
                                 .dtype = FRIT_DTYPE_I8,
                                 .n_dims = entry->n_dims,
                                 .shape = {1, 1, 1, 1},
                                 .data = entry->data,
                                 .n_bytes = entry->n_bytes};
        for (int i = 0; i < entry->n_dims; i++) parts[k].shape[i] = entry->shape[i];
    }
    tensor->dtype = FRIT_DTYPE_MXFP4;
    tensor->n_dims = n - 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = i < n - 1 ? codes->shape[i] : 1;
    tensor->shape[n - 2] *= BLOCK;
    tensor->recipe = recipe;
    tensor->n_bytes = (uint64_t)frit_tensor_n_rows(tensor) * frit_tensor_row_bytes(tensor);
    return FRIT_OK;
}

const frit_hf_scheme frit_hf_mxfp4 = {"_blocks", "", "|_scales|", make};
