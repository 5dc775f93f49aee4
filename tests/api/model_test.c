// SPDX-License-Identifier: MIT
// Queries of a model: tokens with a role, attributes of tokens, metadata by key; and models in memory.
#include "support/engines.h"
#include "support/gguf_builder.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "frit.h"

#include <math.h>
#include <signal.h>

static void roles_name_tokens(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_model_info info;
    assert_int_equal(frit_token_of_role(model, FRIT_ROLE_BOS), 1);
    assert_int_equal(frit_token_of_role(model, FRIT_ROLE_EOS), 2);
    assert_int_equal(frit_token_of_role(model, FRIT_ROLE_UNKNOWN), 0);
    assert_int_equal(frit_token_of_role(model, FRIT_ROLE_FIM_PREFIX), -1);
    assert_int_equal(frit_token_of_role(model, (frit_token_role)1000), -1);
    assert_int_equal(frit_token_of_role(model, (frit_token_role)-1), -1);
    assert_ok(frit_model_get_info(model, &info));
    assert_true(info.adds_bos && !info.adds_eos);
    frit_model_free(model);
    model = load_tiny(&(tiny_options){.n_pieces = -1});
    assert_int_equal(frit_token_of_role(model, FRIT_ROLE_BOS), -1);
    frit_model_free(model);
}

static void tokens_have_attributes(void **state)
{
    (void)state;
    static const struct {
        frit_token token;
        frit_token_kind kind;
        const char *text;
        bool is_end;
    } rows[] = {
        {0, FRIT_TOKEN_UNKNOWN, "<unk>", false}, {1, FRIT_TOKEN_CONTROL, "<s>", false},
        {2, FRIT_TOKEN_CONTROL, "</s>", true},   {3, FRIT_TOKEN_NORMAL, "\xe2\x96\x81", false},
        {5, FRIT_TOKEN_NORMAL, "b", false},
    };
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_token_info info;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        assert_ok(frit_token_get_info(model, rows[i].token, &info));
        assert_int_equal(info.kind, rows[i].kind);
        assert_int_equal(info.is_end, rows[i].is_end);
        assert_int_equal(info.n_bytes, strlen(rows[i].text));
        assert_memory_equal(info.text, rows[i].text, info.n_bytes);
        assert_true(info.score == -rows[i].token);
    }
    assert_fails(frit_token_get_info(model, TINY_VOCAB, &info), FRIT_E_INVALID, "ids are 0 to 63");
    assert_fails(frit_token_get_info(model, -1, &info), FRIT_E_INVALID, "ids are 0 to 63");
    frit_model_free(model);
    model = load_tiny(&(tiny_options){.n_pieces = -1});
    assert_fails(frit_token_get_info(model, 0, &info), FRIT_E_UNSUPPORTED, "has no vocabulary");
    frit_model_free(model);
}

static void metadata_is_found_by_its_key(void **state)
{
    (void)state;
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_meta_info info;
    int64_t number = 0;
    double real = 0;
    const char *text;
    size_t n;
    assert_ok(frit_model_find_meta(model, "llama.block_count", &info));
    assert_true(info.type == FRIT_META_INT && !info.is_array && info.n_items == 1);
    assert_ok(frit_model_meta_int(model, "llama.block_count", 0, &number));
    assert_int_equal(number, 2);
    assert_ok(frit_model_meta_float(model, "llama.block_count", 0, &real));
    assert_true(real == 2);
    assert_ok(frit_model_meta_float(model, "llama.attention.layer_norm_rms_epsilon", 0, &real));
    assert_true(real == (double)1e-5f);
    assert_ok(frit_model_meta_text(model, "general.name", 0, &text, &n));
    assert_true(n == 4 && memcmp(text, "tiny", 4) == 0);
    assert_ok(frit_model_find_meta(model, "tokenizer.ggml.tokens", &info));
    assert_true(info.type == FRIT_META_TEXT && info.is_array && info.n_items == TINY_VOCAB);
    assert_ok(frit_model_meta_text(model, "tokenizer.ggml.tokens", 2, &text, &n));
    assert_true(n == 4 && memcmp(text, "</s>", 4) == 0);
    assert_ok(frit_model_meta_float(model, "tokenizer.ggml.scores", 63, &real));
    assert_true(real == -63);
    assert_ok(frit_model_meta_int(model, "tokenizer.ggml.scores", 63, &number));   // a whole number
    assert_int_equal(number, -63);
    assert_ok(frit_model_meta_int(model, "tokenizer.ggml.token_type", 1, &number));
    assert_int_equal(number, FRIT_TOKEN_CONTROL);

    assert_fails(frit_model_find_meta(model, "llama.nothing", &info), FRIT_E_NOT_FOUND,
                 "tiny.gguf: has no metadata key 'llama.nothing'");
    assert_fails(frit_model_meta_int(model, "general.name", 0, &number), FRIT_E_INVALID, "expected an integer");
    assert_fails(frit_model_meta_int(model, "llama.attention.layer_norm_rms_epsilon", 0, &number), FRIT_E_INVALID,
                 "expected an integer");
    assert_fails(frit_model_meta_float(model, "general.name", 0, &real), FRIT_E_INVALID, "expected a number");
    assert_fails(frit_model_meta_text(model, "llama.block_count", 0, &text, &n), FRIT_E_INVALID, "expected text");
    assert_fails(frit_model_meta_int(model, "llama.block_count", 1, &number), FRIT_E_INVALID, "which has 1");
    assert_fails(frit_model_meta_text(model, "tokenizer.ggml.tokens", TINY_VOCAB, &text, &n), FRIT_E_INVALID,
                 "item 64 of metadata key 'tokenizer.ggml.tokens', which has 64");
    frit_model_free(model);
}

