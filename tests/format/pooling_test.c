// SPDX-License-Identifier: MIT
// The modules of sentence-transformers folders: pooling, dense layers and prompts, or a refusal.
#include "format/folder_build.h"

#include <unistd.h>

static void write_pooling(const char *config)
{
    static const char modules[] =
        "[{\"idx\":0,\"path\":\"\",\"type\":\"sentence_transformers.models.Transformer\"},"
        "{\"idx\":1,\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}]";
    write_file(in_folder("modules.json"), modules, strlen(modules));
    mkdir(in_folder("1_Pooling"), 0700);
    write_file(in_folder("1_Pooling/config.json"), config, strlen(config));
}

static void one_mode_is_the_kind_of_pooling(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        double type;
    } rows[] = {
        {"{\"pooling_mode_cls_token\":false,\"pooling_mode_mean_tokens\":true}", 1},
        {"{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":false}", 2},
        {"{\"pooling_mode_lasttoken\":true}", 3},
        {"{\"pooling_mode\":\"mean\"}", 1},
        {"{}", 1},
        {"{\"pooling_mode_cls_token\":false}", 1},
        {"{\"pooling_mode\":[\"cls\"]}", 2},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        double type = 0;
        write_pooling(rows[i].config);
        assert_ok(open_tiny(&ckpt));
        assert_ok(frit_meta_get_f64(&ckpt->meta, "llama.pooling_type", &type, NULL));
        if (type != rows[i].type) fail_msg("%s: %g, expected %g", rows[i].config, type, rows[i].type);
        frit_checkpoint_close(ckpt);
    }
}

static void other_modes_have_names(void **state)
{
    (void)state;
    static const struct {
        const char *config, *names;
    } rows[] = {
        {"{\"pooling_mode_cls_token\":true,\"pooling_mode_mean_tokens\":true}", "cls+mean"},
        {"{\"pooling_mode_max_tokens\":true}", "max"},
        {"{\"pooling_mode_mean_tokens\":true,\"pooling_mode_max_tokens\":true}", "max+mean"},
        {"{\"pooling_mode_mean_sqrt_len_tokens\":true}", "mean_sqrt_len"},
        {"{\"pooling_mode_weightedmean_tokens\":true}", "weighted_mean"},
        {"{\"pooling_mode\":[\"mean\",\"lasttoken\"]}", "mean+last"},
        {"{\"pooling_mode\":[\"lasttoken\",\"mean\"],\"include_prompt\":true}", "last+mean"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        frit_str names = {0};
        write_pooling(rows[i].config);
        assert_ok(open_tiny(&ckpt));
        assert_ok(frit_meta_get_text(&ckpt->meta, "frit.embed.pooling", &names, NULL));
        if (!frit_str_is(names, rows[i].names)) fail_msg("%s: '%.*s'", rows[i].config, (int)names.len, names.ptr);
        frit_checkpoint_close(ckpt);
    }
}

static void unknown_modes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *config, *part;
        frit_status status;
    } rows[] = {
        {"{\"pooling_mode\":\"median\"}", "1_Pooling/config.json: names no known mode of pooling", FRIT_E_UNSUPPORTED},
        {"{\"pooling_mode\":[\"mean\",7]}", "names no known mode of pooling", FRIT_E_UNSUPPORTED},
        {"{\"pooling_mode\":[]}", "1_Pooling/config.json: names no known mode of pooling", FRIT_E_UNSUPPORTED},
        {"{\"pooling_mode\":\"mean\",\"include_prompt\":false}", "include_prompt is false", FRIT_E_UNSUPPORTED},
        {"{", "1_Pooling/config.json: not valid JSON", FRIT_E_FORMAT},
        {"7", "1_Pooling/config.json: not valid JSON, expected an object or a list", FRIT_E_FORMAT},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        write_pooling(rows[i].config);
        assert_fails(open_tiny(&ckpt), rows[i].status, rows[i].part);
    }
}

// ------------------------------------------------------------------------------- modules

#define POOLING "{\"path\":\"1_Pooling\",\"type\":\"sentence_transformers.models.Pooling\"}"
#define DENSE   "{\"path\":\"2_Dense\",\"type\":\"sentence_transformers.models.Dense\"}"

static void write_text(const char *name, const char *text)
{
    write_file(in_folder(name), text, strlen(text));
}

static void write_dense(const char *config, const char *header)
{
    const float values[64 * 2 + 2] = {0.5F};
    const uint64_t n = strlen(header);
    frit_buf file = {0};
    mkdir(in_folder("2_Dense"), 0700);
    write_text("2_Dense/config.json", config);
    frit_buf_append(&file, &n, sizeof n);
    frit_buf_text(&file, header);
    frit_buf_append(&file, values, sizeof values);
    write_file(in_folder("2_Dense/model.safetensors"), file.data, file.len);
    frit_buf_free(&file);
}

