// SPDX-License-Identifier: MIT
// Refining that is stopped: the next run continues and writes the same bytes.
#include "quantize/refine_state.h"
#include "base/rng.h"
#include "quantize/refine.h"
#include "frit_tools.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <sys/stat.h>

enum { N_TOKENS = 9 * TINY_CTX };

typedef struct files {
    char source[600], start[600], whole[600], target[600], part[620];
    size_t n_steps;   // of a whole run
} files;

typedef struct run_log {
    size_t at, n_steps, n_taken;   // the report that ends the run; 0: none
    bool says_next;
} run_log;

static frit_token tokens[N_TOKENS];

static bool step(void *ctx, double done)
{
    run_log *log = ctx;
    (void)done;
    return ++log->n_steps != log->at;
}

static void listen(void *ctx, frit_log_level level, const char *sentence)
{
    run_log *log = ctx;
    const char *at = strstr(sentence, "continues after ");
    (void)level;
    if (at) log->n_taken = strtoull(at + strlen("continues after "), NULL, 10);
    if (strstr(sentence, "the next run continues from")) log->says_next = true;
}

static void copy_file(const char *from, const char *to)
{
    size_t n;
    char *bytes = read_file(from, &n);
    write_file(to, bytes, n);
    free(bytes);
}

static frit_status refine(const files *f, const char *target, int32_t n_threads, uint64_t most_kept, run_log *log)
{
    const frit_refine_options options = {.tokens = tokens,
                                         .n_tokens = N_TOKENS,
                                         .n_threads = n_threads,
                                         .progress = step,
                                         .progress_ctx = log,
                                         .log = listen,
                                         .log_ctx = log};
    copy_file(f->start, target);
    return frit_refine_within(f->source, target, &options, most_kept);
}

static files make_files(const tiny_options *tiny)
{
    files f;
    run_log log = {0};
    const frit_quantize_options quantize = {.mix = "q4_0", .output_type = "q5_0"};
    for (int i = 0; i < N_TOKENS; i++) tokens[i] = (frit_token)((i * 7 + i / 13 * 5) % TINY_VOCAB);
    snprintf(f.source, sizeof f.source, "%s", tiny_model("source.gguf", tiny));
    snprintf(f.start, sizeof f.start, "%s", temp_path("start.gguf"));
    snprintf(f.whole, sizeof f.whole, "%s", temp_path("whole.gguf"));
    snprintf(f.target, sizeof f.target, "%s", temp_path("target.gguf"));
    snprintf(f.part, sizeof f.part, "%s.refine.part", f.target);
    remove(f.part);
    assert_ok(frit_convert(f.source, f.start, &(frit_convert_options){.n_threads = 2, .quantize = &quantize}));
    assert_ok(refine(&f, f.whole, 2, UINT64_MAX, &log));
    f.n_steps = log.n_steps;
    assert_true(f.n_steps > 20);
    return f;
}

static bool exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void expect_whole(const files *f)
{
    size_t n_a, n_b;
    char *a = read_file(f->whole, &n_a), *b = read_file(f->target, &n_b);
    assert_int_equal(n_a, n_b);
    assert_memory_equal(a, b, n_a);
    assert_false(exists(f->part));
    free(a);
    free(b);
}

static void stopped_runs_go_on_with_the_same_bytes(void **state)
{
    (void)state;
    static const tiny_options kinds[] = {{.n_layer = 3}, {.n_layer = 2, .without = "output.weight"}};
    for (size_t k = 0; k < FRIT_COUNT(kinds); k++) {
        const files f = make_files(&kinds[k]);
        size_t most_taken = 0;
        for (size_t at = 1; at < f.n_steps; at += f.n_steps / 9) {
            const uint64_t most_kept = at % 2 ? UINT64_MAX : 0;   // inputs of layers are stored, or computed again
            run_log first = {.at = at}, second = {.at = f.n_steps / 3}, last = {0};
            frit_status status = refine(&f, f.target, 2, most_kept, &first);
            if (status == FRIT_OK) continue;   // nothing is stored, so there are fewer steps
            assert_int_equal(status, FRIT_E_CANCELLED);
            assert_true(first.says_next && exists(f.part));
            status = refine(&f, f.target, 1, UINT64_MAX, &second);   // stopped again, or finished
            if (status != FRIT_OK) status = refine(&f, f.target, 2, UINT64_MAX, &last);
            assert_ok(status);
            if (last.n_taken > most_taken) most_taken = last.n_taken;
            expect_whole(&f);
        }
        assert_true(most_taken > 4);   // these are not refined again
    }
}