// Values at the edges of their types.
static void metadata_keeps_numbers_exact(void **state)
{
    (void)state;
    gguf_builder b = {0};
    gguf_add_text(&b, "general.architecture", "none");
    gguf_add_value(&b, "large", FRIT_VALUE_U64, &(uint64_t){UINT64_MAX});
    gguf_add_value(&b, "small", FRIT_VALUE_I64, &(int64_t){INT64_MIN});
    gguf_add_value(&b, "double", FRIT_VALUE_F64, &(double){0x1p63});
    gguf_add_bool(&b, "yes", true);
    gguf_add_array(&b, "empty", FRIT_VALUE_F32, 0, NULL);
    gguf_add_array(&b, "many", FRIT_VALUE_U64, 2, (uint64_t[]){1, UINT64_MAX});
    frit_buf file = gguf_build(&b);
    frit_model *model;
    frit_meta_info info;
    int64_t number = 7;
    double real = 7;
    assert_ok(frit_model_open_memory(&model, file.data, file.len, &(frit_model_options){.vocab_only = true}));
    assert_fails(frit_model_meta_int(model, "large", 0, &number), FRIT_E_INVALID, "64 bits");
    assert_fails(frit_model_meta_float(model, "large", 0, &real), FRIT_E_INVALID, "double");
    assert_ok(frit_model_meta_int(model, "small", 0, &number));
    assert_true(number == INT64_MIN);
    assert_fails(frit_model_meta_int(model, "double", 0, &number), FRIT_E_INVALID, "64 bits");
    assert_true(number == INT64_MIN && real == 7);
    assert_ok(frit_model_find_meta(model, "yes", &info));
    assert_int_equal(info.type, FRIT_META_BOOL);
    assert_ok(frit_model_meta_int(model, "yes", 0, &number));
    assert_int_equal(number, 1);
    assert_fails(frit_model_meta_float(model, "yes", 0, &real), FRIT_E_INVALID, "expected a number");
    assert_ok(frit_model_find_meta(model, "empty", &info));
    assert_true(info.is_array && info.n_items == 0 && info.type == FRIT_META_FLOAT);
    assert_fails(frit_model_meta_float(model, "empty", 0, &real), FRIT_E_INVALID, "which has 0");
    assert_ok(frit_model_meta_int(model, "many", 0, &number));
    assert_int_equal(number, 1);
    assert_fails(frit_model_meta_int(model, "many", 1, &number), FRIT_E_INVALID, "an array of u64");
    frit_model_free(model);
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// Returns the greedy text of a model and frees the model.
static void continue_text(frit_model *model, frit_token next[20])
{
    frit_engine *engine;
    frit_session *session;
    frit_sampler *sampler;
    const frit_token tokens[] = {1, 7, 9};
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64, .n_threads = 1}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_sampler_new(&sampler, model, NULL));
    assert_ok(frit_session_push(session, tokens, 3, NULL));
    for (int i = 0; i < 20; i++) assert_ok(frit_session_next(session, sampler, &next[i]));
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

static void count_warnings(void *ctx, frit_log_level level, const char *sentence)
{
    if (level == FRIT_LOG_WARNING && strstr(sentence, "is not from a file")) ++*(int *)ctx;
}

