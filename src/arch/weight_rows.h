// SPDX-License-Identifier: MIT
// arch/weight_rows.h: rows of weight lists, and the lists of rows and keys that many architectures share.
#pragma once
#include "arch/weights.h"

// clang-format off
#define FRIT_MODEL_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_weights, field), name, FRIT_DIM_##out, FRIT_DIM_##in, flags, FRIT_DIM_1}
#define FRIT_MODEL_STACK(field, name, n, out, in, flags)                                           \
    {offsetof(frit_weights, field), name, FRIT_DIM_##out, FRIT_DIM_##in, (flags) | FRIT_WEIGHT_STACK, FRIT_DIM_##n}
#define FRIT_LAYER_WEIGHT(field, name, out, in, flags)                                             \
    {offsetof(frit_layer, field), name, FRIT_DIM_##out, FRIT_DIM_##in, (flags) | FRIT_WEIGHT_LAYER, FRIT_DIM_1}
#define FRIT_LAYER_STACK(field, name, n, out, in, flags)                                           \
    {offsetof(frit_layer, field), name, FRIT_DIM_##out, FRIT_DIM_##in,                             \
     (flags) | FRIT_WEIGHT_LAYER | FRIT_WEIGHT_STACK, FRIT_DIM_##n}

// Rows that many architectures share. `flags` determines how biases and scales of the matrices are used.
#define FRIT_WEIGHTS_IN_OUT                                                                           \
    FRIT_MODEL_WEIGHT(tok_embd, "token_embd",  N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),                \
    FRIT_MODEL_WEIGHT(out_norm, "output_norm", N_EMBD,  1,      0),                                \
    FRIT_MODEL_WEIGHT(lm_head,  "output",      N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD)
#define FRIT_WEIGHTS_MODEL                                                                            \
    FRIT_WEIGHTS_IN_OUT,                                                                              \
    FRIT_MODEL_WEIGHT(rope_freqs, "rope_freqs",         ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(rope_long,  "rope_factors_long",  ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL), \
    FRIT_MODEL_WEIGHT(rope_short, "rope_factors_short", ROPE_PAIRS, 1,      FRIT_WEIGHT_OPTIONAL)
#define FRIT_ROW_NORM(field, name)                                                                 \
    FRIT_LAYER_WEIGHT(field, name, N_EMBD, 1, 0)
#define FRIT_WEIGHTS_QKV(flags)                                                                       \
    FRIT_LAYER_WEIGHT(qkv, "attn_qkv", N_QKV, N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_LAYER_WEIGHT(q,   "attn_q",   N_Q,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED),             \
    FRIT_LAYER_WEIGHT(k,   "attn_k",   N_K,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED),             \
    FRIT_LAYER_WEIGHT(v,   "attn_v",   N_V,   N_EMBD, (flags) | FRIT_WEIGHT_OR_FUSED)
#define FRIT_ROW_O(flags)                                                                          \
    FRIT_LAYER_WEIGHT(o, "attn_output", N_EMBD, N_O, flags)
#define FRIT_WEIGHTS_MLA_IN                                                                           \
    FRIT_LAYER_WEIGHT(q,         "attn_q",         N_Q_MLA, N_EMBD,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(q_a,       "attn_q_a",       Q_RANK,  N_EMBD,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(q_a_norm,  "attn_q_a_norm",  Q_RANK,  1,       0),                           \
    FRIT_LAYER_WEIGHT(q_b,       "attn_q_b",       N_Q_MLA, Q_RANK,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(kv_a,      "attn_kv_a_mqa",  KV_A,    N_EMBD,  FRIT_WEIGHT_UNSCALED),        \
    FRIT_LAYER_WEIGHT(kv_a_norm, "attn_kv_a_norm", KV_RANK, 1,       0),                           \
    FRIT_LAYER_STACK(k_b, "attn_k_b", N_HEAD, KV_RANK, NOPE_MLA, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_STACK(v_b, "attn_v_b", N_HEAD, V_MLA,   KV_RANK,  FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(kv_b,      "attn_kv_b",      N_KV_B,  KV_RANK, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_OPTIONAL)
#define FRIT_WEIGHTS_MLA                                                                              \
    FRIT_WEIGHTS_MLA_IN,                                                                              \
    FRIT_LAYER_WEIGHT(o, "attn_output", N_EMBD, N_O_MLA, 0)
#define FRIT_WEIGHTS_INDEXER                                                                          \
    FRIT_LAYER_WEIGHT(index_q,       "indexer.attn_q_b", N_INDEX_Q,   Q_RANK, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED), \
    FRIT_LAYER_WEIGHT(index_k,       "indexer.attn_k",   INDEX,       N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED), \
    FRIT_LAYER_WEIGHT(index_norm,    "indexer.k_norm",   INDEX,       1,      FRIT_WEIGHT_OWN_INDEX), \
    FRIT_LAYER_WEIGHT(index_weights, "indexer.proj",     INDEX_HEADS, N_EMBD, FRIT_WEIGHT_OWN_INDEX | FRIT_WEIGHT_UNSCALED)
#define FRIT_WEIGHTS_PER_LAYER                                                                        \
    FRIT_MODEL_WEIGHT(layer_embd,      "per_layer_token_embd", N_VOCAB,     LAYERS_EMBD, FRIT_WEIGHT_TABLE), \
    FRIT_MODEL_WEIGHT(layer_proj,      "per_layer_model_proj", LAYERS_EMBD, N_EMBD, FRIT_WEIGHT_UNSCALED),   \
    FRIT_MODEL_WEIGHT(layer_proj_norm, "per_layer_proj_norm",  LAYER_EMBD,  1, 0),                 \
    FRIT_LAYER_WEIGHT(layer_gate,      "inp_gate",             LAYER_EMBD,  N_EMBD, 0),            \
    FRIT_LAYER_WEIGHT(layer_proj,      "proj",                 N_EMBD,      LAYER_EMBD, 0),        \
    FRIT_LAYER_WEIGHT(layer_norm,      "post_norm",            LAYER_NORM,  1, 0)
#define FRIT_WEIGHTS_HEAD_NORMS                                                                       \
    FRIT_LAYER_WEIGHT(q_norm, "attn_q_norm", HEAD, 1, 0),                                          \
    FRIT_LAYER_WEIGHT(k_norm, "attn_k_norm", HEAD, 1, 0)
#define FRIT_WEIGHTS_GATED(flags)                                                                     \
    FRIT_LAYER_WEIGHT(ffn.gate, "ffn_gate", N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_WEIGHTS_UNGATED(flags)                                                                   \
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_WEIGHTS_GATE_IN_UP(flags)                                                                \
    FRIT_LAYER_WEIGHT(gate_up,  "ffn_up",   N_FF_2, N_EMBD, (flags) | FRIT_WEIGHT_DENSE),          \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   (flags) | FRIT_WEIGHT_DENSE)
#define FRIT_WEIGHTS_EXPERTS(flags)                                                                   \
    FRIT_LAYER_WEIGHT(router, "ffn_gate_inp", N_EXPERT, N_EMBD, FRIT_WEIGHT_EXPERT),               \
    FRIT_LAYER_WEIGHT(router_bias, "exp_probs_b.bias", N_EXPERT, 1,                                \
                      FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT),                              \
    FRIT_LAYER_STACK(gate_up_experts, "ffn_gate_up_exps", N_EXPERT, N_FF_EXP_2, N_EMBD,            \
                     (flags) | FRIT_WEIGHT_OPTIONAL),                                              \
    FRIT_LAYER_STACK(experts.gate, "ffn_gate_exps", N_EXPERT, N_FF_EXP, N_EMBD,                    \
                     (flags) | FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),                         \
    FRIT_LAYER_STACK(experts.up,   "ffn_up_exps",   N_EXPERT, N_FF_EXP, N_EMBD,                    \
                     (flags) | FRIT_WEIGHT_EXPERT | FRIT_WEIGHT_OR_FUSED),                         \
    FRIT_LAYER_STACK(experts.down, "ffn_down_exps", N_EXPERT, N_EMBD, N_FF_EXP,                    \
                     (flags) | FRIT_WEIGHT_EXPERT)
#define FRIT_WEIGHTS_SHARED_EXPERT(flags)                                                             \
    FRIT_LAYER_WEIGHT(shared.gate, "ffn_gate_shexp", N_FF_SHEXP, N_EMBD, (flags) | FRIT_WEIGHT_EXPERT), \
    FRIT_LAYER_WEIGHT(shared.up,   "ffn_up_shexp",   N_FF_SHEXP, N_EMBD, (flags) | FRIT_WEIGHT_EXPERT), \
    FRIT_LAYER_WEIGHT(shared.down, "ffn_down_shexp", N_EMBD, N_FF_SHEXP, (flags) | FRIT_WEIGHT_EXPERT)
// DeepSeek-V2 and its successors: MLA, dense layers, then layers with experts.
#define FRIT_WEIGHTS_MLA_EXPERTS(flags)                                                               \
    FRIT_WEIGHTS_MODEL,                                                                               \
    FRIT_ROW_NORM(attn_norm, "attn_norm"),                                                         \
    FRIT_WEIGHTS_MLA,                                                                                 \
    FRIT_ROW_NORM(ffn_norm, "ffn_norm"),                                                           \
    FRIT_WEIGHTS_GATED(flags),                                                                        \
    FRIT_WEIGHTS_EXPERTS(flags),                                                                      \
    FRIT_WEIGHTS_SHARED_EXPERT(flags)
#define FRIT_ROW_RECURRENT(field, name, out, in, flags)                                            \
    FRIT_LAYER_WEIGHT(recurrent.field, name, out, in, flags)
#define FRIT_WEIGHTS_CONV                                                                             \
    FRIT_ROW_RECURRENT(conv,   "ssm_conv1d",      TAPS,     1, FRIT_WEIGHT_FLAT | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(conv_b, "ssm_conv1d.bias", CHANNELS, 1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_OPTIONAL)
#define FRIT_WEIGHTS_MAMBA                                                                            \
    FRIT_ROW_RECURRENT(in_xz,   "ssm_in",      INNER_2,  N_EMBD, 0),                               \
    FRIT_WEIGHTS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(mix,     "ssm_x",       MIX,      INNER,  FRIT_WEIGHT_UNSCALED),            \
    FRIT_ROW_RECURRENT(dt,      "ssm_dt",      INNER,    STEP,   FRIT_WEIGHT_UNSCALED),            \
    FRIT_ROW_RECURRENT(dt_norm, "ssm_dt_norm", STEP,     1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(b_norm,  "ssm_b_norm",  STATE,    1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(c_norm,  "ssm_c_norm",  STATE,    1,      FRIT_WEIGHT_OPTIONAL),            \
    FRIT_ROW_RECURRENT(a,       "ssm_a",       STATES,   1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(d,       "ssm_d",       INNER,    1, FRIT_WEIGHT_WHOLE_NAME),               \
    FRIT_ROW_RECURRENT(out,     "ssm_out",     N_EMBD,   INNER,  0)
#define FRIT_WEIGHTS_MAMBA2                                                                           \
    FRIT_ROW_RECURRENT(in_zxs,  "ssm_in",      IN_ZXS,   N_EMBD, 0),                               \
    FRIT_WEIGHTS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(dt_b,    "ssm_dt.bias", RANK,     1, FRIT_WEIGHT_WHOLE_NAME),               \
    FRIT_ROW_RECURRENT(a,       "ssm_a",       RANK,     1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(d,       "ssm_d",       INNER,    1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT | FRIT_WEIGHT_SPREAD), \
    FRIT_ROW_RECURRENT(norm,    "ssm_norm",    INNER,    1, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_FLAT), \
    FRIT_ROW_RECURRENT(out,     "ssm_out",     N_EMBD,   INNER,  0)
#define FRIT_WEIGHTS_SHORT_CONV                                                                       \
    FRIT_ROW_RECURRENT(in,   "shortconv.in_proj",  INNER_3, N_EMBD, FRIT_WEIGHT_UNSCALED),         \
    FRIT_ROW_RECURRENT(conv, "shortconv.conv",     TAPS,    1,      FRIT_WEIGHT_FLAT),             \
    FRIT_ROW_RECURRENT(out,  "shortconv.out_proj", N_EMBD,  INNER,  FRIT_WEIGHT_UNSCALED)
#define FRIT_WEIGHTS_KDA                                                                              \
    FRIT_ROW_RECURRENT(q,       "attn_q",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(k,       "attn_k",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(v,       "attn_v",       INNER,       N_EMBD, FRIT_WEIGHT_UNSCALED | FRIT_WEIGHT_UNBIASED), \
    FRIT_ROW_RECURRENT(conv_q,  "ssm_conv1d_q", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(conv_k,  "ssm_conv1d_k", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(conv_v,  "ssm_conv1d_v", INNER_TAPS,  1,      FRIT_WEIGHT_FLAT),            \
    FRIT_ROW_RECURRENT(a,       "ssm_a",        INNER,       1, FRIT_WEIGHT_WHOLE_NAME | FRIT_WEIGHT_FLAT | FRIT_WEIGHT_SPREAD), \
    FRIT_ROW_RECURRENT(dt_b,    "ssm_dt.bias",  INNER,       1,      FRIT_WEIGHT_WHOLE_NAME),      \
    FRIT_ROW_RECURRENT(beta,    "ssm_beta",     RANK,        N_EMBD, FRIT_WEIGHT_UNSCALED),        \
    FRIT_ROW_RECURRENT(norm,    "ssm_norm",     DELTA_HEAD,  1,      0),                           \
    FRIT_ROW_RECURRENT(out,     "attn_output",  N_EMBD,      INNER,  FRIT_WEIGHT_UNSCALED)
#define FRIT_WEIGHTS_DELTA_NET(flags)                                                                 \
    FRIT_ROW_RECURRENT(x,    "attn_qkv",    CHANNELS,   N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_ROW_RECURRENT(z,    "attn_gate",   INNER,      N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL),             \
    FRIT_WEIGHTS_CONV,                                                                                \
    FRIT_ROW_RECURRENT(dt_b, "ssm_dt.bias", RANK,       1, FRIT_WEIGHT_WHOLE_NAME),                \
    FRIT_ROW_RECURRENT(a,    "ssm_a",       RANK,       1, FRIT_WEIGHT_WHOLE_NAME),                \
    FRIT_ROW_RECURRENT(norm, "ssm_norm",    DELTA_HEAD, 1, 0)
#define FRIT_WEIGHTS_GATED_QKV                                                                        \
    FRIT_LAYER_WEIGHT(q, "attn_q", N_Q_2, N_EMBD, FRIT_WEIGHT_UNBIASED),                                              \
    FRIT_LAYER_WEIGHT(k, "attn_k", N_K,   N_EMBD, FRIT_WEIGHT_UNBIASED),                                              \
    FRIT_LAYER_WEIGHT(v, "attn_v", N_V,   N_EMBD, FRIT_WEIGHT_UNBIASED)
// BERT and its successors: all but positions and feed-forward.
#define FRIT_WEIGHTS_BERT_LAYER                                                                       \
    FRIT_WEIGHTS_QKV(0),                                                                              \
    FRIT_ROW_O(0),                                                                                 \
    FRIT_ROW_NORM(post_attn_norm, "attn_output_norm"),                                             \
    FRIT_ROW_NORM(post_ffn_norm,  "layer_output_norm")
#define FRIT_WEIGHTS_BERT                                                                             \
    FRIT_MODEL_WEIGHT(tok_embd,  "token_embd",      N_VOCAB, N_EMBD, FRIT_WEIGHT_TABLE),           \
    FRIT_MODEL_WEIGHT(type_embd, "token_types",     N_EMBD,  1,                                    \
                      FRIT_WEIGHT_FIRST_ROW | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL),           \
    FRIT_MODEL_WEIGHT(tok_norm,  "token_embd_norm", N_EMBD,  1,      0),                           \
    FRIT_WEIGHTS_BERT_LAYER
// A head that predicts masked tokens, which files of encoders may have.
#define FRIT_WEIGHTS_MASKED_LM                                                                        \
    FRIT_MODEL_WEIGHT(mlm_dense, "mlm.dense", N_EMBD,  N_EMBD, FRIT_WEIGHT_OPTIONAL),              \
    FRIT_MODEL_WEIGHT(mlm_norm,  "mlm.norm",  N_EMBD,  1,      FRIT_WEIGHT_OPTIONAL),              \
    FRIT_MODEL_WEIGHT(lm_head,   "output",    N_VOCAB, N_EMBD, FRIT_WEIGHT_OR_TOK_EMBD)
// Gate and up in matrices of their own, or in one, gate first.
#define FRIT_WEIGHTS_GATED_OR_FUSED                                                                   \
    FRIT_LAYER_WEIGHT(gate_up,  "ffn_up",   N_FF_2, N_EMBD, FRIT_WEIGHT_OPTIONAL | FRIT_WEIGHT_IF_FITS), \
    FRIT_LAYER_WEIGHT(ffn.gate, "ffn_gate", N_FF,   N_EMBD, FRIT_WEIGHT_OR_FUSED),                 \
    FRIT_LAYER_WEIGHT(ffn.up,   "ffn_up",   N_FF,   N_EMBD, FRIT_WEIGHT_OR_FUSED),                 \
    FRIT_LAYER_WEIGHT(ffn.down, "ffn_down", N_EMBD, N_FF,   0)
#define FRIT_WEIGHTS_T5(flags)                                                                        \
    FRIT_LAYER_WEIGHT(attn_norm, "attn_norm",  N_EMBD,    1,      flags),                          \
    FRIT_LAYER_WEIGHT(q,         "attn_q",     N_Q,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(k,         "attn_k",     N_K,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(v,         "attn_v",     N_V,       N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(o,         "attn_o",     N_EMBD,    N_O,    flags),                          \
    FRIT_LAYER_WEIGHT(rel_bias,  "attn_rel_b", N_BUCKETS, N_HEAD, (flags) | FRIT_WEIGHT_TABLE | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(ffn_norm,  "ffn_norm",   N_EMBD,    1,      flags),                          \
    FRIT_LAYER_WEIGHT(ffn.gate,  "ffn_gate",   N_FF,      N_EMBD, (flags) | FRIT_WEIGHT_OPTIONAL), \
    FRIT_LAYER_WEIGHT(ffn.up,    "ffn_up",     N_FF,      N_EMBD, flags),                          \
    FRIT_LAYER_WEIGHT(ffn.down,  "ffn_down",   N_EMBD,    N_FF,   flags)
#define FRIT_KEYS_MLA                                                                              \
    "attention.q_lora_rank", "attention.kv_lora_rank", "attention.key_length_mla", "attention.value_length_mla"
#define FRIT_KEYS_MLA_EXPERTS FRIT_KEYS_MLA, "expert_weights_norm", "leading_dense_block_count"
#define FRIT_KEYS_INDEXER                                                                          \
    "attention.indexer.head_count", "attention.indexer.key_length", "attention.indexer.top_k"
#define FRIT_KEYS_MAMBA  "ssm.conv_kernel", "ssm.inner_size", "ssm.state_size", "ssm.time_step_rank"
#define FRIT_KEYS_MAMBA2 FRIT_KEYS_MAMBA, "ssm.group_count"
// clang-format on
