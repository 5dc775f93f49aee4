// SPDX-License-Identifier: MIT
// The encoder of LFM2-VL: SigLIP 2.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

#include <math.h>

static frit_status complete(const frit_hf *hf)
{
    double merge = 2, n_places, width = 2560;
    FRIT_TRY(frit_hf_vision_expect(hf, hf->config, "vision_config.", "model_type", "siglip2_vision_model"));
    FRIT_TRY(frit_hf_vision_expect(hf, hf->whole, "", "projector_hidden_act", "gelu"));
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "downsample_factor", FRIT_HF_WIDTH, &merge));
    FRIT_TRY(frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge));
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "projector_hidden_size", FRIT_HF_WIDTH, &width));
    FRIT_TRY(frit_hf_add_number(hf, "projector_length", FRIT_HF_WIDTH, width));
    FRIT_TRY(frit_hf_vision_number(hf, "num_patches", &n_places));
    const double side = floor(sqrt(n_places));
    if (side * side != n_places)
        return frit_fail_file(FRIT_E_FORMAT, "%s: vision_config.num_patches is %.0f, expected the square of a number",
                              hf->path, n_places);
    FRIT_TRY(frit_hf_add_number(hf, "position_side", FRIT_HF_WIDTH, side));
    FRIT_TRY(frit_hf_vision_pixels(hf, 1));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {FRIT_HF_VIT_KEYS};

#define TOWER "vision_tower.vision_model"
static const frit_hf_tensor tensors[] = {
    FRIT_HF_CLIP_TENSORS(TOWER),
    {.name = TOWER ".post_layernorm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "multi_modal_projector.layer_norm", .gguf = "merge_norm", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "multi_modal_projector.linear_1", .gguf = "merge_in", .bias_if = FRIT_HF_MAYBE},
    {.name = "multi_modal_projector.linear_2", .gguf = "merge_out", .bias_if = FRIT_HF_MAYBE},
};

const frit_hf_family frit_hf_lfm2_vl_vision = {
    .model_type = "lfm2_vl", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names,
    .arch = "lfm2_vl_vision", .act = "gelu_pytorch_tanh", .more = complete,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|embedding_norm.|" TOWER ".head.",
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}};
// clang-format on
