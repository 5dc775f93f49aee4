// SPDX-License-Identifier: MIT
// format/hf/hf_rows.h: rows that several model families share. `at` is the prefix of the tensors' names, such as
// "model.layers.*.self_attn".
#pragma once
#include "format/hf/hf.h"

// clang-format off

// ---- Keys of config.json.

// Multi-head attention: the number of KV heads is the number of query heads, their width is embedding_length /
// head_count, and all dimensions are rotated.
#define FRIT_HF_KEYS_EQUAL_HEADS \
    {NULL, "attention.head_count_kv", FRIT_HF_HEADS, FRIT_HF_N_HEAD}, \
    {NULL, "attention.key_length", FRIT_HF_WIDTH, FRIT_HF_DIVIDED}, \
    {NULL, "attention.value_length", FRIT_HF_WIDTH, FRIT_HF_K_DIM}, \
    {NULL, "rope.dimension_count", FRIT_HF_WIDTH, FRIT_HF_K_DIM}
#define FRIT_HF_KEYS_NO_RMS_NORM \
    {NULL, "attention.layer_norm_rms_epsilon", FRIT_HF_EPSILON, FRIT_HF_NO_KEY}
#define FRIT_HF_KEY_SIGMOID_ROUTER {NULL, "expert_gating_func", FRIT_HF_COUNT, 2}
// The keys of GPT-2.
#define FRIT_HF_KEYS_GPT2 \
    {"vocab_size", "vocab_size", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"n_positions", "context_length", FRIT_HF_TOKENS, FRIT_HF_NEEDED}, \
    {"n_embd", "embedding_length", FRIT_HF_WIDTH, FRIT_HF_NEEDED}, \
    {"n_layer", "block_count", FRIT_HF_LAYERS, FRIT_HF_NEEDED}, \
    {"n_inner", "feed_forward_length", FRIT_HF_WIDTH, FRIT_HF_4_EMBD}, \
    {"n_head", "attention.head_count", FRIT_HF_HEADS, FRIT_HF_NEEDED}, \
    FRIT_HF_KEYS_EQUAL_HEADS, \
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", FRIT_HF_EPSILON, FRIT_HF_NEEDED}
#define FRIT_HF_KEYS_MAMBA2 \
    {"mamba_n_heads", "ssm.time_step_rank", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"mamba_n_groups", "ssm.group_count", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"mamba_d_state", "ssm.state_size", FRIT_HF_COUNT, FRIT_HF_NEEDED}, \
    {"mamba_d_conv", "ssm.conv_kernel", FRIT_HF_COUNT, FRIT_HF_NEEDED}

// ---- Tensors of attention.

// Biases where attention_bias is set.
#define FRIT_HF_ROWS_BIASED_QKV(at) \
    {.name = at ".q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"}, \
    {.name = at ".k_proj", .gguf = "blk.*.attn_k", .bias_if = "attention_bias"}, \
    {.name = at ".v_proj", .gguf = "blk.*.attn_v", .bias_if = "attention_bias"}
#define FRIT_HF_ROWS_BIASED_ATTENTION(at) \
    FRIT_HF_ROWS_BIASED_QKV(at), \
    {.name = at ".o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"}
#define FRIT_HF_ROWS_HEAD_NORMS(at) \
    {.name = at ".q_norm", .gguf = "blk.*.attn_q_norm"}, \
    {.name = at ".k_norm", .gguf = "blk.*.attn_k_norm"}

// ---- Tensors of feed-forwards and experts.

#define FRIT_HF_ROWS_NO_FEED_FORWARD \
    {.gguf = "blk.*.ffn_gate", .none = true}, \
    {.gguf = "blk.*.ffn_up", .none = true}, \
    {.gguf = "blk.*.ffn_down", .none = true}
// Present in layers without experts only.
#define FRIT_HF_ROWS_DENSE_LAYERS(at) \
    {.name = at ".gate_proj", .gguf = "blk.*.ffn_gate", .may_be_absent = true}, \
    {.name = at ".up_proj", .gguf = "blk.*.ffn_up", .may_be_absent = true}, \
    {.name = at ".down_proj", .gguf = "blk.*.ffn_down", .may_be_absent = true}
#define FRIT_HF_ROWS_EXPERTS(at) \
    {.name = at ".experts.@.gate_proj", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true}, \
    {.name = at ".experts.@.up_proj", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true}, \
    {.name = at ".experts.@.down_proj", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true}
// All experts in one tensor; gate and up are one matrix.
#define FRIT_HF_ROWS_STACKED_EXPERTS(at) \
    {.name = at ".experts.gate_up_proj", .gguf = "blk.*.ffn_gate_up_exps.weight", .whole = true, .may_be_absent = true}, \
    {.name = at ".experts.down_proj", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .may_be_absent = true}
// All experts in one tensor, [n_expert, n_in, n_out]; gate and up are one matrix.
#define FRIT_HF_ROWS_TRANSPOSED_EXPERTS(at) \
    {.name = at ".experts.gate_up_proj", .gguf = "blk.*.ffn_gate_up_exps.weight", .whole = true, .may_be_absent = true, .rewrite = frit_hf_transpose}, \
    {.name = at ".experts.down_proj", .gguf = "blk.*.ffn_down_exps.weight", .whole = true, .may_be_absent = true, .rewrite = frit_hf_transpose}
