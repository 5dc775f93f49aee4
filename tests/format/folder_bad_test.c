// SPDX-License-Identifier: MIT
// Hugging Face folders that are refused, each with an error; and tensors that are left out with a warning.
#include "format/folder_build.h"

#include <unistd.h>

// Changes to a valid configuration.
static const struct {
    const char *changes;
    frit_status status;
    const char *part;
} faults[] = {
    {"{\"model_type\":\"klingon\"}", FRIT_E_UNSUPPORTED,
     "model_type 'klingon' is not supported; the nearest known ones are "},
    {"{\"model_type\":\"lama\"}", FRIT_E_UNSUPPORTED, "the nearest known ones are llama, "},
    {"{\"model_type\":\"qwen33_moe\"}", FRIT_E_UNSUPPORTED, "the nearest known ones are qwen3_moe, qwen2_moe, "},
    {"{\"model_type\":7}", FRIT_E_FORMAT, "model_type is 7, expected text"},
    {"{\"-model_type\":0}", FRIT_E_UNSUPPORTED, "neither a model_type nor a list of architectures"},
    {"{\"-model_type\":0,\"architectures\":[\"LlamoForCausalLM\"]}", FRIT_E_UNSUPPORTED,
     "architecture 'LlamoForCausalLM' is not supported; the nearest known ones are LlamaForCausalLM, "},
    {"{\"-model_type\":0,\"architectures\":\"LlamaForCausalLM\"}", FRIT_E_UNSUPPORTED, "neither a model_type"},
    {"{\"quantization_config\":{\"quant_method\":\"hqq\"}}", FRIT_E_UNSUPPORTED, "quant_method 'hqq'"},
    {"{\"hidden_act\":\"gelu\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'gelu'"},
    {"{\"hidden_act\":\"sil\"}", FRIT_E_UNSUPPORTED, "hidden_act is 'sil'"},
    {"{\"hidden_act\":[]}", FRIT_E_FORMAT, "hidden_act is [], expected text"},
    {"{\"hidden_act\":null}", FRIT_E_FORMAT, "hidden_act is null, expected text"},
    {"{\"bos_token_id\":\"x\"}", FRIT_E_FORMAT, "bos_token_id is \"x\", expected a token id below 3"},
    {"{\"bos_token_id\":3}", FRIT_E_FORMAT, "bos_token_id is 3, expected a token id below 3"},
    {"{\"eos_token_id\":[1,3]}", FRIT_E_FORMAT, "eos_token_id is 3, expected a token id below 3"},
    {"{\"eos_token_id\":[1,\"x\"]}", FRIT_E_FORMAT, "eos_token_id is \"x\""},
    {"{\"eos_token_id\":-2}", FRIT_E_FORMAT, "eos_token_id is -2"},
    {"{\"hidden_size\":null}", FRIT_E_FORMAT, "hidden_size is null"},
    {"{\"-num_hidden_layers\":0}", FRIT_E_FORMAT, "tensor 'model.layers.1.input_layernorm.weight' is missing"},
    {"{\"num_hidden_layers\":0}", FRIT_E_FORMAT, "num_hidden_layers is 0, expected a whole number from 1 to 10000"},
    {"{\"num_hidden_layers\":-1}", FRIT_E_FORMAT, "num_hidden_layers is -1"},
    {"{\"num_hidden_layers\":1.5}", FRIT_E_FORMAT, "num_hidden_layers is 1.5"},
    {"{\"num_hidden_layers\":\"1\"}", FRIT_E_FORMAT, "num_hidden_layers is \"1\""},
    {"{\"num_hidden_layers\":true}", FRIT_E_FORMAT, "num_hidden_layers is true"},
    {"{\"num_hidden_layers\":[1]}", FRIT_E_FORMAT, "num_hidden_layers is [1]"},
    {"{\"num_attention_heads\":1000000000}", FRIT_E_FORMAT, "num_attention_heads is 1000000000"},
    {"{\"num_attention_heads\":9223372036854775807}", FRIT_E_FORMAT, "num_attention_heads is 9223372036854775807"},
    {"{\"num_key_value_heads\":0}", FRIT_E_FORMAT, "num_key_value_heads is 0"},
    {"{\"num_key_value_heads\":3}", FRIT_E_FORMAT, "2 attention heads, expected a multiple of the 3"},
    {"{\"num_attention_heads\":8}", FRIT_E_FORMAT, "heads have 0 elements"},
    {"{\"head_dim\":3}", FRIT_E_FORMAT, "heads have 3 elements, expected an even number"},
    {"{\"num_attention_heads\":65536,\"head_dim\":65536}", FRIT_E_FORMAT, "65536 heads of 65536 elements"},
    {"{\"vocab_size\":2147483648}", FRIT_E_FORMAT, "vocab_size is 2147483648"},
    {"{\"rms_norm_eps\":-1e-6}", FRIT_E_FORMAT, "rms_norm_eps is -1e-6"},
    {"{\"rms_norm_eps\":null}", FRIT_E_FORMAT, "rms_norm_eps is null"},
    {"{\"rms_norm_eps\":\"1e-6\"}", FRIT_E_FORMAT, "rms_norm_eps is \"1e-6\""},
    {"{\"rope_theta\":0}", FRIT_E_FORMAT, "rope_theta is 0"},
    {"{\"rope_scaling\":7}", FRIT_E_FORMAT, "rope_scaling is not an object"},
    {"{\"rope_scaling\":{\"type\":\"shortrope\"}}", FRIT_E_UNSUPPORTED, "rope_scaling.rope_type is 'shortrope'"},
    {"{\"rope_scaling\":{\"type\":1}}", FRIT_E_FORMAT, "rope_scaling.type is 1, expected text"},
    {"{\"rope_scaling\":{\"type\":\"linear\"}}", FRIT_E_FORMAT, "rope_scaling.factor is missing"},
    {"{\"rope_scaling\":{\"type\":\"linear\",\"factor\":0}}", FRIT_E_FORMAT, "rope_scaling.factor is 0"},
    {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":\"4\"}}", FRIT_E_FORMAT, "rope_scaling.factor is \"4\""},
    {"{\"rope_scaling\":{\"type\":\"longrope\",\"long_factor\":[1,2,3]}}", FRIT_E_FORMAT,
     "rope_scaling.long_factor is not a list of 1 numbers"},
    {"{\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"mscale\":[]}}", FRIT_E_FORMAT, "rope_scaling.mscale is []"},
    {"{\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":4}}", FRIT_E_FORMAT,
     "rope_parameters.low_freq_factor is missing"},
    {"{\"rope_parameters\":{\"rope_type\":\"llama3\",\"factor\":4,\"low_freq_factor\":4,\"high_freq_factor\":4}}",
     FRIT_E_FORMAT, "low_freq_factor is not less than high_freq_factor"},
    {"{\"rope_parameters\":{\"full_attention\":{}}}", FRIT_E_UNSUPPORTED, "rope_parameters.full_attention"},
    {"{\"partial_rotary_factor\":0}", FRIT_E_FORMAT, "partial_rotary_factor is 0"},
    {"{\"tie_word_embeddings\":1}", FRIT_E_FORMAT, "tie_word_embeddings is 1, expected true or false"},
    {"{\"attention_bias\":\"yes\"}", FRIT_E_FORMAT, "attention_bias is \"yes\""},
    {"{\"attention_bias\":true}", FRIT_E_FORMAT, "tensor 'model.layers.0.self_attn.q_proj.bias' is missing"},
    {"{\"num_hidden_layers\":2}", FRIT_E_FORMAT, "tensor 'model.layers.1.input_layernorm.weight' is missing"},
    {"{\"model_type\":\"qwen2\"}", FRIT_E_FORMAT, "tensor 'model.layers.0.self_attn.q_proj.bias' is missing"},
    {"{\"model_type\":\"gemma\",\"num_key_value_heads\":null}", FRIT_E_FORMAT, "num_key_value_heads is null"},
    {"{\"model_type\":\"gemma\",\"use_bidirectional_attention\":true}", FRIT_E_UNSUPPORTED,
     "use_bidirectional_attention"},
    {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"layer_types\":[]}", FRIT_E_FORMAT,
     "layer_types is not a list of 1"},
    {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"layer_types\":[\"mamba\"]}", FRIT_E_UNSUPPORTED,
     "layer_types[0] is 'mamba'"},
    {"{\"model_type\":\"qwen2\",\"use_sliding_window\":true,\"layer_types\":[5]}", FRIT_E_UNSUPPORTED,
     "layer_types[0] is 'not text'"},
    {"{\"model_type\":\"mistral\",\"sliding_window\":0}", FRIT_E_FORMAT, "sliding_window is 0"},
};

