// SPDX-License-Identifier: MIT
// JSON of a model's folder is read as Python reads it.
#include "format/json.h"
#include "format/folder_build.h"

static void expect(const char *text, const char *expected)
{
    json_error_t error;
    json_t *json = frit_json_read(text, strlen(text), JSON_DECODE_ANY, &error);
    if (!json) fail_msg("%s: %s", text, error.text);
    char *is = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(is, expected);
    free(is);
    json_decref(json);
}

static void infinity_and_nan_are_words(void **state)
{
    (void)state;
    expect("{\"a\": [0.0, Infinity], \"b\": -Infinity, \"c\":NaN}",
           "{\"a\":[0.0,\"Infinity\"],\"b\":\"-Infinity\",\"c\":\"NaN\"}");
    expect("[1e999,-1e999, 0.5]", "[\"Infinity\",\"-Infinity\",0.5]");
    expect("NaN", "\"NaN\"");
    expect("{\"NaN\": \"Infinity, \\\" NaN\", \"b\": NaN}", "{\"NaN\":\"Infinity, \\\" NaN\",\"b\":\"NaN\"}");
}

static void the_last_of_equal_keys_counts(void **state)
{
    (void)state;
    expect("{\"a\": 1, \"b\": NaN, \"a\": 2}", "{\"a\":2,\"b\":\"NaN\"}");
    expect("{\"a\": 1, \"a\": {\"b\": 3, \"b\": 4}}", "{\"a\":{\"b\":4}}");
}

static void long_whole_numbers_and_a_byte_order_mark_are_taken(void **state)
{
    (void)state;
    expect("[1000000000000000019884624838656, -5]", "[1e30,-5]");
    expect("\xef\xbb\xbf{\"a\": 1}", "{\"a\":1}");
}

static void half_a_pair_and_zero_are_replaced(void **state)
{
    (void)state;
    expect("[\"a\\ud800\", \"\\uDC00b\", \"\\ud83d\\ude00\", \"\\ud800\\ud83d\\ude00\"]",
           "[\"a\xef\xbf\xbd\",\"\xef\xbf\xbd"
           "b\",\"\xf0\x9f\x98\x80\",\"\xef\xbf\xbd\xf0\x9f\x98\x80\"]");
    expect("{\"a\": \"b\\u0000c\", \"d\": \"\\\\u0000\\\\\"}", "{\"a\":\"b\xef\xbf\xbd"
                                                               "c\",\"d\":\"\\\\u0000\\\\\"}");
    json_t *json = frit_json_read("[\"\\u0000\", NaN]", 15, JSON_ALLOW_NUL, NULL);
    assert_int_equal(json_string_length(json_array_get(json, 0)), 1);
    assert_int_equal(json_string_value(json_array_get(json, 0))[0], 0);
    json_decref(json);
}

static void another_encoding_is_named(void **state)
{
    (void)state;
    static const char utf16[] = "\xff\xfe{\0}\0";
    json_error_t error;
    assert_null(frit_json_read(utf16, sizeof utf16 - 1, 0, &error));
    assert_string_equal(error.text, "the text is UTF-16, expected UTF-8");
}

static void what_python_refuses_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"[nan]", "[+Infinity]", "[inf]", "[01]",         "[.5]",        "{\"a\": NaNs}",
                                        "[NaN",  "\"NaN",       "",      "[\"\\ud80\"]", "[\"\\u00\"]", "[\"\\"};
    json_error_t error;
    for (size_t i = 0; i < FRIT_COUNT(texts); i++)
        if (frit_json_read(texts[i], strlen(texts[i]), JSON_DECODE_ANY, &error)) fail_msg("%s is taken", texts[i]);
    assert_null(frit_json_read("[1,\n2,\nNaN x]", 13, 0, &error));
    assert_int_equal(error.line, 3);
}

static void folders_with_such_files_open(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    double value = 0;
    json_t *config = json_loads(tiny_config, 0, NULL);
    char *text = json_dumps(config, 0);
    frit_buf whole = {0};
    text[strlen(text) - 1] = 0;
    frit_buf_printf(
        &whole, "%s, \"time_step_limit\": [0.0, Infinity], \"x\": NaN, \"vocab_size\": 7, \"vocab_size\": 3}", text);
    write_config(whole.data);
    static const char generation[] = "{\"top_k\": 5, \"x\": -Infinity, \"top_k\": 7}";
    write_file(in_folder("generation_config.json"), generation, strlen(generation));
    assert_ok(open_tiny(&ckpt));
    assert_ok(frit_meta_get_f64(&ckpt->meta, "llama.vocab_size", &value, NULL));
    assert_true(value == 3);
    assert_ok(frit_meta_get_f64(&ckpt->meta, "general.sampling.top_k", &value, NULL));
    assert_true(value == 7);
    frit_checkpoint_close(ckpt);
    // A whole number may be written with a point.
    frit_buf_clear(&whole);
    frit_buf_printf(&whole, "%s, \"max_position_embeddings\": 2.048e3}", text);
    write_config(whole.data);
    assert_ok(open_tiny(&ckpt));
    assert_ok(frit_meta_get_f64(&ckpt->meta, "llama.context_length", &value, NULL));
    assert_true(value == 2048);
    frit_checkpoint_close(ckpt);
    frit_buf_clear(&whole);
    frit_buf_printf(&whole, "%s, \"max_position_embeddings\": 2048.5}", text);
    write_config(whole.data);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "max_position_embeddings is 2048.5, expected a whole number");
    // Where a number is required, all of them are refused.
    frit_buf_clear(&whole);
    frit_buf_printf(&whole, "%s, \"rms_norm_eps\": NaN}", text);
    write_config(whole.data);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "rms_norm_eps is \"NaN\", expected a number");
    frit_buf_clear(&whole);
    frit_buf_printf(&whole, "%s, \"rope_theta\": 1e999}", text);
    write_config(whole.data);
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "rope_theta is \"Infinity\", expected a number");
    frit_buf_free(&whole);
    free(text);
    json_decref(config);
}

static void configurations_with_infinity_are_the_reference_ones(void **state)
{
    (void)state;
    static const char *const names[] = {"nemotron_h", "mamba2"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        size_t n_bytes;
        json_error_t error;
        char *text = read_file(shared_path("bugs/02-config-json-infinity/%s/config.json", names[i]), &n_bytes);
        json_t *json = frit_json_read(text, n_bytes, 0, &error);
        if (!json) fail_msg("%s: line %d: %s", names[i], error.line, error.text);
        assert_string_equal(json_string_value(json_array_get(json_object_get(json, "time_step_limit"), 1)), "Infinity");
        json_decref(json);
        free(text);
    }
    frit_checkpoint *ckpt;
    assert_ok(frit_checkpoint_open(&ckpt, shared_path("bugs/02-config-json-infinity/llama-unread-key"), NULL));
    frit_checkpoint_close(ckpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(infinity_and_nan_are_words),
        cmocka_unit_test(the_last_of_equal_keys_counts),
        cmocka_unit_test(long_whole_numbers_and_a_byte_order_mark_are_taken),
        cmocka_unit_test(half_a_pair_and_zero_are_replaced),
        cmocka_unit_test(another_encoding_is_named),
        cmocka_unit_test(what_python_refuses_is_refused),
        cmocka_unit_test_setup(folders_with_such_files_open, make_folder),
        cmocka_unit_test(configurations_with_infinity_are_the_reference_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
