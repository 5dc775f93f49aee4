// SPDX-License-Identifier: MIT
// RecurrentGemma. Gates are stored transposed; the parameter of the recurrence becomes the factor of its gate.
#include "format/hf/hf_rows.h"
#include "format/rows.h"

#include <math.h>

enum { MAX_LAYERS = 1024 };

static bool is_recurrent(const frit_hf *hf, double period, size_t i)
{
    const json_t *types = json_object_get(hf->config, "block_types");
    const size_t n = json_array_size(types);
    (void)period;
    if (n == 0) return i % 3 != 2;
    const char *name = json_string_value(json_array_get(types, i % n));
    return !name || strcmp(name, "attention") != 0;
}

// The factor of embeddings is a bfloat16.
static double round_to_bf16(double x)
{
    const float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    float rounded;
    memcpy(&rounded, &bits, sizeof rounded);
    return (double)rounded;
}

static frit_status complete(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS];
    double width = frit_hf_written(hf, "embedding_length");
    const double n_ff = frit_hf_written(hf, "feed_forward_length");
    FRIT_TRY(frit_hf_add_number(hf, "embedding_scale", FRIT_HF_FACTOR, round_to_bf16(sqrt(width))));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "lru_width", FRIT_HF_WIDTH, &width));
    FRIT_TRY(frit_hf_add_number(hf, "rglru.lru_width", FRIT_HF_WIDTH, width));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.time_step_rank", FRIT_HF_COUNT, frit_hf_written(hf, "attention.head_count")));
    FRIT_TRY(frit_hf_set_number(hf, "feed_forward_length", FRIT_HF_WIDTH, floor(n_ff / 2)));
    FRIT_TRY(frit_hf_recurrent_types(hf, is_recurrent, recurrent));
    return frit_hf_add_recurrent(hf, recurrent);
}

// -8 softplus(x)
static frit_status to_decay(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    const int64_t n = frit_tensor_n_elems(tensor);
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    (void)is_bias;
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    FRIT_TRY(frit_tensor_decode_rows(tensor, 0, n / tensor->shape[tensor->n_dims - 1], values));
    for (int64_t i = 0; i < n; i++) {
        const double x = values[i];
        values[i] = (float)(-8 * (x > 30 ? x : log1p(exp(x))));
    }
    tensor->dtype = FRIT_DTYPE_F32;
    tensor->data = values;
    tensor->n_bytes = (uint64_t)n * sizeof *values;
    tensor->is_mapped = false;
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key keys[] = {
    {NULL, "context_length", FRIT_HF_TOKENS, 8192},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"attention_window_size", "attention.sliding_window", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"conv1d_width", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"logits_soft_cap", "final_logit_softcapping", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

#define AT "model.layers.*"
#define ROW_SOME(there, to, ...) {.name = AT there, .gguf = "blk.*." to, .may_be_absent = true, __VA_ARGS__}
static const frit_hf_tensor tensors[] = {
    {.name = "model.final_norm", .gguf = "output_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".temporal_pre_norm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".channel_pre_norm", .gguf = "blk.*.ffn_norm", .rewrite = frit_hf_plus_one},
    FRIT_HF_ROWS_SOME_ATTENTION(AT ".temporal_block"),
    ROW_SOME(".temporal_block.linear_y", "rglru_y", .bias_if = FRIT_HF_MAYBE),
    ROW_SOME(".temporal_block.linear_x", "rglru_x", .bias_if = FRIT_HF_MAYBE),
    ROW_SOME(".temporal_block.linear_out", "rglru_out", .bias_if = FRIT_HF_MAYBE),
    ROW_SOME(".temporal_block.conv_1d", "ssm_conv1d", .bias_if = FRIT_HF_MAYBE),
    ROW_SOME(".temporal_block.rg_lru.input_gate_weight", "rglru_input_gate.weight", .whole = true, .rewrite = frit_hf_transpose),
    ROW_SOME(".temporal_block.rg_lru.recurrent_gate_weight", "rglru_rec_gate.weight", .whole = true, .rewrite = frit_hf_transpose),
    ROW_SOME(".temporal_block.rg_lru.input_gate_bias", "rglru_input_gate.bias", .whole = true),
    ROW_SOME(".temporal_block.rg_lru.recurrent_gate_bias", "rglru_rec_gate.bias", .whole = true),
    ROW_SOME(".temporal_block.rg_lru.recurrent_param", "rglru_a", .whole = true, .rewrite = to_decay),
    {.name = AT ".mlp_block.gate_proj", .gguf = "blk.*.ffn_gate", .bias_if = FRIT_HF_MAYBE},
    {.name = AT ".mlp_block.up_proj", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE},
    {.name = AT ".mlp_block.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE},
};
// clang-format on

const frit_hf_family frit_hf_recurrent_gemma = {
    .model_type = "recurrent_gemma",
    .class_name = "RecurrentGemmaForCausalLM",
    .arch = "recurrent-gemma",
    .act = "gelu_pytorch_tanh",
    .act_name = "hidden_activation",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)},
};
