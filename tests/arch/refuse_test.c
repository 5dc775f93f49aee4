// SPDX-License-Identifier: MIT
// Invalid model files: each is refused with a sentence that names the fault.
#include "arch/tiny.h"

#include <dirent.h>
#include <math.h>

typedef struct refusal {
    tiny_change change;
    frit_status status;
    const char *sentence;   // a part of it
} refusal;

#define NUMBER(k, v)                              \
    {                                             \
        .key = k, .kind = TINY_NUMBER, .value = v \
    }
#define FLOAT(k, v)                              \
    {                                            \
        .key = k, .kind = TINY_FLOAT, .value = v \
    }
#define TEXT(k, v)                             \
    {                                          \
        .key = k, .kind = TINY_TEXT, .text = v \
    }
#define ARRAY(k, v, n)                                         \
    {                                                          \
        .key = k, .kind = TINY_ARRAY, .value = v, .n_items = n \
    }

static void check(const refusal *refusals, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tiny_model m;
        frit_status status = tiny_open(&m, &refusals[i].change);
        const char *error = frit_error();
        if (status != refusals[i].status || !strstr(error, refusals[i].sentence))
            fail_msg("case %zu: got %d \"%s\", expected %d with \"%s\"", i, (int)status, status ? error : "",
                     (int)refusals[i].status, refusals[i].sentence);
        if (!strstr(error, "tiny.gguf: ")) fail_msg("case %zu: the sentence \"%s\" does not name the file", i, error);
        tiny_close(&m);
    }
}

static void the_whole_file_is_accepted(void **state)
{
    (void)state;
    tiny_model m;
    assert_ok(tiny_open(&m, &(tiny_change){0}));
    assert_string_equal(m.arch->name, "llama");
    assert_int_equal(m.hp.n_embd, TINY_EMBD);
    assert_int_equal(m.hp.layers[1].n_head_kv, TINY_HEADS_KV);
    assert_int_equal(m.hp.layers[0].k_dim, 8);
    assert_int_equal(m.hp.rope.dim, 8);
    tiny_close(&m);
}

