// SPDX-License-Identifier: MIT
// Granite 4: layers of Mamba 2 and of attention. Each layer has experts and a shared expert; models without experts use
// the shared one as feed-forward.
#include "format/hf/hf_rows.h"

enum { MAX_LAYERS = 1024 };

static bool every_layer(const frit_hf *hf, double period, size_t i)
{
    (void)hf, (void)period, (void)i;
    return true;
}

static frit_status complete(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS];
    const char *positions = NULL;
    double expand = 0, dim = 0;
    FRIT_TRY(frit_hf_expect(hf, "mamba_proj_bias", 0));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_expand", FRIT_HF_FACTOR, &expand));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, expand * frit_hf_written(hf, "embedding_length")));
    const double n_head = frit_hf_written(hf, "ssm.time_step_rank"), inner = frit_hf_written(hf, "ssm.inner_size");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_d_head", FRIT_HF_WIDTH, &dim));
    if (dim != 0 && dim * n_head != inner)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: mamba_n_heads is %.0f and mamba_d_head is %.0f, expected a product of %.0f",
                              hf->path, n_head, dim, inner);
    FRIT_TRY(frit_hf_expect_open_steps(hf));
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "", "position_embedding_type", &positions));
    FRIT_TRY(frit_hf_add_flag(hf, "rope.scaling.finetuned", positions && strcmp(positions, "rope") == 0));
    FRIT_TRY(frit_hf_recurrent_types(hf, every_layer, recurrent));
    return frit_hf_add_recurrent(hf, recurrent);
}

// clang-format off
#define FACTORS_AND_SIZES \
    {"embedding_multiplier", "embedding_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"residual_multiplier", "residual_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"attention_multiplier", "attention.scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    {"logits_scaling", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED}, \
    FRIT_HF_KEYS_MAMBA2

static const frit_hf_key granitemoehybrid_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_local_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"shared_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    FACTORS_AND_SIZES,
};

static const frit_hf_tensor granitemoehybrid_tensors[] = {
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = "model.layers.*.block_sparse_moe.input_linear", .gguf = "blk.*.ffn_gate_up_exps"},
    {.name = "model.layers.*.block_sparse_moe.output_linear", .gguf = "blk.*.ffn_down_exps"},
    {.name = "model.layers.*.block_sparse_moe.router.layer", .gguf = "blk.*.ffn_gate_inp"},
    {.name = "model.layers.*.shared_mlp.input_linear", .gguf = "blk.*.ffn_gate_shexp", .rewrite = frit_hf_split_gate_up},
    {.name = "model.layers.*.shared_mlp.output_linear", .gguf = "blk.*.ffn_down_shexp"},
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};

static const frit_hf_key dense_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"shared_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    FACTORS_AND_SIZES,
};

static const frit_hf_tensor dense_tensors[] = {
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    {.gguf = "blk.*.ffn_up", .none = true},
    {.name = "model.layers.*.shared_mlp.input_linear", .gguf = "blk.*.ffn_gate", .rewrite = frit_hf_split_gate_up},
    {.name = "model.layers.*.shared_mlp.output_linear", .gguf = "blk.*.ffn_down"},
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};
// clang-format on

static bool has_experts(const json_t *config)
{
    const json_t *n = json_object_get(config, "num_local_experts");
    return !json_is_integer(n) || json_integer_value(n) != 0;
}

const frit_hf_family frit_hf_granitemoehybrid = {
    .model_type = "granitemoehybrid",
    .class_name = "GraniteMoeHybridForCausalLM",
    .arch = "granitehybrid",
    .act = "silu|swish",
    .rope_style = "neox",
    .fits = has_experts,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {granitemoehybrid_keys, FRIT_COUNT(granitemoehybrid_keys), granitemoehybrid_tensors,
            FRIT_COUNT(granitemoehybrid_tensors)},
};

const frit_hf_family frit_hf_granitemoehybrid_dense = {
    .model_type = "granitemoehybrid",
    .class_name = "GraniteMoeHybridForCausalLM",
    .arch = "granitehybrid",
    .act = "silu|swish",
    .rope_style = "neox",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {dense_keys, FRIT_COUNT(dense_keys), dense_tensors, FRIT_COUNT(dense_tensors)},
};
