// SPDX-License-Identifier: MIT
// Hybrids of attention and scans, by layer or in parallel: Jamba, Bamba, Falcon-H1, Nemotron-H.
#include "format/hf/hf_rows.h"

#include <math.h>
#include <stdio.h>

enum { MAX_LAYERS = 1024 };

static frit_status add_inner(const frit_hf *hf)
{
    double expand = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_expand", FRIT_HF_FACTOR, &expand));
    return frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, expand * frit_hf_written(hf, "embedding_length"));
}

// The number of heads of a scan times their width must be its inner width.
static frit_status check_scan_heads(const frit_hf *hf)
{
    const double n = frit_hf_written(hf, "ssm.time_step_rank"), inner = frit_hf_written(hf, "ssm.inner_size");
    double dim = floor(inner / n);
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_d_head", FRIT_HF_WIDTH, &dim));
    if (dim * n == inner) return frit_hf_expect_open_steps(hf);
    return frit_fail_file(FRIT_E_FORMAT,
                          "%s: mamba_n_heads is %.0f and mamba_d_head is %.0f, expected a product of %.0f", hf->path, n,
                          dim, inner);
}

static frit_status complete_jamba(const frit_hf *hf)
{
    bool recurrent[MAX_LAYERS] = {false};
    double period = 0, offset = 0;
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
            return frit_fail_file(FRIT_E_FORMAT, "%s: attn_layer_indices[%zu] is not the number of a layer", hf->path,
                                  i);
        recurrent[layer] = false;
    }
    FRIT_TRY(frit_hf_expect(hf, "mamba_proj_bias", 0));
    FRIT_TRY(add_inner(hf));
    FRIT_TRY(check_scan_heads(hf));
    return frit_hf_add_recurrent(hf, recurrent);
}

// ---------------------------------------------------------------------------------------- Falcon-H1

// Adds "NAME.multiplier", n factors of a matrix's rows, or one for all. Adds nothing if all are 1.
static frit_status add_multiplier(const frit_hf *hf, const char *name, const float *values, size_t n)
{
    frit_arena *arena = &hf->ckpt->arena;
    bool is_one = true;
    for (size_t i = 0; i < n; i++) is_one = is_one && values[i] == 1;
    if (is_one) return FRIT_OK;
    float *copy = frit_arena_new(arena, float, n);
    char full[64];
    snprintf(full, sizeof full, "%s.multiplier", name);
    const frit_tensor tensor = {.name = frit_arena_text(arena, full, strlen(full)),
                                .dtype = FRIT_DTYPE_F32,
                                .n_dims = 1,
                                .shape = {(int64_t)n, 1, 1, 1},
                                .data = copy,
                                .n_bytes = n * sizeof *copy};
    if (!copy || !tensor.name) return frit_fail_memory(n * sizeof *copy, "multipliers");
    memcpy(copy, values, n * sizeof *copy);
    return frit_checkpoint_add_tensor(hf->ckpt, &tensor);
}

static frit_status get_multiplier(const frit_hf *hf, const char *name, float *out)
{
    double value = 1;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", name, FRIT_HF_FACTOR, &value));
    *out = (float)value;
    return FRIT_OK;
}

static frit_status get_multipliers(const frit_hf *hf, const char *name, float *out, size_t n)
{
    const json_t *list = json_object_get(hf->config, name);
    for (size_t i = 0; i < n; i++) out[i] = 1;
    if (!list || json_is_null(list)) return FRIT_OK;
    for (size_t i = 0; i < n; i++) {
        const json_t *item = json_array_get(list, i);
        out[i] = (float)json_number_value(item);
        if (!json_is_number(item) || json_array_size(list) != n || !(out[i] > 0) || out[i] > 1e9f)
            return frit_fail_file(FRIT_E_FORMAT, "%s: %s is not a list of %zu numbers above 0", hf->path, name, n);
    }
    return FRIT_OK;
}