static void a_model_in_memory_is_as_good_as_a_file(void **state)
{
    (void)state;
    size_t n;
    frit_model *model;
    frit_model_info info;
    frit_token a[20], b[20];
    char *bytes = read_file(tiny_model("tiny.gguf", &(tiny_options){.seed = 3}), &n);
    char *odd = malloc(n + 1);   // an address that misaligns numbers
    memcpy(odd + 1, bytes, n);
    continue_text(load_tiny(&(tiny_options){.seed = 3}), a);
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_model_open_memory(&model, i ? odd + 1 : bytes, n, NULL));
        assert_ok(frit_model_get_info(model, &info));
        assert_string_equal(info.path, "memory");
        assert_string_equal(info.format, "GGUF v3");
        continue_text(model, b);
        assert_memory_equal(a, b, sizeof a);
    }
    // Packed weights are cached by the files of a model; this model has none.
    int n_warnings = 0;
    frit_engine *engine;
    assert_ok(
        frit_model_open_memory(&model, bytes, n, &(frit_model_options){.log = count_warnings, .log_ctx = &n_warnings}));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 32, .weights_cache = temp_path("kept")}));
    assert_int_equal(n_warnings, 1);
    frit_engine_free(engine);
    frit_model_free(model);
    for (size_t cut = 0; cut < n; cut += cut < 2000 ? 13 : 997)   // every truncated file is refused
        assert_fails(frit_model_open_memory(&model, bytes, cut, NULL), FRIT_E_FORMAT, "memory: ");
    free(odd);
    free(bytes);
}

// Files in memory that are read by ranges. Reads fail from file `bad_file`, byte `bad_at` on.
typedef struct ranges {
    char *bytes[3];
    uint64_t n_bytes[3];
    size_t n_files, bad_file, n_reads, most;
    uint64_t bad_at;
} ranges;

static bool read_range(void *ctx, size_t file, uint64_t at, void *bytes, size_t n)
{
    ranges *r = ctx;
    assert_true(file < r->n_files && at + n <= r->n_bytes[file]);
    r->n_reads++;
    if (n > r->most) r->most = n;
    if (file == r->bad_file && at + n > r->bad_at) return false;
    memcpy(bytes, r->bytes[file] + at, n);
    return true;
}

static ranges ranges_of(const char *path)
{
    ranges r = {.n_files = 1, .bad_file = SIZE_MAX};
    size_t n;
    r.bytes[0] = read_file(path, &n);
    r.n_bytes[0] = n;
    return r;
}

static frit_status open_ranges(frit_model **model, ranges *r)
{
    return frit_model_open_files(
        model, &(frit_model_files){.n_bytes = r->n_bytes, .n_files = r->n_files, .read = read_range, .ctx = r}, NULL);
}

static void files_read_by_ranges_are_as_good_as_mapped_ones(void **state)
{
    (void)state;
    const char *const paths[] = {tiny_model("tiny.gguf", &(tiny_options){.seed = 3}),
                                 FRIT_SOURCE_DIR "/models/fable.gguf"};
    for (int i = 0; i < 2; i++) {
        frit_model *model;
        frit_token a[20], b[20];
        assert_ok(frit_model_open(&model, paths[i], NULL));
        continue_text(model, a);
        ranges r = ranges_of(paths[i]);
        assert_ok(open_ranges(&model, &r));
        continue_text(model, b);
        assert_memory_equal(a, b, sizeof a);
        assert_true(r.n_reads > 3 && r.most <= (size_t)8 << 20);
        free(r.bytes[0]);
    }
}

// Packed by several threads, a matrix is the same, and its rows are read by the calling thread only.
static void ranges_that_cannot_be_read_are_errors(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine;
    ranges r = ranges_of(FRIT_SOURCE_DIR "/models/fable.gguf");
    r.bad_file = 0;
    assert_fails(open_ranges(&model, &r), FRIT_E_IO, "files: bytes 0 to ");
    r.bad_at = r.n_bytes[0] - 1;   // the last matrix
    assert_ok(open_ranges(&model, &r));
    assert_fails(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 64, .n_threads = 3}), FRIT_E_IO,
                 "in file 1 cannot be read");
    r.bad_file = SIZE_MAX;
    assert_null(engine);
    frit_model_free(model);
    for (r.n_bytes[0] = 0; r.n_bytes[0] < 4000; r.n_bytes[0] += 97)
        assert_fails(open_ranges(&model, &r), FRIT_E_FORMAT, "files: ");
    free(r.bytes[0]);
}

