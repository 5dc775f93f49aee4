// SPDX-License-Identifier: MIT
// The quantization methods of folders, and the tensors that belong to a quantized weight.
#include "format/hf/quant/hf_quant.h"

#include <math.h>
#include <stdio.h>

// ------------------------------------------------------------------------------------- methods

static frit_status refuse(const frit_hf *hf, const char *name, const char *value, const char *expected)
{
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: quantization_config.%s is %.40s, expected %s", hf->path, name, value,
                          expected);
}

static frit_status expect_text(const frit_hf *hf, const json_t *config, const char *name, const char *wanted)
{
    const char *text = wanted;
    FRIT_TRY(frit_hf_get_text(hf, config, "quantization_config.", name, &text));
    return strcmp(text, wanted) == 0 ? FRIT_OK : refuse(hf, name, text, wanted);
}

// Reads the number of bits. Bit n of `allowed`: n bits are allowed.
static frit_status read_bits(frit_hf_quant *q, const json_t *config, const char *name, unsigned allowed)
{
    double bits = 4;
    char text[16];
    FRIT_TRY(frit_hf_get_number(q->hf, config, "quantization_config.", name, FRIT_HF_COUNT, &bits));
    snprintf(text, sizeof text, "%.0f", bits);
    if (bits > 8 || !(allowed >> (int)bits & 1))
        return refuse(q->hf, name, text, allowed == 1 << 4 ? "4" : "2, 3, 4 or 8");
    q->bits = (int)bits;
    return FRIT_OK;
}

// Reads the group size; -1 and null mean one group.
static frit_status read_group(frit_hf_quant *q, const json_t *config, double if_absent)
{
    const json_t *value = json_object_get(config, "group_size");
    double group = if_absent;
    if (!value || !json_is_integer(value) || json_integer_value(value) != -1)
        FRIT_TRY(frit_hf_get_number(q->hf, config, "quantization_config.", "group_size", FRIT_HF_WIDTH, &group));
    else
        group = 0;
    q->group = (int64_t)group;
    return FRIT_OK;
}

// Notes that the model was made for inputs of products in fp8.
static frit_status note_fp8_inputs(const frit_hf_quant *q)
{
    return frit_meta_add_text(&q->hf->ckpt->meta, "frit.product_inputs", "fp8");
}

static frit_status read_block(frit_hf_quant *q, const json_t *block)
{
    q->scheme = &frit_hf_scaled;
    if (!block || json_is_null(block)) return FRIT_OK;
    const json_int_t rows = json_integer_value(json_array_get(block, 0)),
                     columns = json_integer_value(json_array_get(block, 1));
    if (json_array_size(block) != 2 || rows < 1 || columns < 1 || rows > 1 << 20 || columns > 1 << 20)
        return frit_fail_file(FRIT_E_FORMAT, "%s: quantization_config.weight_block_size is not a list of two sizes",
                              q->hf->path);
    q->block_rows = rows;
    q->block_columns = columns;
    return FRIT_OK;
}

// activation_scheme is "dynamic" or "static"; without one, inputs are not quantized.
static frit_status read_fp8(frit_hf_quant *q, const json_t *config)
{
    const json_t *scheme = json_object_get(config, "activation_scheme");
    if (json_is_string(scheme)) FRIT_TRY(note_fp8_inputs(q));
    return read_block(q, json_object_get(config, "weight_block_size"));
}

static frit_status read_fbgemm(frit_hf_quant *q, const json_t *config)
{
    (void)config;
    FRIT_TRY(note_fp8_inputs(q));
    return read_block(q, NULL);
}

static frit_status read_gptq(frit_hf_quant *q, const json_t *config)
{
    const char *format = "gptq";
    FRIT_TRY(frit_hf_get_text(q->hf, config, "quantization_config.", "checkpoint_format", &format));
    q->scheme = &frit_hf_gptq;
    q->adds_one = strcmp(format, "gptq") == 0;
    if (!q->adds_one && strcmp(format, "gptq_v2") != 0)
        return refuse(q->hf, "checkpoint_format", format, "gptq and gptq_v2");
    FRIT_TRY(read_bits(q, config, "bits", 1 << 2 | 1 << 3 | 1 << 4 | 1 << 8));
    return read_group(q, config, 128);
}