// Factors of the rows of in_proj: one each for gate, x, b, c and steps.
static frit_status make_scan_multipliers(const frit_hf *hf, float **out, size_t *n)
{
    const size_t inner = (size_t)frit_hf_written(hf, "ssm.inner_size");
    const size_t states = (size_t)(frit_hf_written(hf, "ssm.group_count") * frit_hf_written(hf, "ssm.state_size"));
    const size_t sizes[] = {inner, inner, states, states, (size_t)frit_hf_written(hf, "ssm.time_step_rank")};
    float parts[FRIT_COUNT(sizes)], all;
    FRIT_TRY(get_multipliers(hf, "ssm_multipliers", parts, FRIT_COUNT(sizes)));
    FRIT_TRY(get_multiplier(hf, "ssm_in_multiplier", &all));
    *n = 2 * inner + 2 * states + sizes[4];
    *out = frit_arena_new(&hf->ckpt->arena, float, *n);
    if (!*out) return frit_fail_memory(*n * sizeof **out, "multipliers");
    size_t at = 0;
    for (size_t i = 0; i < FRIT_COUNT(sizes); i++)
        for (size_t k = 0; k < sizes[i]; k++) (*out)[at++] = all * parts[i];
    return FRIT_OK;
}

static frit_status add_multipliers(const frit_hf *hf)
{
    float in, key, attn_out, ssm_out, embd, head, mlp[2], *scan;
    size_t n_scan;
    FRIT_TRY(get_multiplier(hf, "attention_in_multiplier", &in));
    FRIT_TRY(get_multiplier(hf, "key_multiplier", &key));
    FRIT_TRY(get_multiplier(hf, "attention_out_multiplier", &attn_out));
    FRIT_TRY(get_multiplier(hf, "ssm_out_multiplier", &ssm_out));
    FRIT_TRY(get_multiplier(hf, "embedding_multiplier", &embd));
    FRIT_TRY(get_multiplier(hf, "lm_head_multiplier", &head));
    FRIT_TRY(get_multipliers(hf, "mlp_multipliers", mlp, 2));
    FRIT_TRY(make_scan_multipliers(hf, &scan, &n_scan));
    FRIT_TRY(add_multiplier(hf, "token_embd", &embd, 1));
    FRIT_TRY(add_multiplier(hf, "output", &head, 1));
    key *= in;
    const struct {
        const char *name;
        const float *values;
        size_t n;
    } rows[] = {
        {"attn_q", &in, 1},       {"attn_k", &key, 1},      {"attn_v", &in, 1},       {"attn_output", &attn_out, 1},
        {"ssm_in", scan, n_scan}, {"ssm_out", &ssm_out, 1}, {"ffn_gate", &mlp[0], 1}, {"ffn_down", &mlp[1], 1}};
    for (int i = 0; i < (int)frit_hf_written(hf, "block_count"); i++)
        for (size_t k = 0; k < FRIT_COUNT(rows); k++) {
            char name[48];
            snprintf(name, sizeof name, "blk.%d.%s", i, rows[k].name);
            FRIT_TRY(add_multiplier(hf, name, rows[k].values, rows[k].n));
        }
    return FRIT_OK;
}

// Falcon-H1 must normalize a scan's output after its gate, as Mamba 2 does.
static frit_status complete_falcon(const frit_hf *hf)
{
    static const char *const biases[] = {"attention_bias", "mlp_bias", "mamba_proj_bias", "projectors_bias"};
    bool is_normed = false;
    FRIT_TRY(frit_hf_get_flag(hf, hf->config, "", "mamba_rms_norm", &is_normed));
    if (is_normed) FRIT_TRY(frit_hf_expect(hf, "mamba_norm_before_gate", 0));
    for (size_t i = 0; i < FRIT_COUNT(biases); i++) FRIT_TRY(frit_hf_expect(hf, biases[i], 0));
    if (frit_hf_written(hf, "ssm.inner_size") == 0) FRIT_TRY(add_inner(hf));
    FRIT_TRY(check_scan_heads(hf));
    return add_multipliers(hf);
}

// ---------------------------------------------------------------------------------------- Nemotron-H

// Returns the kind of layer i, from layers_block_type or from a letter of the older hybrid_override_pattern.
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
    if (type && strcmp(type, "moe") == 0) *kind = 'E';
    if (*kind == 'M' || *kind == '*' || *kind == '-' || *kind == 'E') return FRIT_OK;
    if (!types && pattern)
        return frit_fail_file(FRIT_E_UNSUPPORTED,
                              "%s: hybrid_override_pattern: layer %zu is '%.1s', expected M, *, - or E", hf->path, i,
                              i < strlen(pattern) ? pattern + i : "");
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: layers_block_type[%zu] is '%.40s', expected mamba, attention, mlp or moe", hf->path, i,
                          type ? type : "not text");
}

