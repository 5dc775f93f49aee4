// SPDX-License-Identifier: MIT
// Hyperparameters: a table of metadata keys with their ranges, and the rules that connect them.
#include "arch/hparams_reader.h"

#include <math.h>
#include <stdio.h>

enum {
    REQUIRED = 1,
    PER_LAYER = 2,   // one number for all layers, or an array with one for each
    CHOSEN = 4,      // read only for architectures that list the key; files of others may have it without meaning
};

typedef enum kind { INT, FLOAT, BOOL } kind;

typedef struct hparam {
    const char *key;   // after "ARCH."
    kind kind;
    size_t offset;   // in frit_hparams, or in frit_layer_hparams for PER_LAYER
    double min, max, fallback;
    unsigned flags;
} hparam;

#define MODEL(field) offsetof(frit_hparams, field)
#define ROPE(field)  offsetof(frit_hparams, rope.field)
#define LAYER(field) offsetof(frit_layer_hparams, field)

// clang-format off
static const hparam rows[] = {
    // key                                  type   field                   min   max      default flags
    {"block_count",                          INT,   MODEL(n_layer),         1,    1024,    0,     REQUIRED},
    {"nextn_predict_layers",                 INT,   MODEL(n_layer_next),    0,    1024,    0,     0},
    {"decoder_block_count",                  INT,   MODEL(n_layer_dec),     0,    1024,    0,     CHOSEN},
    {"decoder_start_token_id",               INT,   MODEL(decoder_start),   0,    1 << 24, 0,     CHOSEN},
    {"attention.relative_buckets_count",     INT,   MODEL(rel_buckets),     4,    1024,    32,    CHOSEN},
    {"context_length",                       INT,   MODEL(n_ctx_train),     1,    1 << 30, 0,     REQUIRED},
    {"embedding_length",                     INT,   MODEL(n_embd),          1,    1 << 20, 0,     REQUIRED},
    {"embedding_length_input",               INT,   MODEL(n_embd_in),       1,    1 << 20, 0,     CHOSEN},
    {"embedding_length_out",                 INT,   MODEL(n_embd_out),      1,    1 << 20, 0,     CHOSEN},
    {"position_side",                        INT,   MODEL(media.side),      1,    1 << 20, 0,     CHOSEN},
    {"unused_block_count",                   INT,   MODEL(media.n_unused),  0,    1024,    0,     CHOSEN},
    {"projector_length",                     INT,   MODEL(media.n_projector), 1,  1 << 20, 0,     CHOSEN},
    {"spatial_merge_size",                   INT,   MODEL(media.merge),     1,    64,      1,     CHOSEN},
    {"picture_attention",                    INT,   MODEL(media.seeing),    0,    FRIT_SEEING_COUNT - 1, 0, CHOSEN},
    {"padding_token_id",                     INT,   MODEL(media.padding),   0,    1 << 24, 0,     CHOSEN},
    {"n_deepstack_layers",                   INT,   MODEL(media.n_deep),    0,    1024,    0,     CHOSEN},
    {"vocab_size",                           INT,   MODEL(n_vocab),         1,    1 << 24, 0,     0},
    {"attention.layer_norm_rms_epsilon",     FLOAT, MODEL(rms_eps),         0,    1,       0,     0},
    {"attention.layer_norm_epsilon",         FLOAT, MODEL(layer_norm_eps),  0,    1,       0,     0},
    {"attention.causal",                     BOOL,  MODEL(is_causal),       0,    1,       1,     0},
    {"attention.scale",                      FLOAT, MODEL(attn_scale),      0,    1e6,     0,     CHOSEN},
    {"attention.value_scale",                FLOAT, MODEL(value_scale),     0,    1e6,     0,     CHOSEN},
    {"attention.clamp_kqv",                  FLOAT, MODEL(attn_clamp),      0,    1e6,     0,     CHOSEN},
    {"attention.max_alibi_bias",             FLOAT, MODEL(attn_alibi),      0,    1e6,     0,     CHOSEN},
    {"attention.temperature_scale",          FLOAT, MODEL(attn_temp_scale),         0,    1e6,     0,     CHOSEN},
    {"attention.chunk_size",                 INT,   MODEL(attn_chunk),      1,    1 << 30, 0,     CHOSEN},
    {"attention.temperature_length",         INT,   MODEL(attn_temp_length),  0,    1 << 30, 0,     CHOSEN},
    {"attention.q_lora_rank",                INT,   MODEL(q_rank),          0,    1 << 20, 0,     CHOSEN},
    {"attention.kv_lora_rank",               INT,   MODEL(kv_rank),         0,    1 << 20, 0,     CHOSEN},
    {"attention.key_length_mla",             INT,   MODEL(k_dim_mla),       0,    65536,   0,     CHOSEN},
    {"attention.value_length_mla",           INT,   MODEL(v_dim_mla),       0,    65536,   0,     CHOSEN},
    {"attention.indexer.head_count",         INT,   MODEL(index.n_head),    1,    65536,   0,     CHOSEN},
    {"attention.indexer.key_length",         INT,   MODEL(index.dim),       1,    65536,   0,     CHOSEN},
    {"attention.indexer.block_size",         INT,   MODEL(index.block),     1,    1 << 20, 0,     CHOSEN | REQUIRED},
    {"attention.indexer.local_blocks",       INT,   MODEL(index.n_latest),  1,    1 << 20, 1,     CHOSEN},
    {"attention.indexer.top_k",              INT,   MODEL(index.n_chosen),  1,    1 << 20, 0,     CHOSEN},
    {"attention.key_length_swa",             INT,   MODEL(k_dim_swa),       1,    65536,   0,     CHOSEN},
    {"attention.value_length_swa",           INT,   MODEL(v_dim_swa),       1,    65536,   0,     CHOSEN},
    {"attention.shared_kv_layers",           INT,   MODEL(n_layer_shared_kv), 0,  1024,    0,     CHOSEN},
    {"altup.num_inputs",                     INT,   MODEL(n_altup),         2,    64,      4,     CHOSEN},
    {"altup.active_idx",                     INT,   MODEL(altup_active),    0,    63,      0,     CHOSEN},
    {"laurel_rank",                          INT,   MODEL(laurel_rank),     1,    65536,   64,    CHOSEN},
    {"embedding_length_per_layer_input",     INT,   MODEL(n_embd_layer),    0,    65536,   0,     CHOSEN},
    {"rope.dimension_count_swa",             INT,   MODEL(rope_swa.dim),    2,    65536,   0,     CHOSEN},
    {"attention.output_scale",               FLOAT, MODEL(attn_scale),      0,    1e6,     0,     CHOSEN},
    {"num_loops",                            INT,   MODEL(n_loops),         0,    65536,   0,     CHOSEN},
    {"rope.scaling.finetuned",               BOOL,  MODEL(is_rope_finetuned), 0,  1,       1,     CHOSEN},
    {"use_parallel_residual",                BOOL,  MODEL(is_parallel),     0,    1,       0,     CHOSEN},
    {"attn_logit_softcapping",               FLOAT, MODEL(attn_softcap),    0,    1e6,     0,     CHOSEN},
    {"final_logit_softcapping",              FLOAT, MODEL(logit_softcap),   0,    1e6,     0,     CHOSEN},
    {"embedding_scale",                      FLOAT, MODEL(embd_scale),      0,    1e6,     0,     CHOSEN},
    {"residual_scale",                       FLOAT, MODEL(residual_scale),  0,    1e6,     0,     CHOSEN},
    {"logit_scale",                          FLOAT, MODEL(logit_scale),     0,    1e6,     0,     CHOSEN},
    {"expert_count",                         INT,   MODEL(n_expert),        0,    65536,   0,     0},
    {"expert_used_count",                    INT,   MODEL(n_expert_used),   0,    65536,   0,     0},
    {"expert_shared_count",                  INT,   MODEL(n_expert_shared), 0,    65536,   0,     0},
    {"expert_feed_forward_length",           INT,   MODEL(n_ff_exp),        0,    1 << 24, 0,     0},
    {"expert_shared_feed_forward_length",    INT,   MODEL(n_ff_shexp),      0,    1 << 24, 0,     0},
    {"expert_chunk_feed_forward_length",     INT,   MODEL(n_ff_chunk_exp),  0,    1 << 24, 0,     0},
    {"experts_per_group",                    INT,   MODEL(expert_group_size), 0,  65536,   0,     0},
    {"expert_group_scale",                   FLOAT, MODEL(expert_group_scale), 0, 1e6,     0,     0},
    {"expert_group_count",                   INT,   MODEL(n_expert_groups), 0,    65536,   0,     0},
    {"expert_group_used_count",              INT,   MODEL(n_expert_groups_used), 0, 65536, 0,     0},
    {"expert_latent_length",                 INT,   MODEL(n_expert_latent), 0,    1 << 20, 0,     CHOSEN},
    {"moe_latent_size",                      INT,   MODEL(n_expert_latent), 0,    1 << 20, 0,     CHOSEN},
    {"rglru.lru_width",                      INT,   MODEL(recurrent.inner), 1,    1 << 20, 0,     CHOSEN | REQUIRED},
    {"ssm.beta_scale",                       FLOAT, MODEL(recurrent.beta_scale), 0, 1e6,   0,     CHOSEN},
    {"ssm.norm_epsilon",                     FLOAT, MODEL(recurrent.norm_eps), 0, 1,       0,     CHOSEN},
    {"hyper_connection.count",               INT,   MODEL(n_hyper),         1,    16,      0,     CHOSEN | REQUIRED},
    {"hyper_connection.sinkhorn_iterations", INT,   MODEL(hyper_iterations), 1,   1024,    0,     CHOSEN | REQUIRED},
    {"hyper_connection.epsilon",             FLOAT, MODEL(hyper_eps),       0,    1,       0,     CHOSEN | REQUIRED},
    {"hash_layer_count",                     INT,   MODEL(n_layer_hash),    0,    1024,    0,     CHOSEN},
    {"attention.output_group_count",         INT,   MODEL(o_groups),        1,    65536,   0,     CHOSEN | REQUIRED},
    {"attention.output_lora_rank",           INT,   MODEL(o_rank),          1,    1 << 20, 0,     CHOSEN | REQUIRED},
    {"attention.compress_rope_freq_base",    FLOAT, MODEL(block_rope_base), 1,    1e15,    0,     CHOSEN | REQUIRED},
    {"attn_res.block_size",                  INT,   MODEL(res_bank_interval),   0,    65536,   0,     CHOSEN},
    {"activation.situ_beta",                 FLOAT, MODEL(situ_beta),       1e-6, 1e6,     0,     CHOSEN | REQUIRED},
    {"activation.situ_linear_beta",          FLOAT, MODEL(situ_linear_beta), 0,   1e6,     0,     CHOSEN},
    {"expert_gating_func",                   INT,   MODEL(gating),          0,    FRIT_GATING_SQRT_SOFTPLUS, 0, 0},
    {"frit_router_jitter",                   FLOAT, MODEL(router_jitter),   0,    1,       0,     CHOSEN},
    {"expert_weights_scale",                 FLOAT, MODEL(expert_scale),    0,    1e6,     0,     0},
    {"expert_weights_norm",                  BOOL,  MODEL(expert_normalize), 0,   1,       0,     CHOSEN},
    {"ssm.conv_kernel",                      INT,   MODEL(recurrent.n_taps), 1,   64,      0,     CHOSEN},
    {"ssm.inner_size",                       INT,   MODEL(recurrent.inner), 1,    1 << 20, 0,     CHOSEN},
    {"ssm.state_size",                       INT,   MODEL(recurrent.state), 1,    65536,   0,     CHOSEN},
    {"ssm.time_step_rank",                   INT,   MODEL(recurrent.rank),  1,    1 << 20, 0,     CHOSEN},
    {"ssm.group_count",                      INT,   MODEL(recurrent.n_groups), 0, 65536,   0,     CHOSEN},
    {"ssm.dt_b_c_rms",                       BOOL,  MODEL(recurrent.is_normed), 0, 1,      0,     CHOSEN},
    {"ssm.dt_b_c_rms_epsilon",               FLOAT, MODEL(recurrent.norm_eps), 0, 1,       0,     CHOSEN},
    {"shortconv.l_cache",                    INT,   MODEL(recurrent.n_taps), 2,   64,      0,     CHOSEN},
    {"kda.head_dim",                         INT,   MODEL(recurrent.head_dim), 1, 65536,   0,     CHOSEN},
    {"kda.safe_gate",                        BOOL,  MODEL(recurrent.is_bounded), 0, 1,     0,     CHOSEN},
    {"kda.gate_lower_bound",                 FLOAT, MODEL(recurrent.lower_bound), -INFINITY, 0, 0, CHOSEN},
    {"wkv.head_size",                        INT,   MODEL(recurrent.head_dim), 1, 65536,   0,     CHOSEN},
    {"time_mix_extra_dim",                   INT,   MODEL(recurrent.mix_rank), 1, 65536,   0,     CHOSEN | REQUIRED},
    {"time_decay_extra_dim",                 INT,   MODEL(recurrent.decay_rank), 1, 65536, 0,     CHOSEN | REQUIRED},
    {"attention.decay_lora_rank",            INT,   MODEL(recurrent.decay_rank), 1, 65536, 0,     CHOSEN | REQUIRED},
    {"attention.iclr_lora_rank",             INT,   MODEL(recurrent.rate_rank), 1, 65536,  0,     CHOSEN | REQUIRED},
    {"attention.value_residual_mix_lora_rank", INT, MODEL(recurrent.value_rank), 1, 65536, 0,     CHOSEN | REQUIRED},
    {"attention.gate_lora_rank",             INT,   MODEL(recurrent.gate_rank), 0, 65536,  0,     CHOSEN},
    {"rescale_every_n_layers",               INT,   MODEL(recurrent.rescale_every), 0, 65536, 0,   CHOSEN},
    {"full_attention_interval",              INT,   MODEL(recurrent.interval), 0, 65536,   0,     CHOSEN},
    {"leading_dense_block_count",            INT,   MODEL(n_layer_dense),   0,    65536,   0,     CHOSEN},
    {"interleave_moe_layer_step",            INT,   MODEL(expert_step),     0,    65536,   0,     CHOSEN},
    {"moe_every_n_layers",                   INT,   MODEL(expert_step),     0,    65536,   0,     CHOSEN},
    {"rope.dimension_count",                 INT,   ROPE(dim),              2,    65536,   0,     0},
    {"rope.freq_base",                       FLOAT, ROPE(base),             1,    1e15,    10000, 0},
    {"rope.freq_base_swa",                   FLOAT, MODEL(rope_swa.base),   0,    1e15,    0,     0},
    {"rope.scaling.yarn_log_multiplier",     FLOAT, ROPE(log_multiplier),   0,    1e6,     0,     0},
    {"rope.scaling.factor",                  FLOAT, ROPE(factor),           0,    1e6,     0,     0},
    {"rope.scaling.original_context_length", INT,   ROPE(n_ctx_orig),       0,    1 << 30, 0,     0},
    {"rope.scaling.attn_factor",             FLOAT, ROPE(attn_factor),      0,    1e6,     1,     0},
    {"rope.scaling.yarn_ext_factor",         FLOAT, ROPE(ext_factor),       -1,   1e6,     -1,    0},
    {"rope.scaling.yarn_beta_fast",          FLOAT, ROPE(beta_fast),        1e-3, 1e6,     32,    0},
    {"rope.scaling.yarn_beta_slow",          FLOAT, ROPE(beta_slow),        1e-3, 1e6,     1,     0},
    {"rope.scaling.low_freq_factor",         FLOAT, ROPE(low_freq_factor),  1e-3, 1e6,     1,     0},
    {"rope.scaling.high_freq_factor",        FLOAT, ROPE(high_freq_factor), 1e-3, 1e6,     4,     0},
    {"attention.head_count",                 INT,   LAYER(n_head),          0,    65536,   0,     PER_LAYER | REQUIRED},
    {"attention.head_count_kv",              INT,   LAYER(n_head_kv),       0,    65536,   -1,    PER_LAYER},
    {"attention.key_length",                 INT,   LAYER(k_dim),           1,    65536,   0,     PER_LAYER},
    {"attention.value_length",               INT,   LAYER(v_dim),           1,    65536,   0,     PER_LAYER},
    {"attention.sliding_window",             INT,   LAYER(window),          0,    1 << 30, 0,     PER_LAYER | CHOSEN},
    {"attention.recurrent_layers",           BOOL,  LAYER(is_recurrent),    0,    1,       0,     PER_LAYER | CHOSEN},
    {"deepstack_layers",                     BOOL,  LAYER(is_deep),         0,    1,       0,     PER_LAYER | CHOSEN},
    {"attention.rope_pattern",               BOOL,  LAYER(is_rotated),      0,    1,       1,     PER_LAYER | CHOSEN},
    {"attention.compress_ratios",            INT,   LAYER(block),           0,    1 << 20, 0,     PER_LAYER | CHOSEN | REQUIRED},
    {"attention.indexer.types",              INT,   LAYER(index_type),      0,    1,       -1,    PER_LAYER | CHOSEN},
    {"activation_sparsity_scale",            FLOAT, LAYER(sparsity),        -INFINITY, 1e6, -INFINITY, PER_LAYER | CHOSEN},
    {"swiglu_clamp_exp",                     FLOAT, LAYER(clamp_exp),       0,    1e6,     0,     PER_LAYER | CHOSEN},
    {"swiglu_clamp_shexp",                   FLOAT, LAYER(clamp_shexp),     0,    1e6,     0,     PER_LAYER | CHOSEN},
    {"feed_forward_length",                  INT,   LAYER(n_ff),            0,    1 << 24, 0,     PER_LAYER | REQUIRED},
};
// clang-format on

