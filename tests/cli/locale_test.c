// SPDX-License-Identifier: MIT
// A program that embeds the library may run in a locale with a decimal comma: numbers that are read or written, and the
// command's output, stay the same.
#include "support/locale.h"
#include "support/support.h"

#include "base/option.h"
#include "convert/convert.h"
#include "convert/random.h"
#include "text/json_reader.h"
#include "text/template/template.h"

#include <jansson.h>
#include <locale.h>

static const frit_random_row row = {
    .shape = {.name = "llama", .arch = "llama", .title = "", .n_layers = 1},
    .keys = "context_length=64 embedding_length=32 feed_forward_length=64 attention.head_count=2 "
            "attention.head_count_kv=2 attention.layer_norm_rms_epsilon=1.5e-5 rope.freq_base=12345.5 vocab_size=40"};

static void add_model(frit_buf *out)
{
    const frit_random_options options = {.type = "f32", .n_threads = 1};
    const char *path = temp_path("locale.gguf");
    frit_checkpoint *ckpt;
    frit_model *model;
    assert_ok(frit_random_open(&ckpt, &row, &options));
    for (size_t i = 0; i < ckpt->meta.n; i++) {
        frit_value_print(&ckpt->meta.pairs[i].value, -1, out);
        frit_buf_char(out, '\n');
    }
    assert_ok(frit_random_save(ckpt, path, &options));
    frit_checkpoint_close(ckpt);
    assert_ok(frit_model_open(&model, path, NULL));
    frit_model_free(model);
}

static void add_template(frit_buf *out)
{
    static const char source[] =
        "{{ 0.75 }} {{ 1e-7 }} {{ '1.5' | float + 1 }} {{ '-Inf' | float }} {{ 3.14159 | round(2) }} "
        "{{ 1234567 | filesizeformat }} {{ '%.2f' | format(2.5) }} {{ {'a': 0.1} | tojson }}\n";
    frit_template *template;
    json_t *variables = json_object();
    const struct tm now = {.tm_year = 126, .tm_mday = 2};
    assert_ok(frit_template_new(&template, (frit_str){source, sizeof source - 1}));
    assert_ok(frit_template_render(template, variables, &now, out, NULL));
    frit_template_free(template);
    json_decref(variables);
}

static void add_json(frit_buf *out)
{
    static const char text[] = "[0.5, -12.75e-1, 0.1234567890123456789012345678, 1e300, 7]";
    frit_pull pull = {.begin = text, .at = text, .end = text + sizeof text - 1, .path = "numbers"};
    for (bool more = frit_pull_open(&pull, '['); more; more = frit_pull_more(&pull, ']')) {
        double number = 0;
        frit_pull_number(&pull, &number);
        frit_buf_printf(out, "%.17g ", number);
    }
    assert_int_equal(pull.status, FRIT_OK);
    json_t *parsed = json_loads(text, 0, NULL);   // the reader of config.json
    for (size_t i = 0; i < json_array_size(parsed); i++)
        frit_buf_printf(out, "%.17g ", json_number_value(json_array_get(parsed, i)));
    char *written = json_dumps(parsed, JSON_REAL_PRECISION(9));
    frit_buf_printf(out, "%s\n", written);
    free(written);
    json_decref(parsed);
}

static void add_options(frit_buf *out)
{
    frit_sampler_options sampler = {0};
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        if (rows[i].type != FRIT_OPTION_FLOAT) continue;
        assert_ok(frit_option_set(&rows[i], &sampler, rows[i].min > 0 ? "1.25" : "0.25"));
        float value;
        memcpy(&value, (const char *)&sampler + rows[i].offset, sizeof value);
        frit_buf_printf(out, "%s=%g ", rows[i].name, (double)value);
        frit_option_set(&rows[i], &sampler, "0,25");
        frit_buf_printf(out, "%s\n", frit_error());
    }
    assert_fails(frit_convert("a", "b.gguf", &(frit_convert_options){.split_max_size = "1.5 G"}), FRIT_E_INVALID,
                 "1.5 G");
    assert_fails(frit_convert("a", "b.gguf", &(frit_convert_options){.split_max_size = "1.5G"}), FRIT_E_NOT_FOUND, "a");
}

static void everything(frit_buf *out)
{
    add_model(out);
    add_template(out);
    add_json(out);
    add_options(out);
}

static void the_library_reads_and_writes_the_same_numbers(void **state)
{
    (void)state;
    frit_buf plain = {0}, with_comma = {0};
    everything(&plain);
    enter_comma_locale();
    everything(&with_comma);
    const bool stayed = strcmp(localeconv()->decimal_point, ",") == 0;
    leave_comma_locale();
    assert_true(stayed);
    assert_string_equal(with_comma.data, plain.data);
    assert_non_null(strstr(plain.data, "12345.5\n"));
    assert_non_null(strstr(plain.data, "0.75 1e-07 2.5 -inf 3.14 1.2 MB 2.50 {\"a\": 0.1}"));
    assert_non_null(strstr(plain.data, "[0.5, -1.275, "));
    frit_buf_free(&plain);
    frit_buf_free(&with_comma);
}

// Runs the command and returns its output without times.
static char *output_of(const char *environment, const char *arguments)
{
    char command[2048], out[512];
    snprintf(out, sizeof out, "%s", temp_path("out"));
    snprintf(command, sizeof command, "%s '%s/frit' %s >'%s' 2>&1 </dev/null", environment, FRIT_BUILD_DIR, arguments,
             out);
    if (system(command) != 0) fail_msg("%s: %s", command, read_file(out, NULL));
    return read_file(out, NULL);
}

static void the_command_prints_the_same_numbers(void **state)
{
    (void)state;
    char environment[1024], text[512], arguments[1024];
    snprintf(environment, sizeof environment, "LC_ALL=xx_XX LOCPATH='%s'", enter_comma_locale());
    leave_comma_locale();
    snprintf(text, sizeof text, "%s", temp_path("text"));
    char words[4096] = "";
    for (int i = 0; i < 80; i++) strcat(words, "Once upon a time there was a king. ");
    write_file(text, words, strlen(words));
    snprintf(arguments, sizeof arguments, "perplexity -c 64 -f '%s'", text);
    const char *const all[] = {"info --json", "info", arguments, "embed -p 'a king'", "template --help"};
    for (size_t i = 0; i < FRIT_COUNT(all); i++) {
        char *plain = output_of("LC_ALL=C", all[i]), *with_comma = output_of(environment, all[i]);
        assert_string_equal(with_comma, plain);
        free(plain);
        free(with_comma);
    }
    char *json = output_of(environment, "run --json -q --temp 0 -n 3 -p Hello");   // its seconds have fractions
    json_t *parsed = json_loads(json, 0, NULL);
    if (!parsed || !json_is_real(json_object_get(json_object_get(parsed, "seconds"), "prompt"))) fail_msg("%s", json);
    json_decref(parsed);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_library_reads_and_writes_the_same_numbers),
        cmocka_unit_test(the_command_prints_the_same_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