static void every_fault_of_a_configuration_has_its_sentence(void **state)
{
    (void)state;
    for (size_t i = 0; i < FRIT_COUNT(faults); i++) {
        frit_checkpoint *ckpt;
        write_changed_config(faults[i].changes);
        frit_status status = open_tiny(&ckpt);
        if (status != faults[i].status || !strstr(frit_error(), faults[i].part) || !strstr(frit_error(), folder_path))
            fail_msg("%s: got %d \"%s\", expected %d with \"%s\"", faults[i].changes, (int)status, frit_error(),
                     (int)faults[i].status, faults[i].part);
    }
}

static void a_configuration_that_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "{", "{\"a\":nan}", "\xff\xfe{}", "{}{}"};
    frit_checkpoint *ckpt;
    for (size_t i = 0; i < FRIT_COUNT(texts); i++) {
        write_config(texts[i]);
        assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "config.json: not valid JSON in line");
    }
    write_config("[]");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "config.json: not a JSON object");
    for (size_t n = 0; n < strlen(tiny_config); n++) {
        write_file(in_folder("config.json"), tiny_config, n);
        assert_int_equal(open_tiny(&ckpt), FRIT_E_FORMAT);
    }
}

static void a_folder_without_its_files_says_which(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    assert_int_equal(unlink(in_folder("model.safetensors")), 0);
    assert_fails(open_tiny(&ckpt), FRIT_E_NOT_FOUND, "neither model.safetensors nor model.safetensors.index.json");
    write_file(in_folder("pytorch_model.bin"), "\200\002", 2);
    assert_fails(open_tiny(&ckpt), FRIT_E_UNSUPPORTED, "Python pickle (pytorch_model.bin)");
    assert_int_equal(unlink(in_folder("config.json")), 0);
    assert_fails(open_tiny(&ckpt), FRIT_E_NOT_FOUND, "has no config.json");
    assert_null(ckpt);
}