const char *frit_hparams_key(frit_hparams_reader *r, const char *suffix)
{
    snprintf(r->key, sizeof r->key, "%s.%s", r->arch->name, suffix);
    return r->key;
}

static bool is_chosen(const frit_hparams_reader *r, const hparam *row)
{
    if (r->arch->windows.period > 0 && row->offset == LAYER(window) && (row->flags & PER_LAYER)) return true;
    for (size_t i = 0; i < r->arch->n_keys; i++) {
        if (strcmp(r->arch->keys[i], row->key) == 0) return true;
    }
    return false;
}

static double default_of(const frit_hparams_reader *r, const hparam *row)
{
    for (size_t i = 0; i < r->arch->n_defaults; i++)
        if (strcmp(r->arch->defaults[i].key, row->key) == 0) return r->arch->defaults[i].value;
    return row->fallback;
}

static frit_status check_range(const frit_hparams_reader *r, const hparam *row, double value)
{
    if (value >= row->min && value <= row->max) return FRIT_OK;   // false for NaN
    return frit_fail(FRIT_E_FORMAT, "%s is %.10g, expected %.10g to %.10g", r->key, value, row->min, row->max);
}

static void store(const hparam *row, void *target, double value)
{
    if (row->kind == BOOL)
        *(bool *)((char *)target + row->offset) = value != 0;
    else if (row->kind == INT)
        *(int32_t *)(void *)((char *)target + row->offset) = (int32_t)value;
    else
        *(float *)(void *)((char *)target + row->offset) = (float)value;
}

