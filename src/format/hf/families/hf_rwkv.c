// SPDX-License-Identifier: MIT
// RWKV 4.
#include "format/hf/hf.h"

// No heads; the width of time mixing is the model's unless given.
static frit_status complete(const frit_hf *hf)
{
    double inner = frit_hf_written(hf, "embedding_length");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "attention_hidden_size", FRIT_HF_WIDTH, &inner));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, inner));
    return frit_hf_add_number(hf, "attention.head_count", FRIT_HF_COUNT, 0);
}

// Converts a mixing weight: the folder stores the weight of the current token, GGUF the weight of the previous one.
static frit_status of_row_before(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    const int64_t n = frit_tensor_n_elems(tensor);
    if (tensor->n_dims < 1 || tensor->shape[tensor->n_dims - 1] != n || frit_dtype_get(tensor->dtype)->block_elems != 1)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a vector in a plain number format", tensor->name);
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)n);
    if (!values) return frit_fail_memory((size_t)n * sizeof *values, tensor->name);
    FRIT_TRY(frit_tensor_decode_rows(tensor, 0, 1, values));
    for (int64_t i = 0; i < n; i++) values[i] = 1 - values[i];
    tensor->dtype = FRIT_DTYPE_F32;
    tensor->n_dims = 1;
    for (int i = 0; i < FRIT_MAX_DIMS; i++) tensor->shape[i] = i == 0 ? n : 1;
    tensor->data = values;
    tensor->n_bytes = (uint64_t)n * sizeof *values;
    tensor->is_mapped = false;
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"context_length", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"rescale_every", "rescale_every_n_layers", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

#define ATTENTION "rwkv.blocks.*.attention."
#define FFN       "rwkv.blocks.*.feed_forward."
static const frit_hf_tensor tensors[] = {
    {.name = "rwkv.embeddings", .gguf = "token_embd"},
    {.name = "rwkv.blocks.0.pre_ln", .gguf = "token_embd_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "rwkv.blocks.*.ln1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "rwkv.blocks.*.ln2", .gguf = "blk.*.attn_norm_2", .bias_if = FRIT_HF_ALWAYS},
    {.name = "rwkv.ln_out", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "head", .gguf = "output", .may_be_tied = true},
    {.name = ATTENTION "time_decay", .gguf = "blk.*.time_mix_decay.weight", .whole = true, .rewrite = frit_hf_negative_exp},
    {.name = ATTENTION "time_first", .gguf = "blk.*.time_mix_first.weight", .whole = true},
    {.name = ATTENTION "time_mix_key", .gguf = "blk.*.time_mix_lerp_k.weight", .whole = true, .rewrite = of_row_before},
    {.name = ATTENTION "time_mix_value", .gguf = "blk.*.time_mix_lerp_v.weight", .whole = true, .rewrite = of_row_before},
    {.name = ATTENTION "time_mix_receptance", .gguf = "blk.*.time_mix_lerp_r.weight", .whole = true, .rewrite = of_row_before},
    {.name = ATTENTION "key", .gguf = "blk.*.time_mix_key"},
    {.name = ATTENTION "value", .gguf = "blk.*.time_mix_value"},
    {.name = ATTENTION "receptance", .gguf = "blk.*.time_mix_receptance"},
    {.name = ATTENTION "output", .gguf = "blk.*.time_mix_output"},
    {.name = FFN "time_mix_key", .gguf = "blk.*.channel_mix_lerp_k.weight", .whole = true, .rewrite = of_row_before},
    {.name = FFN "time_mix_receptance", .gguf = "blk.*.channel_mix_lerp_r.weight", .whole = true, .rewrite = of_row_before},
    {.name = FFN "key", .gguf = "blk.*.channel_mix_key"},
    {.name = FFN "receptance", .gguf = "blk.*.channel_mix_receptance"},
    {.name = FFN "value", .gguf = "blk.*.channel_mix_value"},
};
// clang-format on

const frit_hf_family frit_hf_rwkv = {
    .model_type = "rwkv",
    .class_name = "RwkvForCausalLM",
    .arch = "rwkv",
    .act = "relu2",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)},
};