#define HEADER                                                                   \
    "{\"linear.bias\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}," \
    "\"linear.weight\":{\"dtype\":\"F32\",\"shape\":[2,64],\"data_offsets\":[8,520]}}"

static void dense_layers_become_tensors(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    double n = 0;
    write_pooling("{\"pooling_mode\":\"mean\"}");
    write_text("modules.json", "[" POOLING "," DENSE ",{\"path\":\"3_N\",\"type\":\"a.Normalize\"}]");
    write_dense("{\"in_features\":64,\"out_features\":2,\"activation_function\":\"torch.nn.modules.activation.Tanh\"}",
                HEADER);
    assert_ok(open_tiny(&ckpt));
    assert_non_null(frit_checkpoint_find(ckpt, "dense_2.weight"));
    assert_non_null(frit_checkpoint_find(ckpt, "dense_2.bias"));
    assert_ok(frit_meta_get_f64(&ckpt->meta, "llama.dense_2_feat_out", &n, NULL));
    assert_true(n == 2);
    const frit_value *acts = frit_meta_find(&ckpt->meta, "frit.embed.dense_acts");
    assert_non_null(acts);
    assert_true(frit_str_is(frit_value_item_text(acts, 0), "tanh"));
    frit_checkpoint_close(ckpt);
}

static void modules_that_do_not_run_are_refused_by_name(void **state)
{
    (void)state;
    static const char good[] = "{\"in_features\":64,\"out_features\":2}";
    static const struct {
        const char *modules, *dense, *part;
    } rows[] = {
        {"[" POOLING ",{\"path\":\"2_LSTM\",\"type\":\"a.b.LSTM\"}]", good,
         "a module of type 'a.b.LSTM' is not supported"},
        {"[{\"path\":\"\",\"type\":\"a.StaticEmbedding\"}]", good, "StaticEmbedding is read of models of type"},
        {"{\"a\":1}", good, "modules.json: is not a list of modules"},
        {"[", good, "modules.json: not valid JSON"},
        {"[{\"path\":\"\"}]", good, "module 0 has no type and path"},
        {"[{\"path\":\"../x\",\"type\":\"a.Pooling\"}]", good, "the path of module 0 is '../x'"},
        {"[{\"path\":\"4_P\",\"type\":\"a.Pooling\"}]", good, "4_P/config.json"},
        {"[" DENSE "]", good, "a Dense module before Pooling"},
        {"[" POOLING ",{\"path\":\"\",\"type\":\"a.Normalize\"}," DENSE "]", good, "a Dense module after Normalize"},
        {"[" POOLING "," DENSE "]", "{\"in_features\":32,\"out_features\":2}",
         "expected a tensor linear.weight of 2 x 32"},
        {"[" POOLING "," DENSE "]", "{\"activation_function\":\"torch.nn.Mish\"}",
         "activation_function is 'torch.nn.Mish'"},
        {"[" POOLING "," DENSE "]", "{\"use_residual\":true}", "use_residual is true"},
        {"[" POOLING "," DENSE "]", "{\"module_input_name\":\"token_embeddings\"}",
         "module_input_name is 'token_embeddings'"},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt = NULL;
        write_pooling("{\"pooling_mode\":\"mean\"}");
        write_text("modules.json", rows[i].modules);
        write_dense(rows[i].dense, HEADER);
        assert_int_not_equal(open_tiny(&ckpt), FRIT_OK);
        if (!strstr(frit_error(), rows[i].part)) fail_msg("%s: '%s'", rows[i].part, frit_error());
    }
}

static void weights_of_dense_layers_are_checked(void **state)
{
    (void)state;
    static const char *const headers[][2] = {
        {"{\"linear.weight\":{\"dtype\":\"F32\",\"shape\":[130],\"data_offsets\":[0,520]}}",
         "has 1 dimensions, expected 2"},
        {"{\"residual.weight\":{\"dtype\":\"F32\",\"shape\":[130],\"data_offsets\":[0,520]}}",
         "'residual.weight' is not expected"},
        {"{\"linear.bias\":{\"dtype\":\"F32\",\"shape\":[130],\"data_offsets\":[0,520]}}",
         "expected a tensor linear.weight"},
        {"{", "2_Dense/model.safetensors"},
    };
    for (size_t i = 0; i < FRIT_COUNT(headers); i++) {
        frit_checkpoint *ckpt = NULL;
        write_pooling("{\"pooling_mode\":\"mean\"}");
        write_text("modules.json", "[" POOLING "," DENSE "]");
        write_dense("{\"in_features\":64,\"out_features\":2}", headers[i][0]);
        assert_int_not_equal(open_tiny(&ckpt), FRIT_OK);
        if (!strstr(frit_error(), headers[i][1])) fail_msg("%s: '%s'", headers[i][1], frit_error());
    }
    frit_checkpoint *ckpt = NULL;
    unlink(in_folder("2_Dense/model.safetensors"));
    assert_fails(open_tiny(&ckpt), FRIT_E_NOT_FOUND, "2_Dense: has no model.safetensors");
}

