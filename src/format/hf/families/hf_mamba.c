// SPDX-License-Identifier: MIT
// Mamba 1 and 2, and Falcon Mamba.
#include "format/hf/hf_rows.h"

// No heads, no feed-forward. The inner width is a multiple of embedding_length; intermediate_size is ignored.
static frit_status complete(const frit_hf *hf)
{
    double expand = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "expand", FRIT_HF_FACTOR, &expand));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, expand * frit_hf_written(hf, "embedding_length")));
    FRIT_TRY(frit_hf_add_number(hf, "attention.head_count", FRIT_HF_COUNT, 0));
    return frit_hf_add_number(hf, "feed_forward_length", FRIT_HF_COUNT, 0);
}

static frit_status complete_mamba2(const frit_hf *hf)
{
    double dim = 0;
    FRIT_TRY(complete(hf));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "head_dim", FRIT_HF_WIDTH, &dim));
    const double n = frit_hf_written(hf, "ssm.time_step_rank"), inner = frit_hf_written(hf, "ssm.inner_size");
    if (n * dim == inner) return frit_hf_expect_open_steps(hf);
    return frit_fail_file(FRIT_E_FORMAT, "%s: num_heads is %.0f and head_dim is %.0f, expected a product of %.0f",
                          hf->path, n, dim, inner);
}

// clang-format off
#define MAMBA_KEYS \
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 1 << 20}, \
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED}, \
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}, \
    {"state_size", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"time_step_rank", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_16TH}

static const frit_hf_key mamba_keys[] = {MAMBA_KEYS};

static const frit_hf_key falcon_mamba_keys[] = {
    MAMBA_KEYS,
    {NULL, "ssm.dt_b_c_rms", FRIT_HF_FLAG, 1},
    {"mixer_rms_eps", "ssm.dt_b_c_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
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
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 1 << 20},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"state_size", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_heads", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"n_groups", "ssm.group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
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
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {mamba_keys, FRIT_COUNT(mamba_keys), mamba_tensors, FRIT_COUNT(mamba_tensors)},
};

const frit_hf_family frit_hf_falcon_mamba = {
    .model_type = "falcon_mamba",
    .class_name = "FalconMambaForCausalLM",
    .arch = "mamba",
    .act = "silu|swish",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {falcon_mamba_keys, FRIT_COUNT(falcon_mamba_keys), mamba_tensors, FRIT_COUNT(mamba_tensors)},
};

const frit_hf_family frit_hf_mamba2 = {
    .model_type = "mamba2",
    .class_name = "Mamba2ForCausalLM",
    .arch = "mamba2",
    .act = "silu|swish",
    .more = complete_mamba2,
    .shared = &frit_hf_no_names,
    .own = {mamba2_keys, FRIT_COUNT(mamba2_keys), mamba2_tensors, FRIT_COUNT(mamba2_tensors)},
};