// Reads one number. Integers in range are below 2^31, so a double represents them exactly.
static frit_status read_scalar(const frit_hparams_reader *r, const hparam *row, double *value, bool *found)
{
    const frit_meta *meta = &r->ckpt->meta;
    int64_t whole = 0;
    if (row->kind == BOOL) {
        bool flag = false;
        FRIT_TRY(frit_meta_get_bool(meta, r->key, &flag, found));
        *value = flag;
    } else if (row->kind == FLOAT) {
        FRIT_TRY(frit_meta_get_f64(meta, r->key, value, found));
    } else {
        FRIT_TRY(frit_meta_get_i64(meta, r->key, &whole, found));
        if (*found) *value = (double)whole;
    }
    if (!*found) {
        *value = default_of(r, row);
        if (row->flags & REQUIRED)
            return frit_fail(FRIT_E_FORMAT, "the metadata has no key '%s', which is required", r->key);
        return FRIT_OK;
    }
    return check_range(r, row, *value);
}

static frit_status read_model_row(frit_hparams_reader *r, const hparam *row)
{
    frit_hparams_key(r, row->key);
    double value;
    bool found;
    if ((row->flags & CHOSEN) && !is_chosen(r, row)) return FRIT_OK;
    FRIT_TRY(read_scalar(r, row, &value, &found));
    if (found || value != 0) store(row, r->hp, value);
    return FRIT_OK;
}

