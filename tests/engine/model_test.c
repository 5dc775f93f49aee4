// SPDX-License-Identifier: MIT
// Opening models: information from files, and the errors for files that cannot be used.
#include "support/engines.h"
#include "support/support.h"

#include "engine/model/model.h"
#include "support/tiny_model.h"

#include <dirent.h>

// Expects an error with the path and the given part.
static void refused(tiny_options options, frit_status expected, const char *part)
{
    frit_model *model = (frit_model *)&options;
    assert_fails(frit_model_open(&model, tiny_model("bad.gguf", &options), NULL), expected, part);
    assert_non_null(strstr(frit_error(), "bad.gguf"));
    assert_null(model);
}

// ------------------------------------------------------------------------------- good files

static void a_model_describes_itself(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_model_info info;
    frit_model_get_info(model, &info);
    assert_non_null(strstr(info.path, "tiny.gguf"));
    assert_string_equal(info.format, "GGUF v3");
    assert_string_equal(info.architecture, "llama");
    assert_string_equal(info.name, "tiny");
    assert_string_equal(info.file_type, "f32");
    assert_string_equal(info.tokenizer, "llama");
    assert_string_equal(info.chat_format, "");
    assert_int_equal(info.n_vocab, 64);
    assert_int_equal(info.n_ctx_train, 256);
    assert_int_equal(info.n_embd, 32);
    assert_int_equal(info.n_layer, 2);
    assert_int_equal(info.n_head, 4);
    assert_int_equal(info.n_head_kv, 2);
    assert_int_equal(info.n_ff, 48);
    const int64_t layer = 2 * 32 + 32 * 32 * 2 + 16 * 32 * 2 + 48 * 32 * 3, head = 32 + 64 * 32, table = 64 * 32;
    assert_int_equal(info.n_params, 2 * layer + head + table);
    assert_int_equal(info.n_bytes, 4 * info.n_params);
    assert_int_equal(info.ops_per_token, 2 * (2 * layer + head));
    assert_int_equal(info.bytes_per_token, 4 * (2 * layer + head + 32));
    assert_int_equal(info.n_tensors, 2 * 9 + 3);
    frit_model_free(model);
}

static void tensors_and_metadata_are_listed(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_model_info info;
    frit_model_get_info(model, &info);
    frit_tensor_info tensor;
    assert_true(frit_model_get_tensor(model, 0, &tensor));
    assert_string_equal(tensor.name, "token_embd.weight");
    assert_string_equal(tensor.type, "f32");
    assert_int_equal(tensor.n_dims, 2);
    assert_int_equal(tensor.shape[0], 64);
    assert_int_equal(tensor.shape[1], 32);
    assert_int_equal(tensor.n_bytes, 64 * 32 * 4);
    assert_false(frit_model_get_tensor(model, info.n_tensors, &tensor));

    char value[64];
    size_t n = 0;
    bool seen = false;
    for (const char *key; (key = frit_model_get_meta(model, n, value, sizeof value, 3)); n++) {
        if (strcmp(key, "general.name") == 0) assert_string_equal(value, "tiny");
        if (strcmp(key, "tokenizer.ggml.tokens") != 0) continue;
        seen = true;
        char part[8];
        assert_ptr_equal(frit_model_get_meta(model, n, part, sizeof part, 3), key);
        assert_memory_equal(part, value, strlen(part));
        assert_in_range(strlen(part), 5, 7);
        assert_ptr_equal(frit_model_get_meta(model, n, NULL, 0, 3), key);
    }
    assert_int_equal(n, info.n_meta);
    assert_true(seen);
    frit_model_free(model);
}

