// SPDX-License-Identifier: MIT
// The rules of mixes. The first row for a kind of tensor that has the mix and whose condition holds gives the type;
// without such a row the type is the base type. Source: src/llama-quant.cpp of llama.cpp 3f545bec.
#include "convert/mix.h"

typedef bool (*condition)(const frit_mix_tensor *t);

static bool is_falcon(const frit_mix_tensor *t)
{
    return frit_str_is(t->model->arch, "falcon");
}

static bool has_odd_rows(const frit_mix_tensor *t)
{
    return t->width % frit_dtype_get(t->base)->block_elems != 0;
}

static bool is_experts(const frit_mix_tensor *t)
{
    const bool is_ffn = t->kind == FRIT_KIND_UP || t->kind == FRIT_KIND_GATE || t->kind == FRIT_KIND_DOWN;
    return t->n_matrices > 1 && (is_ffn || !frit_str_is(t->model->arch, "bailingmoe3"));
}

static bool has_8_experts(const frit_mix_tensor *t)
{
    return t->model->n_expert == 8;
}

static bool shares_keys(const frit_mix_tensor *t)
{
    return t->model->n_head_per_kv >= 4;
}

static bool shares_or_has_experts(const frit_mix_tensor *t)
{
    return shares_keys(t) || t->model->n_expert >= 4;
}

static bool no_importance(const frit_mix_tensor *t)
{
    return !t->model->has_importance;
}

static bool is_v_before_2(const frit_mix_tensor *t)
{
    return t->i_v < 2;
}

static bool is_v_before_4(const frit_mix_tensor *t)
{
    return t->i_v < 4;
}