// Memory for nothing, for inputs of layers, or also for inputs of matrices.
static void memory_changes_no_byte(void **state)
{
    (void)state;
    const files f = make_files(&(tiny_options){.n_layer = 2});
    const uint64_t rows = 2 * (uint64_t)N_TOKENS * TINY_EMBD * sizeof(float), most_kept[] = {0, rows, rows + 4096};
    for (size_t i = 0; i < FRIT_COUNT(most_kept); i++) {
        run_log log = {0};
        assert_ok(refine(&f, f.target, 2, most_kept[i], &log));
        expect_whole(&f);
    }
}

// A killed process leaves its progress. A damaged file is written again from the damage on.
static void records_that_are_cut_or_damaged_are_not_taken(void **state)
{
    (void)state;
    const files f = make_files(&(tiny_options){.n_layer = 2});
    run_log most = {.at = f.n_steps - 1};
    size_t n;
    frit_rng rng;
    frit_rng_init(&rng, 5);
    assert_int_equal(refine(&f, f.target, 2, UINT64_MAX, &most), FRIT_E_CANCELLED);
    char *part = read_file(f.part, &n);
    assert_true(n > 1000);
    for (int i = 0; i < 12; i++) {
        const size_t at = i == 0 ? 0 : i == 1 ? 7 : i == 2 ? 44 : (size_t)(frit_rng_next(&rng) % n);
        run_log log = {0};
        char *damaged = malloc(n);
        memcpy(damaged, part, n);
        if (i % 2) damaged[at] ^= 64;
        write_file(f.part, damaged, i % 2 ? n : at);
        free(damaged);
        assert_ok(refine(&f, f.target, 2, UINT64_MAX, &log));
        expect_whole(&f);
    }
    free(part);
}

static void a_state_of_something_else_is_not_taken(void **state)
{
    (void)state;
    const files f = make_files(&(tiny_options){.n_layer = 2});
    run_log half = {.at = f.n_steps / 2}, rest = {0};
    tokens[5] ^= 1;
    assert_int_equal(refine(&f, f.target, 2, UINT64_MAX, &half), FRIT_E_CANCELLED);
    tokens[5] ^= 1;
    assert_ok(refine(&f, f.target, 2, UINT64_MAX, &rest));
    assert_int_equal(rest.n_taken, 0);
    expect_whole(&f);
}

static bool take_none(void *ctx, const frit_refine_progress *progress, const frit_refine_blocks *blocks)
{
    (void)progress, (void)blocks;
    ++*(int *)ctx;
    return false;
}

// Records that `take` refuses are dropped.
static void refused_records_are_written_anew(void **state)
{
    (void)state;
    static const uint8_t key[FRIT_SHA256_BYTES] = {1};
    char target[600], part[620];
    snprintf(target, sizeof target, "%s", temp_path("refused.gguf"));
    snprintf(part, sizeof part, "%s.refine.part", target);
    remove(part);
    const frit_refine_progress progress = {.layer = 1};
    const frit_refine_blocks blocks = {"name", 4, "blocks", 6};
    for (int n_given = 0; n_given < 2; n_given++) {
        frit_refine_state s = {0};
        int n = 0;
        assert_ok(frit_refine_state_open(&s, target, key, take_none, &n));
        assert_int_equal(n, n_given);
        assert_ok(frit_refine_state_add(&s, &progress, &blocks, 1));
        frit_refine_state_close(&s, true);
        assert_int_equal((int)exists(part), 1);
    }
    frit_refine_state s = {0};
    int n = 0;
    assert_ok(frit_refine_state_open(&s, target, key, take_none, &n));
    assert_int_equal(n, 1);   // not two
    frit_refine_state_close(&s, false);
    assert_false(exists(part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stopped_runs_go_on_with_the_same_bytes),
        cmocka_unit_test(memory_changes_no_byte),
        cmocka_unit_test(records_that_are_cut_or_damaged_are_not_taken),
        cmocka_unit_test(a_state_of_something_else_is_not_taken),
        cmocka_unit_test(refused_records_are_written_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
