// SPDX-License-Identifier: MIT
// Muse Glimmer (Meta): the text side. QK norms have no weights; a factor of queries is in the scale of attention.
#include "format/hf/hf_rows.h"

#include <math.h>

static frit_status complete(const frit_hf *hf)
{
    double factor = 1;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "qk_scale_factor", FRIT_HF_FACTOR, &factor));
    FRIT_TRY(frit_hf_add_number(hf, "attention.scale", FRIT_HF_FACTOR,
                                factor / sqrt(frit_hf_written(hf, "attention.key_length"))));
    FRIT_TRY(frit_hf_expect(hf, "post_norm_eps", 1e-8));
    FRIT_TRY(frit_hf_add_rope_bases(hf));
    const frit_value *still = frit_meta_find(&hf->ckpt->meta, "frit.rope.none");
    for (size_t i = 0; still && i < still->array.n; i++)
        if ((frit_value_item_i64(still, i) != 0) != (frit_hf_window(hf, i) == 0))
            return frit_fail_file(FRIT_E_UNSUPPORTED,
                                  "%s: layer_rope_theta[%zu]: expected RoPE in layers with a window only", hf->path, i);
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key muse_glimmer_text_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"output_multiplier", "logit_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"final_logit_softcapping", "final_logit_softcapping", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

#define AT "model.layers.*"
static const frit_hf_tensor muse_glimmer_text_tensors[] = {
    FRIT_HF_ROWS_BIASED_ATTENTION(AT ".self_attn"),
    {.name = AT ".self_attn.gate_proj", .gguf = "blk.*.attn_gate"},
    {.name = AT ".input_layernorm", .gguf = "blk.*.attn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".post_attention_layernorm", .gguf = "blk.*.post_attention_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".pre_feedforward_layernorm", .gguf = "blk.*.ffn_norm", .rewrite = frit_hf_plus_one},
    {.name = AT ".post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm", .rewrite = frit_hf_plus_one},
};
// clang-format on

const frit_hf_family frit_hf_muse_glimmer_text = {
    .model_type = "muse_glimmer_text",
    .class_name = "MuseGlimmerForConditionalGeneration",
    .arch = "muse-glimmer",
    .act = "silu|swish",
    .ignored = "model.vision_tower.|model.vision_adapter.|model.multi_modal_projector.",
    .act_name = "hidden_activation",
    .rope_style = "neox",
    .has_windows = true,
    .needs_types = true,
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {muse_glimmer_text_keys, FRIT_COUNT(muse_glimmer_text_keys), muse_glimmer_text_tensors,
            FRIT_COUNT(muse_glimmer_text_tensors)},
};
