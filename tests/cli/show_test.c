// SPDX-License-Identifier: MIT
// The display of files: metadata as JSON, and adapters of another kind than the option's.
#include "support/adapters.h"
#include "support/command_posix.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <jansson.h>
#include <unistd.h>

static json_t *info_json(const char *path)
{
    char arguments[1100];
    snprintf(arguments, sizeof arguments, "info --json '%s'", path);
    outcome o = frit(arguments, NULL);
    assert_int_equal(o.code, 0);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_non_null(json);
    outcome_free(&o);
    return json;
}

static void metadata_keeps_its_types_in_json(void **state)
{
    (void)state;
    json_t *json = info_json(project_path("models/fable.gguf")), *meta = json_object_get(json, "metadata");
    assert_true(json_is_integer(json_object_get(meta, "llama.block_count")));
    assert_true(json_is_real(json_object_get(meta, "llama.attention.layer_norm_rms_epsilon")));
    assert_true(json_is_string(json_object_get(meta, "general.architecture")));
    const json_t *tokens = json_object_get(meta, "tokenizer.ggml.tokens"), *first = json_object_get(tokens, "first");
    assert_int_equal(json_integer_value(json_object_get(tokens, "length")),
                     json_integer_value(json_object_get(json, "n_vocab")));
    assert_int_equal(json_array_size(first), 256);
    assert_true(json_is_string(json_array_get(first, 0)));
    const json_t *types = json_object_get(json_object_get(meta, "tokenizer.ggml.token_type"), "first");
    assert_true(json_is_integer(json_array_get(types, 0)));
    size_t n_texts = 0, n = 0;
    const char *key;
    json_t *value;
    json_object_foreach(meta, key, value) n++, n_texts += json_is_string(value);
    assert_true(n_texts < n);
    json_decref(json);
}

static void adapters_of_the_other_kind_are_refused(void **state)
{
    (void)state;
    char arguments[2048];
    char *model = strdup(shared_path("models/stories260k-f32.gguf"));
    char *lora = strdup(make_adapter("a.gguf", model, &(adapter_options){0}, NULL));
    char *vector = strdup(make_vector("v.gguf", model, 1, 1, 1));
    snprintf(arguments, sizeof arguments, "run '%s' -p x -n 1 --control-vector '%s'", model, lora);
    expect(arguments, NULL, 2, NULL, "a.gguf: the file is a low-rank adapter, which --lora takes");
    snprintf(arguments, sizeof arguments, "run '%s' -p x -n 1 --lora '%s'", model, vector);
    expect(arguments, NULL, 2, NULL, "v.gguf: the file is a control vector, which --control-vector takes");
    snprintf(arguments, sizeof arguments, "run '%s' -p x -n 1 --lora '%s:1e30'", model, lora);
    outcome o = frit(arguments, NULL);
    assert_true(o.code != 0);
    assert_non_null(strstr(o.err, "a.gguf is 1e+30, expected a number from -1e+06 to 1e+06"));
    outcome_free(&o);
    snprintf(arguments, sizeof arguments, "run '%s' -q -p x -n 1 --lora '%s' --control-vector '%s:0.5'", model, lora,
             vector);
    expect(arguments, NULL, 0, NULL, NULL);
    free(model);
    free(lora);
    free(vector);
}

static void estimates_count_adapters(void **state)
{
    (void)state;
    char arguments[2048];
    char *model = strdup(tiny_model("tiny.gguf", &(tiny_options){0}));
    char *lora = strdup(make_adapter("a.gguf", model, &(adapter_options){.rank = 64}, NULL));
    snprintf(arguments, sizeof arguments, "info '%s' --estimate --json", model);
    expect(arguments, NULL, 0, "\"adapter_bytes\": 0,", NULL);
    snprintf(arguments, sizeof arguments, "info '%s' --estimate --json --lora '%s'", model, lora);
    outcome o = frit(arguments, NULL);
    json_t *json = json_loads(o.out, 0, NULL);
    assert_in_range(json_integer_value(json_object_get(json, "adapter_bytes")), 64 * 1024, 1024 * 1024);
    json_decref(json);
    outcome_free(&o);
    snprintf(arguments, sizeof arguments, "info '%s' --estimate --lora '%s'", model, lora);
    expect(arguments, NULL, 0, "KiB, which are not free any more", NULL);
    snprintf(arguments, sizeof arguments, "info '%s' --lora '%s'", model, lora);
    expect(arguments, NULL, 2, NULL, "adapters are used by --estimate only");
    snprintf(arguments, sizeof arguments, "info '%s' --estimate --lora '%s'", model, model);
    expect(arguments, NULL, 3, NULL, "tiny.gguf");
    free(model);
    free(lora);
}

// "-" is stdout or stdin for every file argument, never a file with this name.
static void a_dash_is_never_a_file(void **state)
{
    (void)state;
    char command[4096], folder[512];
    snprintf(folder, sizeof folder, "%s", temp_path("dash"));
    const char *model = project_path("models/fable.gguf");
    static const char *const commands[] = {
        "logits '%s' -q --text 'Once' -o -",
        "perplexity '%s' -q -f /dev/null --kl-divergence-base -",

        "run '%s' -q -p x -n 1 --session -",
        "chat '%s' -q --session -",
        "bench --random llama-1b --layers 1 -p 1 -n 1 -r 1 --no-probe --save -%.0s",
        "tokenize '%s' -q --compare -",
        "convert '%s' -",
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[1200];
        snprintf(arguments, sizeof arguments, commands[i], model);
        snprintf(command, sizeof command,
                 "mkdir -p '%s' && cd '%s' && timeout 60 '%s/frit' %s >/dev/null 2>&1 </dev/null; test ! -e '%s/-'",
                 folder, folder, FRIT_BUILD_DIR, arguments, folder);
        if (system(command) != 0) fail_msg("frit %s writes a file called '-'", arguments);
    }
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(metadata_keeps_its_types_in_json),
        cmocka_unit_test(adapters_of_the_other_kind_are_refused),
        cmocka_unit_test(estimates_count_adapters),
        cmocka_unit_test(a_dash_is_never_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
