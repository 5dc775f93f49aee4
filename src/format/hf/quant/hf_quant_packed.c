// SPDX-License-Identifier: MIT
// Codes of two to eight bits in words of 32: number = (code - zero) * scale, with a zero and a scale for each row and
// group of columns. Three layouts, of weights [n_out, n_in]:
//
//     GPTQ     qweight [n_in * bits / 32, n_out]: codes of a row in sequence through the words of a column;
//              qzeros [n_group, n_out * bits / 32] along their rows; scales [n_group, n_out]; g_idx [n_in]: the group
//              of each column, where they are out of order
//     AWQ      qweight [n_in, n_out / 8]: eight rows in a word, in the order below; qzeros [n_group, n_out / 8]; scales
//              [n_group, n_out]
//     words    weight_packed [n_out, n_in * bits / 32] (compressed-tensors); weight_zero_point [n_out * bits / 32,
//              n_group], or the middle of the range; weight_scale [n_out, n_group]; weight_g_idx [n_in]
#include "format/hf/quant/hf_quant.h"

typedef struct packed {
    frit_recipe base;   // parts: words, scales, zeros, groups of columns
    void (*unpack)(const struct packed *p, int64_t row, float *codes);
    float (*zero)(const struct packed *p, int64_t row, int64_t group);
    int bits, adds;   // adds: constant added to zero points
    int64_t n_in, n_out, n_groups, group;
    bool by_row;   // scales [n_out, n_groups]
    const frit_dtype_info *to;
} packed;

enum { WORDS, SCALES, ZEROS, GROUPS, N_PARTS };

static uint32_t word_at(const packed *p, int part, int64_t i)
{
    uint32_t word;
    memcpy(&word, (const uint8_t *)p->base.parts[part].data + i * 4, 4);
    return word;
}

// Reads `bits` bits from bit `at` on of the words part[first + k * stride].
static float code_of(const packed *p, int part, int64_t first, int64_t stride, int64_t at)
{
    const int64_t word = at / 32;
    const int shift = (int)(at % 32);
    uint64_t bits = word_at(p, part, first + word * stride);
    if (shift + p->bits > 32) bits |= (uint64_t)word_at(p, part, first + (word + 1) * stride) << 32;
    return (float)(bits >> shift & ((1u << p->bits) - 1));
}

static int64_t group_of(const packed *p, int64_t column)
{
    return p->base.parts[GROUPS].data ? (int64_t)word_at(p, GROUPS, column) : column / p->group;
}

// ------------------------------------------------------------------------------------- layouts

static void unpack_gptq(const packed *p, int64_t row, float *codes)
{
    for (int64_t i = 0; i < p->n_in; i++) codes[i] = code_of(p, WORDS, row, p->n_out, i * p->bits);
}

static float zero_gptq(const packed *p, int64_t row, int64_t group)
{
    return code_of(p, ZEROS, group * (p->n_out * p->bits / 32), 1, row * p->bits);
}

static const uint8_t awq_place[] = {0, 4, 1, 5, 2, 6, 3, 7};

static void unpack_awq(const packed *p, int64_t row, float *codes)
{
    const int shift = 4 * awq_place[row % 8];
    for (int64_t i = 0; i < p->n_in; i++)
        codes[i] = (float)(word_at(p, WORDS, i * (p->n_out / 8) + row / 8) >> shift & 15);
}

static float zero_awq(const packed *p, int64_t row, int64_t group)
{
    return (float)(word_at(p, ZEROS, group * (p->n_out / 8) + row / 8) >> 4 * awq_place[row % 8] & 15);
}

static void unpack_words(const packed *p, int64_t row, float *codes)
{
    const int64_t n_words = p->base.parts[WORDS].shape[1];
    for (int64_t i = 0; i < p->n_in; i++) codes[i] = code_of(p, WORDS, row * n_words, 1, i * p->bits);
}

static float zero_words(const packed *p, int64_t row, int64_t group)
{
    if (!p->base.parts[ZEROS].data) return (float)(1 << (p->bits - 1));
    return code_of(p, ZEROS, group, p->n_groups, row * p->bits);
}

// ------------------------------------------------------------------------------------- rows

