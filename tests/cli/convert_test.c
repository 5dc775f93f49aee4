// SPDX-License-Identifier: MIT
// frit convert: its output for people.
#include "support/command_posix.h"
#include "support/support.h"

#include <unistd.h>

static void a_type_that_does_not_fit_is_said(void **state)
{
    (void)state;
    char arguments[1200];
    snprintf(arguments, sizeof arguments, "convert '%s' '%s' --type q4_k", shared_path("goldens/hf/llama"),
             temp_path("out.gguf"));
    expect(arguments, NULL, 0, NULL,
           "23 of 23 matrices become q5_0, because q4_k needs rows of a multiple of 256 numbers: output.weight, "
           "token_embd.weight, blk.*.ffn_down.weight");
    snprintf(arguments, sizeof arguments, "run '%s' --raw -p x -n 1 --type q4_k", shared_path("goldens/hf/llama"));
    expect(arguments, NULL, 0, NULL, "23 of 23 matrices become q5_0");
}

static void an_unknown_type_lists_the_known_ones(void **state)
{
    (void)state;
    char arguments[1200];
    snprintf(arguments, sizeof arguments, "convert '%s' '%s' --type q9", project_path("models/fable.gguf"),
             temp_path("out.gguf"));
    expect(arguments, NULL, 2, NULL, "type is 'q9', expected one of f32, f16, bf16, q8_0, q6_k, q5_k");
}

// Checks that stderr ends with the name of an existing file.
static void expect_written(const char *options, const char *suffix)
{
    char arguments[1500], name[600], path[600];
    snprintf(path, sizeof path, "%s", temp_path("written.gguf"));
    snprintf(arguments, sizeof arguments, "convert '%s' '%s' %s", project_path("models/fable.gguf"), path, options);
    snprintf(name, sizeof name, "%.*s%s", (int)strlen(path) - 5, path, suffix);
    outcome o = frit(arguments, NULL);
    assert_int_equal(o.code, 0);
    char said[700];
    snprintf(said, sizeof said, "frit: %s is written", name);
    if (!strstr(o.err, said)) fail_msg("'%s' is not said, but %s", said, o.err);
    assert_int_equal(access(name, F_OK), 0);
    outcome_free(&o);
}

static void the_file_that_was_written_is_named(void **state)
{
    (void)state;
    expect_written("", ".gguf");
    expect_written("--split-max-size 100G", ".gguf");
    expect_written("--split-max-size 10M", "-00001-of-00002.gguf");
}

static void a_plan_lists_tensors_and_writes_nothing(void **state)
{
    (void)state;
    char arguments[1500];
    snprintf(arguments, sizeof arguments, "quantize '%s' --plan --mix q3_k_m --keep 'ffn_up=q8_0' --output-type q5_k",
             shared_path("models/fable-6m-bf16.gguf"));
    outcome o = frit(arguments, NULL);
    assert_int_equal(o.code, 0);
    assert_non_null(strstr(o.out, "blk.0.attn_v.weight                      128 x 256              bf16     q5_k "));
    assert_non_null(strstr(o.out, "blk.5.ffn_up.weight                      768 x 256              bf16     q8_0 "));
    assert_non_null(strstr(o.out, "token_embd.weight                        8192 x 256             bf16     q5_k "));
    assert_non_null(strstr(o.out, "56 tensors, "));
    outcome_free(&o);
    snprintf(arguments, sizeof arguments, "quantize '%s' --plan --mix iq2_xs",
             shared_path("models/fable-6m-bf16.gguf"));
    expect(arguments, NULL, 0, "need importance: give --importance FILE", NULL);
}

static void a_mix_that_needs_importance_is_refused(void **state)
{
    (void)state;
    char arguments[1500], path[600];
    snprintf(path, sizeof path, "%s", temp_path("refused.gguf"));
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' --mix iq2_xs", shared_path("models/fable-6m-bf16.gguf"),
             path);
    expect(arguments, NULL, 2, NULL, "needs the importance of its columns");
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' --mix q4_k_x", project_path("models/fable.gguf"), path);
    expect(arguments, NULL, 2, NULL, "mix is 'q4_k_x', expected one of q8_0, q6_k, q5_k_m");
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' --mix q4_k_m --type q8_0",
             project_path("models/fable.gguf"), path);
    expect(arguments, NULL, 2, NULL, "expected one of them");
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' --refine /nonexistent", project_path("models/fable.gguf"),
             path);
    expect(arguments, NULL, 1, NULL, "/nonexistent: No such file");
    assert_int_equal(access(path, F_OK), -1);   // before long work
    snprintf(arguments, sizeof arguments, "quantize '%s'", project_path("models/fable.gguf"));
    expect(arguments, NULL, 2, NULL, "quantize: expected a model and the name of the GGUF file to write");
}

static void what_was_quantized_before_is_said(void **state)
{
    (void)state;
    char arguments[1500];
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' --mix q3_k_m", project_path("models/fable.gguf"),
             temp_path("again.gguf"));
    expect(arguments, NULL, 0, NULL, "matrices were quantized before");
}

static void expect_quantized(const char *options, const char *said, const char *not_said)
{
    char arguments[1600];
    snprintf(arguments, sizeof arguments, "quantize '%s' '%s' %s", shared_path("models/stories260k-f32.gguf"),
             temp_path("sized.gguf"), options);
    outcome o = frit(arguments, NULL);
    if (o.code != 0) fail_msg("%s: %d, %s", arguments, o.code, o.err);
    if (said && !strstr(o.err, said)) fail_msg("%s: '%s' is missing in '%s'", arguments, said, o.err);
    if (not_said && strstr(o.err, not_said)) fail_msg("%s: '%s'", arguments, o.err);
    outcome_free(&o);
}

// Refines with the text of the measurement, with a named text, or with the model's own samples.
static void a_size_is_refined_unless_it_is_to_be_fast(void **state)
{
    (void)state;
    char text[1200], options[1400];
    size_t n;
    char *valid = read_file(shared_path("models/valid.txt"), &n);
    write_file(temp_path("cli_short.txt"), valid + 100000, 1000);
    write_file(temp_path("cli_long.txt"), valid + 100000, 9000);   // some 5,000 tokens
    free(valid);
    snprintf(text, sizeof text, "%s", temp_path("cli_short.txt"));
    snprintf(options, sizeof options, "--bits 12 -t 1 -f '%s' --fast", text);
    expect_quantized(options, NULL, "refine");
    snprintf(options, sizeof options, "--bits 12 -t 1 -f '%s'", text);
    expect_quantized(options, "stays as it was rounded first: refining needs a text of at least 4096 tokens", NULL);
    snprintf(options, sizeof options, "--bits 12 -t 1 -f '%s'", temp_path("cli_long.txt"));
    expect_quantized(options, "matrices are refined", NULL);
    snprintf(options, sizeof options, "--bits 12 -t 1 -f '%s' --refine '%s'", text, temp_path("cli_long.txt"));
    expect_quantized(options, "matrices are refined", NULL);
    expect_quantized("--mix q4_0", NULL, "refine");
    expect_quantized("--mix q4_0 -t 1 --refine own --windows 8", "matrices are refined", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_that_does_not_fit_is_said),
        cmocka_unit_test(an_unknown_type_lists_the_known_ones),
        cmocka_unit_test(the_file_that_was_written_is_named),
        cmocka_unit_test(a_plan_lists_tensors_and_writes_nothing),
        cmocka_unit_test(a_mix_that_needs_importance_is_refused),
        cmocka_unit_test(what_was_quantized_before_is_said),
        cmocka_unit_test(a_size_is_refined_unless_it_is_to_be_fast),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
