// SPDX-License-Identifier: MIT
// Laguna (poolside). The configuration lists the query heads of layers; full layers have YaRN.
#include "format/hf/hf_rows.h"

static frit_status add_heads(const frit_hf *hf)
{
    const json_t *list = json_object_get(hf->config, "num_attention_heads_per_layer");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    if (!list || json_is_null(list)) return FRIT_OK;
    uint32_t *heads = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!heads) return frit_fail_memory(n * sizeof *heads, "the heads of layers");
    for (size_t i = 0; i < n; i++) {
        const json_int_t n_head = json_integer_value(json_array_get(list, i));
        if (json_array_size(list) != n || n_head < 1 || n_head > 65536)
            return frit_fail_file(FRIT_E_FORMAT, "%s: num_attention_heads_per_layer is not a list of %zu numbers",
                                  hf->path, n);
        heads[i] = (uint32_t)n_head;
    }
    return frit_hf_set_list(hf, "attention.head_count", heads);
}

static frit_status complete(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "moe_apply_router_weight_on_input", 0));
    FRIT_TRY(frit_hf_expect(hf, "moe_router_logit_softcapping", 0));
    FRIT_TRY(frit_hf_add_dense_layers(hf));
    return add_heads(hf);
}

// clang-format off
static const frit_hf_key laguna_keys[] = {
    FRIT_HF_KEY_SIGMOID_ROUTER,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"shared_expert_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"moe_routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {NULL, "expert_weights_norm", FRIT_HF_FLAG, 1},
    {NULL, "leading_dense_block_count", FRIT_HF_COUNT, 1},
};

#define AT "model.layers.*.mlp"
static const frit_hf_tensor laguna_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
    {.name = "model.layers.*.self_attn.g_proj", .gguf = "blk.*.attn_gate"},
    FRIT_HF_ROWS_DENSE_LAYERS(AT),
    FRIT_HF_ROWS_EXPERTS(AT),
    FRIT_HF_ROWS_SHARED_EXPERT(AT ".shared_expert"),
    {.name = AT ".gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".experts.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
};
// clang-format on

const frit_hf_family frit_hf_laguna = {
    .model_type = "laguna",
    .class_name = "LagunaForCausalLM",
    .arch = "laguna",
    .act = "silu|swish",
    .has_windows = true,
    .needs_types = true,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {laguna_keys, FRIT_COUNT(laguna_keys), laguna_tensors, FRIT_COUNT(laguna_tensors)},
};