static frit_status complete_nemotron(const frit_hf *hf)
{
    uint32_t heads[MAX_LAYERS], widths[MAX_LAYERS];
    size_t n_dense = 0, n_sparse = 0;
    const json_t *types = json_object_get(hf->config, "layers_block_type");
    const char *pattern = json_string_value(json_object_get(hf->config, "hybrid_override_pattern"));
    const size_t n = types ? json_array_size(types) : pattern ? strlen(pattern) : 0;
    double dim = 0;
    if (n < 1 || n > MAX_LAYERS)
        return frit_fail_file(FRIT_E_FORMAT, "%s: layers_block_type is not a list of 1 to %d names", hf->path,
                              (int)MAX_LAYERS);
    // Published files have the number of layers and the pattern.
    const double n_written = frit_hf_written(hf, "block_count");
    if (n_written != 0 && n_written != (double)n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: num_hidden_layers is %.0f, but the pattern has %zu layers", hf->path,
                              n_written, n);
    if (n_written == 0) FRIT_TRY(frit_hf_add_number(hf, "block_count", FRIT_HF_LAYERS, (double)n));
    for (size_t i = 0; i < n; i++) {
        char kind;
        FRIT_TRY(kind_of(hf, i, &kind));
        heads[i] = kind == '*' ? (uint32_t)frit_hf_written(hf, "attention.head_count_kv") : 0;
        widths[i] = kind == '-' ? (uint32_t)frit_hf_written(hf, "feed_forward_length") : 0;
        if (kind == 'E') widths[i] = (uint32_t)frit_hf_written(hf, "expert_feed_forward_length");
        n_dense += kind == '-';
        n_sparse += kind == 'E';
    }
    if (n_sparse > 0 && (n_dense > 0 || frit_hf_written(hf, "expert_count") == 0))
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: %zu layers are mlp and %zu moe, expected all or none with %s",
                              hf->path, n_dense, n_sparse, n_dense > 0 ? "experts" : "n_routed_experts above 0");
    FRIT_TRY(frit_hf_expect_open_steps(hf));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "mamba_head_dim", FRIT_HF_COUNT, &dim));
    FRIT_TRY(frit_hf_add_number(hf, "ssm.inner_size", FRIT_HF_WIDTH, dim * frit_hf_written(hf, "ssm.time_step_rank")));
    FRIT_TRY(frit_hf_set_list(hf, "attention.head_count_kv", heads));
    return frit_hf_set_list(hf, "feed_forward_length", widths);
}

// clang-format off
static const frit_hf_key jamba_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"num_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"mamba_d_state", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"mamba_d_conv", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"mamba_dt_rank", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_16TH},
};

static const frit_hf_tensor jamba_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    {.name = "model.layers.*.feed_forward.router", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    FRIT_HF_ROWS_EXPERTS("model.layers.*.feed_forward"),
    FRIT_HF_ROWS_SOME_SCAN("model.layers.*.mamba"),
    {.name = "model.layers.*.mamba.x_proj", .gguf = "blk.*.ssm_x", .may_be_absent = true},
    {.name = "model.layers.*.mamba.dt_proj", .gguf = "blk.*.ssm_dt", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true},
    {.name = "model.layers.*.mamba.dt_layernorm", .gguf = "blk.*.ssm_dt_norm", .may_be_absent = true},
    {.name = "model.layers.*.mamba.b_layernorm", .gguf = "blk.*.ssm_b_norm", .may_be_absent = true},
    {.name = "model.layers.*.mamba.c_layernorm", .gguf = "blk.*.ssm_c_norm", .may_be_absent = true},
};

static const frit_hf_key bamba_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    FRIT_HF_KEYS_MAMBA2,
};

static const frit_hf_tensor bamba_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};

static const frit_hf_key falcon_h1_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"mamba_d_ssm", "ssm.inner_size", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    FRIT_HF_KEYS_MAMBA2,
};