static void a_missing_tensor_is_named_as_the_folder_names_it(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    for (size_t i = 0; i < FRIT_COUNT(tiny_tensors); i++) {
        write_weights(tiny_tensors[i].name, NULL, NULL);
        assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, tiny_tensors[i].name);
    }
    write_weights("lm_head.weight", NULL, NULL);
    write_changed_config("{\"tie_word_embeddings\":true}");
    assert_ok(open_tiny(&ckpt));
    assert_null(frit_checkpoint_find(ckpt, "output.weight"));
    frit_checkpoint_close(ckpt);
}

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    assert_int_equal(level, FRIT_LOG_WARNING);
    snprintf(ctx, 500, "%s", sentence);
}

static void tensors_without_a_place_are_warned_of_and_left_out(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool warned;
    } rows[] = {
        {"model.layers.0.self_attn.extra.weight", true},
        {"model.layers.1.mlp.up_proj.weight", true},   // a layer beyond the last
        {"model.layers.00.mlp.up_proj.weight", true},
        {"model.layers.99999999999999999999.mlp.up_proj.weight", true},
        {"model.layers..mlp.up_proj.weight", true},
        {"model.layers.0.mlp.up_proj.scale", true},
        {"model.layers.0.self_attn.q_proj.bias", true},   // attention_bias is not set
        {"model.layers.0.self_attn.rotary_emb.inv_freq", false},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char sentence[500] = "";
        frit_log log = {remember, sentence};
        frit_checkpoint *ckpt;
        write_weights(NULL, rows[i].name, "U8");
        assert_ok(frit_checkpoint_open(&ckpt, folder_path, &(frit_checkpoint_options){.log = &log}));
        assert_int_equal(ckpt->n_tensors, FRIT_COUNT(tiny_tensors));
        assert_int_equal(strstr(sentence, rows[i].name) != NULL, rows[i].warned);
        frit_checkpoint_close(ckpt);
    }
}

