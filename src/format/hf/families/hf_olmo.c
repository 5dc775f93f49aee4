// SPDX-License-Identifier: MIT
// OLMo 1 to 3, Olmo-Hybrid. OLMo 1 has no weights in its norms; 2 and 3 have norms after attention and feed-forward.
#include "format/hf/hf_rows.h"

#include <stdio.h>

static frit_status add_eps(const frit_hf *hf)
{
    return frit_hf_add_number(hf, "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5);
}

// clang-format off
static const frit_hf_key olmo_keys[] = {
    FRIT_HF_KEYS_NO_RMS_NORM,
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"clip_qkv", "attention.clamp_kqv", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

static const frit_hf_tensor olmo_tensors[] = {
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.gguf = "output_norm", .none = true},
    FRIT_HF_ROWS_BIASED_ATTENTION("model.layers.*.self_attn"),
};

static const frit_hf_key olmo2_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
};

static const frit_hf_tensor olmo2_tensors[] = {
    {.gguf = "blk.*.attn_norm", .none = true},
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = "model.layers.*.post_attention_layernorm", .gguf = "blk.*.post_attention_norm"},
    {.name = "model.layers.*.post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};

static const frit_hf_key olmoe_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_FALSE},
    {"clip_qkv", "attention.clamp_kqv", FRIT_HF_FACTOR, FRIT_HF_NO_KEY},
};

static const frit_hf_tensor olmoe_tensors[] = {
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    FRIT_HF_ROWS_EXPERTS("model.layers.*.mlp"),
    {.name = "model.layers.*.mlp.gate", .gguf = "blk.*.ffn_gate_inp"},
    FRIT_HF_ROWS_HEAD_NORMS("model.layers.*.self_attn"),
};
// clang-format on

const frit_hf_family frit_hf_olmo = {
    .model_type = "olmo",
    .class_name = "OlmoForCausalLM",
    .arch = "olmo",
    .act = "silu|swish",
    .more = add_eps,
    .rope_style = "neox",
    .shared = &frit_hf_decoder,
    .own = {olmo_keys, FRIT_COUNT(olmo_keys), olmo_tensors, FRIT_COUNT(olmo_tensors)},
};

const frit_hf_family frit_hf_olmo2 = {
    .model_type = "olmo2",
    .class_name = "Olmo2ForCausalLM",
    .arch = "olmo2",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {olmo2_keys, FRIT_COUNT(olmo2_keys), olmo2_tensors, FRIT_COUNT(olmo2_tensors)},
};

const frit_hf_family frit_hf_olmo3 = {
    .model_type = "olmo3",
    .class_name = "Olmo3ForCausalLM",
    .arch = "olmo2",
    .act = "silu|swish",
    .has_windows = true,
    .window_period = 4,
    .shared = &frit_hf_decoder,
    .own = {olmo2_keys, FRIT_COUNT(olmo2_keys), olmo2_tensors, FRIT_COUNT(olmo2_tensors)},
};

const frit_hf_family frit_hf_olmoe = {
    .model_type = "olmoe",
    .class_name = "OlmoeForCausalLM",
    .arch = "olmoe",
    .act = "silu|swish",
    .shared = &frit_hf_decoder,
    .own = {olmoe_keys, FRIT_COUNT(olmoe_keys), olmoe_tensors, FRIT_COUNT(olmoe_tensors)},
};

// ---------------------------------------------------------------------------------------- Olmo-Hybrid

enum { MAX_LAYERS = 1024 };

static bool but_each_fourth(const frit_hf *hf, double period, size_t i)
{
    (void)hf, (void)period;
    return i % 4 != 3;
}

static frit_status complete_hybrid(const frit_hf *hf)
{
    const double n_embd = frit_hf_written(hf, "embedding_length"), n_head = frit_hf_written(hf, "attention.head_count");
    double n_keys = n_head, n_values = n_head, key = 0, value = 0;
    bool recurrent[MAX_LAYERS], doubles = true;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_num_key_heads", FRIT_HF_HEADS, &n_keys));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_num_value_heads", FRIT_HF_HEADS, &n_values));
    key = (double)(int64_t)(0.75 * n_embd / n_keys);
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_key_head_dim", FRIT_HF_WIDTH, &key));
    value = 2 * key;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "linear_value_head_dim", FRIT_HF_WIDTH, &value));
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "linear_allow_neg_eigval", &doubles));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.group_count", FRIT_HF_COUNT, n_keys));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.time_step_rank", FRIT_HF_COUNT, n_values));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.state_size", FRIT_HF_COUNT, key));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, n_values * value));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.beta_scale", FRIT_HF_FACTOR, doubles ? 2 : 1));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.norm_epsilon", FRIT_HF_EPSILON, 1e-5));
    FRIT_TRY(frit_hf_recurrent_types(hf, but_each_fourth, recurrent));
    FRIT_TRY(frit_hf_add_recurrent(hf, recurrent));
    if (frit_hf_written(hf, "rope.freq_base") != 0) return FRIT_OK;
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    uint32_t *still = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!still) return frit_fail_memory(n * sizeof *still, "the list of layers with RoPE");
    for (size_t i = 0; i < n; i++) still[i] = 1;
    return frit_hf_add_list(hf, "frit.rope.none", still, n);
}