static frit_status read_array(frit_hparams_reader *r, const hparam *row, const frit_value *array)
{
    frit_value_type type = array->array.type;
    bool is_float = type == FRIT_VALUE_F32 || type == FRIT_VALUE_F64;
    if (type == FRIT_VALUE_TEXT || (is_float && row->kind == INT))
        return frit_fail(FRIT_E_FORMAT, "%s is an array of %s, expected %s", r->key, frit_value_type_name(type),
                         row->kind == INT ? "whole numbers" : "numbers");
    if (array->array.n != (uint64_t)r->hp->n_layer &&
        array->array.n != (uint64_t)r->hp->n_layer + (uint64_t)r->hp->n_layer_next)
        return frit_fail(FRIT_E_FORMAT, "%s has %llu items, expected one for each of the %d layers", r->key,
                         (unsigned long long)array->array.n, (int)r->hp->n_layer);
    for (int32_t i = 0; i < r->hp->n_layer; i++) {
        double value = is_float ? frit_value_item_f64(array, (uint64_t)i)
                                : (double)frit_value_item_i64(array, (uint64_t)i);   // of flags too
        FRIT_TRY(check_range(r, row, value));
        store(row, &r->hp->layers[i], value);
    }
    return FRIT_OK;
}

static frit_status read_layer_row(frit_hparams_reader *r, const hparam *row)
{
    if ((row->flags & CHOSEN) && !is_chosen(r, row)) return FRIT_OK;
    const frit_value *array = frit_meta_find(&r->ckpt->meta, frit_hparams_key(r, row->key));
    if (array && array->type == FRIT_VALUE_ARRAY) return read_array(r, row, array);
    double value;
    bool found;
    FRIT_TRY(read_scalar(r, row, &value, &found));
    const hparam at_least_one = {row->key, row->kind, row->offset, 1, row->max, row->fallback, row->flags};
    if (found && row->min == 0 && !(row->flags & CHOSEN) && !r->arch->recurrent)
        FRIT_TRY(check_range(r, &at_least_one, value));
    for (int32_t i = 0; i < r->hp->n_layer; i++) store(row, &r->hp->layers[i], value);
    return FRIT_OK;
}