static void make_rows(const frit_recipe *recipe, int64_t begin, int64_t n, uint8_t *rows, uint8_t *scratch)
{
    const packed *p = (const packed *)recipe;
    const size_t row_bytes = (size_t)p->n_in * (size_t)p->to->block_bytes;
    float *values = (float *)(void *)scratch, *zeros = values + p->n_in, *scales = zeros + p->n_groups;
    for (int64_t row = begin; row < begin + n; row++, rows += row_bytes) {
        for (int64_t g = 0; g < p->n_groups; g++) {
            zeros[g] = p->zero(p, row, g) + (float)p->adds;
            scales[g] =
                frit_hf_number_at(&recipe->parts[SCALES], p->by_row ? row * p->n_groups + g : g * p->n_out + row);
        }
        p->unpack(p, row, values);
        for (int64_t i = 0; i < p->n_in; i++) {
            const int64_t g = group_of(p, i);
            values[i] = (values[i] - zeros[g]) * scales[g];
        }
        p->to->encode(values, rows, p->n_in, NULL);
    }
}

static frit_status check_groups(const frit_hf_quant *q, const packed *p, const frit_safetensors_entry *codes)
{
    if (p->n_groups < 1 || p->group < 1 || (!p->base.parts[GROUPS].data && (p->n_in - 1) / p->group >= p->n_groups))
        return frit_hf_quant_refuse(q, codes, "has fewer scales than groups of columns");
    for (int64_t i = 0; i < p->n_in && p->base.parts[GROUPS].data; i++)
        if ((int64_t)word_at(p, GROUPS, i) >= p->n_groups)
            return frit_hf_quant_refuse(q, codes, "has a column in a group without scale");
    return FRIT_OK;
}

static bool has_shape(const frit_tensor *tensor, int64_t rows, int64_t columns)
{
    return tensor->n_dims == 2 && tensor->shape[0] == rows && tensor->shape[1] == columns;
}

static bool is_words(const frit_tensor *tensor)
{
    return tensor->dtype == FRIT_DTYPE_I32;
}

static frit_status new_packed(const frit_hf_quant *q, const frit_safetensors_entry *codes, packed **out)
{
    packed *p = frit_arena_new(&q->hf->ckpt->arena, packed, 1);
    frit_tensor *parts = frit_arena_new(&q->hf->ckpt->arena, frit_tensor, N_PARTS);
    if (!p || !parts) return frit_fail_memory(sizeof *p, codes->name);
    p->base = (frit_recipe){.make = make_rows, .parts = parts, .n_parts = N_PARTS};
    p->bits = q->bits;
    p->adds = q->adds_one;
    p->to = frit_dtype_get(q->dtype);
    FRIT_TRY(frit_safetensors_to_tensor(codes, &parts[WORDS]));
    if (parts[WORDS].n_dims != 2 || !is_words(&parts[WORDS]))
        return frit_hf_quant_refuse(q, codes, "is not a matrix of words of 32 bits");
    *out = p;
    return FRIT_OK;
}

static frit_status finish(const frit_hf_quant *q, const frit_safetensors_entry *codes, packed *p, frit_tensor *tensor)
{
    p->group = q->group > 0 ? q->group : p->n_in;
    FRIT_TRY(check_groups(q, p, codes));
    p->base.scratch_bytes = (size_t)(p->n_in + 2 * p->n_groups) * sizeof(float) / 16 * 16 + 16;
    tensor->dtype = q->dtype;
    tensor->n_dims = 2;
    tensor->shape[0] = p->n_out;
    tensor->shape[1] = p->n_in;
    tensor->shape[2] = tensor->shape[3] = 1;
    tensor->recipe = &p->base;
    tensor->n_bytes = (uint64_t)p->n_out * frit_tensor_row_bytes(tensor);
    return FRIT_OK;
}

static frit_status make_gptq(const frit_hf_quant *q, const frit_safetensors_entry *codes, frit_tensor *tensor)
{
    packed *p;
    FRIT_TRY(new_packed(q, codes, &p));
    frit_tensor *parts = p->base.parts;
    FRIT_TRY(frit_hf_beside_tensor(q, codes, ".qweight", ".scales", &parts[SCALES]));
    FRIT_TRY(frit_hf_beside_tensor(q, codes, ".qweight", ".qzeros", &parts[ZEROS]));
    if (frit_hf_beside(q, codes, ".qweight", ".g_idx"))
        FRIT_TRY(frit_hf_beside_tensor(q, codes, ".qweight", ".g_idx", &parts[GROUPS]));
    p->n_out = parts[WORDS].shape[1];
    p->n_in = parts[WORDS].shape[0] * 32 / p->bits;
    p->n_groups = parts[SCALES].shape[0];
    p->unpack = unpack_gptq;
    p->zero = zero_gptq;
    const bool fits = parts[WORDS].shape[0] * 32 % p->bits == 0 && has_shape(&parts[SCALES], p->n_groups, p->n_out) &&
                      p->n_out * p->bits % 32 == 0 && is_words(&parts[ZEROS]) &&
                      has_shape(&parts[ZEROS], p->n_groups, p->n_out * p->bits / 32) &&
                      (!parts[GROUPS].data || (is_words(&parts[GROUPS]) && parts[GROUPS].shape[0] == p->n_in));
    return fits ? finish(q, codes, p, tensor)
                : frit_hf_quant_refuse(q, codes, "has zeros, scales or g_idx of another shape");
}