// Joins the taps of q, k and v. Files that transformers has saved cut the channels in three nearly equal parts.
static frit_status join_taps(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    static const char *const parts[] = {"q_conv1d", "k_conv1d", "v_conv1d"};
    const char *at = strstr(tensor->name, parts[0]);
    const int64_t n_taps = (int64_t)frit_hf_written(hf, "ssm.conv_kernel");
    const int64_t n = (int64_t)(2 * frit_hf_written(hf, "ssm.group_count") * frit_hf_written(hf, "ssm.state_size") +
                                frit_hf_written(hf, "ssm.inner_size"));
    float *values = frit_arena_new(&hf->ckpt->arena, float, (size_t)(n * n_taps));
    int64_t n_done = 0;
    (void)is_bias;
    if (!values) return frit_fail_memory((size_t)(n * n_taps) * sizeof *values, tensor->name);
    for (size_t i = 0; i < FRIT_COUNT(parts); i++) {
        char name[160];
        frit_tensor part;
        snprintf(name, sizeof name, "%.*s%s%s", at ? (int)(at - tensor->name) : 0, tensor->name, parts[i],
                 at ? at + strlen(parts[i]) : "");
        FRIT_TRY(hf->find(hf, name, &part));
        const int64_t width = part.shape[part.n_dims - 1], n_elems = frit_tensor_n_elems(&part);
        if (n_elems > n * n_taps - n_done)
            return frit_fail(FRIT_E_FORMAT, "tensor '%s' has %lld numbers, expected %lld for all of q, k and v", name,
                             (long long)n_elems, (long long)(n * n_taps));
        FRIT_TRY(frit_tensor_decode_rows(&part, 0, n_elems / width, values + n_done));
        n_done += n_elems;
    }
    if (n_done != n * n_taps)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' and the taps of k and v have %lld numbers, expected %lld",
                         tensor->name, (long long)n_done, (long long)(n * n_taps));
    *tensor = (frit_tensor){.name = tensor->name,
                            .dtype = FRIT_DTYPE_F32,
                            .n_dims = 2,
                            .shape = {n, n_taps, 1, 1},
                            .data = values,
                            .n_bytes = (uint64_t)(n * n_taps) * sizeof *values};
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key olmo_hybrid_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"linear_conv_kernel_dim", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED},
};

#define AT "model.layers.*"
#define ROW_SOME(there, to) {.name = AT there, .gguf = "blk.*." to, .may_be_absent = true}
static const frit_hf_tensor olmo_hybrid_tensors[] = {
    ROW_SOME(".attention_layer_norm", "attn_norm"),
    {.gguf = "blk.*.ffn_norm", .none = true},
    {.name = AT ".feedforward_layer_norm", .gguf = "blk.*.post_attention_norm"},
    ROW_SOME(".post_feedforward_layernorm", "post_ffw_norm"),
    FRIT_HF_ROWS_SOME_ATTENTION(AT ".self_attn"),
    ROW_SOME(".self_attn.q_norm", "attn_q_norm"),
    ROW_SOME(".self_attn.k_norm", "attn_k_norm"),
    ROW_SOME(".linear_attn.q_proj", "ssm_q"),
    ROW_SOME(".linear_attn.k_proj", "ssm_k"),
    ROW_SOME(".linear_attn.v_proj", "ssm_v"),
    ROW_SOME(".linear_attn.g_proj", "attn_gate"),
    ROW_SOME(".linear_attn.a_proj", "ssm_alpha"),
    ROW_SOME(".linear_attn.b_proj", "ssm_beta"),
    ROW_SOME(".linear_attn.o_norm", "ssm_norm"),
    ROW_SOME(".linear_attn.o_proj", "ssm_out"),
    {.name = AT ".linear_attn.q_conv1d", .gguf = "blk.*.ssm_conv1d", .may_be_absent = true, .rewrite = join_taps},
    {.name = AT ".linear_attn.k_conv1d", .gguf = "blk.*.ssm_conv1d_k", .is_part = true},
    {.name = AT ".linear_attn.v_conv1d", .gguf = "blk.*.ssm_conv1d_v", .is_part = true},
    {.name = AT ".linear_attn.A_log", .gguf = "blk.*.ssm_a", .whole = true, .may_be_absent = true, .rewrite = frit_hf_negative_exp},
    {.name = AT ".linear_attn.dt_bias", .gguf = "blk.*.ssm_dt.bias", .whole = true, .may_be_absent = true},
};
// clang-format on

const frit_hf_family frit_hf_olmo_hybrid = {
    .model_type = "olmo_hybrid",
    .class_name = "OlmoHybridForCausalLM",
    .arch = "olmo-hybrid",
    .act = "silu|swish",
    .more = complete_hybrid,
    .shared = &frit_hf_decoder,
    .own = {olmo_hybrid_keys, FRIT_COUNT(olmo_hybrid_keys), olmo_hybrid_tensors, FRIT_COUNT(olmo_hybrid_tensors)},
};