static void a_file_without_vocabulary_works_for_all_but_text(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){.n_pieces = -1});
    frit_model_info info;
    frit_model_get_info(model, &info);
    assert_string_equal(info.tokenizer, "none");
    assert_int_equal(info.n_vocab, 64);
    frit_token token = 1;
    size_t n = 9;
    char text[16];
    frit_text_stream *stream;
    assert_fails(frit_tokenize(model, "a", 1, 0, &token, 1, &n), FRIT_E_UNSUPPORTED, "has no vocabulary");
    assert_fails(frit_detokenize(model, &token, 1, 0, text, 16, &n), FRIT_E_UNSUPPORTED, "has no vocabulary");
    assert_fails(frit_text_stream_new(&stream, model, 0), FRIT_E_UNSUPPORTED, "has no vocabulary");
    assert_fails(frit_chat_render(model, NULL, 0, NULL, text, 16, &n), FRIT_E_UNSUPPORTED, "has no vocabulary");
    assert_string_equal(frit_token_piece(model, 1, &n), "");
    assert_int_equal(n, 0);
    assert_false(frit_token_is_end(model, 2));

    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    assert_ok(frit_engine_new(&engine, model, NULL));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    assert_ok(frit_session_push(session, &token, 1, NULL));
    assert_ok(frit_session_next(session, sampler, &token));
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void vocab_only_binds_no_weights(void **state)
{
    (void)state;
    // Vocabulary only: requested although the weights are unusable, and for a file without tensors.
    const tiny_options files[] = {{.without = "blk.0.attn_q.weight"}, {.no_tensors = true}};
    const char *sentences[] = {"was opened for its vocabulary only", "holds a vocabulary and no tensors"};
    for (int i = 0; i < 2; i++) {
        frit_model *model;
        assert_ok(
            frit_model_open(&model, tiny_model("tiny.gguf", &files[i]), &(frit_model_options){.vocab_only = i == 0}));
        frit_token tokens[8];
        size_t n;
        assert_ok(frit_tokenize(model, "abc", 3, 0, tokens, 8, &n));
        assert_int_equal(n, 4);
        frit_model_info info;
        frit_model_get_info(model, &info);
        assert_int_equal(info.n_vocab, 64);
        assert_int_equal(info.bytes_per_token, 0);
        frit_engine *engine = (frit_engine *)&info;
        assert_fails(frit_engine_new(&engine, model, NULL), FRIT_E_INVALID, sentences[i]);
        assert_null(engine);
        frit_model_free(model);
    }
    frit_model *model;
    assert_ok(frit_model_open(
        &model, tiny_model("tiny.gguf", &(tiny_options){.arch = "unheard-of", .no_tensors = true}), NULL));
    frit_model_free(model);
}

static void published_vocabularies_open_and_run_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"llama-spm", "gpt-2", "bert-bge", "falcon"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        frit_model *model;
        frit_engine *engine;
        assert_ok(frit_model_open(&model, shared_path("goldens/tokenizer/%s.gguf", names[i]), NULL));
        assert_fails(frit_engine_new(&engine, model, NULL), FRIT_E_INVALID, "no tensors");
        frit_model_free(model);
    }
}

static void every_architecture_opens_or_is_refused_by_name(void **state)
{
    (void)state;
    char folder[4096], path[8192];
    snprintf(folder, sizeof folder, "%s", shared_path("goldens/arch"));
    DIR *dir = opendir(folder);
    int n_known = 0, n_refused = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 6 || strcmp(entry->d_name + n - 5, ".gguf") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        frit_model *model;
        frit_status status = frit_model_open(&model, path, NULL);
        n_known += status == FRIT_OK;
        if (status == FRIT_OK) {
            frit_model_free(model);
            continue;
        }
        n_refused++;
        if (status != FRIT_E_UNSUPPORTED || !strstr(frit_error(), path))
            fail_msg("%s: %s", entry->d_name, frit_error());
    }
    closedir(dir);
    print_message("%d files open, %d are refused\n", n_known, n_refused);
    assert_in_range(n_known, shared_least(4), 1000);
}

// ------------------------------------------------------------------------------- bad files

static void paths_that_are_no_models_are_refused(void **state)
{
    (void)state;
    frit_model *model;
    assert_fails(frit_model_open(&model, "/nowhere/at/all.gguf", NULL), FRIT_E_NOT_FOUND, "/nowhere/at/all.gguf");
    assert_fails(frit_model_open(&model, "", NULL), FRIT_E_NOT_FOUND, "");
    const char *path = temp_path("text.gguf");
    write_file(path, "not a model", 11);
    assert_fails(frit_model_open(&model, path, NULL), FRIT_E_FORMAT, "text.gguf");
    assert_null(model);
}

static void missing_keys_are_named(void **state)
{
    (void)state;
    static const char *const keys[] = {"general.architecture",
                                       "llama.context_length",
                                       "llama.embedding_length",
                                       "llama.block_count",
                                       "llama.feed_forward_length",
                                       "llama.attention.head_count",
                                       "llama.attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < FRIT_COUNT(keys); i++) refused((tiny_options){.without = keys[i]}, FRIT_E_FORMAT, keys[i]);
}

static void missing_and_misshapen_tensors_are_named(void **state)
{
    (void)state;
    static const char *const names[] = {"token_embd.weight", "output_norm.weight", "blk.1.attn_k.weight",
                                        "blk.0.ffn_down.weight"};
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        refused((tiny_options){.without = names[i]}, FRIT_E_FORMAT, names[i]);
        const bool is_vector = i == 1;   // dimensions of 1 are ignored, so it has the same shape
        if (!is_vector) refused((tiny_options){.transposed = names[i]}, FRIT_E_FORMAT, names[i]);
    }
    refused((tiny_options){.damaged = "output_norm.weight"}, FRIT_E_FORMAT, "output_norm.weight");
}

