// SPDX-License-Identifier: MIT
// Conversion: models in folders give the same logits as GGUF files, within the error of each type. A file is written
// completely or not at all.
#include "arch/golden.h"
#include "convert/convert.h"
#include "format/gguf.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

// ------------------------------------------------------------------------------------- logits

typedef struct results {
    float *logits;
    size_t n_vocab;
} results;

static void keep_row(void *ctx, size_t i, const float *values, size_t n)
{
    results *r = ctx;
    assert_int_equal(n, r->n_vocab);
    memcpy(r->logits + i * n, values, n * sizeof *values);
}

static const frit_engine_options exact = {
    .n_ctx = 64, .n_threads = 1, .cpu = "reference", .cache_type_k = "f32", .cache_type_v = "f32"};

// Returns [n_tokens, n_vocab], freed by the caller.
static float *logits_of(const char *path, const char *type, const golden *g, const frit_engine_options *options)
{
    const frit_model_options with = {.type = type};
    results r = {calloc(g->n_tokens * g->n_vocab, sizeof(float)), g->n_vocab};
    const frit_push_options push = {.output = g->output, .row = keep_row, .row_ctx = &r};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, path, &with));
    assert_ok(frit_engine_new(&engine, model, options));
    assert_ok(frit_session_new(&session, engine));
    if (g->source) assert_ok(frit_session_encode(session, g->source, g->n_source, NULL));
    assert_ok(frit_session_push(session, g->tokens, g->n_tokens, &push));
    do assert_ok(frit_engine_step(engine, &n_rows));
    while (n_rows > 0);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return r.logits;
}

static double error_of(const char *path, const golden *g)
{
    float *logits = logits_of(path, NULL, g, &exact);
    const double error = nmse(logits, g->logits, g->n_tokens * g->n_vocab);
    free(logits);
    return error;
}

// Limits of errors: for logits, about twice the measured error, and for the tensors' numbers.
static const struct {
    const char *type;
    double limit, tensor_limit;
} types[] = {
    {NULL, 1e-9, 0}, {"f32", 1e-9, 0}, {"bf16", 1e-9, 0}, {"f16", 1e-9, 1e-9}, {"q8_0", 8e-3, 5e-5},
};

// In these small random models, rounding weights to q8_0 may choose another expert, T5 does not scale its attention
// scores, and a recurrent state adds up rounding errors.
static const struct {
    const char *name;
    double limit;   // for q8_0
} sensitive[] = {
    {"qwen3_5_text", 0.012}, {"gpt_oss", 0.02}, {"phimoe", 0.02},     {"qwen2_moe", 0.02},
    {"mixtral", 0.025},      {"t5", 0.04},      {"qwen3_next", 0.12}, {"t5-gated", 0.13},
};

static double limit_of(const char *name, size_t type)
{
    for (size_t i = 0; i < FRIT_COUNT(sensitive) && types[type].limit > 1e-3; i++)
        if (strcmp(sensitive[i].name, name) == 0) return sensitive[i].limit;
    return types[type].limit;
}

static void folders_give_the_same_logits_as_files(void **state)
{
    (void)state;
    shared_path("goldens/hf/%s", golden_name(0));   // skips the test before anything is allocated
    char *out = strdup(temp_path("converted.gguf"));
    size_t n_bad = 0;
    for (size_t i = 0; i < N_GOLDEN_FOLDERS; i++) {
        if (!golden_is_here(i)) continue;
        golden g = golden_load(i);
        print_message("| %-20s |", golden_name(i));
        // Types are the business of the first set; in the other one the exact type shows keys and tensors.
        const size_t n_types = golden_get(i)->flags & GOLDEN_MORE ? 1 : FRIT_COUNT(types);
        for (size_t t = 0; t < n_types; t++) {
            assert_ok(frit_convert(g.path, out, &(frit_convert_options){.type = types[t].type, .n_threads = 1}));
            const double error = error_of(out, &g);
            print_message(" %8.1e |", error);
            n_bad += !(error <= limit_of(golden_name(i), t));
        }
        print_message("\n");
        golden_free(&g);
    }
    remove(out);
    free(out);
    assert_int_equal(n_bad, 0);
}