static const frit_hf_tensor falcon_h1_tensors[] = {
    {.name = "model.final_layernorm", .gguf = "output_norm"},
    {.name = "model.layers.*.pre_ff_layernorm.weight", .gguf = "blk.*.ffn_norm", .whole = true},
    FRIT_HF_ROWS_SOME_ATTENTION("model.layers.*.self_attn"),
    FRIT_HF_ROWS_SOME_FEED_FORWARD("model.layers.*.feed_forward"),
    FRIT_HF_ROWS_SOME_MAMBA2("model.layers.*.mamba"),
};

// Other engines need both norms' epsilons.
#define NEMOTRON_KEYS \
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"num_hidden_layers", "block_count", FRIT_HF_LAYERS, FRIT_HF_NO_KEY}, \
    {"num_key_value_heads", "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD}, \
    {"layer_norm_epsilon", "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}, \
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}, \
    {"mamba_num_heads", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"n_groups", "ssm.group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"ssm_state_size", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"conv_kernel", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED}

static const frit_hf_key nemotron_h_keys[] = {NEMOTRON_KEYS};

static const frit_hf_key nemotron_h_moe_keys[] = {
    NEMOTRON_KEYS,
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"moe_latent_size", "moe_latent_size", FRIT_HF_WIDTH, FRIT_HF_NO_KEY},
    {"norm_topk_prob", "expert_weights_norm", FRIT_HF_FLAG, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"n_group", "expert_group_count", FRIT_HF_COUNT, 1},
    {"topk_group", "expert_group_used_count", FRIT_HF_COUNT, 1},
};

#define NEMOTRON_TENSORS \
    {.name = "backbone.embeddings", .gguf = "token_embd"}, \
    {.name = "backbone.layers.*.norm", .gguf = "blk.*.attn_norm"}, \
    {.name = "backbone.norm_f", .gguf = "output_norm"}, \
    {.gguf = "blk.*.ffn_norm", .none = true}, \
    FRIT_HF_ROWS_SOME_ATTENTION("backbone.layers.*.mixer"), \
    {.gguf = "blk.*.ffn_gate", .none = true}, \
    {.name = "backbone.layers.*.mixer.up_proj", .gguf = "blk.*.ffn_up", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    {.name = "backbone.layers.*.mixer.down_proj", .gguf = "blk.*.ffn_down", .bias_if = FRIT_HF_MAYBE, .may_be_absent = true}, \
    FRIT_HF_ROWS_SOME_MAMBA2("backbone.layers.*.mixer")

static const frit_hf_tensor nemotron_h_tensors[] = {NEMOTRON_TENSORS};

#define AT "backbone.layers.*.mixer"
static const frit_hf_tensor nemotron_h_moe_tensors[] = {
    NEMOTRON_TENSORS,
    {.name = AT ".gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true},
    {.name = AT ".gate.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true},
    {.name = AT ".experts.@.up_proj", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true},
    {.name = AT ".experts.@.down_proj", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true},
    {.name = AT ".shared_experts.up_proj", .gguf = "blk.*.ffn_up_shexp", .may_be_absent = true},
    {.name = AT ".shared_experts.down_proj", .gguf = "blk.*.ffn_down_shexp", .may_be_absent = true},
    {.name = AT ".fc1_latent_proj", .gguf = "blk.*.ffn_latent_down", .may_be_absent = true},
    {.name = AT ".fc2_latent_proj", .gguf = "blk.*.ffn_latent_up", .may_be_absent = true},
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
    .rope_style = "neox",
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

static bool has_experts(const json_t *config)
{
    const char *pattern = json_string_value(json_object_get(config, "hybrid_override_pattern"));
    const json_t *types = json_object_get(config, "layers_block_type"), *item;
    size_t i;
    json_array_foreach(types, i,
                       item) if (json_string_value(item) && strcmp(json_string_value(item), "moe") == 0) return true;
    return !types && pattern && strchr(pattern, 'E');
}

const frit_hf_family frit_hf_nemotron_h_moe = {
    .model_type = "nemotron_h",
    .class_name = "NemotronHForCausalLM",
    .arch = "nemotron_h_moe",
    .act = "relu2",
    .act_name = "mlp_hidden_act",
    .fits = has_experts,
    .more = complete_nemotron,
    .shared = &frit_hf_decoder,
    .own = {nemotron_h_moe_keys, FRIT_COUNT(nemotron_h_moe_keys), nemotron_h_moe_tensors,
            FRIT_COUNT(nemotron_h_moe_tensors)},
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
