// SPDX-License-Identifier: MIT
// Encoders with a table of learned positions: SigLIP in SmolVLM and Idefics 3, CLIP in LLaVA 1.5.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

// Writes the patches on a side of a tile, and the number of their pixels.
static frit_status add_grid(const frit_hf *hf)
{
    double image, patch;
    FRIT_TRY(frit_hf_vision_number(hf, "image_size", &image));
    FRIT_TRY(frit_hf_vision_number(hf, "patch_size", &patch));
    if (image < patch)
        return frit_fail_file(FRIT_E_FORMAT,
                              "%s: vision_config.image_size is %.0f, expected at least the patch size %.0f", hf->path,
                              image, patch);
    FRIT_TRY(frit_hf_add_number(hf, "position_side", FRIT_HF_WIDTH, (double)(int64_t)(image / patch)));
    return frit_hf_vision_pixels(hf, 1);
}

static frit_status complete_idefics3(const frit_hf *hf)
{
    double merge = 2;
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "scale_factor", FRIT_HF_WIDTH, &merge));
    FRIT_TRY(frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge));
    FRIT_TRY(add_grid(hf));
    return frit_hf_vision_text_width(hf);
}

static frit_status expect(const frit_hf *hf, const json_t *object, const char *where, const char *name,
                          const char *value)
{
    const char *found = NULL;
    FRIT_TRY(frit_hf_get_text(hf, object, where, name, &found));
    if (!found || strcmp(found, value) == 0) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %s%s is '%.40s', pictures are supported with '%s'", hf->path, where,
                          name, found, value);
}

static frit_status complete_llava(const frit_hf *hf)
{
    const json_t *layer = json_object_get(hf->whole, "vision_feature_layer");
    const json_int_t n_left = layer ? -json_integer_value(layer) - 1 : 1;
    FRIT_TRY(expect(hf, hf->config, "vision_config.", "model_type", "clip_vision_model"));
    FRIT_TRY(expect(hf, hf->whole, "", "projector_hidden_act", "gelu"));
    FRIT_TRY(expect(hf, hf->whole, "", "vision_feature_select_strategy", "default"));
    if ((layer && !json_is_integer(layer)) || n_left < 0 || n_left >= (json_int_t)frit_hf_written(hf, "block_count"))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: vision_feature_layer is not supported, expected a whole number from -%.0f to -1",
                              hf->path, frit_hf_written(hf, "block_count"));
    FRIT_TRY(frit_hf_add_number(hf, "unused_block_count", FRIT_HF_COUNT, (double)n_left));
    FRIT_TRY(add_grid(hf));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {
    FRIT_HF_VISION_KEYS,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

#define TENSORS_OF_BOTH(tower) \
    {.name = tower ".embeddings.patch_embedding", .gguf = "patch_embd", .bias_if = FRIT_HF_MAYBE, \
     .rewrite = frit_hf_flatten}, \
    {.name = tower ".embeddings.position_embedding", .gguf = "position_embd"}, \
    {.name = tower ".encoder.layers.*.layer_norm1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.self_attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.layer_norm2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS}, \
    {.name = tower ".encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS}

static const frit_hf_tensor idefics3_tensors[] = {
    TENSORS_OF_BOTH("vision_model"),
    {.name = "vision_model.post_layernorm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "connector.modality_projection.proj", .gguf = "merge_out"},
};

static const frit_hf_tensor llava_tensors[] = {
    TENSORS_OF_BOTH("vision_tower.vision_model"),
    {.name = "vision_tower.vision_model.embeddings.class_embedding", .gguf = "class_embd.weight", .whole = true},
    {.name = "vision_tower.vision_model.pre_layrnorm", .gguf = "input_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_in", .bias_if = FRIT_HF_MAYBE},
    {.name = "multi_modal_projector.linear_2", .gguf = "merge_out", .bias_if = FRIT_HF_MAYBE},
};

#define IDEFICS3_IS \
    .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "idefics3_vision", \
    .act = "gelu_pytorch_tanh", .ignored = "text_model.|lm_head.|layers.|embed_tokens.|norm.", \
    .more = complete_idefics3, \
    .own = {keys, FRIT_COUNT(keys), idefics3_tensors, FRIT_COUNT(idefics3_tensors)}

const frit_hf_family frit_hf_idefics3_vision = {.model_type = "idefics3", IDEFICS3_IS};
const frit_hf_family frit_hf_smolvlm_vision = {.model_type = "smolvlm", IDEFICS3_IS};
const frit_hf_family frit_hf_llava_vision = {
    .model_type = "llava", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "llava_vision",
    .act = "quick_gelu", .more = complete_llava,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.|vision_tower.vision_model.post_layernorm.",
    .own = {keys, FRIT_COUNT(keys), llava_tensors, FRIT_COUNT(llava_tensors)}};
// clang-format on