static void missing_keys_are_named(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {{.without = "general.architecture"}, FRIT_E_FORMAT, "general.architecture"},
        {{.without = "llama.block_count"}, FRIT_E_FORMAT, "no key 'llama.block_count', which is required"},
        {{.without = "llama.context_length"}, FRIT_E_FORMAT, "'llama.context_length'"},
        {{.without = "llama.embedding_length"}, FRIT_E_FORMAT, "'llama.embedding_length'"},
        {{.without = "llama.feed_forward_length"}, FRIT_E_FORMAT, "'llama.feed_forward_length'"},
        {{.without = "llama.attention.head_count"}, FRIT_E_FORMAT, "'llama.attention.head_count'"},
        {{.without = "llama.attention.layer_norm_rms_epsilon"},
         FRIT_E_FORMAT,
         "llama.attention.layer_norm_rms_epsilon"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void numbers_out_of_range_are_shown_with_their_range(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {NUMBER("llama.block_count", 0), FRIT_E_FORMAT, "llama.block_count is 0, expected 1 to 1024"},
        {NUMBER("llama.block_count", 1e6), FRIT_E_FORMAT, "llama.block_count is 1000000"},
        {NUMBER("llama.block_count", -1), FRIT_E_FORMAT, "llama.block_count is -1"},
        {NUMBER("llama.embedding_length", 0), FRIT_E_FORMAT, "llama.embedding_length is 0, expected 1 to 1048576"},
        {NUMBER("llama.embedding_length", 2147483648.0), FRIT_E_FORMAT, "llama.embedding_length is 2147483648"},
        {NUMBER("llama.embedding_length", -64), FRIT_E_FORMAT, "llama.embedding_length is -64"},
        {NUMBER("llama.context_length", 0), FRIT_E_FORMAT, "llama.context_length is 0"},
        {NUMBER("llama.context_length", 4294967295.0), FRIT_E_FORMAT, "llama.context_length is 4294967295"},
        {NUMBER("llama.feed_forward_length", 0), FRIT_E_FORMAT, "llama.feed_forward_length is 0"},
        {NUMBER("llama.attention.head_count", 0), FRIT_E_FORMAT, "llama.attention.head_count is 0"},
        {NUMBER("llama.attention.head_count_kv", 0), FRIT_E_FORMAT, "llama.attention.head_count_kv is 0"},
        {NUMBER("llama.attention.key_length", 0), FRIT_E_FORMAT, "llama.attention.key_length is 0"},
        {NUMBER("llama.attention.value_length", 1e9), FRIT_E_FORMAT, "llama.attention.value_length is 1"},
        {NUMBER("llama.vocab_size", 0), FRIT_E_FORMAT, "llama.vocab_size is 0"},
        {NUMBER("llama.vocab_size", 1e9), FRIT_E_FORMAT, "llama.vocab_size is 1"},
        {NUMBER("llama.attention.sliding_window", -1), FRIT_E_FORMAT, "llama.attention.sliding_window is -1"},
        {FLOAT("llama.attention.layer_norm_rms_epsilon", -1e-5), FRIT_E_FORMAT, "layer_norm_rms_epsilon is -"},
        {FLOAT("llama.attention.layer_norm_rms_epsilon", NAN), FRIT_E_FORMAT, "nan, expected 0 to 1"},
        {FLOAT("llama.attention.layer_norm_rms_epsilon", INFINITY), FRIT_E_FORMAT, "inf, expected 0 to 1"},
        {FLOAT("llama.rope.freq_base", 0), FRIT_E_FORMAT, "llama.rope.freq_base is 0"},
        {FLOAT("llama.rope.freq_base", NAN), FRIT_E_FORMAT, "llama.rope.freq_base is"},
        {FLOAT("llama.rope.scaling.factor", -2), FRIT_E_FORMAT, "llama.rope.scaling.factor is -2"},
        {FLOAT("llama.embedding_length", 2.5), FRIT_E_FORMAT, "llama.embedding_length"},
        {TEXT("llama.embedding_length", "32"), FRIT_E_FORMAT, "llama.embedding_length"},
        {TEXT("llama.rope.freq_base", "10000"), FRIT_E_FORMAT, "llama.rope.freq_base"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void heads_must_divide(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {NUMBER("llama.attention.head_count_kv", 3), FRIT_E_FORMAT,
         "llama.attention.head_count is 4 in layer 0, expected a multiple of head_count_kv 3"},
        {NUMBER("llama.attention.head_count", 6), FRIT_E_FORMAT,
         "llama.embedding_length is 32, expected a multiple of attention.head_count 6"},
        {NUMBER("llama.rope.dimension_count", 7), FRIT_E_FORMAT,
         "llama.rope.dimension_count is 7, expected an even number up to the head size 8"},
        {NUMBER("llama.rope.dimension_count", 10), FRIT_E_FORMAT, "llama.rope.dimension_count is 10"},
        {NUMBER("llama.rope.dimension_count", 0), FRIT_E_FORMAT, "llama.rope.dimension_count is 0"},
        {NUMBER("llama.attention.key_length", 7), FRIT_E_FORMAT, "llama.rope.dimension_count is 7"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void arrays_must_have_one_number_for_each_layer(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {ARRAY("llama.attention.head_count_kv", 2, 3), FRIT_E_FORMAT,
         "llama.attention.head_count_kv has 3 items, expected one for each of the 2 layers"},
        {ARRAY("llama.feed_forward_length", 48, 1), FRIT_E_FORMAT, "llama.feed_forward_length has 1 items"},
        {ARRAY("llama.block_count", 2, 2), FRIT_E_FORMAT, "llama.block_count"},
        {{.key = "llama.attention.head_count", .kind = TINY_FLOATS, .value = 4, .n_items = 2},
         FRIT_E_FORMAT,
         "llama.attention.head_count is an array of f32, expected whole numbers"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void what_is_not_supported_is_called_so(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {TEXT("general.architecture", "lama"), FRIT_E_UNSUPPORTED,
         "the architecture 'lama' is not supported; the nearest known ones are llama, "},
        {TEXT("general.architecture", "qwen33"), FRIT_E_UNSUPPORTED, "the nearest known ones are qwen3, "},
        {TEXT("general.architecture", ""), FRIT_E_UNSUPPORTED, "the architecture '' is not supported"},
        {NUMBER("general.architecture", 3), FRIT_E_FORMAT, "general.architecture"},
        {NUMBER("llama.expert_count", 8), FRIT_E_FORMAT,
         "llama.expert_used_count is 0, expected 1 to llama.expert_count, 8"},
        {TEXT("llama.rope.scaling.type", "shortrope"), FRIT_E_UNSUPPORTED,
         "llama.rope.scaling.type is 'shortrope', expected none, linear, yarn, dynamic, llama3 or longrope"},
        {TEXT("frit.rope.style", "sideways"), FRIT_E_FORMAT, "frit.rope.style is 'sideways'"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void tensors_must_be_those_of_the_architecture(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {{.without = "blk.1.attn_k.weight"},
         FRIT_E_FORMAT,
         "tensor 'blk.1.attn_k.weight' is missing, expected with the shape ["},
        {{.without = "token_embd.weight"}, FRIT_E_FORMAT, "tensor 'token_embd.weight' is missing"},
        {{.without = "output_norm.weight"}, FRIT_E_FORMAT, "tensor 'output_norm.weight' is missing"},
        {{.tensor = "blk.0.attn_k.weight", .shape = {32, 32}},
         FRIT_E_FORMAT,
         "tensor 'blk.0.attn_k.weight' has the shape [32, 32], expected [16, 32]"},
        {{.tensor = "blk.0.attn_k.weight", .shape = {32, 16}},
         FRIT_E_FORMAT,
         "has the shape [32, 16], expected [16, 32]"},
        {{.tensor = "output_norm.weight", .shape = {31, 0}}, FRIT_E_FORMAT, "has the shape [31], expected [32]"},
        {{.tensor = "output_norm.weight", .shape = {32, 2}}, FRIT_E_FORMAT, "has the shape [32, 2], expected [32]"},
        {{.tensor = "token_embd.weight", .shape = {21, 32}},
         FRIT_E_FORMAT,
         "tensor 'token_embd.weight' has the shape [21, 32], expected [20, 32]"},
        {{.tensor = "blk.0.attn_q_norm.weight", .shape = {8, 0}},
         FRIT_E_FORMAT,
         "tensor 'blk.0.attn_q_norm.weight' is not expected in the architecture 'llama' (1 such tensors); its shape is "
         "["},
        {{.tensor = "blk.2.attn_norm.weight", .shape = {32, 0}},
         FRIT_E_FORMAT,
         "'blk.2.attn_norm.weight' is not expected"},
        {{.tensor = "token_embd.scale", .shape = {1, 0}}, FRIT_E_FORMAT, "'token_embd.scale' is not expected"},
        {{.tensor = "blk.0.attn_q.bias", .shape = {31, 0}},
         FRIT_E_FORMAT,
         "'blk.0.attn_q.bias' has the shape [31], expected [32]"},
        {{.tensor = "blk.0.attn_q.scale", .shape = {2, 0}},
         FRIT_E_FORMAT,
         "'blk.0.attn_q.scale' has the shape [2], expected [32]"},
        {{.tensor = "rope_freqs.weight", .shape = {8, 0}},
         FRIT_E_FORMAT,
         "'rope_freqs.weight' has the shape [8], expected [4]"},
        {NUMBER("llama.block_count", 1), FRIT_E_FORMAT, "is not expected in the architecture 'llama' (9 such tensors)"},
        {NUMBER("llama.block_count", 3), FRIT_E_FORMAT, "tensor 'blk.2.attn_norm.weight' is missing"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static void vectors_must_have_finite_numbers(void **state)
{
    (void)state;
    static const refusal refusals[] = {
        {{.tensor = "blk.1.ffn_norm.weight", .poison = NAN}, FRIT_E_FORMAT, "'blk.1.ffn_norm.weight': element"},
        {{.tensor = "output_norm.weight", .poison = -INFINITY},
         FRIT_E_FORMAT,
         "'output_norm.weight': element 31 is -inf"},
        {{.tensor = "output_norm.weight", .dtype = FRIT_DTYPE_BF16, .poison = NAN}, FRIT_E_FORMAT, "element 31 is nan"},
        {{.tensor = "output_norm.weight", .dtype = FRIT_DTYPE_F16, .poison = INFINITY},
         FRIT_E_FORMAT,
         "element 31 is inf"},
        {{.tensor = "blk.0.attn_q.bias", .shape = {32, 0}, .poison = NAN},
         FRIT_E_FORMAT,
         "'blk.0.attn_q.bias': element"},
        {{.tensor = "rope_freqs.weight", .shape = {4, 0}, .poison = -1},
         FRIT_E_FORMAT,
         "'rope_freqs.weight': element 3 is -1, expected a number above 0"},
    };
    check(refusals, FRIT_COUNT(refusals));
}

static frit_status read_file_as_model(const char *path)
{
    tiny_model m = {0};
    assert_ok(frit_checkpoint_open(&m.ckpt, path, &(frit_checkpoint_options){0}));
    frit_status status = tiny_read(&m);
    tiny_close(&m);
    return status;
}

static bool is_known(const char *file)
{
    char name[256] = "";
    snprintf(name, sizeof name, "%s", file);
    char *kind = strrchr(name, '-');
    if (!kind) return false;
    *kind = 0;
    return frit_arch_find(name) != NULL;
}

static void files_of_every_architecture_are_read_or_called_unsupported(void **state)
{
    (void)state;
    const char *folder = shared_path("goldens/arch");
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len < 5 || strcmp(entry->d_name + len - 5, ".gguf") != 0) continue;
        frit_status status = read_file_as_model(shared_path("goldens/arch/%s", entry->d_name));
        if (status != (is_known(entry->d_name) ? FRIT_OK : FRIT_E_UNSUPPORTED))
            fail_msg("%s: %d %s", entry->d_name, (int)status, frit_error());
        n++;
    }
    closedir(dir);
    assert_in_range(n, shared_least(50), 1000);
}

static void models_of_this_project_are_read(void **state)
{
    (void)state;
    assert_ok(read_file_as_model(shared_path("models/fable-30m-q4_k_m.gguf")));
    assert_ok(read_file_as_model(shared_path("models/fable-6m-bf16.gguf")));
    assert_ok(read_file_as_model(shared_path("models/stories260k-f32.gguf")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_file_is_accepted),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(numbers_out_of_range_are_shown_with_their_range),
        cmocka_unit_test(heads_must_divide),
        cmocka_unit_test(arrays_must_have_one_number_for_each_layer),
        cmocka_unit_test(what_is_not_supported_is_called_so),
        cmocka_unit_test(tensors_must_be_those_of_the_architecture),
        cmocka_unit_test(vectors_must_have_finite_numbers),
        cmocka_unit_test(files_of_every_architecture_are_read_or_called_unsupported),
        cmocka_unit_test(models_of_this_project_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