static frit_status read_awq(frit_hf_quant *q, const json_t *config)
{
    q->scheme = &frit_hf_awq;
    FRIT_TRY(expect_text(q->hf, config, "version", "gemm"));
    FRIT_TRY(read_bits(q, config, "bits", 1 << 4));
    return read_group(q, config, 128);
}

static frit_status read_mxfp4(frit_hf_quant *q, const json_t *config)
{
    (void)config;
    q->scheme = &frit_hf_mxfp4;
    return FRIT_OK;
}

// All groups of modules must have the same settings.
static frit_status read_compressed(frit_hf_quant *q, const json_t *config)
{
    const char *format = "", *name;
    json_t *groups = json_object_get(config, "config_groups"), *group;
    const json_t *weights = NULL;
    FRIT_TRY(frit_hf_get_text(q->hf, config, "quantization_config.", "format", &format));
    const bool is_packed = strcmp(format, "pack-quantized") == 0;
    if (!is_packed && strcmp(format, "float-quantized") != 0 && strcmp(format, "int-quantized") != 0 &&
        strcmp(format, "naive-quantized") != 0)
        return refuse(q->hf, "format", format, "pack-quantized, float-quantized, int-quantized and naive-quantized");
    bool has_fp8_inputs = false;
    json_object_foreach(groups, name, group)
    {
        const json_t *other = json_object_get(group, "weights"), *inputs = json_object_get(group, "input_activations");
        const char *kind = json_string_value(json_object_get(inputs, "type"));
        has_fp8_inputs =
            kind && strcmp(kind, "float") == 0 && json_integer_value(json_object_get(inputs, "num_bits")) == 8;
        if (weights && !json_equal(weights, other))
            return frit_fail_file(FRIT_E_UNSUPPORTED,
                                  "%s: the groups of quantization_config.config_groups differ, expected equal settings",
                                  q->hf->path);
        weights = other;
    }
    if (!json_is_object(weights))
        return frit_fail_file(FRIT_E_FORMAT, "%s: quantization_config.config_groups has no weights", q->hf->path);
    if (is_packed) {
        q->scheme = &frit_hf_words;
        FRIT_TRY(read_bits(q, weights, "num_bits", 1 << 2 | 1 << 4 | 1 << 8));
        return read_group(q, weights, 0);
    }
    const json_t *block = json_object_get(weights, "block_structure");
    if (has_fp8_inputs) FRIT_TRY(note_fp8_inputs(q));
    return read_block(q, json_is_array(block) ? block : NULL);
}

static const struct {
    const char *method;
    frit_status (*read)(frit_hf_quant *quant, const json_t *config);
} methods[] = {
    {"fp8", read_fp8},   {"fbgemm_fp8", read_fbgemm}, {"compressed-tensors", read_compressed},
    {"gptq", read_gptq}, {"awq", read_awq},           {"mxfp4", read_mxfp4},
};

// ------------------------------------------------------------------------------------- reading

// Decodes E4M3: one sign bit, four bits of exponent, three of mantissa; no infinities.
static float f8_value(int code)
{
    const int exponent = code >> 3 & 15, mantissa = code & 7;
    const float value = (code & 0x7f) == 0x7f ? NAN
                        : exponent == 0       ? ldexpf((float)mantissa, -9)
                                              : ldexpf((float)(8 + mantissa), exponent - 10);
    return code & 0x80 ? -value : value;
}

static frit_status read_dtype(frit_hf_quant *q)
{
    const char *name = "";
    static const char *const names[] = {"torch_dtype", "dtype"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        FRIT_TRY(frit_hf_get_text(q->hf, q->hf->whole, "", names[i], &name));
        FRIT_TRY(frit_hf_get_text(q->hf, q->hf->config, "", names[i], &name));
    }
    q->dtype = strcmp(name, "bfloat16") == 0  ? FRIT_DTYPE_BF16
               : strcmp(name, "float16") == 0 ? FRIT_DTYPE_F16
                                              : FRIT_DTYPE_F32;
    return FRIT_OK;
}

