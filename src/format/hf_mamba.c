// SPDX-License-Identifier: MIT
// Mamba 1 and 2.
#include "format/hf_rows.h"

// No heads, no feed-forward. The inner width is a multiple of embedding_length; intermediate_size is ignored.
static frit_status complete(const frit_hf *hf)
{
    double expand = 2;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "expand", FRIT_HF_FACTOR, &expand));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, expand * frit_hf_written(hf, "embedding_length")));
    FRIT_TRY(frit_hf_add_number(hf, "attention.head_count", FRIT_HF_COUNT, 0));
    return frit_hf_add_number(hf, "feed_forward_length", FRIT_HF_COUNT, 0);
}

// clang-format off
static const frit_hf_key mamba_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 1 << 20, 1 << 20},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"state_size", "ssm.state_size", FRIT_HF_COUNT, 16, 16},
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
    {"time_step_rank", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
};

static const frit_hf_tensor mamba_tensors[] = {
    {.name = "backbone.embeddings", .gguf = "token_embd"},
    {.name = "backbone.layers.*.norm", .gguf = "blk.*.attn_norm"},
    {.name = "backbone.norm_f", .gguf = "output_norm"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    FRIT_HF_ROWS_SOME_SCAN("backbone.layers.*.mixer"),
    {.name = "backbone.layers.*.mixer.x_proj", .gguf = "blk.*.ssm_x", .may_be_absent = true},
    {.name = "backbone.layers.*.mixer.dt_proj", .gguf = "blk.*.ssm_dt", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "backbone.layers.*.mixer.dt_layernorm", .gguf = "blk.*.ssm_dt_norm", .may_be_absent = true},
    {.name = "backbone.layers.*.mixer.b_layernorm", .gguf = "blk.*.ssm_b_norm", .may_be_absent = true},
    {.name = "backbone.layers.*.mixer.c_layernorm", .gguf = "blk.*.ssm_c_norm", .may_be_absent = true},
};

static const frit_hf_key mamba2_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 1 << 20, 1 << 20},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"state_size", "ssm.state_size", FRIT_HF_COUNT, 128, 128},
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
    {"num_heads", "ssm.time_step_rank", FRIT_HF_COUNT, 128, 128},
    {"n_groups", "ssm.group_count", FRIT_HF_COUNT, 8, 8},
};

static const frit_hf_tensor mamba2_tensors[] = {
    {.name = "backbone.embeddings", .gguf = "token_embd"},
    {.name = "backbone.layers.*.norm", .gguf = "blk.*.attn_norm"},
    {.name = "backbone.norm_f", .gguf = "output_norm"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    FRIT_HF_ROWS_SOME_MAMBA2("backbone.layers.*.mixer"),
};
// clang-format on

const frit_hf_family frit_hf_mamba = {
    .model_type = "mamba",
    .class_name = "MambaForCausalLM",
    .arch = "mamba",
    .act = "silu|swish",
    .is_tied = true,
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {mamba_keys, FRIT_COUNT(mamba_keys), mamba_tensors, FRIT_COUNT(mamba_tensors)},
};

const frit_hf_family frit_hf_mamba2 = {
    .model_type = "mamba2",
    .class_name = "Mamba2ForCausalLM",
    .arch = "mamba2",
    .act = "silu|swish",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {mamba2_keys, FRIT_COUNT(mamba2_keys), mamba2_tensors, FRIT_COUNT(mamba2_tensors)},
};
