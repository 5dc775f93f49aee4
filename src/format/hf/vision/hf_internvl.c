// SPDX-License-Identifier: MIT
// The encoder of InternVL, in folders of transformers' classes (their names end with -hf): InternViT.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

static frit_status expect_flag(const frit_hf *hf, const char *name, bool expected)
{
    bool found = expected;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "vision_config.", name, &found));
    if (found == expected) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: vision_config.%s is %s, pictures are supported with %s", hf->path,
                          name, found ? "true" : "false", expected ? "true" : "false");
}

static frit_status complete(const frit_hf *hf)
{
    double layer = -1;
    const json_t *last = json_object_get(hf->whole, "vision_feature_layer");
    if (json_is_integer(last)) layer = (double)json_integer_value(last);
    if (layer != -1)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: vision_feature_layer is %.0f, expected -1", hf->path, layer);
    FRIT_TRY(expect_flag(hf, "use_qk_norm", false));
    FRIT_TRY(expect_flag(hf, "use_mask_token", false));
    FRIT_TRY(expect_flag(hf, "use_mean_pooling", true));   // otherwise a norm follows the last layer
    FRIT_TRY(expect_flag(hf, "use_absolute_position_embeddings", true));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->config, "vision_config.", "norm_type", "layer_norm"));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->whole, "", "projector_hidden_act", "gelu"));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->whole, "", "vision_feature_select_strategy", "default"));
    FRIT_TRY(frit_hf_vision_ratio(hf, hf->whole, "", "downsample_ratio"));
    FRIT_TRY(frit_hf_vision_tile(hf));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {FRIT_HF_VIT_KEYS};

#define IN "vision_tower.embeddings"
#define AT "vision_tower.encoder.layer.*"
static const frit_hf_tensor tensors[] = {
    {.name = IN ".patch_embeddings.projection", .gguf = "patch_embd", .bias_if = FRIT_HF_ALWAYS,
     .rewrite = frit_hf_flatten},
    {.name = IN ".position_embeddings", .gguf = "position_embd.weight", .whole = true},
    {.name = IN ".cls_token", .gguf = "class_embd.weight", .whole = true},
    {.name = AT ".layernorm_before", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attention.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_MAYBE},
    {.name = AT ".attention.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_MAYBE},
    {.name = AT ".attention.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_MAYBE},
    {.name = AT ".attention.projection_layer", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".lambda_1", .gguf = "blk.*.attn_factors.weight", .whole = true},
    {.name = AT ".layernorm_after", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".lambda_2", .gguf = "blk.*.ffn_factors.weight", .whole = true},
    {.name = "multi_modal_projector.layer_norm", .gguf = "merge_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_in", .bias_if = FRIT_HF_MAYBE},
    {.name = "multi_modal_projector.linear_2", .gguf = "merge_out", .bias_if = FRIT_HF_MAYBE},
};

const frit_hf_family frit_hf_internvl_vision = {
    .model_type = "internvl", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names,
    .arch = "internvl_vision", .act = "gelu", .more = complete,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.",
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}};
// clang-format on
