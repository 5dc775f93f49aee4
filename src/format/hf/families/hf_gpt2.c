// SPDX-License-Identifier: MIT
// GPT-2, whose matrices are stored transposed, and GPT-Neo, which has windows in some layers and does not scale scores.
#include "format/hf/hf_rows.h"

// True for "local", false for "global": from attention_layers, or from the repeated patterns of attention_types.
static frit_status slides_at(const frit_hf *hf, size_t layer, bool *out)
{
    const json_t *names = json_object_get(hf->config, "attention_layers"), *group;
    const json_t *types = json_object_get(hf->config, "attention_types");
    size_t i, at = layer;
    json_array_foreach(types, i, group)
    {
        const json_t *pattern = json_array_get(group, 0);
        const size_t n = json_array_size(pattern), n_all = n * (size_t)json_integer_value(json_array_get(group, 1));
        if (names) break;
        if (at < n_all) names = pattern;
        at = names ? at % n : at - n_all;
    }
    const char *name = json_string_value(json_array_get(names, at));
    *out = name && strcmp(name, "local") == 0;
    if (*out || (name && strcmp(name, "global") == 0)) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: attention_layers: layer %zu is '%.40s', expected global or local",
                          hf->path, layer, name ? name : "not text");
}

static frit_status complete_neo(const frit_hf *hf)
{
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    double size = 0;
    uint32_t *windows = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!windows) return frit_fail_memory(n * sizeof *windows, "the windows of layers");
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "window_size", FRIT_HF_TOKENS, &size));
    for (size_t i = 0; i < n; i++) {
        bool slides;
        FRIT_TRY(slides_at(hf, i, &slides));
        windows[i] = slides ? (uint32_t)size : 0;
    }
    FRIT_TRY(frit_hf_add_number(hf, "attention.scale", FRIT_HF_FACTOR, 1));
    return frit_hf_add_list(hf, "frit.attention.sliding_window", windows, n);
}

// clang-format off
static const frit_hf_key gpt2_keys[] = {
    FRIT_HF_KEYS_GPT2,
};

static const frit_hf_tensor gpt2_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.wpe", .gguf = "position_embd"},
    {.name = "transformer.h.*.ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.attn.c_attn", .gguf = "blk.*.attn_qkv", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.attn.c_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.ln_2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.h.*.mlp.c_fc", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.h.*.mlp.c_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS, .rewrite = frit_hf_transpose},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};

static const frit_hf_key gpt_neo_keys[] = {
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"hidden_size", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"num_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD},
    {"num_heads", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_EQUAL_HEADS,
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

#define AT "transformer.h.*"
static const frit_hf_tensor gpt_neo_tensors[] = {
    {.name = "transformer.wte", .gguf = "token_embd"},
    {.name = "lm_head", .gguf = "output", .may_be_tied = true},
    {.name = "transformer.wpe", .gguf = "position_embd"},
    {.name = AT ".ln_1", .gguf = "blk.*.attn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".attn.attention.q_proj", .gguf = "blk.*.attn_q"},
    {.name = AT ".attn.attention.k_proj", .gguf = "blk.*.attn_k"},
    {.name = AT ".attn.attention.v_proj", .gguf = "blk.*.attn_v"},
    {.name = AT ".attn.attention.out_proj", .gguf = "blk.*.attn_output", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".ln_2", .gguf = "blk.*.ffn_norm", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.c_fc", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_ALWAYS},
    {.name = AT ".mlp.c_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_ALWAYS},
    {.name = "transformer.ln_f", .gguf = "output_norm", .bias_if = FRIT_HF_ALWAYS},
};
// clang-format on

const frit_hf_family frit_hf_gpt2 = {
    .model_type = "gpt2",
    .class_name = "GPT2LMHeadModel",
    .arch = "gpt2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu_fast|gelu!",
    .act_name = "activation_function",
    .shared = &frit_hf_no_names,
    .own = {gpt2_keys, FRIT_COUNT(gpt2_keys), gpt2_tensors, FRIT_COUNT(gpt2_tensors)},
};

const frit_hf_family frit_hf_gpt_sw3 = {
    .model_type = "gpt-sw3",
    .class_name = "GPT2LMHeadModel",
    .arch = "gpt2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu_fast|gelu!",
    .act_name = "activation_function",
    .shared = &frit_hf_no_names,
    .own = {gpt2_keys, FRIT_COUNT(gpt2_keys), gpt2_tensors, FRIT_COUNT(gpt2_tensors)},
};

const frit_hf_family frit_hf_gpt_neo = {
    .model_type = "gpt_neo",
    .class_name = "GPTNeoForCausalLM",
    .arch = "gpt2",
    .act = "gelu_new|gelu_pytorch_tanh|gelu!",
    .act_name = "activation_function",
    .more = complete_neo,
    .shared = &frit_hf_no_names,
    .own = {gpt_neo_keys, FRIT_COUNT(gpt_neo_keys), gpt_neo_tensors, FRIT_COUNT(gpt_neo_tensors)},
};
