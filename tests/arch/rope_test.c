// SPDX-License-Identifier: MIT
// Rotation frequencies against numbers from transformers' formulas (modeling_rope_utils.py) in double precision.
#include "arch/tiny.h"

#include <math.h>

enum { N_PAIRS = 8 };

static const float plain[N_PAIRS] = {1,     0.316227766f,   0.1f,   0.0316227766f,
                                     0.01f, 0.00316227766f, 0.001f, 0.000316227766f};

typedef struct rope_case {
    const char *name;
    frit_rope_params rope;
    int32_t n_ctx;
    float expected[N_PAIRS], magnitude;
} rope_case;

#define LINEAR_4                                                                                          \
    {                                                                                                     \
        0.25f, 0.0790569415f, 0.025f, 0.00790569415f, 0.0025f, 0.000790569415f, 0.00025f, 7.90569415e-05f \
    }
#define ROPE(rule, base_, factor_, n_ctx_, ...)                                                                     \
    {                                                                                                               \
        .dim = 16, .base = base_, .scaling = FRIT_ROPE_##rule, .factor = factor_, .n_ctx_orig = n_ctx_, __VA_ARGS__ \
    }
#define YARN(attn, ext) .attn_factor = attn, .ext_factor = ext, .beta_fast = 32, .beta_slow = 1

// clang-format off
static const rope_case cases[] = {
    {"linear", ROPE(LINEAR, 10000, 4, 64, .attn_factor = 1), 64, LINEAR_4, 1},
    {"llama3", ROPE(LLAMA3, 500000, 8, 64, .attn_factor = 1, .low_freq_factor = 1, .high_freq_factor = 4), 64,
     {1, 0.0794030092f, 0.00470075387f, 0.000911583092f, 0.000176776695f, 3.4281022e-05f, 6.64786987e-06f,
      1.28917317e-06f}, 1},
    {"yarn", ROPE(YARN, 10000, 4, 64, YARN(1, 1)), 64,
     {1, 0.237170825f, 0.05f, 0.00790569415f, 0.0025f, 0.000790569415f, 0.00025f, 7.90569415e-05f}, 1.138629436f},
    {"yarn, long context, half the magnitude", ROPE(YARN, 1e6f, 40, 4096, YARN(0.5f, 1)), 64,
     {1, 0.177827941f, 0.0213453742f, 0.00196819464f, 2.5e-05f, 4.44569853e-06f, 7.90569415e-07f, 1.40585331e-07f},
     0.5f * 1.368887945f},
    {"yarn without extrapolation is linear", ROPE(YARN, 10000, 4, 64, YARN(1, 0)), 64, LINEAR_4, 1},
    {"dynamic, four times the original context", ROPE(DYNAMIC, 10000, 2, 64, .attn_factor = 1), 256,
     {1, 0.239481356f, 0.0573513199f, 0.0137345719f, 0.00328917389f, 0.000787695824f, 0.000188638464f,
      4.51753951e-05f}, 1},
};
// clang-format on

static const float *frequencies(const frit_hparams *hp)
{
    return hp->rope_table.inv_freq->data;
}

static void check(const char *name, const frit_hparams *hp, const float *expected, float magnitude)
{
    for (int i = 0; i < N_PAIRS; i++) {
        if (!(fabsf(frequencies(hp)[i] - expected[i]) <= 2e-7f * expected[i]))
            fail_msg("%s: pair %d is %.9g, expected %.9g", name, i, (double)frequencies(hp)[i], (double)expected[i]);
    }
    if (!(fabsf(hp->rope_table.magnitude - magnitude) <= 2e-7f * magnitude))
        fail_msg("%s: the magnitude is %.9g, expected %.9g", name, (double)hp->rope_table.magnitude, (double)magnitude);
}

static void every_scaling_rule_gives_the_frequencies_of_its_formula(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_arena arena = {0};
        frit_hparams hp = {.rope = cases[i].rope};
        assert_ok(frit_rope_init(&hp, cases[i].n_ctx, &arena));
        check(cases[i].name, &hp, cases[i].expected, cases[i].magnitude);
        frit_arena_free(&arena);
    }
}