static void vocabularies_must_fit_the_embedding_table(void **state)
{
    (void)state;
    refused((tiny_options){.n_pieces = 63}, FRIT_E_FORMAT, "63");
    refused((tiny_options){.n_pieces = 65}, FRIT_E_FORMAT, "65");
}

static void unknown_architectures_are_refused_with_what_is_known(void **state)
{
    (void)state;
    refused((tiny_options){.arch = "lama"}, FRIT_E_UNSUPPORTED, "llama");
}

// ------------------------------------------------------------------------------- engines' options

static void engines_refuse_options_that_make_no_sense(void **state)
{
    (void)state;
    static const struct {
        frit_engine_options options;
        frit_status status;
        const char *part;
    } cases[] = {
        {{.n_ctx = -1}, FRIT_E_INVALID, "ctx: is -1"},
        {{.n_threads = -2}, FRIT_E_INVALID, "threads"},
        {{.n_batch = -3}, FRIT_E_INVALID, "batch"},
        {{.n_sessions = -1}, FRIT_E_INVALID, "n_sessions is -1"},
        {{.cache_type_k = "q9"}, FRIT_E_INVALID, "cache-type-k: 'q9' is not one of f32|f16"},
        {{.cache_type_v = "q8_0"}, FRIT_E_INVALID, "values cannot be q8_0: a head of layer 0 has 8 numbers"},
        {{.cpu = "z80"}, FRIT_E_INVALID, "z80"},
        {{.n_ctx = 1 << 27, .n_sessions = INT32_MAX}, FRIT_E_MEMORY, "does not fit into the memory of cpu"},
    };
    frit_model *model = load_tiny(&(tiny_options){0});
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_engine *engine = (frit_engine *)model;
        assert_fails(frit_engine_new(&engine, model, &cases[i].options), cases[i].status, cases[i].part);
        assert_null(engine);
    }
    frit_model_free(model);
}

static void caches_are_f32_by_the_reference_and_f16_otherwise(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    static const struct {
        frit_engine_options options;
        uint64_t bytes;   // of a key and a value
    } cases[] = {
        {{0}, 4},
        {{.cpu = "reference"}, 8},
        {{.cache_type_k = "f32"}, 6},
        {{.cpu = "reference", .cache_type_k = "f16", .cache_type_v = "bf16"}, 4},
    };
    for (size_t i = 0; i < FRIT_COUNT(cases); i++) {
        frit_engine *engine;
        frit_engine_info info;
        assert_ok(frit_engine_new(&engine, model, &cases[i].options));
        frit_engine_get_info(engine, &info);
        assert_int_equal(info.n_ctx, TINY_CTX);
        const uint64_t bytes = TINY_CTX * 2 * 16 * cases[i].bytes;   // and a gap between pages
        assert_in_range(info.kv_bytes, bytes, bytes + bytes / 4);
        assert_string_equal(info.backend, "cpu");
        assert_true(info.n_threads >= 1 && info.n_batch == 512 && info.scratch_bytes > 0 && info.isa[0]);
        frit_engine_free(engine);
    }
    frit_model_free(model);
}

static bool stop_later(void *ctx, double done)
{
    double *limit = ctx;
    assert_true(done >= 0 && done <= 1);
    return done < *limit;
}

static void opening_can_be_cancelled_at_any_time(void **state)
{
    (void)state;
    const char *path = tiny_model("tiny.gguf", &(tiny_options){0});
    for (double limit = 0; limit <= 1; limit += 0.05) {
        frit_model *model = (frit_model *)&limit;
        const frit_model_options options = {.progress = stop_later, .progress_ctx = &limit, .no_mmap = true};
        assert_fails(frit_model_open(&model, path, &options), FRIT_E_CANCELLED, "cancelled");
        assert_null(model);
    }
    frit_model *model;
    double never = 2;
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.progress = stop_later, .progress_ctx = &never}));
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_describes_itself),
        cmocka_unit_test(tensors_and_metadata_are_listed),
        cmocka_unit_test(a_file_without_vocabulary_works_for_all_but_text),
        cmocka_unit_test(vocab_only_binds_no_weights),
        cmocka_unit_test(published_vocabularies_open_and_run_nothing),
        cmocka_unit_test(every_architecture_opens_or_is_refused_by_name),
        cmocka_unit_test(paths_that_are_no_models_are_refused),
        cmocka_unit_test(missing_keys_are_named),
        cmocka_unit_test(missing_and_misshapen_tensors_are_named),
        cmocka_unit_test(vocabularies_must_fit_the_embedding_table),
        cmocka_unit_test(unknown_architectures_are_refused_with_what_is_known),
        cmocka_unit_test(engines_refuse_options_that_make_no_sense),
        cmocka_unit_test(caches_are_f32_by_the_reference_and_f16_otherwise),
        cmocka_unit_test(opening_can_be_cancelled_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