// A folder that is quantized while it loads gives the results of the converted file, bit for bit, with the reference
// and with the best kernels.
static void types_while_loading_are_those_of_files(void **state)
{
    (void)state;
    static const char *const loaded[] = {"q8_0", "bf16", "q4_k"};   // the last one needs fallbacks
    const frit_engine_options fast = {.n_ctx = 64, .n_threads = 2};
    char *out = strdup(temp_path("typed.gguf"));
    for (size_t i = 0; i < N_GOLDEN_FOLDERS; i++) {
        if (!golden_is_here(i) || golden_get(i)->flags & GOLDEN_MORE) continue;
        golden g = golden_load(i);
        for (size_t t = 0; t < FRIT_COUNT(loaded); t++) {
            const frit_engine_options *options = (i + t) % 4 == 0 ? &exact : &fast;
            assert_ok(frit_convert(g.path, out, &(frit_convert_options){.type = loaded[t], .n_threads = 1}));
            float *file = logits_of(out, NULL, &g, options), *folder = logits_of(g.path, loaded[t], &g, options);
            if (memcmp(file, folder, g.n_tokens * g.n_vocab * sizeof *file) != 0)
                fail_msg("%s as %s: the folder's logits are not those of its file", golden_name(i), loaded[t]);
            free(file);
            free(folder);
        }
        golden_free(&g);
    }
    remove(out);
    free(out);
}

static void types_that_cannot_be_written_are_refused(void **state)
{
    (void)state;
    frit_model *model;
    assert_fails(frit_model_open(&model, shared_path("goldens/hf/qwen3"), &(frit_model_options){.type = "i32"}),
                 FRIT_E_INVALID, "type is 'i32', expected one of f32, f16");
}

// ------------------------------------------------------------------------------------- types that do not fit

static frit_buf said;

static void note_warnings(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    if (level == FRIT_LOG_WARNING) frit_buf_printf(&said, "%s\n", sentence);
}

// Two layers with a matrix of each width.
static void write_widths(const char *path, const int64_t *widths, size_t n)
{
    static const float zeros[1024];
    static char names[16][64];
    frit_tensor tensors[16];
    for (size_t i = 0; i < 2 * n; i++) {
        snprintf(names[i], sizeof names[i], "blk.%zu.w%d.weight", i / n, (int)widths[i % n]);
        tensors[i] = (frit_tensor){.name = names[i],
                                   .dtype = FRIT_DTYPE_F32,
                                   .n_dims = 2,
                                   .shape = {2, widths[i % n], 1, 1},
                                   .data = zeros,
                                   .n_bytes = 2 * (uint64_t)widths[i % n] * sizeof *zeros};
    }
    frit_arena arena = {0};
    frit_meta meta;
    frit_meta_init(&meta, &arena);
    assert_ok(frit_meta_add_text(&meta, "general.architecture", "llama"));
    assert_ok(frit_gguf_write_contents(&(frit_gguf_contents){&meta, tensors, 2 * n, NULL, NULL}, path));
    frit_meta_deinit(&meta);
    frit_arena_free(&arena);
}

static void rows_that_blocks_do_not_divide_get_the_next_finer_type(void **state)
{
    (void)state;
    static const int64_t widths[] = {256, 288, 40};
    static const struct {
        const char *type, *got[3], *warnings[2];   // for widths 256, 288 and 40
        int64_t file_type;
    } rows[] = {
        {"q4_k",
         {"q4_k", "q5_0", "f16"},
         {"2 of 6 matrices become q5_0, because q4_k needs rows of a multiple of 256", "2 of 6 matrices become f16"},
         8},
        {"q2_k", {"q2_k", "iq4_nl", "f16"}, {"become iq4_nl", "become f16"}, 25},
        {"q3_k", {"q3_k", "iq4_nl", "f16"}, {"become iq4_nl", "become f16"}, 25},
        {"iq2_xxs", {"iq2_xxs", "iq4_nl", "f16"}, {"become iq4_nl", "become f16"}, 25},
        {"q5_k", {"q5_k", "q5_1", "f16"}, {"become q5_1", "become f16"}, 9},
        {"q6_k", {"q6_k", "q8_0", "f16"}, {"become q8_0", "become f16"}, 7},
        {"q8_0", {"q8_0", "q8_0", "f16"}, {"2 of 6 matrices become f16", ": blk.*.w40.weight\n"}, 7},
        {"bf16", {"bf16", "bf16", "bf16"}, {"", ""}, 32},
    };
    char *source = strdup(temp_path("widths.gguf")), *out = strdup(temp_path("fitted.gguf"));
    write_widths(source, widths, 3);
    for (size_t r = 0; r < FRIT_COUNT(rows); r++) {
        frit_buf_clear(&said);
        assert_ok(frit_convert(source, out, &(frit_convert_options){.type = rows[r].type, .log = note_warnings}));
        frit_checkpoint *got;
        assert_ok(frit_checkpoint_open(&got, out, &(frit_checkpoint_options){0}));
        for (size_t i = 0; i < got->n_tensors; i++) {
            const char *type = frit_dtype_get(got->tensors[i].dtype)->name;
            for (size_t k = 0; k < 3; k++)
                if (got->tensors[i].shape[1] == widths[k]) assert_string_equal(type, rows[r].got[k]);
        }
        int64_t id;
        bool found;
        assert_ok(frit_meta_get_i64(&got->meta, "general.file_type", &id, &found));
        assert_true(found);
        assert_int_equal(id, rows[r].file_type);
        frit_checkpoint_close(got);
        for (size_t k = 0; k < 2; k++)
            if (!strstr(said.data ? said.data : "", rows[r].warnings[k]))
                fail_msg("%s: '%s' is not said, but\n%s", rows[r].type, rows[r].warnings[k], said.data);
        if (!rows[r].warnings[0][0]) assert_int_equal(said.len, 0);
    }
    frit_buf_free(&said);
    remove(source);
    remove(out);
    free(source);
    free(out);
}

