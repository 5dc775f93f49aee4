// SPDX-License-Identifier: MIT
// The encoder of SmolVLM and Idefics 3: SigLIP.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

static frit_status complete(const frit_hf *hf)
{
    double merge = 2;
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "scale_factor", FRIT_HF_WIDTH, &merge));
    FRIT_TRY(frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge));
    FRIT_TRY(frit_hf_vision_tile(hf));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key keys[] = {FRIT_HF_VIT_KEYS};

static const frit_hf_tensor tensors[] = {
    FRIT_HF_CLIP_TENSORS("vision_model"),
    {.name = "vision_model.post_layernorm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "connector.modality_projection.proj", .gguf = "merge_out"},
};

#define IDEFICS3_IS \
    .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "idefics3_vision", \
    .act = "gelu_pytorch_tanh", .ignored = "text_model.|lm_head.|layers.|embed_tokens.|norm.", .more = complete, \
    .own = {keys, FRIT_COUNT(keys), tensors, FRIT_COUNT(tensors)}

const frit_hf_family frit_hf_idefics3_vision = {.model_type = "idefics3", IDEFICS3_IS};
const frit_hf_family frit_hf_smolvlm_vision = {.model_type = "smolvlm", IDEFICS3_IS};
// clang-format on
