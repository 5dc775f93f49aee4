// SPDX-License-Identifier: MIT
// Engines that cache their packed weights: logits are equal bit for bit, and files are found by their contents.
#include "support/support.h"

#include "frit.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int n_warnings, n_notes;
static char last[1024];

static void remember(void *ctx, frit_log_level level, const char *sentence)
{
    (void)ctx;
    n_warnings += level == FRIT_LOG_WARNING;
    n_notes += level == FRIT_LOG_INFO && strstr(sentence, "packed weights of an earlier start");
    if (level == FRIT_LOG_WARNING) snprintf(last, sizeof last, "%s", sentence);
}

static int files_in(const char *folder)
{
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

// Computes logits after a prompt and a token, so that steps with many and few rows have run.
static float *logits_as(const char *path, const char *folder, frit_model_options options)
{
    static const frit_token tokens[] = {1, 70, 800, 9, 10, 511, 12, 13};
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    frit_model_info info;
    int32_t n_rows;
    n_warnings = n_notes = 0;
    options.log = remember;
    assert_ok(frit_model_open(&model, path, &options));
    frit_model_get_info(model, &info);
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_threads = 2, .weights_cache = folder}));
    assert_ok(frit_session_new(&session, engine));
    for (int i = 0; i < 2; i++) {
        assert_ok(frit_session_push(session, tokens, i == 0 ? FRIT_COUNT(tokens) : 1, NULL));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
    }
    const float *logits = frit_session_logits(session);
    assert_non_null(logits);
    float *copy = malloc((size_t)info.n_vocab * sizeof *copy + sizeof(size_t));
    memcpy(copy, logits, (size_t)info.n_vocab * sizeof *copy);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return copy;
}

static float *logits_of(const char *path, const char *folder, bool no_mmap)
{
    return logits_as(path, folder, (frit_model_options){.no_mmap = no_mmap});
}

static float *expected;
enum { N_VOCAB = 8192 };

static void check(const char *path, const char *folder, bool is_kept)
{
    float *logits = logits_of(path, folder, false);
    assert_memory_equal(logits, expected, N_VOCAB * sizeof *logits);
    assert_int_equal(n_warnings, 0);
    assert_int_equal(n_notes, is_kept);
    free(logits);
}

static void copy_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = read_file(from, &n);
    write_file(to, bytes, n);
    free(bytes);
}

// Sets the time of the last change to that of the file `like`.
static void set_time(const char *path, const char *like)
{
    struct stat st;
    assert_int_equal(stat(like, &st), 0);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int open_all(void **state)
{
    (void)state;
    expected = logits_of(project_path("models/fable.gguf"), NULL, false);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    free(expected);
    return 0;
}

static void the_second_engine_gives_the_same_logits(void **state)
{
    (void)state;
    const char *model = project_path("models/fable.gguf"), *folder = temp_path("twice");
    check(model, folder, false);
    const int n = files_in(folder);
    assert_true(n > 0);
    check(model, folder, true);
    check(model, folder, true);
    assert_int_equal(files_in(folder), n);
}

static void a_copy_with_another_name_finds_the_same_file(void **state)
{
    (void)state;
    const char *model = project_path("models/fable.gguf"), *folder = temp_path("moved"), *copy = temp_path("b.gguf");
    check(model, folder, false);
    copy_file(model, copy);
    set_time(copy, model);
    check(copy, folder, true);
}

static void a_changed_model_does_not(void **state)
{
    (void)state;
    const char *model = project_path("models/fable.gguf"), *folder = temp_path("changed"), *copy = temp_path("c.gguf");
    copy_file(model, copy);
    set_time(copy, model);
    check(copy, folder, false);
    copy_file(model, copy);   // only its time differs
    check(copy, folder, false);
    // Changes the last bytes of the last tensor and restores the time: the sampled pages differ.
    struct stat st;
    assert_int_equal(stat(model, &st), 0);
    size_t n;
    char *bytes = read_file(copy, &n);
    memset(bytes + n - 64, 0x11, 32);
    write_file(copy, bytes, n);
    free(bytes);
    set_time(copy, model);
    float *logits = logits_of(copy, folder, false);
    assert_int_equal(n_notes, 0);
    assert_memory_not_equal(logits, expected, N_VOCAB * sizeof *logits);
    free(logits);
}

static void damage_costs_a_warning_and_is_mended(void **state)
{
    (void)state;
    const char *model = project_path("models/fable.gguf"), *folder = temp_path("damage");
    check(model, folder, false);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    char path[1024] = "";
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strstr(entry->d_name, ".packed")) snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(dir);
    size_t n;
    char *bytes = read_file(path, &n);
    bytes[n / 2] ^= 1;
    write_file(path, bytes, n);
    free(bytes);
    float *logits = logits_of(model, folder, false);
    assert_memory_equal(logits, expected, N_VOCAB * sizeof *logits);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(last, ".packed: is damaged; the weights are packed anew"));
    free(logits);
    check(model, folder, true);
}