static double tensor_error(const frit_tensor *got, const frit_tensor *want)
{
    const int64_t n = frit_tensor_n_elems(want), width = want->shape[want->n_dims - 1];
    float *x = calloc((size_t)n, sizeof *x), *y = calloc((size_t)n, sizeof *y);
    assert_int_equal(frit_tensor_n_elems(got), n);
    assert_ok(frit_tensor_decode_rows(got, 0, n / width, x));
    assert_ok(frit_tensor_decode_rows(want, 0, n / width, y));
    const double error = nmse(x, y, (size_t)n);
    free(x);
    free(y);
    return error;
}

static void tensors_keep_their_numbers(void **state)
{
    (void)state;
    char *source = strdup(shared_path("goldens/hf/qwen3_moe")), *out = strdup(temp_path("tensors.gguf"));
    for (size_t t = 0; t < FRIT_COUNT(types); t++) {
        frit_checkpoint *want, *got;
        double worst = 0;
        assert_ok(frit_convert(source, out, &(frit_convert_options){.type = types[t].type}));
        assert_ok(frit_checkpoint_open(&want, source, &(frit_checkpoint_options){0}));
        assert_ok(frit_checkpoint_open(&got, out, &(frit_checkpoint_options){0}));
        assert_int_equal(got->n_tensors, want->n_tensors);
        for (size_t i = 0; i < want->n_tensors; i++) {
            const frit_tensor *other = frit_checkpoint_find(got, want->tensors[i].name);
            assert_non_null(other);
            const double error = tensor_error(other, &want->tensors[i]);
            worst = error > worst ? error : worst;
        }
        print_message("%s: %.1e\n", types[t].type ? types[t].type : "as it is", worst);
        assert_true(worst <= types[t].tensor_limit);
        frit_checkpoint_close(got);
        frit_checkpoint_close(want);
    }
    remove(out);
    free(out);
    free(source);
}

static void rows_go_there_and_back(void **state)
{
    (void)state;
    const frit_row_order there = {.head = 10, .permuted = 8, .to_interleaved = true};
    const frit_row_order back = {.head = 10, .permuted = 8, .to_interleaved = false};
    static const int64_t expected[] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 9};
    for (int64_t i = 0; i < 30; i++) {
        assert_int_equal(frit_row_order_source(&there, i), i / 10 * 10 + expected[i % 10]);
        assert_int_equal(frit_row_order_source(&back, frit_row_order_source(&there, i)), i);
    }
}

// ------------------------------------------------------------------------------------- files

static bool same_file(const char *a, const char *b)
{
    size_t n, m;
    char *x = read_file(a, &n), *y = read_file(b, &m);
    const bool same = n == m && memcmp(x, y, n) == 0;
    free(x);
    free(y);
    return same;
}

static void gguf_files_come_back_as_they_were(void **state)
{
    (void)state;
    const char *out = temp_path("copy.gguf");
    const char *source = shared_path("goldens/arch/qwen3moe-moe.gguf");
    assert_ok(frit_convert(source, out, NULL));
    assert_true(same_file(source, out));
    remove(out);
}

