// SPDX-License-Identifier: MIT
// Calls every function of the public headers with each of its pointers NULL in turn. The function must refuse it with a
// sentence that names the argument, or accept it if the header says so. The expected rows come from the headers.
#include "support/adapters.h"
#include "support/header.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit_tools.h"

#include <ctype.h>

enum { MAX_CASES = 512, NAME_BYTES = 96 };

static char seen[MAX_CASES][NAME_BYTES];   // "function(argument)"
static size_t n_seen;

static void note(const char *function, const char *argument)
{
    assert_true(n_seen < MAX_CASES);
    snprintf(seen[n_seen++], NAME_BYTES, "%s(%s)", function, argument);
}

static void check_sentence(const char *function, const char *argument)
{
    char expected[2 * NAME_BYTES];
    snprintf(expected, sizeof expected, "%s: '%s' is NULL; expected a", function, argument);
    if (strncmp(frit_error(), expected, strlen(expected)) != 0)
        fail_msg("%s with %s of NULL says \"%s\", expected \"%s...\"", function, argument, frit_error(), expected);
    frit_fail_say("nothing");
}

static void check_refused(const char *function, const char *argument, frit_status status)
{
    note(function, argument);
    if (status != FRIT_E_INVALID) fail_msg("%s with %s of NULL gives %d", function, argument, (int)status);
    check_sentence(function, argument);
}

static void check_zero(const char *function, const char *argument, bool is_zero)
{
    note(function, argument);
    if (!is_zero) fail_msg("%s with %s of NULL gives something", function, argument);
    check_sentence(function, argument);
}

static void check_accepted(const char *function, const char *argument, frit_status status)
{
    note(function, argument);
    if (status != FRIT_OK) fail_msg("%s with %s of NULL: %s", function, argument, frit_error());
}

// Functions that return a status; functions that return a pointer, count or truth value; arguments that may be NULL.
#define REFUSES(function, argument, ...) check_refused(#function, #argument, function(__VA_ARGS__))
#define ZERO(function, argument, ...)    check_zero(#function, #argument, !function(__VA_ARGS__))
#define ACCEPTS(function, argument, ...) check_accepted(#function, #argument, function(__VA_ARGS__))
#define FREES(function, argument)        (note(#function, #argument), function(NULL))

typedef struct objects {
    char path[1024];
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    frit_adapter *adapter;
    frit_text_stream *stream;
    frit_turn *turn;
} objects;

