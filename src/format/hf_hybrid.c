// SPDX-License-Identifier: MIT
// Attention and scans in turn, or side by side: Jamba, Bamba, Falcon-H1, Nemotron-H.
#include "format/hf.h"

enum { MAX_LAYERS = 1024 };

static frit_status add_inner(const frit_hf *hf)
{
    double expand = 2;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_expand", FRIT_HF_FACTOR, &expand));
    return frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, expand * frit_hf_written(hf, "embedding_length"));
}

static frit_status complete_jamba(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS] = {false};
    double period = 8, offset = 4;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "attn_layer_period", FRIT_HF_LAYERS, &period));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "attn_layer_offset", FRIT_HF_COUNT, &offset));
    FRIT_TRY(frit_hf_expect(hf, "mamba_proj_bias", 0));
    for (size_t i = 0; i < MAX_LAYERS; i++) recurrent[i] = i % (size_t)period != (size_t)offset;
    FRIT_TRY(add_inner(hf));
    return frit_hf_add_recurrent(hf, recurrent);
}

static frit_status complete_bamba(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS];
    const json_t *list = json_object_get(hf->config, "attn_layer_indices"), *item;
    size_t i;
    for (size_t k = 0; k < MAX_LAYERS; k++) recurrent[k] = true;
    json_array_foreach(list, i, item)
    {
        const json_int_t layer = json_integer_value(item);
        if (!json_is_integer(item) || layer < 0 || layer >= MAX_LAYERS)
            return frit_fail(FRIT_E_FORMAT, "%s: attn_layer_indices[%zu] is not the number of a layer", hf->path, i);
        recurrent[layer] = false;
    }
    FRIT_TRY(frit_hf_expect(hf, "mamba_proj_bias", 0));
    FRIT_TRY(add_inner(hf));
    return frit_hf_add_recurrent(hf, recurrent);
}

// Published models scale almost everything; until weights are scaled here, only those without such factors are read.
static frit_status complete_falcon(const frit_hf *hf)
{
    static const char *const factors[] = {"attention_in_multiplier", "attention_out_multiplier", "embedding_multiplier",
                                          "key_multiplier",          "lm_head_multiplier",       "ssm_in_multiplier",
                                          "ssm_out_multiplier"};
    static const char *const lists[] = {"mlp_multipliers", "ssm_multipliers"};
    for (size_t i = 0; i < FRIT_COUNT(factors); i++) FRIT_TRY(frit_hf_expect(hf, factors[i], 1));
    for (size_t i = 0; i < FRIT_COUNT(lists); i++) {
        size_t k;
        const json_t *item;
        json_array_foreach(json_object_get(hf->config, lists[i]), k,
                           item) if (json_number_value(item) !=
                                     1) return frit_fail(FRIT_E_UNSUPPORTED,
                                                         "%s: %s[%zu] is %g, models of type '%s' are supported with 1",
                                                         hf->path, lists[i], k, json_number_value(item),
                                                         hf->family->model_type);
    }
    FRIT_TRY(frit_hf_expect(hf, "mamba_rms_norm", 0));
    return frit_hf_expect(hf, "mamba_proj_bias", 0);
}

// One layer for each name of layers_block_type, or each letter of the older hybrid_override_pattern.
static frit_status kind_of(const frit_hf *hf, size_t i, char *kind)
{
    const json_t *types = json_object_get(hf->config, "layers_block_type");
    const char *pattern = json_string_value(json_object_get(hf->config, "hybrid_override_pattern"));
    const char *type = json_string_value(json_array_get(types, i));
    *kind = 0;
    if (!types && pattern && i < strlen(pattern)) *kind = pattern[i];
    if (type && (strcmp(type, "linear_attention") == 0 || strcmp(type, "mamba") == 0)) *kind = 'M';
    if (type && (strcmp(type, "full_attention") == 0 || strcmp(type, "attention") == 0)) *kind = '*';
    if (type && strcmp(type, "mlp") == 0) *kind = '-';
    if (*kind == 'M' || *kind == '*' || *kind == '-') return FRIT_OK;
    return frit_fail(FRIT_E_UNSUPPORTED, "%s: layer %zu is of a kind that is not supported (%.40s)", hf->path, i,
                     type ? type : "by hybrid_override_pattern");
}

static frit_status complete_nemotron(const frit_hf *hf)
{
    uint32_t heads[MAX_LAYERS], widths[MAX_LAYERS];
    const json_t *types = json_object_get(hf->config, "layers_block_type");
    const char *pattern = json_string_value(json_object_get(hf->config, "hybrid_override_pattern"));
    const size_t n = types ? json_array_size(types) : pattern ? strlen(pattern) : 0;
    double dim = 64;
    if (n < 1 || n > MAX_LAYERS)
        return frit_fail(FRIT_E_FORMAT, "%s: layers_block_type is not a list of 1 to %d names", hf->path,
                         (int)MAX_LAYERS);
    FRIT_TRY(frit_hf_add_number(hf, "block_count", FRIT_HF_LAYERS, (double)n));
    for (size_t i = 0; i < n; i++) {
        char kind;
        FRIT_TRY(kind_of(hf, i, &kind));
        heads[i] = kind == '*' ? (uint32_t)frit_hf_written(hf, "attention.head_count_kv") : 0;
        widths[i] = kind == '-' ? (uint32_t)frit_hf_written(hf, "feed_forward_length") : 0;
    }
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_head_dim", FRIT_HF_COUNT, &dim));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, dim * frit_hf_written(hf, "ssm.time_step_rank")));
    FRIT_TRY(frit_hf_set_list(hf, "attention.head_count_kv", heads));
    return frit_hf_set_list(hf, "feed_forward_length", widths);
}