// Reads properties of layers under keys without the architecture's name. These are keys of frit, for properties in
// folders that GGUF has no keys for, and for windows of architectures whose GGUF files have attention.sliding_window
// without using it.
static frit_status read_own_arrays(frit_hparams_reader *r)
{
    static const hparam own[] = {
        {"frit.attention.sliding_window", INT, LAYER(window), 0, 1 << 30, 0, PER_LAYER},
        {"frit.rope.none", BOOL, LAYER(no_rope), 0, 1, 0, PER_LAYER},
        {"xielu.alpha_p", FLOAT, LAYER(xielu.positive), -1e6, 1e6, 0, PER_LAYER | CHOSEN | REQUIRED},
        {"xielu.alpha_n", FLOAT, LAYER(xielu.negative), -1e6, 1e6, 0, PER_LAYER | CHOSEN | REQUIRED},
        {"xielu.beta", FLOAT, LAYER(xielu.beta), -1e6, 1e6, 0, PER_LAYER | CHOSEN | REQUIRED},
        {"xielu.eps", FLOAT, LAYER(xielu.eps), -1e6, 0, 0, PER_LAYER | CHOSEN | REQUIRED},
    };
    for (size_t i = 0; i < FRIT_COUNT(own); i++) {
        snprintf(r->key, sizeof r->key, "%s", own[i].key);
        const frit_value *array = frit_meta_find(&r->ckpt->meta, r->key);
        if ((own[i].flags & CHOSEN) && !is_chosen(r, &own[i])) continue;
        if (!array && (own[i].flags & REQUIRED))
            return frit_fail(FRIT_E_FORMAT, "the metadata has no key '%s', which is required", r->key);
        if (!array) continue;
        if (array->type != FRIT_VALUE_ARRAY)
            return frit_fail(FRIT_E_FORMAT, "%s is not an array with one number for each layer", r->key);
        FRIT_TRY(read_array(r, &own[i], array));
        if (own[i].offset == LAYER(no_rope)) r->hp->is_rope_listed = true;
    }
    return FRIT_OK;
}