static void a_tensor_of_an_unsupported_type_is_refused_where_it_is_needed(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    write_weights("model.norm.weight", "model.norm.weight", "F8_E4M3");
    assert_fails(open_tiny(&ckpt), FRIT_E_UNSUPPORTED, "'model.norm.weight' has the type F8_E4M3");
    write_weights("model.norm.weight", "model.norm.weight", "I8");
    write_changed_config("{\"model_type\":\"gemma\",\"tie_word_embeddings\":null}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "'model.norm.weight' is not a vector of f32");
}

static void a_cut_file_of_weights_is_refused_at_any_byte(void **state)
{
    (void)state;
    size_t n_bytes;
    char *bytes = read_file(in_folder("model.safetensors"), &n_bytes);
    for (size_t n = 0; n < n_bytes; n += n < 40 ? 1 : 13) {
        frit_checkpoint *ckpt;
        write_file(in_folder("model.safetensors"), bytes, n);
        assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "model.safetensors");
    }
    free(bytes);
}

// A vocabulary smaller than the table is normal, because tables are padded; a larger one is refused.
static void a_tokenizer_of_another_size_is_refused(void **state)
{
    (void)state;
    static const char tokenizer[] =
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1%s},\"merges\":[]},\"added_tokens\":[%s]}";
    static const struct {
        const char *vocab, *added;
        int n_tokens;
    } rows[] = {
        {"", "", 2},
        {",\"c\":2", "", 3},
        {",\"c\":2,\"d\":3", "", 4},
        {"", "{\"id\":3,\"content\":\"<end>\",\"special\":true}", 4},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        char text[400], part[200];
        frit_model *model;
        snprintf(text, sizeof text, tokenizer, rows[i].vocab, rows[i].added);
        snprintf(part, sizeof part, "the tokenizer has %d tokens, but the embedding table has 3 rows",
                 rows[i].n_tokens);
        write_file(in_folder("tokenizer.json"), text, strlen(text));
        const frit_status status = frit_model_open(&model, folder_path, NULL);
        if (rows[i].n_tokens <= 3)
            assert_ok(status);
        else
            assert_fails(status, FRIT_E_FORMAT, part);
        const frit_status converted = frit_convert(folder_path, temp_path("sized.gguf"), NULL);
        if (rows[i].n_tokens <= 3)
            assert_ok(converted);
        else
            assert_fails(converted, FRIT_E_FORMAT, part);
        frit_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_fault_of_a_configuration_has_its_sentence, make_folder),
        cmocka_unit_test_setup(a_configuration_that_is_not_json_is_refused, make_folder),
        cmocka_unit_test_setup(a_folder_without_its_files_says_which, make_folder),
        cmocka_unit_test_setup(a_missing_tensor_is_named_as_the_folder_names_it, make_folder),
        cmocka_unit_test_setup(tensors_without_a_place_are_warned_of_and_left_out, make_folder),
        cmocka_unit_test_setup(a_tensor_of_an_unsupported_type_is_refused_where_it_is_needed, make_folder),
        cmocka_unit_test_setup(a_tokenizer_of_another_size_is_refused, make_folder),
        cmocka_unit_test_setup(a_cut_file_of_weights_is_refused_at_any_byte, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
