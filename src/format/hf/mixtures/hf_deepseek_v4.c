// SPDX-License-Identifier: MIT
// DeepSeek-V4. Names of tensors are those of the published files, which have no prefix.
#include "format/hf/hf_rows.h"

#include <math.h>

enum { INDEXED_BLOCK = 4, LARGE_BLOCK = 128 };

static frit_status read_rates(const frit_hf *hf, double *indexed, double *large)
{
    const json_t *rates = json_object_get(hf->config, "compress_rates");
    *indexed = INDEXED_BLOCK;
    *large = LARGE_BLOCK;
    FRIT_TRY(frit_hf_get_number(hf, rates, "compress_rates.", "compressed_sparse_attention", FRIT_HF_COUNT, indexed));
    FRIT_TRY(frit_hf_get_number(hf, rates, "compress_rates.", "heavily_compressed_attention", FRIT_HF_COUNT, large));
    if (*indexed == INDEXED_BLOCK && *large != INDEXED_BLOCK) return FRIT_OK;
    return frit_fail_file(FRIT_E_UNSUPPORTED,
                          "%s: compress_rates: blocks of compressed_sparse_attention have %.0f positions and others "
                          "%.0f, expected 4 and another number",
                          hf->path, *indexed, *large);
}

static frit_status block_of(const frit_hf *hf, const json_t *type, double indexed, double large, uint32_t *out)
{
    const char *name = json_string_value(type);
    *out = 0;
    if (json_is_integer(type) && (json_integer_value(type) == 0 || json_integer_value(type) == INDEXED_BLOCK ||
                                  json_integer_value(type) == LARGE_BLOCK))
        *out = (uint32_t)json_integer_value(type);
    else if (name && strcmp(name, "compressed_sparse_attention") == 0)
        *out = (uint32_t)indexed;
    else if (name && strcmp(name, "heavily_compressed_attention") == 0)
        *out = (uint32_t)large;
    else if (!name || strcmp(name, "sliding_attention") != 0)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: layer_types has '%.40s', an unknown kind of layer", hf->path,
                              name ? name : "no text");
    return FRIT_OK;
}

// Writes the sizes of blocks by layer, from layer_types or, in the first files, compress_ratios.
static frit_status add_blocks(const frit_hf *hf)
{
    const json_t *types = json_object_get(hf->config, "layer_types");
    const size_t n = (size_t)frit_hf_written(hf, "block_count");
    double indexed, large;
    if (!json_is_array(types)) types = json_object_get(hf->config, "compress_ratios");
    FRIT_TRY(read_rates(hf, &indexed, &large));
    if (types && !json_is_null(types) && json_array_size(types) < n)
        return frit_fail_file(FRIT_E_FORMAT, "%s: layer_types is not a list of %zu names, one for each layer", hf->path,
                              n);
    uint32_t *blocks = frit_arena_new(&hf->ckpt->arena, uint32_t, n);
    if (!blocks) return frit_fail_memory(n * sizeof *blocks, "the kinds of layers");
    for (size_t i = 0; i < n; i++) {
        blocks[i] = (uint32_t)(i < 2 || i % 2 == 0 ? large : indexed);
        if (json_is_array(types)) FRIT_TRY(block_of(hf, json_array_get(types, i), indexed, large, &blocks[i]));
    }
    return frit_hf_add_array(hf, "attention.compress_ratios", FRIT_VALUE_U32, blocks, n);
}

static frit_status add_hash_layers(const frit_hf *hf)
{
    const json_t *types = json_object_get(hf->config, "mlp_layer_types"), *type;
    double n = 3;
    size_t i;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "num_hash_layers", FRIT_HF_COUNT, &n));
    if (json_is_array(types)) n = 0;
    json_array_foreach(types, i, type)
    {
        const char *name = json_string_value(type);
        const bool is_hash = name && strcmp(name, "hash_moe") == 0;
        if (!name || (!is_hash && strcmp(name, "moe") != 0) || (is_hash && (double)i != n))
            return frit_fail_file(FRIT_E_UNSUPPORTED,
                                  "%s: mlp_layer_types[%zu] is '%.40s', expected hash_moe, then moe", hf->path, i,
                                  name ? name : "not text");
        n += is_hash;
    }
    return frit_hf_add_number(hf, "hash_layer_count", FRIT_HF_COUNT, n);
}