// Removes the window of full-attention layers: by a period, or by an array with a flag for each layer.
static frit_status read_pattern(frit_hparams_reader *r)
{
    const frit_windows *windows = &r->arch->windows;
    frit_hparams *hp = r->hp;
    if (windows->period == 0) return FRIT_OK;
    int64_t period = windows->period;
    const frit_value *pattern = frit_meta_find(&r->ckpt->meta, frit_hparams_key(r, "attention.sliding_window_pattern"));
    bool by_layer = pattern && pattern->type == FRIT_VALUE_ARRAY;
    if (by_layer && (pattern->array.n < (uint64_t)hp->n_layer || pattern->array.type == FRIT_VALUE_TEXT ||
                     pattern->array.type == FRIT_VALUE_F32 || pattern->array.type == FRIT_VALUE_F64))
        return frit_fail(FRIT_E_FORMAT, "%s is not an array with one flag for each layer", r->key);
    if (pattern && !by_layer) FRIT_TRY(frit_meta_get_i64(&r->ckpt->meta, r->key, &period, NULL));
    if (period < 0) return frit_fail(FRIT_E_FORMAT, "%s is %lld, expected a number from 0", r->key, (long long)period);
    bool has_size = frit_meta_find(&r->ckpt->meta, frit_hparams_key(r, "attention.sliding_window")) != NULL;
    for (int32_t i = 0; i < hp->n_layer; i++) {
        bool slides = period == 0 || i % period != (windows->first_is_full ? 0 : period - 1);
        if (by_layer) slides = frit_value_item_i64(pattern, (uint64_t)i) != 0;
        if (!has_size) hp->layers[i].window = windows->size;
        if (!slides) hp->layers[i].window = 0;
    }
    return FRIT_OK;
}

static frit_status read_rows(frit_hparams_reader *r, frit_arena *arena)
{
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (!(rows[i].flags & PER_LAYER)) FRIT_TRY(read_model_row(r, &rows[i]));
    }
    if (r->hp->n_layer_next >= r->hp->n_layer)
        return frit_fail(FRIT_E_FORMAT, "%s.nextn_predict_layers is %d, expected less than the %d layers",
                         r->arch->name, (int)r->hp->n_layer_next, (int)r->hp->n_layer);
    r->hp->n_layer -= r->hp->n_layer_next;
    if (r->arch->is_encoder_decoder) {
        if (r->hp->n_layer_dec == 0) r->hp->n_layer_dec = r->hp->n_layer;
        r->hp->n_layer_enc = r->hp->n_layer;
        r->hp->n_layer += r->hp->n_layer_dec;
    }
    size_t n = (size_t)r->hp->n_layer + (size_t)r->hp->n_layer_next;
    r->hp->layers = frit_arena_new(arena, frit_layer_hparams, n);
    if (!r->hp->layers) return frit_fail_memory(n * sizeof *r->hp->layers, "the hyperparameters of the layers");
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        if (rows[i].flags & PER_LAYER) FRIT_TRY(read_layer_row(r, &rows[i]));
    }
    FRIT_TRY(read_pattern(r));
    return read_own_arrays(r);
}

static frit_status complete_layer(frit_hparams_reader *r, int32_t i)
{
    frit_layer_hparams *lhp = &r->hp->layers[i];
    const char *arch = r->arch->name;
    const frit_hparams *hp = r->hp;
    const int32_t step = hp->expert_step > 0 ? hp->expert_step : 1;
    lhp->has_experts = hp->n_expert > 0 && i >= hp->n_layer_dense && (i + 1) % step == 0;
    if (lhp->window > 0 && hp->k_dim_swa > 0) lhp->k_dim = hp->k_dim_swa;
    if (lhp->window > 0 && hp->v_dim_swa > 0) lhp->v_dim = hp->v_dim_swa;
    if (lhp->n_head_kv < 0) lhp->n_head_kv = lhp->n_head;
    if (lhp->n_head == 0) lhp->n_head_kv = 0;
    if (lhp->n_head_kv > 0 && lhp->n_head % lhp->n_head_kv != 0)
        return frit_fail(FRIT_E_FORMAT,
                         "%s.attention.head_count is %d in layer %d, expected a multiple of head_count_kv %d", arch,
                         (int)lhp->n_head, (int)i, (int)lhp->n_head_kv);
    if (lhp->n_head == 0) return FRIT_OK;
    bool divides = r->hp->n_embd % lhp->n_head == 0;
    if (lhp->k_dim == 0 && !divides)
        return frit_fail(FRIT_E_FORMAT,
                         "%s.embedding_length is %d, expected a multiple of attention.head_count %d, or the key "
                         "attention.key_length",
                         arch, (int)r->hp->n_embd, (int)lhp->n_head);
    if (lhp->k_dim == 0) lhp->k_dim = r->hp->n_embd / lhp->n_head;
    if (lhp->v_dim == 0) lhp->v_dim = lhp->k_dim;
    return FRIT_OK;
}

// Reads the epsilons of norms; 0 is allowed, but a key is required.
static frit_status complete_eps(frit_hparams_reader *r)
{
    frit_hparams *hp = r->hp;
    const char *arch = r->arch->name;
    if (hp->rms_eps == 0) hp->rms_eps = hp->layer_norm_eps;
    if (hp->layer_norm_eps == 0) hp->layer_norm_eps = hp->rms_eps;
    const frit_meta *meta = &r->ckpt->meta;
    if (hp->rms_eps > 0 || frit_meta_find(meta, frit_hparams_key(r, "attention.layer_norm_rms_epsilon")) ||
        frit_meta_find(meta, frit_hparams_key(r, "attention.layer_norm_epsilon")))
        return FRIT_OK;
    return frit_fail(FRIT_E_FORMAT,
                     "the metadata has neither %s.attention.layer_norm_rms_epsilon nor %s.attention.layer_norm_epsilon",
                     arch, arch);
}