static void sets_hold_what_one_file_does(void **state)
{
    (void)state;
    const char *folder = shared_path("goldens/hf/qwen3"), *whole = temp_path("whole.gguf"),
               *set = temp_path("set.gguf");
    const char *joined = temp_path("joined.gguf");
    assert_ok(frit_convert(folder, whole, NULL));
    assert_ok(frit_convert(folder, set, &(frit_convert_options){.split_max_size = "60K"}));
    frit_arena arena = {0};
    int count = 1;
    while (count < 100 && access(frit_gguf_shard_path(&arena, set, 0, count), F_OK) != 0) count++;
    assert_in_range(count, 2, 99);
    for (int i = 0; i < count; i++) assert_int_equal(access(frit_gguf_shard_path(&arena, set, i, count), F_OK), 0);
    assert_int_not_equal(access(set, F_OK), 0);
    assert_ok(frit_convert(frit_gguf_shard_path(&arena, set, 1, count), joined, NULL));
    assert_true(same_file(whole, joined));
    for (int i = 0; i < count; i++) remove(frit_gguf_shard_path(&arena, set, i, count));
    remove(whole);
    remove(joined);
    frit_arena_free(&arena);
}

static void copy_file(const char *folder, const char *name)
{
    char to[600];
    size_t n;
    char *bytes = read_file(shared_path("goldens/hf/llama/%s", name), &n);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    write_file(to, bytes, n);
    free(bytes);
}

static size_t tokens_of(const char *path, const char *text, frit_token ids[64])
{
    frit_model *model;
    size_t n;
    assert_ok(frit_model_open(&model, path, NULL));
    assert_ok(frit_tokenize(model, text, strlen(text), 0, ids, 64, &n));
    frit_model_free(model);
    return n;
}

static bool has_warned;

static void note_warning(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    has_warned |= level == FRIT_LOG_WARNING && strstr(sentence, "no GGUF tokenizer splits text exactly");
}

static void cuts_that_gguf_has_no_name_for_travel_as_published(void **state)
{
    (void)state;
    char *folder = strdup(temp_path("model")), *out = strdup(temp_path("json.gguf")), name[600];
    static const char *const names[] = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"};
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < FRIT_COUNT(names); i++) copy_file(folder, names[i]);
    snprintf(name, sizeof name, "%s/tokenizer.json", folder);
    size_t n;
    char *json = read_file(name, &n), *letters = strstr(json, "p{L}+|");
    assert_non_null(letters);
    letters[4] = '?';   // words are cut into letters
    write_file(name, json, n);
    free(json);
    has_warned = false;
    assert_ok(frit_convert(folder, out, &(frit_convert_options){.log = note_warning}));
    assert_true(has_warned);
    frit_token from_folder[64], from_file[64], from_other[64];
    static const char text[] = "In 2024, 1234567 of them.";
    const size_t n_folder = tokens_of(folder, text, from_folder), n_file = tokens_of(out, text, from_file);
    assert_int_equal(n_folder, n_file);
    assert_memory_equal(from_folder, from_file, n_file * sizeof *from_file);
    const size_t n_other = tokens_of(shared_path("goldens/hf/llama"), text, from_other);
    assert_true(n_other != n_file || memcmp(from_other, from_file, n_file * sizeof *from_file) != 0);
    for (size_t i = 0; i < FRIT_COUNT(names); i++) {
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        remove(name);
    }
    remove(folder);
    remove(out);
    free(folder);
    free(out);
}

// ------------------------------------------------------------------------------------- failures