// GGUF has the base of layers without blocks as rope.freq_base.
static frit_status add_rotation(const frit_hf *hf)
{
    const double dim = frit_hf_written(hf, "attention.key_length"), main = frit_hf_written(hf, "rope.freq_base_swa");
    double base = 160000, n = 64.0 / 512 * dim, part = 0;
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "compress_rope_theta", FRIT_HF_BASE, &base));
    if (main != 0) base = frit_hf_written(hf, "rope.freq_base");
    if (main != 0) FRIT_TRY(frit_hf_set_number(hf, "rope.freq_base", FRIT_HF_BASE, main));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "qk_rope_head_dim", FRIT_HF_WIDTH, &n));
    FRIT_TRY(frit_hf_get_number(hf, hf->config, "", "partial_rotary_factor", FRIT_HF_FACTOR, &part));
    if (part != 0) n = floor(dim * part + 1e-9);
    FRIT_TRY(frit_hf_set_number(hf, "rope.dimension_count", FRIT_HF_WIDTH, n));
    return frit_hf_add_number(hf, "attention.compress_rope_freq_base", FRIT_HF_BASE, base);
}

static frit_status complete(const frit_hf *hf)
{
    FRIT_TRY(frit_hf_expect_text(hf, "scoring_func", "sqrtsoftplus"));
    FRIT_TRY(add_blocks(hf));
    FRIT_TRY(add_hash_layers(hf));
    return add_rotation(hf);
}

// A matrix for each group of heads.
static frit_status split_groups(const frit_hf *hf, frit_tensor *tensor, bool is_bias)
{
    const int64_t n = (int64_t)frit_hf_written(hf, "attention.output_group_count");
    (void)is_bias;
    if (tensor->n_dims != 2 || n < 1 || tensor->shape[0] % n != 0)
        return frit_fail(FRIT_E_FORMAT, "tensor '%s' is not a matrix of %lld equal parts", tensor->name, (long long)n);
    tensor->n_dims = 3;
    tensor->shape[2] = tensor->shape[1];
    tensor->shape[1] = tensor->shape[0] / n;
    tensor->shape[0] = n;
    return FRIT_OK;
}