static objects o;
static const char conversation[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"ab\"}]}";

static void make_objects(void)
{
    const tiny_options options = {.chat_template = "{{ messages[0].content }}"};
    snprintf(o.path, sizeof o.path, "%s", tiny_model("null.gguf", &options));
    assert_ok(frit_model_open(&o.model, o.path, NULL));
    assert_ok(frit_engine_new(&o.engine, o.model, &(frit_engine_options){.n_ctx = 32, .n_sessions = 4}));
    assert_ok(frit_session_new(&o.session, o.engine));
    assert_ok(frit_sampler_new(&o.sampler, o.model, NULL));
    assert_ok(frit_text_stream_new(&o.stream, o.model, 0));
    assert_ok(frit_turn_new(&o.turn, o.model, conversation, strlen(conversation)));
    const char *adapter = make_adapter("null_adapter.gguf", o.path, &(adapter_options){0}, NULL);
    assert_ok(frit_adapter_open(&o.adapter, o.model, adapter, NULL));
}

static void free_objects(void)
{
    frit_adapter_free(o.adapter);
    frit_turn_free(o.turn);
    frit_text_stream_free(o.stream);
    frit_sampler_free(o.sampler);
    frit_session_free(o.session);
    frit_engine_free(o.engine);
    frit_model_free(o.model);
}

// ------------------------------------------------------------------------------- the calls

static void check_importance(void)
{
    frit_importance *importance;
    frit_importance_info info;
    const char *path = temp_path("null.imatrix");
    REFUSES(frit_importance_new, out, NULL);
    assert_ok(frit_importance_new(&importance));
    REFUSES(frit_importance_merge, into, NULL, importance);
    REFUSES(frit_importance_merge, from, importance, NULL);
    REFUSES(frit_importance_write, importance, NULL, path, NULL);
    REFUSES(frit_importance_write, path, importance, NULL, NULL);
    ACCEPTS(frit_importance_write, options, importance, path, NULL);
    remove(path);
    ZERO(frit_importance_get_info, importance, NULL, 0, &info);
    ZERO(frit_importance_get_info, info, importance, 0, NULL);
    REFUSES(frit_engine_observe, engine, NULL, importance);
    ACCEPTS(frit_engine_observe, importance, o.engine, NULL);
    frit_importance_free(importance);
    FREES(frit_importance_free, importance);
    REFUSES(frit_importance_read, out, NULL, path);
    REFUSES(frit_importance_read, path, &importance, NULL);
}

static void check_covariance(void)
{
    frit_covariance *covariance;
    frit_covariance_info info = {.n_each = 1};
    const float errors[1] = {0};
    REFUSES(frit_covariance_new, out, NULL, NULL);
    ACCEPTS(frit_covariance_new, options, &covariance, NULL);
    ZERO(frit_covariance_get_info, covariance, NULL, 0, &info);
    ZERO(frit_covariance_get_info, info, covariance, 0, NULL);
    ZERO(frit_covariance_error, covariance, NULL, &info, 0, errors, 1);
    ZERO(frit_covariance_error, info, covariance, NULL, 0, errors, 1);
    ZERO(frit_covariance_error, errors, covariance, &info, 0, NULL, 1);
    REFUSES(frit_engine_observe_covariance, engine, NULL, covariance);
    ACCEPTS(frit_engine_observe_covariance, covariance, o.engine, NULL);
    const frit_refine_options refine = {0};
    REFUSES(frit_refine, source, NULL, "a.gguf", &refine);
    REFUSES(frit_refine, target, "a.gguf", NULL, &refine);
    REFUSES(frit_refine, options, "a.gguf", "a.gguf", NULL);
    REFUSES(frit_refine_check, source, NULL, 4096);
    frit_covariance_free(covariance);
    FREES(frit_covariance_free, covariance);
}

static void call_tools(void)
{
    bool flag;
    size_t n;
    frit_model *model;
    frit_profile_row row;
    const frit_option option = {.name = "a", .type = FRIT_OPTION_FLAG};
    const frit_random_options random = {.shape = "mamba2-2.7b"};
    REFUSES(frit_option_set, row, NULL, &flag, "1");
    REFUSES(frit_option_set, target, &option, NULL, "1");
    REFUSES(frit_option_set, text, &option, &flag, NULL);
    ZERO(frit_name_nearest, name, NULL, (const char *const[]){"a"}, 1);
    ZERO(frit_name_nearest, candidates, "a", NULL, 1);
    frit_model_file file;
    ZERO(frit_model_get_file, model, NULL, 0, &file);
    ZERO(frit_model_get_file, file, o.model, 0, NULL);
    REFUSES(frit_session_file_note, path, NULL, NULL, 0, &n);
    REFUSES(frit_session_file_note, n_bytes, "x", NULL, 0, NULL);
    REFUSES(frit_session_file_note, note, "x", NULL, 1, &n);
    ZERO(frit_sha256_of, bytes, NULL, 1, (uint8_t[32]){0});
    ZERO(frit_sha256_of, sum, "a", 1, NULL);
    ZERO(frit_model_option_rows, n_rows, NULL);
    ZERO(frit_convert_option_rows, n_rows, NULL);
    ZERO(frit_quantize_option_rows, n_rows, NULL);
    ZERO(frit_engine_option_rows, n_rows, NULL);
    ZERO(frit_embed_option_rows, n_rows, NULL);
    ZERO(frit_sampler_option_rows, n_rows, NULL);
    assert_non_null(frit_model_option_rows(&n));
    REFUSES(frit_random_write, path, NULL, &random);
    REFUSES(frit_random_write, options, temp_path("random.gguf"), NULL);
    REFUSES(frit_model_open_random, out, NULL, &random, NULL);
    REFUSES(frit_model_open_random, random, &model, NULL, NULL);
    ACCEPTS(frit_model_open_random, options, &model, &random, NULL);
    frit_model_free(model);
    REFUSES(frit_engine_profile, engine, NULL, true);
    check_importance();
    check_covariance();
    ZERO(frit_engine_get_profile, engine, NULL, 0, &row);
    ZERO(frit_engine_get_profile, row, o.engine, 0, NULL);
    REFUSES(frit_machine_probe, machine, NULL, 0);
    ZERO(frit_machine_get_device, device, 0, NULL);
    ZERO(frit_op_get_info, info, 0, NULL);
    ZERO(frit_architecture_get_info, info, 0, NULL);
}

static bool read_nothing(void *ctx, size_t file, uint64_t at, void *bytes, size_t n)
{
    return !ctx && file == 0 && at == 0 && bytes && n == 0;
}

static void call_models(void)
{
    frit_model *model = o.model;
    frit_model_info info;
    frit_tensor_info tensor;
    char buffer[64];
    REFUSES(frit_model_open, out, NULL, o.path, NULL);
    REFUSES(frit_model_open, path, &model, NULL, NULL);
    assert_null(model);
    ACCEPTS(frit_model_open, options, &model, o.path, NULL);
    frit_model_free(model);
    size_t n_bytes;
    char *bytes = read_file(o.path, &n_bytes);
    const frit_model_files files = {.n_bytes = &(uint64_t){sizeof buffer}, .n_files = 1, .read = read_nothing};
    REFUSES(frit_model_open_files, out, NULL, &files, NULL);
    REFUSES(frit_model_open_files, files, &model, NULL, NULL);
    assert_fails(frit_model_open_files(&model, &files, NULL), FRIT_E_IO, "cannot be read");
    note("frit_model_open_files", "options");
    REFUSES(frit_model_open_memory, out, NULL, bytes, n_bytes, NULL);
    REFUSES(frit_model_open_memory, bytes, &model, NULL, n_bytes, NULL);
    ACCEPTS(frit_model_open_memory, options, &model, bytes, n_bytes, NULL);
    frit_model *next;
    REFUSES(frit_model_open_next, out, NULL, o.model);
    REFUSES(frit_model_open_next, model, &next, NULL);
    frit_model_free(model);
    free(bytes);
    FREES(frit_model_free, model);
    REFUSES(frit_model_get_info, model, NULL, &info);
    REFUSES(frit_model_get_info, info, o.model, NULL);
    ZERO(frit_model_get_tensor, model, NULL, 0, &tensor);
    ZERO(frit_model_get_tensor, info, o.model, 0, NULL);
    ZERO(frit_model_kv_bytes, model, NULL, NULL, NULL);
    note("frit_model_kv_bytes", "cache_type_k");
    note("frit_model_kv_bytes", "cache_type_v");
    assert_true(frit_model_kv_bytes(o.model, NULL, NULL) > 0);
    ZERO(frit_model_get_meta, model, NULL, 0, buffer, sizeof buffer, 1);
    ZERO(frit_model_get_meta, buffer, o.model, 0, NULL, sizeof buffer, 1);
    size_t n_json;
    ZERO(frit_model_get_meta_json, model, NULL, 0, buffer, sizeof buffer, 1, &n_json);
    ZERO(frit_model_get_meta_json, buffer, o.model, 0, NULL, sizeof buffer, 1, &n_json);
    ZERO(frit_model_get_meta_json, n_bytes, o.model, 0, buffer, sizeof buffer, 1, NULL);
    REFUSES(frit_convert, source, NULL, temp_path("null_out.gguf"), NULL);
    REFUSES(frit_convert, target, o.path, NULL, NULL);
    REFUSES(frit_allocate, source, NULL, temp_path("null_out.gguf"), NULL, &(frit_allocate_options){.bits = 8});
    REFUSES(frit_allocate, target, o.path, NULL, NULL, &(frit_allocate_options){.bits = 8});
    REFUSES(frit_allocate, options, o.path, temp_path("null_out.gguf"), NULL, NULL);
    ACCEPTS(frit_allocate, convert, o.path, temp_path("null_out.gguf"), NULL,
            &(frit_allocate_options){.bits = 16, .n_windows = 1});
    frit_token sample[2];
    const frit_samples_options samples = {.n_windows = 1, .n_ctx = 2};
    REFUSES(frit_samples_write, model, NULL, &samples, sample);
    REFUSES(frit_samples_write, options, o.model, NULL, sample);
    REFUSES(frit_samples_write, tokens, o.model, &samples, NULL);
    ACCEPTS(frit_convert, options, o.path, temp_path("null_out.gguf"), NULL);
}

static void call_metadata(void)
{
    frit_meta_info info;
    int64_t number;
    double real;
    const char *text;
    size_t n;
    REFUSES(frit_model_find_meta, model, NULL, "general.name", &info);
    REFUSES(frit_model_find_meta, key, o.model, NULL, &info);
    REFUSES(frit_model_find_meta, info, o.model, "general.name", NULL);
    REFUSES(frit_model_meta_int, model, NULL, "general.name", 0, &number);
    REFUSES(frit_model_meta_int, key, o.model, NULL, 0, &number);
    REFUSES(frit_model_meta_int, value, o.model, "general.name", 0, NULL);
    REFUSES(frit_model_meta_float, model, NULL, "general.name", 0, &real);
    REFUSES(frit_model_meta_float, key, o.model, NULL, 0, &real);
    REFUSES(frit_model_meta_float, value, o.model, "general.name", 0, NULL);
    REFUSES(frit_model_meta_text, model, NULL, "general.name", 0, &text, &n);
    REFUSES(frit_model_meta_text, key, o.model, NULL, 0, &text, &n);
    REFUSES(frit_model_meta_text, text, o.model, "general.name", 0, NULL, &n);
    REFUSES(frit_model_meta_text, n_bytes, o.model, "general.name", 0, &text, NULL);
}

static void call_text(void)
{
    const frit_token token = 5;
    frit_token tokens[8];
    const char *text;
    char bytes[64];
    size_t n = 99;
    frit_text_stream *stream;
    REFUSES(frit_tokenize, model, NULL, "ab", 2, 0, tokens, 8, &n);
    assert_int_equal(n, 0);
    REFUSES(frit_tokenize, text, o.model, NULL, 2, 0, tokens, 8, &n);
    REFUSES(frit_tokenize, tokens, o.model, "ab", 2, 0, NULL, 8, &n);
    REFUSES(frit_tokenize, n_tokens, o.model, "ab", 2, 0, tokens, 8, NULL);
    assert_ok(frit_tokenize(o.model, NULL, 0, 0, NULL, 0, &n));
    REFUSES(frit_tokenize_within, model, NULL, "ab", 2, 0, NULL, tokens, 8, &n);
    REFUSES(frit_tokenize_within, text, o.model, NULL, 2, 0, NULL, tokens, 8, &n);
    ACCEPTS(frit_tokenize_within, limits, o.model, "ab", 2, 0, NULL, tokens, 8, &n);
    REFUSES(frit_tokenize_within, tokens, o.model, "ab", 2, 0, NULL, NULL, 8, &n);
    REFUSES(frit_tokenize_within, n_tokens, o.model, "ab", 2, 0, NULL, tokens, 8, NULL);
    REFUSES(frit_detokenize, model, NULL, &token, 1, 0, bytes, 64, &n);
    REFUSES(frit_detokenize, tokens, o.model, NULL, 1, 0, bytes, 64, &n);
    REFUSES(frit_detokenize, text, o.model, &token, 1, 0, NULL, 64, &n);
    REFUSES(frit_detokenize, n_bytes, o.model, &token, 1, 0, bytes, 64, NULL);
    ZERO(frit_token_piece, model, NULL, 5, &n);
    ZERO(frit_token_piece, n_bytes, o.model, 5, NULL);
    ZERO(frit_token_is_end, model, NULL, 5);
    frit_token_info info;
    REFUSES(frit_token_get_info, model, NULL, 5, &info);
    REFUSES(frit_token_get_info, info, o.model, 5, NULL);
    check_zero("frit_token_of_role", "model", frit_token_of_role(NULL, FRIT_ROLE_BOS) == -1);
    REFUSES(frit_text_stream_new, out, NULL, o.model, 0);
    REFUSES(frit_text_stream_new, model, &stream, NULL, 0);
    REFUSES(frit_text_stream_push, stream, NULL, 5, &text, &n);
    REFUSES(frit_text_stream_push, text, o.stream, 5, NULL, &n);
    REFUSES(frit_text_stream_push, n_bytes, o.stream, 5, &text, NULL);
    REFUSES(frit_text_stream_flush, stream, NULL, &text, &n);
    REFUSES(frit_text_stream_flush, text, o.stream, NULL, &n);
    REFUSES(frit_text_stream_flush, n_bytes, o.stream, &text, NULL);
    FREES(frit_text_stream_free, stream);
}

static void call_chats(void)
{
    const size_t length = strlen(conversation);
    const frit_message message = {.role = "user", .content = "ab"};
    char bytes[64];
    size_t n;
    frit_turn *turn;
    frit_part part;
    REFUSES(frit_chat_render, model, NULL, &message, 1, NULL, bytes, 64, &n);
    REFUSES(frit_chat_render, messages, o.model, NULL, 1, NULL, bytes, 64, &n);
    ACCEPTS(frit_chat_render, options, o.model, &message, 1, NULL, bytes, 64, &n);
    REFUSES(frit_chat_render, text, o.model, &message, 1, NULL, NULL, 64, &n);
    REFUSES(frit_chat_render, n_bytes, o.model, &message, 1, NULL, bytes, 64, NULL);
    frit_token tokens[64];
    REFUSES(frit_chat_tokenize, model, NULL, &message, 1, NULL, tokens, 64, &n);
    REFUSES(frit_chat_tokenize, messages, o.model, NULL, 1, NULL, tokens, 64, &n);
    ACCEPTS(frit_chat_tokenize, options, o.model, &message, 1, NULL, tokens, 64, &n);
    REFUSES(frit_chat_tokenize, tokens, o.model, &message, 1, NULL, NULL, 64, &n);
    REFUSES(frit_chat_tokenize, n_tokens, o.model, &message, 1, NULL, tokens, 64, NULL);
    ACCEPTS(frit_chat_render_json, model, NULL, "x", "{}", 2, bytes, 64, &n);
    ACCEPTS(frit_chat_render_json, source, o.model, NULL, conversation, length, bytes, 64, &n);
    REFUSES(frit_chat_render_json, variables, o.model, "x", NULL, 2, bytes, 64, &n);
    REFUSES(frit_chat_render_json, text, o.model, "x", "{}", 2, NULL, 64, &n);
    REFUSES(frit_chat_render_json, n_bytes, o.model, "x", "{}", 2, bytes, 64, NULL);
    REFUSES(frit_turn_new, out, NULL, o.model, conversation, length);
    REFUSES(frit_turn_new, model, &turn, NULL, conversation, length);
    REFUSES(frit_turn_new, conversation, &turn, o.model, NULL, length);
    REFUSES(frit_turn_new_with_media, out, NULL, o.model, conversation, length, NULL, 0);
    REFUSES(frit_turn_new_with_media, model, &turn, NULL, conversation, length, NULL, 0);
    REFUSES(frit_turn_new_with_media, conversation, &turn, o.model, NULL, length, NULL, 0);
    REFUSES(frit_turn_new_with_media, media, &turn, o.model, conversation, length, NULL, 1);
    ZERO(frit_turn_prompt, turn, NULL, &n);
    ZERO(frit_turn_prompt, n_bytes, o.turn, NULL);
    REFUSES(frit_turn_tokenize, turn, NULL, NULL, tokens, 64, &n);
    ACCEPTS(frit_turn_tokenize, limits, o.turn, NULL, tokens, 64, &n);
    REFUSES(frit_turn_tokenize, tokens, o.turn, NULL, NULL, 64, &n);
    REFUSES(frit_turn_tokenize, n_tokens, o.turn, NULL, tokens, 64, NULL);
    REFUSES(frit_turn_push, turn, NULL, "a", 1);
    REFUSES(frit_turn_push, text, o.turn, NULL, 1);
    REFUSES(frit_turn_end, turn, NULL);
    ZERO(frit_turn_next, turn, NULL, &part);
    ZERO(frit_turn_next, part, o.turn, NULL);
    ZERO(frit_turn_shows, turn, NULL, 5);
    ZERO(frit_turn_is_thinking, turn, NULL);
    FREES(frit_turn_free, turn);
}

static void ignore_vector(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    (void)ctx, (void)item, (void)i, (void)values, (void)n;
}

static void call_engines(void)
{
    frit_engine *engine;
    frit_engine_info info;
    frit_adapter *adapter;
    frit_adapter_info about;
    const char *path = make_adapter("null_adapter.gguf", o.path, &(adapter_options){0}, NULL);
    REFUSES(frit_engine_new, out, NULL, o.model, NULL);
    REFUSES(frit_engine_new, model, &engine, NULL, NULL);
    ACCEPTS(frit_engine_new, options, &engine, o.model, NULL);
    frit_engine_free(engine);
    FREES(frit_engine_free, engine);
    REFUSES(frit_engine_prepare, engine, NULL, NULL, NULL);
    ACCEPTS(frit_engine_prepare, progress, o.engine, NULL, NULL);
    ACCEPTS(frit_engine_prepare, progress_ctx, o.engine, NULL, NULL);
    REFUSES(frit_engine_get_info, engine, NULL, &info);
    REFUSES(frit_engine_get_info, info, o.engine, NULL);
    frit_estimate *estimate;
    frit_estimate_info estimated;
    frit_estimate_device device;
    REFUSES(frit_estimate_new, out, NULL, o.model, NULL);
    REFUSES(frit_estimate_new, model, &estimate, NULL, NULL);
    ACCEPTS(frit_estimate_new, options, &estimate, o.model, NULL);
    REFUSES(frit_estimate_get_info, estimate, NULL, &estimated);
    REFUSES(frit_estimate_get_info, info, estimate, NULL);
    ZERO(frit_estimate_get_device, estimate, NULL, 0, &device);
    ZERO(frit_estimate_get_device, device, estimate, 0, NULL);
    frit_estimate_free(estimate);
    FREES(frit_estimate_free, estimate);
    frit_kernels_report report;
    const frit_kernels_options kernels = {.folder = "kernels", .gpu = "no such GPU"};
    ZERO(frit_kernels_get_gpu, gpu, 0, NULL);
    REFUSES(frit_kernels_write, model, NULL, NULL, &kernels, &report);
    REFUSES(frit_kernels_write, options, o.model, NULL, NULL, &report);
    REFUSES(frit_kernels_write, report, o.model, NULL, &kernels, NULL);
    note("frit_kernels_write", "engine");   // NULL: the default options
    assert_fails(frit_kernels_write(o.model, NULL, &kernels, &report), FRIT_E_INVALID, "is not known by name");
    REFUSES(frit_engine_step, engine, NULL, &(int32_t){0});
    ACCEPTS(frit_engine_step, n_rows, o.engine, NULL);
    REFUSES(frit_engine_submit, engine, NULL, &(uint64_t){0}, &(int32_t){0});
    ACCEPTS(frit_engine_submit, step, o.engine, NULL, NULL);
    ACCEPTS(frit_engine_submit, n_rows, o.engine, &(uint64_t){0}, NULL);
    REFUSES(frit_engine_poll, engine, NULL, 1, &(bool){0});
    REFUSES(frit_engine_poll, done, o.engine, 1, NULL);
    REFUSES(frit_engine_wait, engine, NULL, 1);
    REFUSES(frit_engine_advance, engine, NULL, &(int32_t){0});
    ACCEPTS(frit_engine_advance, n_rows, o.engine, NULL);
    REFUSES(frit_adapter_open, out, NULL, o.model, path, NULL);
    adapter = o.adapter;
    REFUSES(frit_adapter_open, model, &adapter, NULL, path, NULL);
    assert_null(adapter);
    REFUSES(frit_adapter_open, path, &adapter, o.model, NULL, NULL);
    ACCEPTS(frit_adapter_open, options, &adapter, o.model, path, NULL);
    frit_adapter_free(adapter);
    FREES(frit_adapter_free, adapter);
    REFUSES(frit_adapter_get_info, adapter, NULL, &about);
    REFUSES(frit_adapter_get_info, info, o.adapter, NULL);
}

static void call_embeddings(void)
{
    const frit_embed_item item = {.text = "ab", .n_bytes = 2};
    size_t n;
    REFUSES(frit_embed_texts, engine, NULL, &item, 1, NULL, ignore_vector, NULL);
    REFUSES(frit_embed_texts, items, o.engine, NULL, 1, NULL, ignore_vector, NULL);
    ACCEPTS(frit_embed_texts, options, o.engine, &item, 1, NULL, ignore_vector, NULL);
    REFUSES(frit_embed_texts, row, o.engine, &item, 1, NULL, NULL, NULL);
    ACCEPTS(frit_embed_texts, row_ctx, o.engine, &item, 1, NULL, ignore_vector, NULL);
    const char *prompt;
    REFUSES(frit_embed_prompt, model, NULL, NULL, &prompt, &n);
    ACCEPTS(frit_embed_prompt, name, o.model, NULL, &prompt, &n);
    REFUSES(frit_embed_prompt, text, o.model, NULL, NULL, &n);
    REFUSES(frit_embed_prompt, n_bytes, o.model, NULL, &prompt, NULL);
    frit_token tokens[16];
    n = 0;
    REFUSES(frit_embed_cut, model, NULL, 0, tokens, &n);
    REFUSES(frit_embed_cut, tokens, o.model, 0, NULL, &n);
    REFUSES(frit_embed_cut, n_tokens, o.model, 0, tokens, NULL);
    REFUSES(frit_embed_width, model, NULL, NULL, &n);
    ACCEPTS(frit_embed_width, options, o.model, NULL, &n);
    REFUSES(frit_embed_width, n, o.model, NULL, NULL);
    float score;
    REFUSES(frit_rerank_texts, engine, NULL, "a", 1, &item, 1, NULL, &score);
    REFUSES(frit_rerank_texts, query, o.engine, NULL, 1, &item, 1, NULL, &score);
    REFUSES(frit_rerank_texts, documents, o.engine, "a", 1, NULL, 1, NULL, &score);
    REFUSES(frit_rerank_texts, scores, o.engine, "a", 1, &item, 1, NULL, NULL);
    REFUSES(frit_rerank_tokenize, model, NULL, "a", 1, "b", 1, tokens, 16, &n);
    REFUSES(frit_rerank_tokenize, query, o.model, NULL, 1, "b", 1, tokens, 16, &n);
    REFUSES(frit_rerank_tokenize, document, o.model, "a", 1, NULL, 1, tokens, 16, &n);
    REFUSES(frit_rerank_tokenize, tokens, o.model, "a", 1, "b", 1, NULL, 16, &n);
    REFUSES(frit_rerank_tokenize, n_tokens, o.model, "a", 1, "b", 1, tokens, 16, NULL);
    note("frit_rerank_texts", "options");   // tested in engine/rerank: this model has no classifier
}

static void call_beams(void)
{
    const frit_token tokens[2] = {1, 5};
    frit_session *session;
    frit_beams *beams;
    frit_beam beam;
    assert_ok(frit_session_new(&session, o.engine));
    assert_ok(frit_session_push(session, tokens, 2, NULL));
    assert_ok(frit_beam_search(&beams, session, &(frit_beam_options){.n_beams = 1, .n_predict = 2}));
    ZERO(frit_beams_get, beam, beams, 0, NULL);
    frit_beams_free(beams);
    frit_session_free(session);
    note("frit_beam_search", "options");   // tested in engine/beam: this engine has no room for four beams
    REFUSES(frit_beam_search, out, NULL, o.session, NULL);
    REFUSES(frit_beam_search, session, &beams, NULL, NULL);
    ZERO(frit_beams_get, beams, NULL, 0, &beam);
    FREES(frit_beams_free, beams);
}

static void call_picks(void)
{
    frit_picked picked;
    REFUSES(frit_session_pick, session, NULL, o.sampler, NULL);
    REFUSES(frit_session_pick, sampler, o.session, NULL, NULL);
    REFUSES(frit_session_picked, session, NULL, &picked);
    REFUSES(frit_session_picked, picked, o.session, NULL);
    REFUSES(frit_session_push_picked, session, NULL);
    REFUSES(frit_session_pick_ahead, session, NULL, o.sampler, NULL, &(bool){0});
    REFUSES(frit_session_pick_ahead, sampler, o.session, NULL, NULL, &(bool){0});
    REFUSES(frit_session_pick_ahead, requested, o.session, o.sampler, NULL, NULL);
    ACCEPTS(frit_session_pick_ahead, options, o.session, o.sampler, NULL, &(bool){0});
    REFUSES(frit_session_complete_pick, session, NULL, o.sampler);
    REFUSES(frit_session_complete_pick, sampler, o.session, NULL);
    REFUSES(frit_session_stop, session, NULL);
}

static void call_sessions(void)
{
    const frit_token tokens[2] = {1, 5};
    const float scale = 1;
    const char *path = temp_path("null.session");
    frit_session *session;
    frit_token token;
    size_t n = 99;
    REFUSES(frit_session_new, out, NULL, o.engine);
    REFUSES(frit_session_new, engine, &session, NULL);
    FREES(frit_session_free, session);
    REFUSES(frit_session_set_adapters, session, NULL, &o.adapter, &scale, 1);
    REFUSES(frit_session_set_adapters, adapters, o.session, NULL, &scale, 1);
    REFUSES(frit_session_set_adapters, scales, o.session, &o.adapter, NULL, 1);
    assert_ok(frit_session_set_adapters(o.session, NULL, NULL, 0));
    assert_ok(frit_session_push(o.session, tokens, 1, NULL));
    ACCEPTS(frit_session_pick, options, o.session, o.sampler, NULL);
    assert_ok(frit_session_truncate(o.session, 0));
    REFUSES(frit_session_push, session, NULL, tokens, 2, NULL);
    REFUSES(frit_session_push, tokens, o.session, NULL, 2, NULL);
    ACCEPTS(frit_session_push, options, o.session, tokens, 2, NULL);
    REFUSES(frit_session_encode, session, NULL, tokens, 2, NULL);
    REFUSES(frit_session_encode, tokens, o.session, NULL, 2, NULL);
    note("frit_session_encode", "options");   // this model has no use for them
    assert_fails(frit_session_encode(o.session, tokens, 2, NULL), FRIT_E_UNSUPPORTED, "encoder-decoder");
    ZERO(frit_session_pending, session, NULL);
    ZERO(frit_session_has_picked, session, NULL);
    ZERO(frit_session_length, session, NULL);
    ZERO(frit_session_cached, session, NULL);
    REFUSES(frit_session_set_salt, session, NULL, "a", 1);
    REFUSES(frit_session_set_salt, salt, o.session, NULL, 1);
    REFUSES(frit_session_set_share, session, NULL, 1, 0);
    REFUSES(frit_session_truncate, session, NULL, 0);
    ZERO(frit_session_logits, session, NULL);
    ZERO(frit_session_tokens, session, NULL);
    ZERO(frit_session_source, session, NULL, &n);
    assert_int_equal(n, 0);
    ZERO(frit_session_source, n_tokens, o.session, NULL);
    REFUSES(frit_session_save, session, NULL, path);
    REFUSES(frit_session_save, path, o.session, NULL);
    REFUSES(frit_session_load, session, NULL, path);
    REFUSES(frit_session_load, path, o.session, NULL);
    REFUSES(frit_session_status, session, NULL);
    REFUSES(frit_session_fork, out, NULL, o.session);
    REFUSES(frit_session_fork, session, &session, NULL);
    REFUSES(frit_session_save_memory, session, NULL, &token, sizeof token, &n);
    REFUSES(frit_session_save_memory, bytes, o.session, NULL, 1, &n);
    REFUSES(frit_session_save_memory, n_bytes, o.session, &token, sizeof token, NULL);
    REFUSES(frit_session_load_memory, session, NULL, &token, sizeof token);
    REFUSES(frit_session_load_memory, bytes, o.session, NULL, sizeof token);
    REFUSES(frit_session_set_note, session, NULL, "a", 1);
    REFUSES(frit_session_set_note, note, o.session, NULL, 1);
    ZERO(frit_session_note, session, NULL, &n);
    ZERO(frit_session_note, n_bytes, o.session, NULL);
    REFUSES(frit_session_next, session, NULL, o.sampler, &token);
    REFUSES(frit_session_next, sampler, o.session, NULL, &token);
    REFUSES(frit_session_next, token, o.session, o.sampler, NULL);
    call_picks();
    REFUSES(frit_session_speculate, session, NULL, NULL);
    ACCEPTS(frit_session_speculate, options, o.session, NULL);
    REFUSES(frit_session_next_tokens, n_tokens, o.session, o.sampler, &token, 1, NULL);
    REFUSES(frit_session_next_tokens, session, NULL, o.sampler, &token, 1, &n);
    REFUSES(frit_session_next_tokens, sampler, o.session, NULL, &token, 1, &n);
    REFUSES(frit_session_next_tokens, tokens, o.session, o.sampler, NULL, 1, &n);
    REFUSES(frit_session_draft, n_drafts, o.session, o.sampler, 1, NULL);
    REFUSES(frit_session_draft, session, NULL, o.sampler, 1, &n);
    REFUSES(frit_session_draft, sampler, o.session, NULL, 1, &n);
    REFUSES(frit_sessions_draft, items, NULL, 1);
    REFUSES(frit_sessions_draft, session, &(frit_draft_item){.sampler = o.sampler}, 1);
    REFUSES(frit_sessions_draft, sampler, &(frit_draft_item){.session = o.session}, 1);
    ACCEPTS(frit_sessions_draft, items, NULL, 0);
    REFUSES(frit_session_predict, session, NULL, &token, 1);
    REFUSES(frit_session_predict, tokens, o.session, NULL, 1);
    REFUSES(frit_session_get_speculation, info, o.session, NULL);
    REFUSES(frit_session_get_speculation, session, NULL, &(frit_speculation_info){0});
}

static void call_forced(void)
{
    frit_token token;
    REFUSES(frit_session_push_forced, session, NULL, o.sampler, &token);
    REFUSES(frit_session_push_forced, sampler, o.session, NULL, &token);
    REFUSES(frit_session_push_forced, token, o.session, o.sampler, NULL);
}

static void call_shifts(void)
{
    REFUSES(frit_session_set_shift, session, NULL, &(frit_shift_options){0});
    ACCEPTS(frit_session_set_shift, options, o.session, NULL);
    REFUSES(frit_session_get_shift, session, NULL, &(frit_shift_info){0});
    REFUSES(frit_session_get_shift, info, o.session, NULL);
    REFUSES(frit_session_set_extend, session, NULL, &(frit_extend_options){.n_group = 4, .width = 64});
    ACCEPTS(frit_session_set_extend, options, o.session, NULL);
}

static void call_samplers(void)
{
    const frit_token tokens[2] = {5, 6};
    float logits[TINY_VOCAB] = {0};
    frit_sampler *sampler;
    frit_sampler_options options = {0};
    frit_token token;
    size_t n;
    frit_logprob logprob = {0};
    REFUSES(frit_logprobs_top, logits, NULL, TINY_VOCAB, &logprob, 1);
    REFUSES(frit_logprobs_top, top, logits, TINY_VOCAB, NULL, 1);
    REFUSES(frit_logprobs_of, logits, NULL, TINY_VOCAB, &logprob, 1);
    REFUSES(frit_logprobs_of, tokens, logits, TINY_VOCAB, NULL, 1);
    REFUSES(frit_sampler_recommend, model, NULL, &options);
    REFUSES(frit_sampler_recommend, options, o.model, NULL);
    REFUSES(frit_sampler_set_option, options, NULL, "top-k", "1");
    REFUSES(frit_sampler_set_option, name, &options, NULL, "1");
    REFUSES(frit_sampler_set_option, value, &options, "top-k", NULL);
    REFUSES(frit_sampler_new, out, NULL, o.model, NULL);
    sampler = o.sampler;
    REFUSES(frit_sampler_new, model, &sampler, NULL, NULL);
    assert_null(sampler);
    ACCEPTS(frit_sampler_new, options, &sampler, o.model, NULL);
    frit_sampler_free(sampler);
    FREES(frit_sampler_free, sampler);
    REFUSES(frit_sampler_sample, sampler, NULL, logits, &token);
    REFUSES(frit_sampler_sample, logits, o.sampler, NULL, &token);
    REFUSES(frit_sampler_sample, token, o.sampler, logits, NULL);
    REFUSES(frit_sampler_accept, sampler, NULL, 5);
    REFUSES(frit_sampler_reset, sampler, NULL);
    REFUSES(frit_sampler_set_position, sampler, NULL, 7);
    REFUSES(frit_sampler_heal, sampler, NULL, o.model, tokens, 2, &n);
    REFUSES(frit_sampler_heal, model, o.sampler, NULL, tokens, 2, &n);
    REFUSES(frit_sampler_heal, tokens, o.sampler, o.model, NULL, 2, &n);
    REFUSES(frit_sampler_heal, n_keep, o.sampler, o.model, tokens, 2, NULL);
    frit_grammar *grammar, *grammar_of_turn;
    REFUSES(frit_grammar_new, out, NULL, o.model, "", 0, NULL);
    REFUSES(frit_grammar_new, model, &grammar, NULL, "", 0, NULL);
    REFUSES(frit_grammar_new, text, &grammar, o.model, NULL, 0, NULL);
    ACCEPTS(frit_grammar_new, options, &grammar, o.model, "root ::= .+", 11, NULL);
    frit_grammar_job *job;
    REFUSES(frit_grammar_begin, out, NULL, o.model, "", 0, NULL);
    REFUSES(frit_grammar_begin, model, &job, NULL, "", 0, NULL);
    REFUSES(frit_grammar_begin, text, &job, o.model, NULL, 0, NULL);
    REFUSES(frit_grammar_finish, job, NULL, NULL);
    ACCEPTS(frit_grammar_begin, options, &job, o.model, "root ::= .+", 11, NULL);
    ACCEPTS(frit_grammar_finish, out, job, NULL);
    REFUSES(frit_grammar_retain, grammar, NULL);
    REFUSES(frit_turn_grammar, out, NULL, NULL, NULL);
    REFUSES(frit_turn_grammar, turn, &grammar_of_turn, NULL, NULL);
    ACCEPTS(frit_turn_grammar, options, &grammar_of_turn, o.turn, NULL);
    frit_grammar_free(grammar_of_turn);
    REFUSES(frit_sampler_set_grammar, sampler, NULL, grammar);
    frit_grammar_free(grammar);
    ACCEPTS(frit_sampler_set_grammar, grammar, o.sampler, NULL);
    ZERO(frit_sampler_is_over, sampler, NULL);
    FREES(frit_grammar_free, grammar);
}

static void call_images(void)
{
    static const uint8_t rgb[3] = {1, 2, 3};
    frit_image *image = (frit_image *)(uintptr_t)1;
    uint32_t side;
    REFUSES(frit_image_open, out, NULL, "x", NULL);
    REFUSES(frit_image_open, path, &image, NULL, NULL);
    assert_null(image);
    REFUSES(frit_image_open_memory, out, NULL, rgb, 3, NULL);
    REFUSES(frit_image_open_memory, bytes, &image, NULL, 3, NULL);
    REFUSES(frit_image_from_rgb, out, NULL, 1, 1, rgb);
    REFUSES(frit_image_from_rgb, rgb, &image, 1, 1, NULL);
    // Limits of NULL are the defaults: the path is looked for, and the bytes are looked at.
    note("frit_image_open", "limits");
    assert_int_equal(frit_image_open(&image, "/nowhere.png", NULL), FRIT_E_NOT_FOUND);
    note("frit_image_open_memory", "limits");
    assert_int_equal(frit_image_open_memory(&image, rgb, 3, NULL), FRIT_E_FORMAT);
    assert_ok(frit_image_from_rgb(&image, 1, 1, rgb));
    REFUSES(frit_image_retain, image, NULL);
    REFUSES(frit_image_get_size, image, NULL, &side, &side);
    REFUSES(frit_image_get_size, width, image, NULL, &side);
    REFUSES(frit_image_get_size, height, image, &side, NULL);
    ZERO(frit_image_pixels, image, NULL);
    frit_media *media = (frit_media *)(uintptr_t)1;
    size_t n;
    REFUSES(frit_media_new, out, NULL, o.engine, image, NULL);
    REFUSES(frit_media_new, engine, &media, NULL, image, NULL);
    REFUSES(frit_media_new, image, &media, o.engine, NULL, NULL);
    note("frit_media_new", "options");
    assert_int_equal(frit_media_new(&media, o.engine, image, NULL), FRIT_E_UNSUPPORTED);   // a model of text
    assert_null(media);
    REFUSES(frit_media_prepare, out, NULL, o.model, image, NULL);
    REFUSES(frit_media_prepare, model, &media, NULL, image, NULL);
    REFUSES(frit_media_prepare, image, &media, o.model, NULL, NULL);
    note("frit_media_prepare", "options");
    assert_int_equal(frit_media_prepare(&media, o.model, image, NULL), FRIT_E_UNSUPPORTED);
    frit_engine_media_info info;
    REFUSES(frit_engine_set_media, engine, NULL, NULL);
    note("frit_engine_set_media", "options");
    assert_int_equal(frit_engine_set_media(o.engine, NULL), FRIT_E_UNSUPPORTED);
    REFUSES(frit_engine_get_media_info, engine, NULL, &info);
    REFUSES(frit_engine_get_media_info, info, o.engine, NULL);
    ZERO(frit_media_bytes, media, NULL);
    ZERO(frit_media_tokens, media, NULL, &n);
    ZERO(frit_media_tokens, n_tokens, (const frit_media *)(uintptr_t)rgb, NULL);
    FREES(frit_media_free, media);
    FREES(frit_image_free, image);
    frit_image_free(image);
}

// ------------------------------------------------------------------------------- the rows that there must be

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

// Copies the name that ends before `end`.
static void last_name(const char *end, char name[NAME_BYTES])
{
    while (!is_name(end[-1])) end--;
    const char *start = end;
    while (is_name(start[-1])) start--;
    snprintf(name, NAME_BYTES, "%.*s", (int)(end - start), start);
}

static void expect_row(const char *function, const char *argument)
{
    char row[2 * NAME_BYTES + 3];
    snprintf(row, sizeof row, "%s(%s)", function, argument);
    for (size_t i = 0; i < n_seen; i++)
        if (strcmp(seen[i], row) == 0) return;
    fail_msg("%s has no call with NULL in this test", row);
}

// Makes one expected row for each pointer and each callback of each function. Returns their number.
static size_t expect_rows(const char *name)
{
    char *header = read_header("include", name), function[NAME_BYTES], argument[NAME_BYTES];
    size_t n = 0;
    for (char *at = header; (at = strstr(at, "FRIT_API ")) != NULL; at++) {
        char *open = strchr(at, '('), *end = strchr(at, ')');
        if (!open || strcspn(at, ";") < (size_t)(open - at) || strncmp(at, "FRIT_API __", 11) == 0) continue;
        last_name(open, function);
        for (char *argument_at = open + 1; argument_at < end;) {
            size_t length = strcspn(argument_at, ",)");
            bool is_pointer = memchr(argument_at, '*', length) != NULL;
            bool is_callback = false;
            for (size_t i = 0; i + 4 < length; i++) is_callback |= strncmp(argument_at + i, "_fn ", 4) == 0;
            last_name(argument_at + length, argument);
            if (is_pointer || is_callback) expect_row(function, argument), n++;
            argument_at += length + 1;
        }
    }
    free(header);
    return n;
}

static void every_pointer_may_be_null(void **state)
{
    (void)state;
    make_objects();
    call_tools();
    call_models();
    call_metadata();
    call_text();
    call_chats();
    call_engines();
    call_embeddings();
    call_beams();
    call_images();
    call_sessions();
    call_forced();
    call_shifts();
    call_samplers();
    free_objects();
    const size_t n = expect_rows("frit.h") + expect_rows("frit_tools.h");
    print_message("%zu pointers\n", n);
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_pointer_may_be_null)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