// Sets the size of the vocabulary: from the file's key, its list of tokens, or the embedding table.
static frit_status complete_vocab(frit_hparams_reader *r)
{
    if (r->hp->n_vocab > 0 || r->arch->media) return FRIT_OK;
    const frit_value *tokens = frit_meta_find(&r->ckpt->meta, "tokenizer.ggml.tokens");
    const frit_tensor *table = frit_checkpoint_find(r->ckpt, "token_embd.weight");
    uint64_t n = 0;
    if (tokens && tokens->type == FRIT_VALUE_ARRAY) n = tokens->array.n;
    if (n == 0 && table && table->n_dims >= 2) n = (uint64_t)table->shape[table->n_dims - 2];
    if (n < 1 || n > 1 << 24)
        return frit_fail(FRIT_E_FORMAT,
                         "the size of the vocabulary is %llu, expected 1 to %d (from %s.vocab_size, "
                         "tokenizer.ggml.tokens or token_embd.weight)",
                         (unsigned long long)n, 1 << 24, r->arch->name);
    r->hp->n_vocab = (int32_t)n;
    return FRIT_OK;
}

static frit_status read_norm(frit_hparams_reader *r)
{
    frit_str name;
    bool found;
    r->hp->norm = r->arch->norm;
    FRIT_TRY(frit_meta_get_text(&r->ckpt->meta, "frit.norm", &name, &found));
    if (found) r->hp->norm = frit_str_is(name, "layer") ? FRIT_NORM_LAYER : FRIT_NORM_RMS;
    return FRIT_OK;
}

// Reads the activation of the feed-forward under frit's key or GGUF's, if the file has it.
static frit_status read_act(frit_hparams_reader *r)
{
    static const struct {
        const char *name;
        frit_act act;
    } names[] = {
        {"gelu", FRIT_ACT_GELU}, {"gelu_tanh", FRIT_ACT_GELU_TANH}, {"relu", FRIT_ACT_RELU},
        {"silu", FRIT_ACT_SILU}, {"swish", FRIT_ACT_SILU},          {"relu2", FRIT_ACT_RELU2},
    };
    frit_str name;
    bool found;
    r->hp->act = r->arch->act;
    FRIT_TRY(frit_meta_get_text(&r->ckpt->meta, "frit.act", &name, &found));
    if (!found && r->arch->is_encoder)
        FRIT_TRY(frit_meta_get_text(&r->ckpt->meta, frit_hparams_key(r, "hidden_activation"), &name, &found));
    for (size_t i = 0; found && i < FRIT_COUNT(names); i++)
        if (frit_str_is(name, names[i].name)) r->hp->act = names[i].act;
    return FRIT_OK;
}

// Sets the largest distance of relative positions, which has no key in GGUF.
static frit_status read_distances(frit_hparams_reader *r)
{
    static const char key[] = "frit.attention.relative_distance";
    int64_t distance = 128;
    if (r->hp->rel_buckets == 0) return FRIT_OK;
    FRIT_TRY(frit_meta_get_i64(&r->ckpt->meta, key, &distance, NULL));
    if (distance <= r->hp->rel_buckets / 2 || distance > 1 << 16)
        return frit_fail(FRIT_E_FORMAT, "%s is %lld, expected %d to %d", key, (long long)distance,
                         (int)r->hp->rel_buckets / 2 + 1, 1 << 16);
    r->hp->rel_distance = (int32_t)distance;
    return FRIT_OK;
}

// Reads the pooling type. Files without pooling may have the key with the value -1, or its unsigned form.
static void read_pooling(frit_hparams_reader *r)
{
    int64_t type = -1;
    frit_meta_get_i64(&r->ckpt->meta, frit_hparams_key(r, "pooling_type"), &type, NULL);
    r->hp->pooling = type >= 0 && type <= 4 ? (int32_t)type : -1;
}

// Returns the width of experts from the shape of "blk.*.ffn_down_EXPERTS.weight"; early files with experts lack the
// key.
static int32_t width_of_down(const frit_hparams_reader *r, const char *experts)
{
    for (int32_t i = 0; i < r->hp->n_layer; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_down_%s.weight", (int)i, experts);
        const frit_tensor *tensor = frit_checkpoint_find(r->ckpt, name);
        if (!tensor || tensor->n_dims < 2) continue;
        const int64_t width = tensor->shape[tensor->n_dims - 1];
        return width <= 1 << 24 ? (int32_t)width : 0;
    }
    return 0;
}

// Sets gates_elements from the shape of the first layer's gates.
static void complete_gates(frit_hparams_reader *r)
{
    const frit_tensor *gate = frit_checkpoint_find(r->ckpt, "blk.0.attn_gate.weight");
    const frit_layer_hparams *first = &r->hp->layers[0];
    r->hp->gates_elements = gate && gate->n_dims >= 2 && gate->shape[gate->n_dims - 2] != first->n_head;
}

