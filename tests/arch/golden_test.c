// SPDX-License-Identifier: MIT
// Compares logits of whole models through the public interface with those of transformers and llama.cpp, with keys and
// values in f32. The printed table is the one in docs/results/logits.md. Arguments select models whose names contain
// one of them.
#include "arch/golden.h"
#include "support/kept_rows.h"

enum { N_SESSIONS = 3 };

typedef struct mode {
    const char *title;
    size_t chunk;   // tokens of one push; 0: all
    const char *cpu;
    bool no_fuse;
    int n_sessions;   // number of sessions in the same steps, each with its own order of tokens
    bool is_saved;    // the session is saved and restored after the first chunk, and its memory is used meanwhile
} mode;

static const mode modes[] = {
    {"reference", 0, "reference", true, 1, false},
    {"at once", 0, NULL, false, 1, false},
    {"by 7", 7, NULL, false, 1, false},
    {"by 1", 1, NULL, false, 1, false},
    {"unfused", 7, NULL, true, 1, false},
    {"of three", 5, NULL, false, N_SESSIONS, false},
    {"restored", 9, NULL, false, 1, true},
};

typedef struct runner {
    frit_engine *engine;
    frit_session *sessions[N_SESSIONS];
    kept_rows of_first;
} runner;

// The first session gets the golden's tokens from `begin` on; the others get as many tokens from other positions.
static void push(runner *r, const mode *m, const golden *g, frit_output output, size_t begin, size_t n)
{
    frit_push_options options = {.output = output, .row = keep_row, .row_ctx = &r->of_first};
    const frit_push_options none = {.output = FRIT_OUTPUT_NONE};
    for (int s = m->n_sessions - 1; s > 0; s--)
        assert_ok(frit_session_push(r->sessions[s], g->tokens + (begin + (size_t)s) % (g->n_tokens - n + 1), n, &none));
    assert_ok(frit_session_push(r->sessions[0], g->tokens + begin, n, &options));
    int32_t n_rows;
    do assert_ok(frit_engine_step(r->engine, &n_rows));
    while (n_rows > 0);
    r->of_first.n_rows += n;
}

// Meanwhile the cache is filled with other tokens.
static void save_and_restore(runner *r, const golden *g)
{
    const char *path = temp_path("session");
    frit_session *session = r->sessions[0];
    const frit_push_options none = {.output = FRIT_OUTPUT_NONE};
    int32_t n_rows;
    assert_ok(frit_session_save(session, path));
    if (g->source)
        assert_ok(frit_session_encode(session, g->source + g->n_source / 2, g->n_source - g->n_source / 2, NULL));
    else
        assert_ok(frit_session_truncate(session, 0));
    assert_ok(frit_session_push(session, g->tokens + g->n_tokens / 2, g->n_tokens - g->n_tokens / 2, &none));
    do assert_ok(frit_engine_step(r->engine, &n_rows));
    while (n_rows > 0);
    assert_ok(frit_session_load(session, path));
}

static double run(frit_model *model, const golden *g, const golden_row *row, const mode *m)
{
    frit_engine_options options = {.n_ctx = row->flags & GOLDEN_LONG ? 256 : 64,
                                   .n_sessions = m->n_sessions,
                                   .n_threads = 2,
                                   .cache_type_k = "f32",
                                   .cache_type_v = "f32",
                                   .cpu = m->cpu,
                                   .no_fuse = m->no_fuse};
    runner r = {.of_first = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab}};
    assert_ok(frit_engine_new(&r.engine, model, &options));
    for (int s = 0; s < m->n_sessions; s++) assert_ok(frit_session_new(&r.sessions[s], r.engine));
    for (int s = 0; s < m->n_sessions && g->source; s++)   // each session reads another text
        assert_ok(frit_session_encode(r.sessions[s], g->source, g->n_source - (size_t)s, NULL));
    const size_t chunk = m->chunk && !(row->flags & GOLDEN_AT_ONCE) ? m->chunk : g->n_tokens;
    for (size_t i = 0; i < g->n_tokens; i += chunk) {
        size_t left = g->n_tokens - i;
        push(&r, m, g, golden_output(row), i, left < chunk ? left : chunk);
        if (m->is_saved && i == 0) save_and_restore(&r, g);
    }
    double error = nmse(r.of_first.logits, g->logits, g->n_tokens * g->n_vocab);
    free(r.of_first.logits);
    for (int s = 0; s < m->n_sessions; s++) frit_session_free(r.sessions[s]);
    frit_engine_free(r.engine);
    return error;
}

// With sanitizers each model runs in every third mode, and is restored.
static bool is_left_out(size_t model, size_t k)
{
    return FRIT_TEST_STRIDE > 1 && !modes[k].is_saved && (model + k) % 3 != 0;
}

// Prints a row of NMSEs; returns the number of errors above the limit.
static size_t compare(size_t i)
{
    static const double limit = 1e-6;
    golden g = golden_load(i);
    frit_model *model;
    size_t n_bad = 0;
    print_message("| %-22s |", golden_name(i));
    assert_ok(frit_model_open(&model, g.path, NULL));
    for (size_t k = 0; k < FRIT_COUNT(modes); k++) {
        const bool cuts = modes[k].chunk > 0 && modes[k].n_sessions == 1 && !modes[k].no_fuse;
        if (((golden_get(i)->flags & GOLDEN_AT_ONCE) && cuts) || is_left_out(i, k)) {
            print_message("           |");
            continue;
        }
        double error = run(model, &g, golden_get(i), &modes[k]);
        print_message(" %9.1e |", error);
        n_bad += !(error <= limit);
    }
    print_message("\n");
    frit_model_free(model);
    golden_free(&g);
    return n_bad;
}

static char **wanted;   // NULL: all

static bool is_wanted(const char *name)
{
    for (char **word = wanted; word && *word; word++)
        if (strstr(name, *word)) return true;
    return !wanted || !*wanted;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    print_message("| %-22s |", "NMSE");
    for (size_t k = 0; k < FRIT_COUNT(modes); k++) print_message(" %9s |", modes[k].title);
    print_message("\n");
    size_t n_bad = 0;
    for (size_t i = 0; i < N_GOLDENS; i++)
        if (is_wanted(golden_name(i)) && golden_is_here(i)) n_bad += compare(i);
    assert_int_equal(n_bad, 0);
}

int main(int argc, char **argv)
{
    wanted = argc > 0 ? argv + 1 : NULL;
    const struct CMUnitTest tests[] = {cmocka_unit_test(logits_are_those_of_the_reference)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