// clang-format off
static const frit_hf_key deepseek_v4_keys[] = {
    {"max_position_embeddings", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},   // unused: all layers have experts
    {"q_lora_rank", "attention.q_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"sliding_window", "attention.sliding_window", FRIT_HF_TOKENS, FRIT_HF_NEEDED},
    {"o_groups", "attention.output_group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"o_lora_rank", "attention.output_lora_rank", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"index_n_heads", "attention.indexer.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED},
    {"index_head_dim", "attention.indexer.key_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"index_topk", "attention.indexer.top_k", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"hc_mult", "hyper_connection.count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"hc_sinkhorn_iters", "hyper_connection.sinkhorn_iterations", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"hc_eps", "hyper_connection.epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED},
    {"n_routed_experts", "expert_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"num_experts_per_tok", "expert_used_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"moe_intermediate_size", "expert_feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED},
    {"n_shared_experts", "expert_shared_count", FRIT_HF_COUNT, FRIT_HF_NEEDED},
    {"routed_scaling_factor", "expert_weights_scale", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {NULL, "expert_weights_norm", FRIT_HF_FLAG, 1},
    {"swiglu_limit", "swiglu_clamp_exp", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
    {"swiglu_limit", "swiglu_clamp_shexp", FRIT_HF_FACTOR, FRIT_HF_NEEDED},
};

#define AT "layers.*"
#define ROW_WHOLE(there, to) {.name = there, .gguf = to ".weight", .whole = true}
#define ROW_SOME(there, to)  {.name = there, .gguf = to, .may_be_absent = true}
#define ROWS_COMPRESSOR(at, to) \
    ROW_SOME(at ".wkv", to "_kv"), \
    ROW_SOME(at ".wgate", to "_gate"), \
    ROW_SOME(at ".norm", to "_norm"), \
    {.name = at ".ape", .gguf = to "_ape.weight", .whole = true, .may_be_absent = true}
static const frit_hf_tensor deepseek_v4_tensors[] = {
    {.name = "embed", .gguf = "token_embd"},
    {.name = "norm", .gguf = "output_norm"},
    {.name = "head", .gguf = "output", .may_be_tied = true},
    ROW_WHOLE("hc_head_fn", "output_hc_fn"),
    ROW_WHOLE("hc_head_base", "output_hc_base"),
    ROW_WHOLE("hc_head_scale", "output_hc_scale"),
    ROW_WHOLE(AT ".hc_attn_fn", "blk.*.hc_attn_fn"),
    ROW_WHOLE(AT ".hc_attn_base", "blk.*.hc_attn_base"),
    ROW_WHOLE(AT ".hc_attn_scale", "blk.*.hc_attn_scale"),
    ROW_WHOLE(AT ".hc_ffn_fn", "blk.*.hc_ffn_fn"),
    ROW_WHOLE(AT ".hc_ffn_base", "blk.*.hc_ffn_base"),
    ROW_WHOLE(AT ".hc_ffn_scale", "blk.*.hc_ffn_scale"),
    {.name = AT ".attn_norm", .gguf = "blk.*.attn_norm"},
    {.gguf = "blk.*.attn_q", .none = true},
    {.gguf = "blk.*.attn_k", .none = true},
    {.gguf = "blk.*.attn_v", .none = true},
    {.gguf = "blk.*.attn_output", .none = true},
    ROW_WHOLE(AT ".attn.attn_sink", "blk.*.attn_sinks"),
    {.name = AT ".attn.wq_a", .gguf = "blk.*.attn_q_a"},
    {.name = AT ".attn.q_norm", .gguf = "blk.*.attn_q_a_norm"},
    {.name = AT ".attn.wq_b", .gguf = "blk.*.attn_q_b"},
    {.name = AT ".attn.wkv", .gguf = "blk.*.attn_kv"},
    {.name = AT ".attn.kv_norm", .gguf = "blk.*.attn_kv_a_norm"},
    {.name = AT ".attn.wo_a", .gguf = "blk.*.attn_output_a", .rewrite = split_groups},
    {.name = AT ".attn.wo_b", .gguf = "blk.*.attn_output_b"},
    ROWS_COMPRESSOR(AT ".attn.compressor", "blk.*.attn_compressor"),
    ROWS_COMPRESSOR(AT ".attn.indexer.compressor", "blk.*.indexer_compressor"),
    ROW_SOME(AT ".attn.indexer.wq_b", "blk.*.indexer.attn_q_b"),
    ROW_SOME(AT ".attn.indexer.weights_proj", "blk.*.indexer.proj"),
    {.name = AT ".ffn_norm", .gguf = "blk.*.ffn_norm"},
    FRIT_HF_ROWS_NO_FEED_FORWARD,
    {.name = AT ".ffn.gate", .gguf = "blk.*.ffn_gate_inp"},
    {.name = AT ".ffn.gate.bias", .gguf = "blk.*.exp_probs_b.bias", .whole = true, .may_be_absent = true},
    {.name = AT ".ffn.gate.tid2eid", .gguf = "blk.*.ffn_gate_tid2eid.weight", .whole = true, .may_be_absent = true},
    FRIT_HF_ROWS_NUMBERED_EXPERTS(AT ".ffn"),
    ROW_SOME(AT ".ffn.shared_experts.w1", "blk.*.ffn_gate_shexp"),
    ROW_SOME(AT ".ffn.shared_experts.w3", "blk.*.ffn_up_shexp"),
    ROW_SOME(AT ".ffn.shared_experts.w2", "blk.*.ffn_down_shexp"),
};
// clang-format on

const frit_hf_family frit_hf_deepseek_v4 = {
    .model_type = "deepseek_v4",
    .class_name = "DeepseekV4ForCausalLM",
    .arch = "deepseek4",
    .ignored = "mtp.",
    .act = "silu|swish",
    .more = complete,
    .shared = &frit_hf_decoder,
    .own = {deepseek_v4_keys, FRIT_COUNT(deepseek_v4_keys), deepseek_v4_tensors, FRIT_COUNT(deepseek_v4_tensors)},
};