// clang-format off
static const frit_hf_key jamba_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 262144, 262144},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 8, FRIT_HF_N_HEAD},
    {"num_experts", "expert_count", FRIT_HF_COUNT, 16, 16},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, 2, 2},
    {"mamba_d_state", "ssm.state_size", FRIT_HF_COUNT, 16, 16},
    {"mamba_d_conv", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
    {"mamba_dt_rank", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED, FRIT_HF_NEEDED},
};

static const frit_hf_tensor jamba_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    {.name = "model.layers.*.feed_forward.router", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.gate_proj", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.up_proj", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true},
    {.name = "model.layers.*.feed_forward.experts.@.down_proj", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true},
    FRIT_HF_ROWS_SOME_SCAN("model.layers.*.mamba"),
    {.name = "model.layers.*.mamba.x_proj", .gguf = "blk.*.ssm_x", .may_be_absent = true},
    {.name = "model.layers.*.mamba.dt_proj", .gguf = "blk.*.ssm_dt", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "model.layers.*.mamba.dt_layernorm", .gguf = "blk.*.ssm_dt_norm", .may_be_absent = true},
    {.name = "model.layers.*.mamba.b_layernorm", .gguf = "blk.*.ssm_b_norm", .may_be_absent = true},
    {.name = "model.layers.*.mamba.c_layernorm", .gguf = "blk.*.ssm_c_norm", .may_be_absent = true},
};

static const frit_hf_key bamba_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 262144, 262144},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 8, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"mamba_n_heads", "ssm.time_step_rank", FRIT_HF_COUNT, 128, 128},
    {"mamba_n_groups", "ssm.group_count", FRIT_HF_COUNT, 1, 1},
    {"mamba_d_state", "ssm.state_size", FRIT_HF_COUNT, 256, 256},
    {"mamba_d_conv", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
};

static const frit_hf_tensor bamba_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};

static const frit_hf_key falcon_h1_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 8192, 8192},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 8, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"mamba_d_ssm", "ssm.inner_size", FRIT_HF_WIDTH, 1024, FRIT_HF_NEEDED},
    {"mamba_n_heads", "ssm.time_step_rank", FRIT_HF_COUNT, 128, 128},
    {"mamba_n_groups", "ssm.group_count", FRIT_HF_COUNT, 1, 1},
    {"mamba_d_state", "ssm.state_size", FRIT_HF_COUNT, 256, 256},
    {"mamba_d_conv", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
};

static const frit_hf_tensor falcon_h1_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm.weight", .gguf = "blk.*.ffn_norm", .whole = true},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};

static const frit_hf_key nemotron_h_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, 4096, 4096},
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NO_KEY, FRIT_HF_NO_KEY},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, 8, FRIT_HF_N_HEAD},
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, 1e-5, 1e-5},   // other engines want it too
    {"mamba_num_heads", "ssm.time_step_rank", FRIT_HF_COUNT, 128, 128},
    {"n_groups", "ssm.group_count", FRIT_HF_COUNT, 8, 8},
    {"ssm_state_size", "ssm.state_size", FRIT_HF_COUNT, 128, 128},
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, 4, 4},
};

static const frit_hf_tensor nemotron_h_tensors[] = {
    {.name = "backbone.embeddings", .gguf = "token_embd"},
    {.name = "backbone.layers.*.norm", .gguf = "blk.*.attn_norm"},
    {.name = "backbone.norm_f", .gguf = "output_norm"},
    {.gguf = "blk.*.ffn_norm", .none = true},
    FRIT_HF_ROWS_SOME_ATTENTION("backbone.layers.*.mixer"),
    {.gguf = "blk.*.ffn_gate", .none = true},
    {.name = "backbone.layers.*.mixer.up_proj", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "backbone.layers.*.mixer.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    FRIT_HF_ROWS_SOME_MAMBA2("backbone.layers.*.mixer"),
};
// clang-format on

const frit_hf_family frit_hf_jamba = {
    .model_type = "jamba",
    .class_name = "JambaForCausalLM",
    .arch = "jamba",
    .act = "silu|swish",
    .more = complete_jamba,
    .shared = &frit_hf_decoder,
    .own = {jamba_keys, FRIT_COUNT(jamba_keys), jamba_tensors, FRIT_COUNT(jamba_tensors)},
};

const frit_hf_family frit_hf_bamba = {
    .model_type = "bamba",
    .class_name = "BambaForCausalLM",
    .arch = "granitehybrid",
    .act = "silu|swish",
    .rope_style = "halves",
    .partial_rotary = 0.5,
    .more = complete_bamba,
    .shared = &frit_hf_decoder,
    .own = {bamba_keys, FRIT_COUNT(bamba_keys), bamba_tensors, FRIT_COUNT(bamba_tensors)},
};

const frit_hf_family frit_hf_falcon_h1 = {
    .model_type = "falcon_h1",
    .class_name = "FalconH1ForCausalLM",
    .arch = "falcon-h1",
    .act = "silu|swish",
    .more = complete_falcon,
    .shared = &frit_hf_decoder,
    .own = {falcon_h1_keys, FRIT_COUNT(falcon_h1_keys), falcon_h1_tensors, FRIT_COUNT(falcon_h1_tensors)},
};

const frit_hf_family frit_hf_nemotron_h = {
    .model_type = "nemotron_h",
    .class_name = "NemotronHForCausalLM",
    .arch = "nemotron_h",
    .act = "relu2",
    .act_name = "mlp_hidden_act",
    .more = complete_nemotron,
    .shared = &frit_hf_decoder,
    .own = {nemotron_h_keys, FRIT_COUNT(nemotron_h_keys), nemotron_h_tensors, FRIT_COUNT(nemotron_h_tensors)},
};