static void weights_that_are_not_mapped_are_not_kept(void **state)
{
    (void)state;
    const char *folder = temp_path("unmapped");
    float *logits = logits_of(project_path("models/fable.gguf"), folder, true);
    assert_memory_equal(logits, expected, N_VOCAB * sizeof *logits);
    assert_int_equal(n_warnings, 1);
    assert_non_null(strstr(last, "only weights that lie in mapped files are kept"));
    assert_int_equal(files_in(folder), 0);
    free(logits);
}

static void weights_of_another_type_are_kept_for_themselves(void **state)
{
    (void)state;
    const char *model = project_path("models/fable.gguf"), *folder = temp_path("types");
    check(model, folder, false);
    const int n = files_in(folder);
    static const char *const types[] = {"q8_0", "q4_0", "f16"};
    for (size_t i = 0; i < FRIT_COUNT(types); i++) {
        float *plain = logits_as(model, NULL, (frit_model_options){.type = types[i]});
        for (int k = 0; k < 2; k++) {
            float *logits = logits_as(model, folder, (frit_model_options){.type = types[i]});
            assert_memory_equal(logits, plain, N_VOCAB * sizeof *logits);
            assert_int_equal(n_warnings, 0);
            assert_int_equal(n_notes, k);
            free(logits);
        }
        free(plain);
    }
    assert_int_equal(files_in(folder), n + (int)FRIT_COUNT(types));
    check(model, folder, true);
}

static bool no_more(void *ctx, double done)
{
    (void)done;
    ++*(int *)ctx;
    return false;
}

static void what_is_cancelled_is_not_kept(void **state)
{
    (void)state;
    const char *folder = temp_path("cancelled"), *path = project_path("models/fable.gguf");
    frit_model *model;
    frit_engine *engine;
    int n_told = 0;
    const frit_engine_options options = {
        .n_threads = 2, .weights_cache = folder, .progress = no_more, .progress_ctx = &n_told};
    assert_ok(frit_model_open(&model, path, NULL));
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_CANCELLED, "cancelled");
    assert_int_equal(files_in(folder), 0);
    frit_model_free(model);
    check(path, folder, false);
    assert_ok(frit_model_open(&model, path, NULL));
    assert_fails(frit_engine_new(&engine, model, &options), FRIT_E_CANCELLED, "cancelled");
    assert_int_equal(n_told, 2);
    frit_model_free(model);
}

static void a_file_that_shrinks_in_use_ends_the_step(void **state)
{
    (void)state;
    const char *model_path = project_path("models/fable.gguf"), *folder = temp_path("shrinks");
    check(model_path, folder, false);
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    int32_t n_rows;
    assert_ok(frit_model_open(&model, model_path, NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_threads = 2, .weights_cache = folder}));
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, (frit_token[]){1}, 1, NULL));
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (strstr(path, ".packed")) assert_int_equal(truncate(path, 100), 0);
    }
    closedir(dir);
    assert_fails(frit_engine_step(engine, &n_rows), FRIT_E_IO, "to 100 bytes while in use");
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_engine_gives_the_same_logits),
        cmocka_unit_test(a_copy_with_another_name_finds_the_same_file),
        cmocka_unit_test(a_changed_model_does_not),
        cmocka_unit_test(damage_costs_a_warning_and_is_mended),
        cmocka_unit_test(weights_that_are_not_mapped_are_not_kept),
        cmocka_unit_test(weights_of_another_type_are_kept_for_themselves),
        cmocka_unit_test(what_is_cancelled_is_not_kept),
        cmocka_unit_test(a_file_that_shrinks_in_use_ends_the_step),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