static void a_split_set_is_read_by_ranges(void **state)
{
    (void)state;
    const char *path = temp_path("parts.gguf");
    frit_model *model;
    frit_token a[20], b[20];
    assert_ok(frit_model_open(&model, FRIT_SOURCE_DIR "/models/fable.gguf", NULL));
    continue_text(model, a);
    assert_ok(
        frit_convert(FRIT_SOURCE_DIR "/models/fable.gguf", path, &(frit_convert_options){.split_max_size = "8M"}));
    ranges r = {.bad_file = SIZE_MAX};
    size_t n;
    for (char name[600]; r.n_files < 3; r.n_files++, r.n_bytes[r.n_files - 1] = n) {
        snprintf(name, sizeof name, "%.*s-%05zu-of-00003.gguf", (int)strlen(path) - 5, path, r.n_files + 1);
        r.bytes[r.n_files] = read_file(name, &n);
    }
    assert_ok(open_ranges(&model, &r));
    continue_text(model, b);
    assert_memory_equal(a, b, sizeof a);
    r.n_files = 2;
    assert_fails(open_ranges(&model, &r), FRIT_E_INVALID, "is one of 3 files of a set, and 2 were given");
    for (int i = 0; i < 3; i++) free(r.bytes[i]);
}

static void a_part_of_a_set_is_refused_in_memory(void **state)
{
    (void)state;
    gguf_builder b = {0};
    frit_model *model;
    gguf_add_text(&b, "general.architecture", "llama");
    gguf_add_value(&b, "split.count", FRIT_VALUE_U16, &(uint16_t){3});
    frit_buf file = gguf_build(&b);
    assert_fails(frit_model_open_memory(&model, file.data, file.len, &(frit_model_options){.vocab_only = true}),
                 FRIT_E_UNSUPPORTED, "memory: one of 3 parts of a split set; expected a whole file");
    frit_buf_free(&file);
    gguf_builder_free(&b);
}

// Returns the status of tokenizing n letters with a tokenizer.json; checks *n_tokens after FRIT_E_LIMIT.
static frit_status tokenize_with(const char *json, size_t n)
{
    const char *path = temp_path("tokenizer.json");
    frit_model *model;
    write_file(path, json, strlen(json));
    assert_ok(frit_model_open(&model, path, &(frit_model_options){.vocab_only = true}));
    char *text = malloc(n);
    memset(text, 'a', n);
    size_t n_tokens = 99;
    frit_status status = frit_tokenize(model, text, n, 0, NULL, 0, &n_tokens);
    assert_true(status == FRIT_E_LIMIT ? n_tokens > 0 : n_tokens == 0);
    free(text);
    frit_model_free(model);
    return status;
}

#define AB "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}"

static void only_a_lack_of_room_is_a_limit(void **state)
{
    (void)state;
    static const char splits[] = "{" AB ",\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":"
                                 "\"(a+)+[bc]\"},\"behavior\":\"Isolated\"}}";
    assert_fails(tokenize_with(splits, 1 << 18), FRIT_E_TIMEOUT, "a regex of the tokenizer");
    assert_fails(tokenize_with(splits, 3), FRIT_E_LIMIT, "there is room for 0");
    frit_buf doubles = {0};
    frit_buf_text(&doubles, "{" AB ",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 60; i++)
        frit_buf_printf(&doubles, "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}",
                        i ? "," : "");
    frit_buf_text(&doubles, "]}}");
    assert_fails(tokenize_with(doubles.data, 1), FRIT_E_INVALID, "the normalizers make a text");
    frit_buf_free(&doubles);
}

// Signal handlers of a program stay installed: the command handles SIGBUS, the library does not.
static void handlers_of_signals_stay(void **state)
{
    (void)state;
#ifdef _WIN32
    skip_because("signals are those of POSIX");
#else
    enum { N = 32 };
    struct sigaction before[N], after;
    for (int i = 1; i < N; i++) assert_int_equal(sigaction(i, NULL, &before[i]), 0);
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_engine_new(&engine, model, NULL));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, (const frit_token[]){1, 5, 6}, 3, NULL));
    assert_ok(frit_engine_step(engine, &n_rows));
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    for (int i = 1; i < N; i++) {
        assert_int_equal(sigaction(i, NULL, &after), 0);
        assert_true(after.sa_handler == before[i].sa_handler && after.sa_flags == before[i].sa_flags);
    }
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roles_name_tokens),
        cmocka_unit_test(tokens_have_attributes),
        cmocka_unit_test(metadata_is_found_by_its_key),
        cmocka_unit_test(metadata_keeps_numbers_exact),
        cmocka_unit_test(a_model_in_memory_is_as_good_as_a_file),
        cmocka_unit_test(files_read_by_ranges_are_as_good_as_mapped_ones),
        cmocka_unit_test(ranges_that_cannot_be_read_are_errors),
        cmocka_unit_test(a_split_set_is_read_by_ranges),
        cmocka_unit_test(a_part_of_a_set_is_refused_in_memory),
        cmocka_unit_test(only_a_lack_of_room_is_a_limit),
        cmocka_unit_test(handlers_of_signals_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