frit_status frit_hf_quant_read(frit_hf_quant *q, const frit_hf *hf)
{
    *q = (frit_hf_quant){.hf = hf};
    const json_t *config = json_object_get(hf->whole, "quantization_config");
    if (!config || json_is_null(config)) config = json_object_get(hf->config, "quantization_config");
    if (!config || json_is_null(config)) config = json_object_get(hf->whole, "compression_config");
    if (!config || json_is_null(config)) return FRIT_OK;
    const char *method = "";
    FRIT_TRY(frit_hf_get_text(hf, config, "quantization_config.", "quant_method", &method));
    float *f8 = frit_arena_new(&hf->ckpt->arena, float, 256);
    if (!f8) return frit_fail_memory(256 * sizeof *f8, "a table of numbers");
    for (int i = 0; i < 256; i++) f8[i] = f8_value(i);
    q->f8 = f8;
    FRIT_TRY(read_dtype(q));
    for (size_t i = 0; i < FRIT_COUNT(methods); i++)
        if (strcmp(methods[i].method, method) == 0) return methods[i].read(q, config);
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: the weights are quantized (quant_method '%.40s'), which is not supported; supported are "
                          "fp8, fbgemm_fp8, compressed-tensors, gptq, awq and mxfp4",
                          hf->path, method);
}

static bool ends_with(const char *text, const char *ending, size_t n_ending)
{
    const size_t n = strlen(text);
    return n >= n_ending && memcmp(text + n - n_ending, ending, n_ending) == 0;
}

static bool is_beside(const frit_hf_scheme *scheme, const char *name)
{
    for (const char *at = scheme->companions; at[0] == '|' && at[1]; at = strchr(at + 1, '|'))
        if (ends_with(name, at + 1, (size_t)(strchr(at + 1, '|') - at - 1))) return true;
    return false;
}

frit_status frit_hf_quant_name(const frit_hf_quant *q, const frit_safetensors_entry *entry, const char **name)
{
    *name = entry->name;
    if (!q->scheme) return FRIT_OK;
    if (is_beside(q->scheme, entry->name)) {
        *name = NULL;
        return FRIT_OK;
    }
    const size_t n = strlen(entry->name), n_ending = strlen(q->scheme->codes), n_other = strlen(q->scheme->name);
    if (!ends_with(entry->name, q->scheme->codes, n_ending) || strcmp(q->scheme->codes, q->scheme->name) == 0)
        return FRIT_OK;
    char *copy = frit_arena_alloc(&q->hf->ckpt->arena, n - n_ending + n_other + 1, 1);
    if (!copy) return frit_fail_memory(n, "a tensor name");
    memcpy(copy, entry->name, n - n_ending);
    memcpy(copy + n - n_ending, q->scheme->name, n_other);
    *name = copy;
    return FRIT_OK;
}

frit_status frit_hf_quant_tensor(const frit_hf_quant *q, const frit_safetensors_entry *entry, const char *name,
                                 frit_tensor *tensor)
{
    *tensor = (frit_tensor){.name = name};
    if (q->scheme && ends_with(entry->name, q->scheme->codes, strlen(q->scheme->codes)))
        FRIT_TRY(q->scheme->make(q, entry, tensor));
    if (tensor->n_dims == 0) FRIT_TRY(frit_safetensors_to_tensor(entry, tensor));
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- companion tensors

const frit_safetensors_entry *frit_hf_beside(const frit_hf_quant *q, const frit_safetensors_entry *codes,
                                             const char *ending, const char *other)
{
    char name[512];
    int64_t i;
    const int n = (int)(strlen(codes->name) - strlen(ending));
    const int n_name = snprintf(name, sizeof name, "%.*s%s", n, codes->name, other);
    if (n_name < 0 || n_name >= (int)sizeof name) return NULL;
    return frit_map_get(q->index, frit_str_of(name), &i) ? &q->entries[i] : NULL;
}

frit_status frit_hf_beside_tensor(const frit_hf_quant *q, const frit_safetensors_entry *codes, const char *ending,
                                  const char *other, frit_tensor *tensor)
{
    const frit_safetensors_entry *entry = frit_hf_beside(q, codes, ending, other);
    if (entry) return frit_safetensors_to_tensor(entry, tensor);
    return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' needs '%s', which is missing", codes->path, codes->name,
                          other);
}

frit_status frit_hf_quant_refuse(const frit_hf_quant *q, const frit_safetensors_entry *entry, const char *why)
{
    (void)q;
    return frit_fail_file(FRIT_E_FORMAT, "%s: tensor '%s' %s", entry->path, entry->name, why);
}

float frit_hf_number_at(const frit_tensor *tensor, int64_t i)
{
    float value;
    frit_dtype_get(tensor->dtype)
        ->decode((const uint8_t *)tensor->data + (uint64_t)i * frit_dtype_row_bytes(tensor->dtype, 1), &value, 1);
    return value;
}