static void dynamic_scaling_changes_nothing_within_the_original_context(void **state)
{
    (void)state;
    frit_arena arena = {0};
    frit_hparams hp = {
        .rope = {
            .dim = 16, .base = 10000, .scaling = FRIT_ROPE_DYNAMIC, .factor = 2, .n_ctx_orig = 64, .attn_factor = 1}};
    assert_ok(frit_rope_init(&hp, 64, &arena));
    check("dynamic", &hp, plain, 1);
    hp.rope.scaling = FRIT_ROPE_PLAIN;
    hp.rope_table = (frit_rope_table){0};
    assert_ok(frit_rope_init(&hp, 1 << 20, &arena));
    check("plain", &hp, plain, 1);
    frit_arena_free(&arena);
}

// Devices find loaded constants by address, so engines of a model must read one tensor where possible.
static void a_table_is_computed_again_only_for_other_frequencies(void **state)
{
    (void)state;
    frit_arena arena = {0};
    frit_hparams hp = {
        .rope = {
            .dim = 16, .base = 10000, .scaling = FRIT_ROPE_DYNAMIC, .factor = 2, .n_ctx_orig = 64, .attn_factor = 1}};
    hp.rope_swa = hp.rope;
    assert_ok(frit_rope_init(&hp, 64, &arena));
    frit_hparams other = hp;
    assert_ok(frit_rope_init(&other, 32, &arena));
    assert_ptr_equal(other.rope_table.inv_freq, hp.rope_table.inv_freq);
    assert_ptr_equal(other.rope_swa_table.inv_freq, hp.rope_table.inv_freq);
    assert_int_equal(other.n_ctx, 32);
    assert_ok(frit_rope_init(&other, 128, &arena));
    assert_ptr_not_equal(other.rope_table.inv_freq, hp.rope_table.inv_freq);
    assert_ptr_equal(other.rope_swa_table.inv_freq, other.rope_table.inv_freq);
    assert_true(frequencies(&other)[1] < frequencies(&hp)[1]);
    check("of the original context", &hp, plain, 1);
    frit_arena_free(&arena);
}

static void frequencies_stay_finite_at_the_edges_of_what_files_may_say(void **state)
{
    (void)state;
    for (int scaling = FRIT_ROPE_PLAIN; scaling <= FRIT_ROPE_LLAMA3; scaling++) {
        for (int i = 0; i < 8; i++) {
            frit_arena arena = {0};
            frit_hparams hp = {.rope = {.dim = i & 1 ? 2 : 16,
                                        .base = i & 2 ? 1 : 1e15f,
                                        .scaling = (frit_rope_scaling)scaling,
                                        .factor = i & 4 ? 1e6f : 1e-6f,
                                        .n_ctx_orig = 1,
                                        .attn_factor = 1,
                                        .ext_factor = 1,
                                        .beta_fast = 1e-3f,
                                        .beta_slow = 1e6f,
                                        .low_freq_factor = 1,
                                        .high_freq_factor = 4}};
            assert_ok(frit_rope_init(&hp, 1 << 30, &arena));
            for (int k = 0; k < hp.rope.dim / 2; k++) {
                if (!isfinite(frequencies(&hp)[k]))
                    fail_msg("scaling %d, variant %d: pair %d is %g", scaling, i, k, (double)frequencies(&hp)[k]);
            }
            assert_true(isfinite(hp.rope_table.magnitude));
            frit_arena_free(&arena);
        }
    }
}

static void scaling_is_read_from_the_file(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.key = "llama.rope.scaling.factor", .kind = TINY_FLOAT, .value = 2}));
    assert_float_equal(frequencies(&m.hp)[0], 0.5f, 0);   // a factor without a type: linear
    tiny_close(&m);
    assert_ok(tiny_open(&m, &(tiny_change){.key = "llama.rope.scaling.type", .kind = TINY_TEXT, .text = "yarn"}));
    assert_int_equal(m.hp.rope.scaling, FRIT_ROPE_YARN);
    assert_int_equal(m.hp.rope.n_ctx_orig, 64);
    assert_float_equal(m.hp.rope_table.magnitude, 1, 0);
    tiny_close(&m);
    assert_fails(
        tiny_open(&m, &(tiny_change){.key = "llama.rope.scaling.high_freq_factor", .kind = TINY_FLOAT, .value = 1e9}),
        FRIT_E_FORMAT, "high_freq_factor is 1000000000");
    tiny_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scaling_rule_gives_the_frequencies_of_its_formula),
        cmocka_unit_test(dynamic_scaling_changes_nothing_within_the_original_context),
        cmocka_unit_test(a_table_is_computed_again_only_for_other_frequencies),
        cmocka_unit_test(frequencies_stay_finite_at_the_edges_of_what_files_may_say),
        cmocka_unit_test(scaling_is_read_from_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