// True for the first eighth of the layers, the last, and every third between.
static bool is_fine(int64_t i, int64_t n)
{
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

static bool is_fine_v(const frit_mix_tensor *t)
{
    return is_fine(t->i_v, t->n_v);
}

static bool is_fine_layer(const frit_mix_tensor *t)
{
    return is_fine(t->i_layer, t->model->n_layer);
}

static bool is_early(const frit_mix_tensor *t)
{
    return t->i_layer < t->model->n_layer / 8;
}

static bool is_very_early(const frit_mix_tensor *t)
{
    return t->i_layer < t->model->n_layer / 16;
}

static bool is_counted_early(const frit_mix_tensor *t)
{
    return t->i_counted < t->model->n_layer / 8;
}

static bool is_in_the_middle(const frit_mix_tensor *t)
{
    return !is_early(t) && t->i_layer < 7 * t->model->n_layer / 8;
}

static bool is_early_with_importance(const frit_mix_tensor *t)
{
    return is_early(t) && t->model->has_importance;
}

static bool is_early_without_importance(const frit_mix_tensor *t)
{
    return is_early(t) && !t->model->has_importance;
}

static bool is_early_or_fine_of_8_experts(const frit_mix_tensor *t)
{
    return is_early(t) || (has_8_experts(t) && is_fine_layer(t));
}

static bool is_early_but_falcon(const frit_mix_tensor *t)
{
    return is_early(t) && !is_falcon(t);
}

static bool is_very_early_falcon(const frit_mix_tensor *t)
{
    return is_very_early(t) && is_falcon(t);
}

static bool is_fine_falcon(const frit_mix_tensor *t)
{
    return is_fine_layer(t) && is_falcon(t);
}

static bool is_coarse_falcon(const frit_mix_tensor *t)
{
    return !is_fine_layer(t) && is_falcon(t);
}

enum { BASE = FRIT_DTYPE_COUNT };   // the mix's base type

// Sets of mixes.
#define M(NAME) (UINT64_C(1) << FRIT_MIX_##NAME)
#define ALL     ((UINT64_C(1) << FRIT_MIX_COUNT) - 1)
#define TINY    (M(IQ1_S) | M(IQ1_M) | M(IQ2_XXS) | M(IQ2_XS) | M(IQ2_S) | M(IQ2_M))
#define REST    (ALL & ~(TINY | M(MXFP4_MOE)))
#define FEW_EXPERTS_FINE                                                                                      \
    (M(Q2_K) | M(Q3_K_S) | M(Q3_K_M) | M(Q4_K_S) | M(Q4_K_M) | M(IQ3_XXS) | M(IQ3_XS) | M(IQ3_S) | M(IQ3_M) | \
     M(IQ4_NL) | M(IQ4_XS))

// clang-format off
#define ROW(mixes, KIND, when, TYPE) {mixes, FRIT_KIND_##KIND, when, FRIT_DTYPE_##TYPE}
#define ROW_BASE(mixes, KIND, when) {mixes, FRIT_KIND_##KIND, when, (frit_dtype)BASE}
static const struct rule {
    uint64_t mixes;
    frit_kind kind;
    condition when;   // NULL: always
    frit_dtype type;
} rules[] = {
    ROW(M(MXFP4_MOE), OUTPUT, NULL, Q8_0),
    ROW(ALL, OUTPUT, is_falcon, Q8_0),
    ROW(ALL, OUTPUT, has_odd_rows, Q8_0),
    ROW(TINY | M(IQ3_XXS), OUTPUT, NULL, Q5_K),
    ROW(M(Q8_0), OUTPUT, NULL, Q8_0),
    ROW(ALL, OUTPUT, NULL, Q6_K),

    ROW(M(MXFP4_MOE), ANY, is_experts, MXFP4),
    ROW(M(MXFP4_MOE), ANY, NULL, Q8_0),

    ROW(M(IQ2_XXS) | M(IQ2_XS) | M(IQ1_S) | M(IQ1_M), TABLE, NULL, Q2_K),
    ROW(M(IQ2_S) | M(IQ2_M) | M(IQ3_XXS), TABLE, NULL, IQ3_S),
    ROW(M(TQ1_0) | M(TQ2_0) | M(Q2_0), TABLE, NULL, Q4_K),

    ROW(TINY, V, shares_or_has_experts, Q4_K),
    ROW(M(IQ2_S) | M(IQ2_M), V, NULL, IQ3_S),
    ROW(TINY, V, NULL, Q2_K),
    ROW(REST, V, has_8_experts, Q8_0),
    ROW(M(Q2_K) | M(Q2_K_S) | M(IQ3_XXS) | M(IQ3_XS) | M(IQ3_S), V, shares_keys, Q4_K),
    ROW(M(Q2_K), V, NULL, Q3_K),
    ROW(M(IQ3_XXS), V, no_importance, IQ3_S),
    ROW(M(IQ3_M), V, NULL, Q4_K),
    ROW(M(Q3_K_M), V, is_v_before_2, Q5_K),
    ROW(M(Q3_K_M), V, NULL, Q4_K),
    ROW(M(Q3_K_L), V, NULL, Q5_K),
    ROW(M(IQ4_NL) | M(IQ4_XS), V, shares_keys, Q5_K),
    ROW(M(Q4_K_M) | M(Q5_K_M), V, is_fine_v, Q6_K),
    ROW(M(Q4_K_S), V, is_v_before_4, Q5_K),

    ROW(TINY, K, has_8_experts, Q4_K),
    ROW(REST, K, has_8_experts, Q8_0),
    ROW(M(IQ3_XS), K, NULL, IQ3_XXS),
    ROW(M(IQ3_XXS), K, NULL, IQ2_S),
    ROW(M(IQ3_XS), Q, NULL, IQ3_XXS),
    ROW(M(IQ3_XXS), Q, NULL, IQ2_S),

    ROW(TINY, ATTENTION_OUTPUT, has_8_experts, Q5_K),
    ROW(M(IQ1_S) | M(IQ1_M), ATTENTION_OUTPUT, NULL, IQ2_XXS),
    ROW(M(IQ2_S) | M(IQ2_M), ATTENTION_OUTPUT, NULL, IQ3_S),
    ROW(M(Q3_K_L), ATTENTION_OUTPUT, is_falcon, Q4_K),
    ROW_BASE(REST, ATTENTION_OUTPUT, is_falcon),
    ROW(FEW_EXPERTS_FINE, ATTENTION_OUTPUT, has_8_experts, Q5_K),
    ROW_BASE(REST, ATTENTION_OUTPUT, has_8_experts),
    ROW(M(Q2_K), ATTENTION_OUTPUT, NULL, Q3_K),
    ROW(M(IQ3_XXS), ATTENTION_OUTPUT, NULL, IQ3_S),
    ROW(M(Q3_K_M) | M(IQ3_M), ATTENTION_OUTPUT, NULL, Q4_K),
    ROW(M(Q3_K_L), ATTENTION_OUTPUT, NULL, Q5_K),

    ROW(M(IQ2_S) | M(IQ2_M), DOWN, is_counted_early, IQ3_S),
    ROW(TINY, DOWN, is_counted_early, Q2_K),
    ROW(M(Q2_K), DOWN, NULL, Q3_K),
    ROW(M(Q2_K_S), DOWN, is_early, Q4_K),
    ROW(M(IQ3_XXS), DOWN, is_early_without_importance, Q4_K),
    ROW(M(IQ3_XXS), DOWN, no_importance, Q3_K),
    ROW(M(Q3_K_M), DOWN, is_very_early, Q5_K),
    ROW(M(Q3_K_M), DOWN, is_coarse_falcon, Q3_K),
    ROW(M(Q3_K_M), DOWN, NULL, Q4_K),
    ROW(M(IQ3_M), DOWN, is_early_or_fine_of_8_experts, Q4_K),
    ROW(M(Q3_K_L), DOWN, is_falcon, Q4_K),
    ROW(M(Q3_K_L), DOWN, NULL, Q5_K),
    ROW(M(Q4_K_M), DOWN, is_very_early_falcon, Q6_K),
    ROW(M(Q4_K_M), DOWN, is_fine_falcon, Q5_K),
    ROW_BASE(M(Q4_K_M), DOWN, is_falcon),
    ROW(M(Q4_K_M) | M(Q5_K_M), DOWN, is_fine_layer, Q6_K),
    ROW(M(IQ4_NL) | M(IQ4_XS), DOWN, is_early_without_importance, Q5_K),
    ROW(M(Q4_K_S), DOWN, is_early_but_falcon, Q5_K),
    ROW(M(Q4_0), DOWN, is_early_with_importance, Q4_1),
    ROW(M(Q5_0), DOWN, is_early_with_importance, Q5_1),

    ROW(M(IQ3_XS), UP, is_in_the_middle, IQ3_XXS),
    ROW(M(IQ3_XS), GATE, is_in_the_middle, IQ3_XXS),
};
// clang-format on

static bool matches(const struct rule *rule, const frit_type_mix *mix, const frit_mix_tensor *t)
{
    if (!(rule->mixes >> mix->id & 1)) return false;
    if (rule->kind != t->kind && rule->kind != FRIT_KIND_ANY) return false;
    return !rule->when || rule->when(t);
}

// True for models that llama.cpp treats as 70B.
bool frit_mix_is_70b(const frit_mix_model *model)
{
    static const struct {
        const char *arch;
        int64_t n_layer;
        bool shares_keys;   // only if heads share keys
    } rows[] = {
        {"llama", 80, true}, {"deci", 80, false}, {"olmo", 80, false}, {"qwen2", 80, false}, {"jais2", 68, false}};
    for (size_t i = 0; i < FRIT_COUNT(rows); i++)
        if (frit_str_is(model->arch, rows[i].arch) && model->n_layer == rows[i].n_layer)
            return !rows[i].shares_keys || model->n_head_per_kv != 1;
    return false;
}

frit_dtype frit_mix_apply(const frit_type_mix *mix, const frit_mix_tensor *t)
{
    frit_dtype type = mix->base;
    for (size_t i = 0; i < FRIT_COUNT(rules); i++) {
        if (!matches(&rules[i], mix, t)) continue;
        if (rules[i].type != (frit_dtype)BASE) type = rules[i].type;
        break;
    }
    // In 70B models eight heads share values, so more bits for values cost little.
    const bool is_raised = t->model->is_70b && t->kind == FRIT_KIND_V && REST >> mix->id & 1;
    return is_raised && (type == FRIT_DTYPE_Q3_K || type == FRIT_DTYPE_Q4_K) ? FRIT_DTYPE_Q5_K : type;
}