static frit_status complete_experts(frit_hparams_reader *r)
{
    frit_hparams *hp = r->hp;
    if (hp->gating == FRIT_GATING_NONE) hp->gating = r->arch->gating;
    if (hp->gating == FRIT_GATING_NONE) hp->gating = FRIT_GATING_SOFTMAX;
    if (hp->n_expert == 0) return FRIT_OK;
    if (r->arch->expert_normalize) hp->expert_normalize = true;
    if (hp->n_ff_exp == 0) hp->n_ff_exp = width_of_down(r, "exps");
    if (hp->n_ff_exp == 0) hp->n_ff_exp = hp->layers[0].n_ff;
    if (hp->n_ff_shexp == 0) hp->n_ff_shexp = width_of_down(r, "shexp");
    if (hp->n_ff_shexp == 0) hp->n_ff_shexp = hp->n_expert_shared > 0 ? hp->n_ff_exp * hp->n_expert_shared : 0;
    if (hp->n_expert_used < 1 || hp->n_expert_used > hp->n_expert)
        return frit_fail(FRIT_E_FORMAT, "%s.expert_used_count is %d, expected 1 to %s.expert_count, %d", r->arch->name,
                         (int)hp->n_expert_used, r->arch->name, (int)hp->n_expert);
    if (hp->n_expert_groups > 1 && hp->n_expert % hp->n_expert_groups != 0)
        return frit_fail(FRIT_E_FORMAT, "%s.expert_group_count is %d, expected a divisor of %s.expert_count, %d",
                         r->arch->name, (int)hp->n_expert_groups, r->arch->name, (int)hp->n_expert);
    return FRIT_OK;
}

// Returns the layer whose hyperparameters the layers for multi-token prediction get.
static const frit_layer_hparams *last_with_attention(const frit_hparams *hp)
{
    int32_t i = hp->n_layer - 1;
    while (i > 0 && hp->layers[i].is_recurrent) i--;
    return &hp->layers[hp->layers[i].is_recurrent ? hp->n_layer - 1 : i];
}

static frit_status read_all(frit_hparams_reader *r, frit_arena *arena)
{
    FRIT_TRY(read_rows(r, arena));
    for (int32_t i = 0; i < r->hp->n_layer; i++) FRIT_TRY(complete_layer(r, i));
    FRIT_TRY(complete_experts(r));
    complete_gates(r);
    FRIT_TRY(read_norm(r));
    FRIT_TRY(read_act(r));
    read_pooling(r);
    FRIT_TRY(read_distances(r));
    r->hp->is_bidirectional = r->arch->is_encoder || !r->hp->is_causal;
    FRIT_TRY(complete_eps(r));
    FRIT_TRY(complete_vocab(r));
    FRIT_TRY(frit_hparams_complete_rope(r));
    frit_meta_get_bool(&r->ckpt->meta, "frit.delta.grouped_heads", &r->hp->recurrent.grouped_heads, NULL);
    if (r->arch->adjust) FRIT_TRY(r->arch->adjust(r->hp));
    for (int32_t i = 0; i < r->hp->n_layer_next; i++) r->hp->layers[r->hp->n_layer + i] = *last_with_attention(r->hp);
    if (r->hp->media.n_deep > r->hp->n_layer)
        return frit_fail(FRIT_E_FORMAT, "%s.n_deepstack_layers is %d, expected at most %s.block_count, %d",
                         r->arch->name, (int)r->hp->media.n_deep, r->arch->name, (int)r->hp->n_layer);
    if (r->hp->attn_temp_scale != 0 && r->hp->attn_temp_length < 1)
        return frit_fail(FRIT_E_FORMAT, "%s.attention.temperature_length is %d, expected 1 or more", r->arch->name,
                         (int)r->hp->attn_temp_length);
    return FRIT_OK;
}

frit_status frit_hparams_read(frit_hparams *hp, const frit_arch *arch, const frit_checkpoint *ckpt, frit_arena *arena)
{
    *hp = (frit_hparams){0};
    frit_status status = read_all(&(frit_hparams_reader){.hp = hp, .arch = arch, .ckpt = ckpt}, arena);
    return frit_fail_in(ckpt->path, status);
}

int32_t frit_arch_n_cache_layers(const frit_hparams *hp)
{
    return hp->n_layer_dec > 0 ? 2 * hp->n_layer_dec : hp->n_layer;
}

frit_status frit_arch_cache_specs(const frit_hparams *hp, frit_cache_spec *specs)
{
    for (int32_t i = 0; i < frit_arch_n_cache_layers(hp); i++) {
        const int32_t i_layer = hp->n_layer_dec > 0 ? hp->n_layer_enc + i % hp->n_layer_dec : i;
        const frit_layer_hparams *lhp = &hp->layers[i_layer];
        if (lhp->n_head_kv == 0 || lhp->shares_kv || hp->has_no_cache) {
            specs[i] = (frit_cache_spec){.kind = FRIT_CACHE_NONE, .n_state = lhp->n_state};
            continue;
        }
        specs[i] = (frit_cache_spec){.kind = FRIT_CACHE_KV,
                                     .n_head_kv = lhp->n_head_kv,
                                     .k_dim = lhp->k_dim,
                                     .v_dim = lhp->v_dim,
                                     .window = lhp->window,
                                     .n_state = lhp->n_state,
                                     .v_in_k = lhp->v_in_k,
                                     .index_dim = lhp->has_index ? hp->index.dim : 0,
                                     .of_source = hp->n_layer_dec > 0 && i >= hp->n_layer_dec};
    }
    return FRIT_OK;
}
