// SPDX-License-Identifier: MIT
// OPT. The first two rows of the table of positions are for padding. Of one size the norms follow the residual sums;
// its folder is a family of its own.
#include "format/hf/encoders/hf_encoders.h"
#include "format/hf/hf_rows.h"

enum { FIRST_POSITION = 2 };

static frit_status cut_positions(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    (void)is_bias;
    return frit_hf_cut_positions(hf, tensor, FIRST_POSITION);
}

static bool norms_sums(const json_t *config)
{
    return json_is_false(json_object_get(config, "do_layer_norm_before"));
}

static frit_status complete(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect(hf, "_remove_final_layer_norm", 0));
    return frit_hf_add_act(hf);
}

// clang-format off
static const frit_hf_key keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"word_embed_proj_dim", "embedding_length_input", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"word_embed_proj_dim", "embedding_length_out", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"ffn_dim", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_attention_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {NULL, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5},
};

#define AT "model.decoder.layers.*"
#define ROW_NORM(at, to) {.name = at, .gguf = to, .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}
#define ROWS(attn_norm, ffn_norm) \
    {.name = "model.decoder.embed_tokens", .gguf = "token_embd"}, \
    {.name = "model.decoder.embed_positions", .gguf = "position_embd", .rewrite = cut_positions}, \
    {.name = "model.decoder.project_in", .gguf = "token_embd_proj", .may_be_absent = true}, \
    {.name = "model.decoder.project_out", .gguf = "output_proj", .may_be_absent = true}, \
    {.name = "lm_head", .gguf = "output", .may_be_tied = true}, \
    ROW_NORM("model.decoder.final_layer_norm", "output_norm"), \
    ROW_NORM(AT ".self_attn_layer_norm", attn_norm), \
    ROW_NORM(AT ".final_layer_norm", ffn_norm), \
    {.name = AT ".self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "enable_bias"}, \
    {.name = AT ".self_attn.k_proj", .gguf = "blk.*.attn_k", .bias_if = "enable_bias"}, \
    {.name = AT ".self_attn.v_proj", .gguf = "blk.*.attn_v", .bias_if = "enable_bias"}, \
    {.name = AT ".self_attn.out_proj", .gguf = "blk.*.attn_output", .bias_if = "enable_bias"}, \
    {.name = AT ".fc1", .gguf = "blk.*.ffn_up", .bias_if = "enable_bias"}, \
    {.name = AT ".fc2", .gguf = "blk.*.ffn_down", .bias_if = "enable_bias"}

static const frit_hf_tensor before[] = {ROWS("blk.*.attn_norm", "blk.*.ffn_norm")};
static const frit_hf_tensor after[] = {ROWS("blk.*.attn_output_norm", "blk.*.layer_output_norm")};
// clang-format on

const frit_hf_family frit_hf_opt_after = {
    .model_type = "opt",
    .class_name = "OPTForCausalLM",
    .arch = "opt",
    .act = FRIT_HF_ENCODER_ACTS,
    .act_name = "activation_function",
    .fits = norms_sums,
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {keys, FRIT_COUNT(keys), after, FRIT_COUNT(after)},
};

const frit_hf_family frit_hf_opt = {
    .model_type = "opt",
    .class_name = "OPTForCausalLM",
    .arch = "opt",
    .act = FRIT_HF_ENCODER_ACTS,
    .act_name = "activation_function",
    .more = complete,
    .shared = &frit_hf_no_names,
    .own = {keys, FRIT_COUNT(keys), before, FRIT_COUNT(before)},
};