static frit_status make_awq(const frit_hf_quant *q, const frit_safetensors_entry *codes, frit_tensor *tensor)
{
    packed *p;
    FRIT_TRY(new_packed(q, codes, &p));
    frit_tensor *parts = p->base.parts;
    FRIT_TRY(frit_hf_beside_tensor(q, codes, ".qweight", ".scales", &parts[SCALES]));
    FRIT_TRY(frit_hf_beside_tensor(q, codes, ".qweight", ".qzeros", &parts[ZEROS]));
    p->n_in = parts[WORDS].shape[0];
    p->n_out = parts[WORDS].shape[1] * 8;
    p->n_groups = parts[SCALES].shape[0];
    p->unpack = unpack_awq;
    p->zero = zero_awq;
    const bool fits = has_shape(&parts[SCALES], p->n_groups, p->n_out) && is_words(&parts[ZEROS]) &&
                      has_shape(&parts[ZEROS], p->n_groups, p->n_out / 8);
    return fits ? finish(q, codes, p, tensor) : frit_hf_quant_refuse(q, codes, "has zeros or scales of another shape");
}

static frit_status make_words(const frit_hf_quant *q, const frit_safetensors_entry *codes, frit_tensor *tensor)
{
    packed *p;
    frit_tensor shape;
    FRIT_TRY(new_packed(q, codes, &p));
    frit_tensor *parts = p->base.parts;
    FRIT_TRY(frit_hf_beside_tensor(q, codes, "_packed", "_scale", &parts[SCALES]));
    FRIT_TRY(frit_hf_beside_tensor(q, codes, "_packed", "_shape", &shape));
    if (frit_hf_beside(q, codes, "_packed", "_zero_point"))
        FRIT_TRY(frit_hf_beside_tensor(q, codes, "_packed", "_zero_point", &parts[ZEROS]));
    if (frit_hf_beside(q, codes, "_packed", "_g_idx"))
        FRIT_TRY(frit_hf_beside_tensor(q, codes, "_packed", "_g_idx", &parts[GROUPS]));
    if (frit_tensor_n_elems(&shape) != 2 || frit_dtype_get(shape.dtype)->block_elems != 1)
        return frit_hf_quant_refuse(q, codes, "has a weight_shape without two numbers");
    p->n_out = parts[WORDS].shape[0];
    p->n_in = (int64_t)frit_hf_number_at(&shape, 1);
    p->n_groups = parts[SCALES].n_dims == 2 ? parts[SCALES].shape[1] : 1;
    p->by_row = true;
    p->unpack = unpack_words;
    p->zero = zero_words;
    const int64_t per_word = 32 / p->bits;
    const bool fits =
        (int64_t)frit_hf_number_at(&shape, 0) == p->n_out && p->n_in > 0 &&
        (p->n_in + per_word - 1) / per_word == parts[WORDS].shape[1] && parts[SCALES].shape[0] == p->n_out &&
        parts[SCALES].n_dims <= 2 &&
        (!parts[ZEROS].data ||
         (is_words(&parts[ZEROS]) && has_shape(&parts[ZEROS], (p->n_out + per_word - 1) / per_word, p->n_groups))) &&
        (!parts[GROUPS].data || (is_words(&parts[GROUPS]) && parts[GROUPS].shape[0] == p->n_in));
    return fits ? finish(q, codes, p, tensor)
                : frit_hf_quant_refuse(q, codes, "has zeros, scales or a weight_shape of another shape");
}

const frit_hf_scheme frit_hf_gptq = {".qweight", ".weight", "|.qzeros|.scales|.g_idx|", make_gptq};
const frit_hf_scheme frit_hf_awq = {".qweight", ".weight", "|.qzeros|.scales|", make_awq};
const frit_hf_scheme frit_hf_words = {
    "_packed", "", "|.weight_scale|.weight_zero_point|.weight_shape|.weight_g_idx|.input_scale|.k_scale|.v_scale|",
    make_words};
