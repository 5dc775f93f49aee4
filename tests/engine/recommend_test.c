// SPDX-License-Identifier: MIT
// The sampling that a model's file recommends.
#include "support/gguf_builder.h"
#include "support/support.h"

#include "frit_tools.h"
#include "sample/sampler.h"

// Opens a model. Free `file` after the model.
static frit_model *open_with(gguf_builder *b, frit_buf *file)
{
    frit_model *model;
    gguf_add_text(b, "tokenizer.ggml.model", "none");
    *file = gguf_build(b);
    assert_ok(frit_model_open_memory(&model, file->data, file->len, &(frit_model_options){.vocab_only = true}));
    gguf_builder_free(b);
    return model;
}

static void every_recommended_value_becomes_an_option(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_f32(&b, "general.sampling.temp", 0.6f);
    gguf_add_i32(&b, "general.sampling.top_k", 20);
    gguf_add_f32(&b, "general.sampling.top_p", 0.9f);
    gguf_add_f32(&b, "general.sampling.min_p", 0.01f);
    gguf_add_f32(&b, "general.sampling.xtc_probability", 0.25f);
    gguf_add_f32(&b, "general.sampling.xtc_threshold", 0.2f);
    gguf_add_f32(&b, "general.sampling.penalty_repeat", 1.05f);
    gguf_add_i32(&b, "general.sampling.penalty_last_n", 128);
    gguf_add_i32(&b, "general.sampling.mirostat", 2);
    gguf_add_f32(&b, "general.sampling.mirostat_tau", 4);
    gguf_add_f32(&b, "general.sampling.mirostat_eta", 0.3f);
    gguf_add_text(&b, "general.sampling.sequence", "top_k;xtc;temperature");
    frit_buf file;
    frit_model *model = open_with(&b, &file);
    frit_sampler_options options = {.frequency_penalty = 0.5f};
    assert_ok(frit_sampler_recommend(model, &options));
    assert_true(options.temp == 0.6f && options.top_k == 20 && options.top_p == 0.9f && options.min_p == 0.01f);
    assert_true(options.repeat_penalty == 1.05f && options.repeat_last_n == 128 && options.frequency_penalty == 0.5f);
    assert_true(frit_stage_number(&options, xtc_probability) == 0.25f);
    assert_true(frit_stage_number(&options, xtc_threshold) == 0.2f);
    assert_int_equal(frit_stage_integer(&options, mirostat), 2);
    assert_true(frit_stage_number(&options, mirostat_tau) == 4 && frit_stage_number(&options, mirostat_eta) == 0.3f);
    assert_string_equal(options.samplers, "top_k;xtc;temperature");
    frit_model_free(model);
    frit_buf_free(&file);
}

static void values_that_no_option_allows_recommend_nothing(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_f32(&b, "general.sampling.temp", -1);
    gguf_add_f32(&b, "general.sampling.top_p", 1.5f);
    gguf_add_text(&b, "general.sampling.top_k", "many");
    gguf_add_f32(&b, "general.sampling.min_p", 0.5f);
    gguf_add_text(&b, "general.sampling.sequence", "top_k;unheard_of");
    frit_buf file;
    frit_model *model = open_with(&b, &file);
    frit_sampler_options options = {.temp = 0.5f, .top_k = 3, .top_p = 0.75f};
    assert_ok(frit_sampler_recommend(model, &options));
    assert_true(options.temp == 0.5f && options.top_k == 3 && options.top_p == 0.75f && options.min_p == 0.5f);
    assert_null(options.samplers);
    frit_model_free(model);
    frit_buf_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_recommended_value_becomes_an_option),
        cmocka_unit_test(values_that_no_option_allows_recommend_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