static size_t count_files(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    size_t n = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static bool cancel_late(void *ctx, double done)
{
    (void)ctx;
    return done < 0.6;
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    char folder[512], out[600];
    snprintf(folder, sizeof folder, "%s", temp_path("failures"));
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    const char *source = shared_path("goldens/hf/qwen3");
    const frit_convert_options bad_type = {.type = "q9_0"}, bad_size = {.split_max_size = "4X"};
    const frit_convert_options integer = {.type = "i32"}, negative = {.split_max_size = "-1"};
    const frit_convert_options late = {.progress = cancel_late},
                               late_set = {.progress = cancel_late, .split_max_size = "60K"};
    assert_fails(frit_convert(source, out, &bad_type), FRIT_E_INVALID,
                 "type is 'q9_0', expected one of f32, f16, bf16, q8_0");
    assert_fails(frit_convert(source, out, &integer), FRIT_E_INVALID, "type is 'i32'");
    assert_fails(frit_convert(source, out, &bad_size), FRIT_E_INVALID, "split-max-size is '4X'");
    assert_fails(frit_convert(source, out, &negative), FRIT_E_INVALID, "split-max-size is '-1'");
    assert_fails(frit_convert(source, folder, NULL), FRIT_E_INVALID, "should end in .gguf");
    assert_fails(frit_convert("/nowhere", out, NULL), FRIT_E_NOT_FOUND, "/nowhere");
    assert_fails(frit_convert(source, "/nowhere/out.gguf", NULL), FRIT_E_NOT_FOUND, "/nowhere/out.gguf");
    assert_fails(frit_convert(source, out, &late), FRIT_E_CANCELLED, "was cancelled");
    assert_fails(frit_convert(source, out, &late_set), FRIT_E_CANCELLED, "was cancelled");
    assert_int_equal(count_files(folder), 0);
    assert_ok(frit_convert(source, out, NULL));
    assert_fails(frit_convert(out, out, &(frit_convert_options){.type = "q8_0"}), FRIT_E_INVALID,
                 "the target is the source file");
    assert_int_equal(count_files(folder), 1);
    // A set in its own place.
    const frit_convert_options set = {.split_max_size = "60K"};
    char first[700];
    assert_ok(frit_convert(source, out, &set));
    const size_t n_parts = count_files(folder) - 1;
    assert_true(n_parts > 1);
    snprintf(first, sizeof first, "%s/out-00001-of-%05zu.gguf", folder, n_parts);
    assert_fails(frit_convert(first, out, &set), FRIT_E_INVALID, "the target is the source file");
    assert_ok(frit_convert(first, out, NULL));   // all parts are unchanged
    for (size_t i = 0; i < n_parts; i++) {
        snprintf(first, sizeof first, "%s/out-%05zu-of-%05zu.gguf", folder, i + 1, n_parts);
        remove(first);
    }
    remove(out);
    remove(folder);
}

// The types that 'frit info DIR --type q4_0' shows equal those in the file that 'frit convert' writes.
static void a_type_is_seen_without_running_the_model(void **state)
{
    (void)state;
    static const struct {
        const char *model, *type, *file_type;
    } rows[] = {{"goldens/hf/qwen3_moe", "q4_0", "q4_0"},
                {"goldens/hf/qwen3_moe", "q4_k", "q5_0"},
                {"goldens/hf/qwen3_moe", NULL, "bf16"},
                {"goldens/arch/qwen3moe-moe.gguf", "q8_0", "q8_0"}};
    char *out = strdup(temp_path("typed.gguf"));
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const char *source = shared_path("%s", rows[i].model);
        frit_model *seen, *written;
        frit_model_info a, b;
        frit_tensor_info x, y;
        assert_ok(frit_model_open(&seen, source, &(frit_model_options){.type = rows[i].type, .vocab_only = true}));
        frit_model_get_info(seen, &a);
        assert_string_equal(a.file_type, rows[i].file_type);
        if (rows[i].type) {
            assert_ok(frit_convert(source, out, &(frit_convert_options){.type = rows[i].type}));
            assert_ok(frit_model_open(&written, out, &(frit_model_options){.vocab_only = true}));
            frit_model_get_info(written, &b);
            assert_string_equal(a.file_type, b.file_type);
            assert_int_equal(a.n_tensors, b.n_tensors);
            assert_int_equal(a.n_bytes, b.n_bytes);
            for (size_t k = 0; frit_model_get_tensor(seen, k, &x); k++) {
                assert_true(frit_model_get_tensor(written, k, &y));
                assert_string_equal(x.name, y.name);
                assert_string_equal(x.type, y.type);
                assert_int_equal(x.n_bytes, y.n_bytes);
            }
            frit_model_free(written);
        }
        frit_model_free(seen);
    }
    remove(out);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_type_is_seen_without_running_the_model),
        cmocka_unit_test(folders_give_the_same_logits_as_files),
        cmocka_unit_test(types_while_loading_are_those_of_files),
        cmocka_unit_test(types_that_cannot_be_written_are_refused),
        cmocka_unit_test(rows_that_blocks_do_not_divide_get_the_next_finer_type),
        cmocka_unit_test(tensors_keep_their_numbers),
        cmocka_unit_test(rows_go_there_and_back),
        cmocka_unit_test(gguf_files_come_back_as_they_were),
        cmocka_unit_test(sets_hold_what_one_file_does),
        cmocka_unit_test(cuts_that_gguf_has_no_name_for_travel_as_published),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
