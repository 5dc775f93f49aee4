// SPDX-License-Identifier: MIT
// The encoders of LLaVA: CLIP in versions 1.5 and 1.6, SigLIP in LLaVA-OneVision.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

// Writes how many of the last layers the text does not read: vision_feature_layer is -1 for the output of the last one.
static frit_status add_unused(const frit_hf *hf, json_int_t otherwise)
{
    const json_t *layer = json_object_get(hf->whole, "vision_feature_layer");
    const json_int_t n_left = -(layer ? json_integer_value(layer) : otherwise) - 1;
    if ((layer && !json_is_integer(layer)) || n_left < 0 || n_left >= (json_int_t)frit_hf_written(hf, "block_count"))
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: vision_feature_layer is not supported, expected a whole number from -%.0f to -1",
                              hf->path, frit_hf_written(hf, "block_count"));
    return frit_hf_add_number(hf, "unused_block_count", FRIT_HF_COUNT, (double)n_left);
}

static frit_status complete(const frit_hf *hf, const char *tower, const char *strategy, json_int_t layer)
{
    FRIT_TRY(frit_hf_vision_expect(hf, hf->config, "vision_config.", "model_type", tower));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->whole, "", "projector_hidden_act", "gelu"));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->whole, "", "vision_feature_select_strategy", strategy));
    FRIT_TRY(add_unused(hf, layer));
    FRIT_TRY(frit_hf_vision_tile(hf));
    return frit_hf_vision_text_width(hf);
}

static frit_status complete_clip(const frit_hf *hf)
{
    return complete(hf, "clip_vision_model", "default", -2);
}

static frit_status complete_siglip(const frit_hf *hf)
{
    return complete(hf, "siglip_vision_model", "full", -1);
}

// clang-format off
static const frit_hf_key keys[] = {FRIT_HF_VIT_KEYS};

#define TOWER "vision_tower.vision_model"
#define PROJECTOR \
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_in", .bias_if = FRIT_HF_MAYBE}, \
    {.name = "multi_modal_projector.linear_2", .gguf = "merge_out", .bias_if = FRIT_HF_MAYBE}
#define NEWLINE {.name = "image_newline", .gguf = "newline.weight", .whole = true}
#define CLIP \
    FRIT_HF_CLIP_TENSORS(TOWER), \
    {.name = TOWER ".embeddings.class_embedding", .gguf = "class_embd.weight", .whole = true}, \
    {.name = TOWER ".pre_layrnorm", .gguf = "input_norm", .bias_if = FRIT_HF_ALWAYS}, \
    PROJECTOR

static const frit_hf_tensor llava_tensors[] = {CLIP};
static const frit_hf_tensor next_tensors[] = {CLIP, NEWLINE};
static const frit_hf_tensor onevision_tensors[] = {FRIT_HF_CLIP_TENSORS(TOWER), PROJECTOR, NEWLINE};

#define LLAVA_IS \
    .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, \
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.|" TOWER ".post_layernorm.|" TOWER ".head."

const frit_hf_family frit_hf_llava_vision = {
    .model_type = "llava", .arch = "llava_vision", .act = "quick_gelu", .more = complete_clip, LLAVA_IS,
    .own = {keys, FRIT_COUNT(keys), llava_tensors, FRIT_COUNT(llava_tensors)}};
const frit_hf_family frit_hf_llava_next_vision = {
    .model_type = "llava_next", .arch = "llava_vision", .act = "quick_gelu", .more = complete_clip, LLAVA_IS,
    .own = {keys, FRIT_COUNT(keys), next_tensors, FRIT_COUNT(next_tensors)}};
const frit_hf_family frit_hf_llava_onevision_vision = {
    .model_type = "llava_onevision", .arch = "llava_siglip_vision", .act = "gelu_pytorch_tanh",
    .more = complete_siglip, LLAVA_IS,
    .own = {keys, FRIT_COUNT(keys), onevision_tensors, FRIT_COUNT(onevision_tensors)}};
// clang-format on