static void prompts_are_read_by_name(void **state)
{
    (void)state;
    frit_checkpoint *ckpt;
    frit_str by_default = {0};
    write_text("config_sentence_transformers.json",
               "{\"prompts\":{\"query\":\"q: \",\"document\":\"\"},\"default_prompt_name\":\"query\"}");
    assert_ok(open_tiny(&ckpt));
    const frit_value *names = frit_meta_find(&ckpt->meta, "frit.embed.prompt_names");
    const frit_value *texts = frit_meta_find(&ckpt->meta, "frit.embed.prompts");
    assert_ok(frit_meta_get_text(&ckpt->meta, "frit.embed.default_prompt", &by_default, NULL));
    assert_true(names && texts && names->array.n == 2 && texts->array.n == 2 && frit_str_is(by_default, "query"));
    assert_true(frit_str_is(frit_value_item_text(texts, 0), "q: "));
    frit_checkpoint_close(ckpt);
    write_text("config_sentence_transformers.json", "{\"prompts\":{\"query\":7}}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "prompt 'query' is not text");
    write_text("config_sentence_transformers.json", "{\"prompts\":{},\"default_prompt_name\":\"query\"}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "default_prompt_name is 'query', but prompts has no such name");
    write_text("config_sentence_transformers.json", "{\"prompts\":[]}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "prompts is not an object");
    write_text("config_sentence_transformers.json", "{}");
    write_text("sentence_bert_config.json", "{\"max_seq_length\":0}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "max_seq_length is not a number from 1");
    write_text("config_sentence_transformers.json", "{\"truncate_dim\":0}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "truncate_dim is not a number from 1");
    write_text("config_sentence_transformers.json", "{\"truncate_dim\":\"64\"}");
    assert_fails(open_tiny(&ckpt), FRIT_E_FORMAT, "truncate_dim is not a number from 1");
    write_text("config_sentence_transformers.json", "{}");
    write_text("sentence_bert_config.json", "{\"do_lower_case\":true}");
    assert_fails(open_tiny(&ckpt), FRIT_E_UNSUPPORTED, "do_lower_case is true");
    write_text("tokenizer.json", "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":false}}");
    assert_fails(open_tiny(&ckpt), FRIT_E_UNSUPPORTED, "do_lower_case is true");
    write_text("tokenizer.json", "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true}}");
    assert_ok(open_tiny(&ckpt));
    frit_checkpoint_close(ckpt);
    write_text("tokenizer.json", "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Lowercase\"}]}}");
    assert_ok(open_tiny(&ckpt));
    frit_checkpoint_close(ckpt);
}

// The package's limit on texts: its own number, else the tokenizer's, and the model's context.
static void the_length_of_texts_is_found_in_three_files(void **state)
{
    (void)state;
    static const struct {
        const char *file, *transformer, *tokenizer;
        int64_t n;
    } rows[] = {
        {"sentence_bert_config.json", "{\"max_seq_length\":5}", "{\"model_max_length\":3}", 5},
        {"sentence_roberta_config.json", "{\"max_seq_length\":4}", "{}", 4},
        {"sentence_bert_config.json", "{}", "{\"model_max_length\":3}", 3},
        {"sentence_bert_config.json", "{\"max_seq_length\":null}", "{\"model_max_length\":1e30}", 8},
        {"sentence_bert_config.json", "{}", "{\"model_max_length\":null}", 8},
    };
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        frit_checkpoint *ckpt;
        int64_t n = 0;
        write_text(rows[i].file, rows[i].transformer);
        write_text("tokenizer_config.json", rows[i].tokenizer);
        assert_ok(open_tiny(&ckpt));
        assert_ok(frit_meta_get_i64(&ckpt->meta, "frit.embed.max_length", &n, NULL));
        assert_int_equal(n, rows[i].n);
        frit_checkpoint_close(ckpt);
        unlink(in_folder(rows[i].file));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_mode_is_the_kind_of_pooling, make_folder),
        cmocka_unit_test_setup(other_modes_have_names, make_folder),
        cmocka_unit_test_setup(unknown_modes_are_refused, make_folder),
        cmocka_unit_test_setup(dense_layers_become_tensors, make_folder),
        cmocka_unit_test_setup(modules_that_do_not_run_are_refused_by_name, make_folder),
        cmocka_unit_test_setup(weights_of_dense_layers_are_checked, make_folder),
        cmocka_unit_test_setup(prompts_are_read_by_name, make_folder),
        cmocka_unit_test_setup(the_length_of_texts_is_found_in_three_files, make_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