// The experts' matrices are w1 (gate), w3 (up) and w2 (down).
#define FRIT_HF_ROWS_NUMBERED_EXPERTS(at) \
    {.name = at ".experts.@.w1", .gguf = "blk.*.ffn_gate_exps", .may_be_absent = true}, \
    {.name = at ".experts.@.w3", .gguf = "blk.*.ffn_up_exps", .may_be_absent = true}, \
    {.name = at ".experts.@.w2", .gguf = "blk.*.ffn_down_exps", .may_be_absent = true}
#define FRIT_HF_ROWS_SHARED_EXPERT(at) \
    {.name = at ".gate_proj", .gguf = "blk.*.ffn_gate_shexp", .may_be_absent = true}, \
    {.name = at ".up_proj", .gguf = "blk.*.ffn_up_shexp", .may_be_absent = true}, \
    {.name = at ".down_proj", .gguf = "blk.*.ffn_down_shexp", .may_be_absent = true}
// Dense layers, then layers with experts and shared experts.
#define FRIT_HF_ROWS_DENSE_AND_EXPERTS(at) \
    FRIT_HF_ROWS_DENSE_LAYERS(at), \
    FRIT_HF_ROWS_EXPERTS(at), \
    FRIT_HF_ROWS_SHARED_EXPERT(at ".shared_experts"), \
    {.name = at ".gate", .gguf = "blk.*.ffn_gate_inp", .may_be_absent = true}
// FRIT_HF_ROWS_DENSE_AND_EXPERTS with the router's correction bias.
#define FRIT_HF_ROWS_DEEPSEEK_EXPERTS(at) \
    FRIT_HF_ROWS_DENSE_AND_EXPERTS(at), \
    {.name = at ".gate.e_score_correction_bias", .gguf = "blk.*.exp_probs_b.bias", .may_be_absent = true, .whole = true}

// ---- Layers for multi-token prediction after the last one, which files may have (arch/mtp.c).
#define FRIT_HF_ROWS_NEXT(at) \
    {.name = at ".eh_proj", .gguf = FRIT_HF_NEXT_PROJ, .may_be_absent = true}, \
    {.name = at ".enorm", .gguf = "blk.*.nextn.enorm", .may_be_absent = true}, \
    {.name = at ".hnorm", .gguf = "blk.*.nextn.hnorm", .may_be_absent = true}, \
    {.name = at ".embed_tokens", .gguf = "blk.*.nextn.embed_tokens", .may_be_absent = true}, \
    {.name = at ".shared_head.head", .gguf = "blk.*.nextn.shared_head_head", .may_be_absent = true}, \
    {.name = at ".shared_head.norm", .gguf = "blk.*.nextn.shared_head_norm", .may_be_absent = true}

// ---- Hybrids, in which layers differ: every row may be absent in a layer.

#define FRIT_HF_SOME_LAYERS .bias_if = FRIT_HF_MAYBE, .may_be_absent = true
#define FRIT_HF_ROWS_SOME_ATTENTION(at) \
    {.name = at ".q_proj", .gguf = "blk.*.attn_q", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".k_proj", .gguf = "blk.*.attn_k", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".v_proj", .gguf = "blk.*.attn_v", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".o_proj", .gguf = "blk.*.attn_output", FRIT_HF_SOME_LAYERS}
#define FRIT_HF_ROWS_SOME_FEED_FORWARD(at) \
    {.name = at ".gate_proj", .gguf = "blk.*.ffn_gate", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".up_proj", .gguf = "blk.*.ffn_up", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".down_proj", .gguf = "blk.*.ffn_down", FRIT_HF_SOME_LAYERS}
#define FRIT_HF_ROWS_SOME_SCAN(at) \
    {.name = at ".in_proj", .gguf = "blk.*.ssm_in", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".conv1d", .gguf = "blk.*.ssm_conv1d", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".A_log", .gguf = "blk.*.ssm_a", .whole = true, .may_be_absent = true, .rewrite = frit_hf_negative_exp}, \
    {.name = at ".D", .gguf = "blk.*.ssm_d", .whole = true, .may_be_absent = true}, \
    {.name = at ".out_proj", .gguf = "blk.*.ssm_out", FRIT_HF_SOME_LAYERS}
// Rows of Gemma 3n and 4.
#define FRIT_HF_ROWS_GEMMA_LAYERS(at) \
    {.name = at ".self_attn.q_proj", .gguf = "blk.*.attn_q", .bias_if = "attention_bias"}, \
    {.name = at ".self_attn.k_proj", .gguf = "blk.*.attn_k", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".self_attn.v_proj", .gguf = "blk.*.attn_v", FRIT_HF_SOME_LAYERS}, \
    {.name = at ".self_attn.o_proj", .gguf = "blk.*.attn_output", .bias_if = "attention_bias"}, \
    {.name = at ".self_attn.q_norm", .gguf = "blk.*.attn_q_norm"}, \
    {.name = at ".self_attn.k_norm", .gguf = "blk.*.attn_k_norm", .may_be_absent = true}, \
    {.name = at ".post_attention_layernorm", .gguf = "blk.*.post_attention_norm"}, \
    {.name = at ".pre_feedforward_layernorm", .gguf = "blk.*.ffn_norm"}, \
    {.name = at ".post_feedforward_layernorm", .gguf = "blk.*.post_ffw_norm"}
#define FRIT_HF_ROWS_SOME_MAMBA2(at) \
    FRIT_HF_ROWS_SOME_SCAN(at), \
    {.name = at ".dt_bias", .gguf = "blk.*.ssm_dt.bias", .whole = true, .may_be_absent = true}, \
    {.name = at ".norm", .gguf = "blk.*.ssm_norm", .may_be_absent = true}
// clang-format on
