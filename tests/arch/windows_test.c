// SPDX-License-Identifier: MIT
// Sliding windows by layer: from a folder's config.json to the hyperparameters.
#include "arch/arch.h"
#include "support/support.h"

#include <sys/stat.h>
#include <unistd.h>

// Writes the reference model of Qwen 2, three layers, with other windows in its configuration.
static const char *write_folder(const char *name, const char *windows)
{
    static char path[4096], file[4200];
    char config[1000];
    snprintf(path, sizeof path, "%s", temp_path(name));
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(file, sizeof file, "%s/model.safetensors", path);
    char *weights = realpath(shared_path("goldens/hf/qwen2/model.safetensors"), NULL);
    assert_non_null(weights);
    assert_int_equal(symlink(weights, file), 0);
    free(weights);
    int n = snprintf(config, sizeof config,
                     "{\"model_type\":\"qwen2\",\"vocab_size\":512,\"hidden_size\":64,\"intermediate_size\":96,"
                     "\"num_hidden_layers\":3,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
                     "\"max_position_embeddings\":256,\"sliding_window\":16,%s}",
                     windows);
    snprintf(file, sizeof file, "%s/config.json", path);
    write_file(file, config, (size_t)n);
    return path;
}

static void expect_windows(const char *path, const int windows[3])
{
    frit_checkpoint *ckpt;
    const frit_arch *arch;
    frit_hparams hp;
    frit_arena arena = {0};
    assert_ok(frit_checkpoint_open(&ckpt, path, NULL));
    assert_ok(frit_arch_of(&arch, ckpt));
    assert_ok(frit_hparams_read(&hp, arch, ckpt, &arena));
    for (int i = 0; i < 3; i++) assert_int_equal(hp.layers[i].window, windows[i]);
    frit_arena_free(&arena);
    frit_checkpoint_close(ckpt);
}

static void windows_of_qwen_reach_the_layers_that_slide(void **state)
{
    (void)state;
    expect_windows(write_folder("all", "\"use_sliding_window\":true,\"max_window_layers\":0"), (int[]){16, 16, 16});
    expect_windows(write_folder("upper", "\"use_sliding_window\":true,\"max_window_layers\":1"), (int[]){0, 16, 16});
    expect_windows(write_folder("none", "\"use_sliding_window\":false,\"max_window_layers\":0"), (int[]){0, 0, 0});
}

static frit_status read_windows(frit_value value)
{
    frit_checkpoint *ckpt;
    const frit_arch *arch = frit_arch_find("llama");
    frit_hparams hp;
    frit_arena arena = {0};
    assert_ok(frit_checkpoint_open(&ckpt, shared_path("goldens/hf/llama"), NULL));
    assert_ok(frit_meta_add(&ckpt->meta, frit_str_of("frit.attention.sliding_window"), value));
    frit_status status = frit_hparams_read(&hp, arch, ckpt, &arena);
    frit_arena_free(&arena);
    frit_checkpoint_close(ckpt);
    return status;
}

static void windows_that_do_not_fit_the_layers_are_refused(void **state)
{
    (void)state;
    static const int32_t two[] = {16, 16}, negative[] = {16, -1, 0};
    static const float floats[] = {1, 1, 1};
    const frit_value number = {.type = FRIT_VALUE_U32, .u = 16};
    const frit_value bad_count = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_I32, 2, two}};
    const frit_value bad_number = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_I32, 3, negative}};
    const frit_value bad_type = {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_F32, 3, floats}};
    assert_fails(read_windows(number), FRIT_E_FORMAT, "frit.attention.sliding_window is not an array");
    assert_fails(read_windows(bad_count), FRIT_E_FORMAT, "frit.attention.sliding_window has 2 items");
    assert_fails(read_windows(bad_number), FRIT_E_FORMAT, "frit.attention.sliding_window is -1");
    assert_fails(read_windows(bad_type), FRIT_E_FORMAT, "frit.attention.sliding_window is an array of f32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_qwen_reach_the_layers_that_slide),
        cmocka_unit_test(windows_that_do_not_fit_the_layers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
