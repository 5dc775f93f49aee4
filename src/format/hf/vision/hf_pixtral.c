// SPDX-License-Identifier: MIT
// The encoder of Mistral Small 3.1 and 3.2 and of Ministral 3: Pixtral's, with a merger of 2 x 2 patches.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

static frit_status complete(const frit_hf *hf)
{
    double merge = 2, eps = 1e-5, n_from_end = -1;
    const char *act = NULL;
    const json_t *text = json_object_get(hf->whole, "text_config");
    const json_t *layer = json_object_get(hf->whole, "vision_feature_layer");
    if (json_is_integer(layer)) n_from_end = (double)json_integer_value(layer);
    if (n_from_end != -1)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: vision_feature_layer is %.0f, expected -1", hf->path,
                              n_from_end);
    FRIT_TRY(frit_hf_get_text(hf, hf->config, "vision_config.", "hidden_act", &act));
    FRIT_TRY(frit_meta_add_text(&hf->ckpt->meta, "frit.act", act));
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "spatial_merge_size", FRIT_HF_WIDTH, &merge));
    FRIT_TRY(frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge));
    FRIT_TRY(frit_hf_get_number(hf, text, "text_config.", "rms_norm_eps", FRIT_HF_EPSILON, &eps));
    FRIT_TRY(frit_hf_add_number(hf, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, eps));   // of the projector's norm
    FRIT_TRY(frit_hf_vision_rope(hf));
    FRIT_TRY(frit_hf_vision_pixels(hf, 1));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {
    FRIT_HF_VISION_KEYS,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {NULL, "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5},
};

static const frit_hf_tensor tensors[] = {
    {.name = "vision_tower.patch_conv", .gguf = "patch_embd", .rewrite = frit_hf_flatten},
    {.name = "vision_tower.ln_pre", .gguf = "input_norm"},
    {.name = "vision_tower.transformer.layers.*.attention_norm", .gguf = "blk.*.attn_norm"},
    {.name = "vision_tower.transformer.layers.*.attention.q_proj", .gguf = "blk.*.attn_q"},
    {.name = "vision_tower.transformer.layers.*.attention.k_proj", .gguf = "blk.*.attn_k"},
    {.name = "vision_tower.transformer.layers.*.attention.v_proj", .gguf = "blk.*.attn_v"},
    {.name = "vision_tower.transformer.layers.*.attention.o_proj", .gguf = "blk.*.attn_output"},
    {.name = "vision_tower.transformer.layers.*.ffn_norm", .gguf = "blk.*.ffn_norm"},
    {.name = "vision_tower.transformer.layers.*.feed_forward.gate_proj", .gguf = "blk.*.ffn_gate"},
    {.name = "vision_tower.transformer.layers.*.feed_forward.up_proj", .gguf = "blk.*.ffn_up"},
    {.name = "vision_tower.transformer.layers.*.feed_forward.down_proj", .gguf = "blk.*.ffn_down"},
    {.name = "multi_modal_projector.norm", .gguf = "output_norm"},
    {.name = "multi_modal_projector.patch_merger.merging_layer", .gguf = "merge_squares"},
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_in", .bias_if = FRIT_HF_MAYBE},
    {.name = "multi_modal_projector.linear_2", .gguf = "merge_out", .bias_if = FRIT_HF_MAYBE},
};

const frit_hf_family frit_hf_mistral3_vision = {
    .model_type = "mistral3", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names,
    .arch = "mistral3_vision", .act = "gelu|silu", .more = complete,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.",
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}};
// clang-format on
