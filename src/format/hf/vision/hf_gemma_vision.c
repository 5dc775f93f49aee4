// SPDX-License-Identifier: MIT
// The encoders of Gemma 3 (SigLIP) and Gemma 4.
#include "format/hf/hf_rows.h"
#include "format/hf/hf_vision.h"

#include <math.h>

// ---------------------------------------------------------------------------------------- Gemma 3

// Writes the sides of a tile and of the squares whose means become tokens.
static frit_status complete_3(const frit_hf *hf)
{
    double image, patch, n_tokens = 256;
    FRIT_TRY(frit_hf_vision_number(hf, "image_size", &image));
    FRIT_TRY(frit_hf_vision_number(hf, "patch_size", &patch));
    FRIT_TRY(frit_hf_get_number(hf, hf->whole, "", "mm_tokens_per_image", FRIT_HF_WIDTH, &n_tokens));
    const double side = floor(image / patch), tokens = floor(sqrt(n_tokens));
    if (tokens * tokens != n_tokens || tokens > side)
        return frit_fail_file(FRIT_E_FORMAT, "%s: mm_tokens_per_image is %.0f, expected a square up to %.0f x %.0f",
                              hf->path, n_tokens, side, side);
    const double merge = floor(side / tokens);
    if (floor(side / merge) != tokens)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: mm_tokens_per_image is %.0f, but squares of %.0f patches give another number",
                              hf->path, n_tokens, merge * merge);
    FRIT_TRY(frit_hf_add_number(hf, "position_side", FRIT_HF_WIDTH, side));
    FRIT_TRY(frit_hf_add_number(hf, "spatial_merge_size", FRIT_HF_WIDTH, merge));
    FRIT_TRY(frit_hf_add_number(hf, "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON,
                                frit_hf_written(hf, "attention.layer_norm_epsilon")));   // of the means' norm
    FRIT_TRY(frit_hf_vision_pixels(hf, 1));
    return frit_hf_vision_text_width(hf);
}

// clang-format off
static const frit_hf_key gemma3_keys[] = {
    FRIT_HF_VISION_KEYS,
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"layer_norm_eps", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

#define TOWER "vision_tower.vision_model"
static const frit_hf_tensor gemma3_tensors[] = {
    {.name = TOWER ".embeddings.patch_embedding", .gguf = "patch_embd", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_flatten},
    {.name = TOWER ".embeddings.position_embedding", .gguf = "position_embd"},
    {.name = TOWER ".encoder.layers.*.layer_norm1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.self_attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.layer_norm2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.mlp.fc1", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".encoder.layers.*.mlp.fc2", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = TOWER ".post_layernorm", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "multi_modal_projector.mm_soft_emb_norm", .gguf = "mean_norm", .rewrite = frit_hf_plus_one},
    {.name = "multi_modal_projector.mm_input_projection_weight", .gguf = "merge_out.weight", .whole = true,
     .rewrite = frit_hf_transpose},
};

const frit_hf_family frit_hf_gemma3_vision = {
    .model_type = "gemma3", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "gemma3_vision",
    .act = "gelu_pytorch_tanh", .more = complete_3,
    .ignored = "language_model.|lm_head.|layers.|embed_tokens.|norm.|" TOWER ".head.",
    .own = {gemma3_keys, FRIT_COUNT(gemma3_keys), gemma3_tensors, FRIT_COUNT(gemma3_tensors)}};
// clang-format on

// ---------------------------------------------------------------------------------------- Gemma 4

static frit_status complete_4(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_vision_rope(hf));
    FRIT_TRY(frit_hf_vision_pixels(hf, 1));
    return frit_hf_vision_text_width(hf);
}

// The table of columns, then that of rows.
static frit_status join_tables(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)hf;
    (void)is_bias;
    if (tensor->n_dims != 3)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %d dimensions, expected two tables", tensor->name,
                         tensor->n_dims);
    tensor->shape[0] *= tensor->shape[1], tensor->shape[1] = tensor->shape[2], tensor->shape[2] = 1;
    tensor->n_dims = 2;
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key gemma4_keys[] = {
    {NULL, "context_length", FRIT_HF_TOKENS, 1 << 20},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"head_dim", "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"head_dim", "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"position_embedding_size", "position_side", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"pooling_kernel_size", "spatial_merge_size", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
};

#define LAYER "vision_tower.encoder.layers.*"
#define LIMIT(there, here, which) \
    {.name = LAYER there which, .gguf = "blk.*." here which, .whole = true, .may_be_absent = true}
#define MATRIX(there, here) \
    {.name = LAYER there ".linear", .gguf = "blk.*." here}, \
    LIMIT(there, here, ".input_min"), \
    LIMIT(there, here, ".input_max"), \
    LIMIT(there, here, ".output_min"), \
    LIMIT(there, here, ".output_max")

static const frit_hf_tensor gemma4_tensors[] = {
    {.name = "vision_tower.patch_embedder.input_proj", .gguf = "patch_embd"},
    {.name = "vision_tower.patch_embedder.position_embedding_table", .gguf = "position_embd.weight", .whole = true,
     .rewrite = join_tables},
    {.name = LAYER ".input_layernorm", .gguf = "blk.*.attn_norm"},
    MATRIX(".self_attn.q_proj", "attn_q"),
    MATRIX(".self_attn.k_proj", "attn_k"),
    MATRIX(".self_attn.v_proj", "attn_v"),
    MATRIX(".self_attn.o_proj", "attn_output"),
    {.name = LAYER ".self_attn.q_norm", .gguf = "blk.*.attn_q_norm"},
    {.name = LAYER ".self_attn.k_norm", .gguf = "blk.*.attn_k_norm"},
    {.name = LAYER ".post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.name = LAYER ".pre_feedforward_layernorm", .gguf = "blk.*.ffn_norm"},
    MATRIX(".mlp.gate_proj", "ffn_gate"),
    MATRIX(".mlp.up_proj", "ffn_up"),
    MATRIX(".mlp.down_proj", "ffn_down"),
    {.name = LAYER ".post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm"},
    {.name = "vision_tower.std_bias", .gguf = "std_bias.weight", .whole = true, .may_be_absent = true},
    {.name = "vision_tower.std_scale", .gguf = "std_scale.weight", .whole = true, .may_be_absent = true},
    {.name = "embed_vision.embedding_projection", .gguf = "merge_out"},
};

const frit_hf_family frit_hf_gemma4_vision = {
    .model_type = "gemma4", .class_name = "", .prefix = "model.", .shared = &frit_hf_no_names, .arch = "gemma4_vision",
    .act = "gelu_pytorch_tanh", .act_name = "hidden_activation", .more = complete_4,
    .ignored = "language_model.|lm_head.|audio_tower.|embed_audio.",
    .own = {gemma4_keys, FRIT_COUNT(gemma4_keys), gemma4_tensors, FRIT_COUNT(gemma4_tensors)}};
// clang-format on
