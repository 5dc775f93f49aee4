// SPDX-License-Identifier: MIT
// Quantization that is stopped or killed while it writes: the next run continues and writes the same bytes.
#include "base/rng.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct stop {
    int at, n;   // the report that ends the run; 0: none
    bool kills;
    size_t n_kept, n_steps;
} stop;

static bool step(void *ctx, double done)
{
    stop *s = ctx;
    (void)done;
    s->n_steps++;
    if (s->at == 0 || ++s->n < s->at) return true;
    if (s->kills) raise(SIGKILL);
    return false;
}

static void listen(void *ctx, frit_log_level level, const char *sentence)
{
    stop *s = ctx;
    const char *at = strstr(sentence, "continues after ");
    (void)level;
    if (at) s->n_kept = strtoull(at + strlen("continues after "), NULL, 10);
}

static frit_status quantize(const char *source, const char *target, const char *mix, int32_t n_threads, stop *s)
{
    const frit_quantize_options quantize = {.mix = mix};
    const frit_convert_options options = {.n_threads = n_threads,
                                          .quantize = &quantize,
                                          .progress = step,
                                          .progress_ctx = s,
                                          .log = listen,
                                          .log_ctx = s};
    return frit_convert(source, target, &options);
}

// Runs in another process, which kills itself at a report or ends before it.
static bool run_and_kill(const char *source, const char *target, int at)
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        stop s = {.at = at, .kills = true};
        _exit(quantize(source, target, "q4_0", 2, &s) != FRIT_OK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status)) assert_int_equal(WEXITSTATUS(status), 0);
    return WIFSIGNALED(status);
}

typedef struct files {
    char source[600], whole[600], target[600], part[616];
    size_t n_steps;   // of a whole run
} files;

static files make_files(void)
{
    files f;
    stop none = {0};
    snprintf(f.source, sizeof f.source, "%s", tiny_model("source.gguf", &(tiny_options){.times = 4, .n_layer = 3}));
    snprintf(f.whole, sizeof f.whole, "%s", temp_path("whole.gguf"));
    snprintf(f.target, sizeof f.target, "%s", temp_path("target.gguf"));
    snprintf(f.part, sizeof f.part, "%s.part", f.target);
    remove(f.target);
    remove(f.part);
    assert_ok(quantize(f.source, f.whole, "q4_0", 2, &none));
    f.n_steps = none.n_steps;
    assert_true(f.n_steps > 20);
    return f;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void a_cancelled_run_goes_on(void **state)
{
    (void)state;
    const files f = make_files();
    stop half = {.at = (int)f.n_steps / 2}, rest = {0};
    assert_int_equal(quantize(f.source, f.target, "q4_0", 2, &half), FRIT_E_CANCELLED);
    assert_true(exists(f.part) && !exists(f.target));
    assert_ok(quantize(f.source, f.target, "q4_0", 16, &rest));
    assert_true(rest.n_kept > 0);   // tensors that are not encoded again
    assert_true(rest.n_steps < f.n_steps);
    assert_false(exists(f.part));
    expect_equal_files(f.whole, f.target);
}

static void killed_runs_end_with_the_same_bytes(void **state)
{
    (void)state;
    const files f = make_files();
    frit_rng rng;
    frit_rng_init(&rng, 19);
    int n_killed = 0;
    for (int round = 0; round < 6; round++) {
        remove(f.target);
        while (run_and_kill(f.source, f.target, 1 + (int)(frit_rng_next(&rng) % f.n_steps))) {
            assert_false(exists(f.target));
            n_killed++;
        }
        assert_false(exists(f.part));
        expect_equal_files(f.whole, f.target);
    }
    assert_true(n_killed > 0);
}

static void what_another_run_left_is_written_anew(void **state)
{
    (void)state;
    const files f = make_files();
    stop half = {.at = (int)f.n_steps / 2}, other = {0};
    assert_int_equal(quantize(f.source, f.target, "q5_0", 2, &half), FRIT_E_CANCELLED);
    assert_ok(quantize(f.source, f.target, "q4_0", 2, &other));
    assert_int_equal(other.n_kept, 0);
    expect_equal_files(f.whole, f.target);
    // A part file that is truncated, or another file.
    for (int kind = 0; kind < 3; kind++) {
        stop again = {.at = (int)f.n_steps / 2}, last = {0};
        remove(f.target);
        assert_int_equal(quantize(f.source, f.target, "q4_0", 2, &again), FRIT_E_CANCELLED);
        if (kind == 0) assert_int_equal(truncate(f.part, 100), 0);
        if (kind == 1) assert_int_equal(truncate(f.part, 7), 0);
        if (kind == 2) write_file(f.part, "GGUF", 4);
        assert_ok(quantize(f.source, f.target, "q4_0", 2, &last));
        assert_int_equal(last.n_kept, 0);
        expect_equal_files(f.whole, f.target);
    }
}

// Another model with the same tensors.
static void a_part_of_another_model_is_not_taken(void **state)
{
    (void)state;
    const files f = make_files();
    char other[600];
    stop half = {.at = (int)f.n_steps / 2}, last = {0};
    snprintf(other, sizeof other, "%s", tiny_model("other.gguf", &(tiny_options){.times = 4, .n_layer = 3, .seed = 7}));
    assert_int_equal(quantize(other, f.target, "q4_0", 2, &half), FRIT_E_CANCELLED);
    assert_ok(quantize(f.source, f.target, "q4_0", 2, &last));
    assert_int_equal(last.n_kept, 0);
    expect_equal_files(f.whole, f.target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancelled_run_goes_on),
        cmocka_unit_test(killed_runs_end_with_the_same_bytes),
        cmocka_unit_test(what_another_run_left_is_written_anew),
        cmocka_unit_test(a_part_of_another_model_is_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
