// SPDX-License-Identifier: MIT
// The effects of optional keys and tensors on hyperparameters, weights and graphs.
#include "arch/tiny.h"
#include "graph/plan.h"

static void per_layer_keys_may_be_a_number_or_an_array(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(
        &m, &(tiny_change){.key = "llama.attention.head_count_kv", .kind = TINY_ARRAY, .value = 2, .n_items = 2}));
    for (int i = 0; i < TINY_LAYERS; i++) assert_int_equal(m.hp.layers[i].n_head_kv, 2);
    tiny_close(&m);
}

static void heads_of_keys_and_values_are_those_of_queries_unless_given(void **state)
{
    (void)state;
    tiny_model m;
    assert_fails(tiny_open(&m, &(tiny_change){.without = "llama.attention.head_count_kv"}), FRIT_E_FORMAT,
                 "expected [32, 32]");
    assert_int_equal(m.hp.layers[0].n_head_kv, TINY_HEADS);
    tiny_close(&m);
}

static void the_vocabulary_is_as_large_as_the_table_unless_given(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.without = "llama.vocab_size"}));
    assert_int_equal(m.hp.n_vocab, TINY_VOCAB);
    tiny_close(&m);
}

static void a_missing_head_is_the_embedding_table(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.without = "output.weight"}));
    assert_ptr_equal(m.weights.lm_head.w, m.weights.tok_embd.w);
    tiny_close(&m);
}

static void vectors_of_any_type_become_f32(void **state)
{
    (void)state;
    static const frit_dtype dtypes[] = {FRIT_DTYPE_F32, FRIT_DTYPE_F16, FRIT_DTYPE_BF16};
    for (size_t i = 0; i < FRIT_COUNT(dtypes); i++) {
        tiny_model m;
        assert_ok(tiny_open(&m, &(tiny_change){.tensor = "output_norm.weight", .dtype = dtypes[i], .poison = 0.5f}));
        const frit_tensor *w = m.weights.out_norm.w;
        assert_int_equal(w->dtype, FRIT_DTYPE_F32);
        assert_int_equal((uintptr_t)w->data % sizeof(float), 0);
        assert_float_equal(((const float *)w->data)[TINY_EMBD - 1], 0.5f, 0);
        tiny_close(&m);
    }
}

static void ignored_tensors_do_no_harm(void **state)
{
    (void)state;
    static const char *const names[] = {"blk.0.attn_q.input_scale", "cls.output.weight",
                                        "blk.1.attn.rotary_emb.inv_freq"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        tiny_model m;
        assert_ok(tiny_open(&m, &(tiny_change){.tensor = names[i], .shape = {4, 0}}));
        tiny_close(&m);
    }
}

static void a_window_is_honoured_only_where_the_architecture_has_one(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.key = "llama.attention.sliding_window", .kind = TINY_NUMBER, .value = 16}));
    frit_cache_spec specs[TINY_LAYERS];
    assert_ok(frit_arch_cache_specs(&m.hp, specs));
    assert_int_equal(specs[1].window, 16);
    assert_int_equal(specs[1].n_head_kv, TINY_HEADS_KV);
    assert_int_equal(specs[1].k_dim, 8);
    tiny_close(&m);
    assert_ok(tiny_open(&m, &(tiny_change){.key = "llama.final_logit_softcapping", .kind = TINY_FLOAT, .value = 30}));
    assert_float_equal(m.hp.logit_softcap, 0, 0);
    tiny_close(&m);
}

static void the_file_may_turn_the_rope_style(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){0}));
    assert_int_equal(m.hp.rope_style, FRIT_ROPE_INTERLEAVED);
    tiny_close(&m);
    assert_ok(tiny_open(&m, &(tiny_change){.key = "frit.rope.style", .kind = TINY_TEXT, .text = "neox"}));
    assert_int_equal(m.hp.rope_style, FRIT_ROPE_NEOX);
    tiny_close(&m);
}

// Returns the text of the model's unfused graph.
static char *graph_text(const tiny_model *m, const frit_build_options *options)
{
    frit_arena arena = {0};
    frit_graph g;
    frit_graph_init(&g, &arena, 8, 2);
    assert_ok(frit_arch_build(&g, m->arch, &m->hp, &m->weights, options));
    frit_buf text = {0};
    frit_graph_print(&g, &text);
    frit_arena_free(&arena);
    return text.data;
}

static void a_bias_joins_its_product(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.tensor = "blk.1.attn_q.bias", .shape = {TINY_EMBD, 0}}));
    char *text = graph_text(&m, NULL);
    assert_non_null(strstr(text, ", blk.1.attn_q.weight, blk.1.attn_q.bias) [T, 32]"));
    assert_non_null(strstr(text, ", blk.0.attn_q.weight) [T, 32]"));
    free(text);
    tiny_close(&m);
}

static void a_scale_multiplies_its_product(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.tensor = "blk.1.attn_q.scale", .shape = {1, 0}, .poison = 1.25f}));
    char *text = graph_text(&m, NULL);
    assert_non_null(strstr(text, "factor=1.25"));
    free(text);
    tiny_close(&m);
    assert_ok(tiny_open(&m, &(tiny_change){.tensor = "blk.1.attn_k.scale", .shape = {16, 0}}));
    text = graph_text(&m, NULL);
    assert_non_null(strstr(text, ", blk.1.attn_k.scale) [T, 16]"));
    free(text);
    tiny_close(&m);
}

static void rope_factors_join_the_rotation(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){.tensor = "rope_freqs.weight", .shape = {4, 0}, .poison = 2}));
    char *text = graph_text(&m, NULL);
    assert_non_null(strstr(text, "positions, rope.inv_freq, rope_freqs.weight) [T, 4, 8] interleaved dim=8"));
    free(text);
    tiny_close(&m);
}

static void hidden_states_are_the_output_when_asked_for(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){0}));
    char *text = graph_text(&m, &(frit_build_options){.hidden = true});
    assert_null(strstr(text, ", output.weight"));
    assert_non_null(strstr(text, "output_norm.weight) [O, 32]"));
    free(text);
    tiny_close(&m);
}

static void every_architecture_has_a_name_a_title_and_rows(void **state)
{
    (void)state;
    size_t n = 0;
    for (const frit_arch *arch; (arch = frit_arch_get(n)); n++) {
        assert_ptr_equal(frit_arch_find(arch->name), arch);
        assert_true(strlen(arch->title) > 0);
        const bool is_table = strcmp(arch->name, "static-embedding") == 0;   // the one without weights of layers
        assert_true(arch->n_rows > (is_table ? 0 : 5) && arch->layer);
    }
    assert_true(n >= 4);
    assert_null(frit_arch_find("no such architecture"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(per_layer_keys_may_be_a_number_or_an_array),
        cmocka_unit_test(heads_of_keys_and_values_are_those_of_queries_unless_given),
        cmocka_unit_test(the_vocabulary_is_as_large_as_the_table_unless_given),
        cmocka_unit_test(a_missing_head_is_the_embedding_table),
        cmocka_unit_test(vectors_of_any_type_become_f32),
        cmocka_unit_test(ignored_tensors_do_no_harm),
        cmocka_unit_test(a_window_is_honoured_only_where_the_architecture_has_one),
        cmocka_unit_test(the_file_may_turn_the_rope_style),
        cmocka_unit_test(a_bias_joins_its_product),
        cmocka_unit_test(a_scale_multiplies_its_product),
        cmocka_unit_test(rope_factors_join_the_rotation),
        cmocka_unit_test(hidden_states_are_the_output_when_asked_for),
        cmocka_unit_test(every_architecture_has_a_name_a_title_and_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
