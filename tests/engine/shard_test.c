// SPDX-License-Identifier: MIT
// Engines on groups of devices: logits are those of the references of all architectures, and have the same bits on 1, 2
// and 4 ranks where sums are exact. Arguments select models whose names contain one of them.
#include "arch/golden.h"
#include "base/time.h"
#include "support/engines.h"
#include "support/kept_rows.h"
#include "support/test_device.h"
#include "support/test_ranks.h"

static char **wanted;   // NULL: all

static bool is_wanted(const char *name)
{
    for (char **word = wanted; word && *word; word++)
        if (strstr(name, *word)) return true;
    return !wanted || !*wanted;
}

static int use_none(void **state)
{
    (void)state;
    test_ranks_use(NULL, 0, false);
    test_device_set_traits((test_device_traits){0});
    return 0;
}

// ------------------------------------------------------------------------------- all architectures

static float *logits_of(frit_model *model, const golden *g, const golden_row *row, const char *cpu)
{
    const frit_engine_options options = {.n_ctx = row->flags & GOLDEN_LONG ? 256 : 64,
                                         .n_threads = 2,
                                         .cache_type_k = "f32",
                                         .cache_type_v = "f32",
                                         .cpu = cpu};
    frit_engine *engine;
    frit_session *session;
    kept_rows rows = {.logits = calloc(g->n_tokens * g->n_vocab, sizeof(float)), .n_vocab = g->n_vocab};
    assert_ok(frit_engine_new(&engine, model, &options));
    assert_ok(frit_session_new(&session, engine));
    if (g->source) assert_ok(frit_session_encode(session, g->source, g->n_source, NULL));
    const size_t chunk = row->flags & GOLDEN_AT_ONCE ? g->n_tokens : 7;
    for (size_t i = 0; i < g->n_tokens; i += chunk) {
        const size_t left = g->n_tokens - i, n = left < chunk ? left : chunk;
        const frit_push_options push = {.output = golden_output(row), .row = keep_row, .row_ctx = &rows};
        int32_t n_rows;
        assert_ok(frit_session_push(session, g->tokens + i, n, &push));
        do assert_ok(frit_engine_step(engine, &n_rows));
        while (n_rows > 0);
        rows.n_rows += n;
    }
    frit_session_free(session);
    frit_engine_free(engine);
    return rows.logits;
}

static double error_of(frit_model *model, const golden *g, const golden_row *row, const frit_backend *kind, int n,
                       const char *cpu)
{
    test_ranks_use(kind, n, false);
    float *logits = logits_of(model, g, row, cpu);
    const double error = nmse(logits, g->logits, g->n_tokens * g->n_vocab);
    free(logits);
    return error;
}

// True if 1, 2 and 4 ranks give the same bits.
static bool is_exact_on_all(frit_model *model, const golden *g, const golden_row *row, const char *cpu)
{
    const size_t n_bytes = g->n_tokens * g->n_vocab * sizeof(float);
    float *first = NULL;
    bool is_same = true;
    for (int n = 1; n <= 4; n *= 2) {
        test_ranks_use(&frit_backend_cpu, n, true);
        float *logits = logits_of(model, g, row, cpu);
        if (!first)
            first = logits;
        else {
            is_same = is_same && memcmp(first, logits, n_bytes) == 0;
            free(logits);
        }
    }
    free(first);
    return is_same;
}

static size_t compare(size_t i)
{
    const double limit = 1e-6;
    const golden_row *row = golden_get(i);
    golden g = golden_load(i);
    frit_model *model;
    assert_ok(frit_model_open(&model, g.path, NULL));
    const double errors[] = {
        error_of(model, &g, row, &test_device_backend, 2, NULL), error_of(model, &g, row, &frit_backend_cpu, 2, NULL),
        error_of(model, &g, row, &frit_backend_cpu, 4, NULL), error_of(model, &g, row, &frit_backend_cpu, 3, NULL)};
    const bool plain = is_exact_on_all(model, &g, row, "reference"), fast = is_exact_on_all(model, &g, row, NULL);
    size_t n_bad = !plain + !fast;
    print_message("| %-22s |", golden_name(i));
    for (size_t k = 0; k < FRIT_COUNT(errors); k++) {
        print_message(" %8.1e |", errors[k]);
        n_bad += !(errors[k] <= limit);
    }
    print_message(" %s | %s |\n", plain ? "same" : "OTHER", fast ? "same" : "OTHER");
    frit_model_free(model);
    golden_free(&g);
    return n_bad;
}

static void every_architecture_has_its_logits(void **state)
{
    (void)state;
    size_t n_bad = 0;
    print_message("| %-22s | %8s | %8s | %8s | %8s | exact reference | exact |\n", "NMSE", "2 late", "2 CPUs", "4 CPUs",
                  "3 CPUs");
    for (size_t i = 0; i < N_GOLDENS; i++)
        if (is_wanted(golden_name(i)) && golden_is_here(i)) n_bad += compare(i);
    assert_int_equal(n_bad, 0);
}

// ------------------------------------------------------------------------------- names and failures

static frit_status fail_to_make(const char *device, const char *split)
{
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_engine *engine;
    const frit_status status =
        frit_engine_new(&engine, model, &(frit_engine_options){.device = device, .split = split});
    frit_engine_free(engine);
    frit_model_free(model);
    return status;
}

static void groups_have_names(void **state)
{
    (void)state;
    frit_engine *engine = tiny_engine(&(tiny_options){0}, (frit_engine_options){.device = "cpu:0-1", .n_threads = 2});
    frit_engine_info info;
    assert_ok(frit_engine_get_info(engine, &info));
    assert_string_equal(info.backend, "cpu:0-1");
    frit_engine_free(engine);
    assert_fails(fail_to_make("cpu:0-8", NULL), FRIT_E_INVALID,
                 "a group of 9 devices of cpu is asked for, expected 1 to 8");
    assert_fails(fail_to_make("cpu:1-0", NULL), FRIT_E_INVALID, "'cpu:1-0' is not a device that frit can use here");
    assert_fails(fail_to_make("abacus:0-1", NULL), FRIT_E_INVALID,
                 "'abacus:0-1' is not a device that frit can use here");
    assert_fails(fail_to_make("webgpu:0-1", "tensor"), FRIT_E_UNSUPPORTED,
                 "webgpu devices cannot be members of a group");
    assert_fails(fail_to_make("cpu:0-8", "layer"), FRIT_E_INVALID, "among 9 devices of cpu, expected 8 at most");
    engine = tiny_engine(&(tiny_options){.n_layer = 4},
                         (frit_engine_options){.device = "cpu:0,1", .split = "layer", .n_threads = 2});
    assert_ok(frit_engine_get_info(engine, &info));
    assert_string_equal(info.backend, "cpu:0-1");
    frit_engine_free(engine);
}

// The names of the model's weights reach each rank: a damaged one fails on the rank that reads it.
static void a_member_without_room_ends_with_one_sentence(void **state)
{
    (void)state;
    test_device_set_traits((test_device_traits){.free_bytes = 1000});
    test_ranks_use(&test_device_backend, 2, false);
    frit_model *model = load_tiny(&(tiny_options){0});
    frit_engine *engine;
    assert_fails(frit_engine_new(&engine, model, &(frit_engine_options){.gpu_layers = "all"}), FRIT_E_MEMORY, "memory");
    assert_null(engine);
    frit_model_free(model);
}

enum { TRIES = 200, LOST_PROMPT = 9, MOST_NS = 1000000000 };

// Runs the session's tokens. Returns the status of the first step that fails.
static frit_status run_steps(frit_session *session, frit_engine *engine)
{
    while (frit_session_pending(session) > 0) FRIT_TRY(frit_engine_step(engine, NULL));
    return FRIT_OK;
}

// Loses devices at random, and compares the logits of the tokens that run again.
static void lose_devices(frit_engine *engine, int n_devices, int n_tries, const char *sentence)
{
    float expected[TINY_VOCAB];
    frit_rng rng;
    frit_session *session = begin_session(engine, 3, LOST_PROMPT);
    frit_rng_init(&rng, 31);
    assert_ok(run_steps(session, engine));
    memcpy(expected, frit_session_logits(session), sizeof expected);
    for (int i = 0; i < n_tries; i++) {
        frit_token tokens[LOST_PROMPT];
        memcpy(tokens, frit_session_tokens(session), sizeof tokens);
        assert_ok(frit_session_truncate(session, 0));
        assert_ok(frit_session_push(session, tokens, LOST_PROMPT, NULL));
        test_device_lose(1 + (int)(frit_rng_next(&rng) % (uint64_t)n_devices));
        const uint64_t begin = frit_time_ns();
        assert_fails(run_steps(session, engine), FRIT_E_UNSUPPORTED, sentence);
        assert_true(frit_time_ns() - begin < MOST_NS);
        test_device_lose(0);
        assert_ok(run_steps(session, engine));
        assert_memory_equal(frit_session_logits(session), expected, sizeof expected);
    }
    frit_session_free(session);
}

static frit_engine *engine_without_prefixes(const char *device)
{
    return tiny_engine(&(tiny_options){.n_layer = 4},
                       (frit_engine_options){.device = device, .split = "layer", .no_prefix_cache = true});
}

static void a_lost_member_ends_steps_and_no_other_waits(void **state)
{
    (void)state;
    test_ranks_use(&test_device_backend, 2, false);
    frit_engine *engine = engine_without_prefixes(NULL);
    lose_devices(engine, 2, TRIES, "of test:0-1: the test device is lost");
    frit_engine_free(engine);
    test_ranks_use(&test_device_backend, 4, false);
    engine = engine_without_prefixes(NULL);
    lose_devices(engine, 4, TRIES / 4, "of test:0-3: the test device is lost");
    frit_engine_free(engine);
}

static void a_lost_device_with_layers_ends_steps(void **state)
{
    (void)state;
    test_device_use(TEST_DEVICE_ALONE);
    frit_engine *engine = engine_without_prefixes("test:0-2");
    lose_devices(engine, 3, TRIES / 4, "the test device is lost");
    frit_engine_free(engine);
    test_device_use(TEST_DEVICE_NONE);
}

static void a_member_that_does_not_come_is_named(void **state)
{
    (void)state;
    const uint64_t most_ns = (uint64_t)10 * 1000000000;
    test_ranks_use(&test_device_backend, 2, false);
    frit_engine *engine = engine_without_prefixes(NULL);
    frit_session *session = begin_session(engine, 3, LOST_PROMPT);
    test_device_stall(1, FRIT_MEETING_MS + 1000);
    const uint64_t begin = frit_time_ns();
    assert_fails(run_steps(session, engine), FRIT_E_UNSUPPORTED,
                 "of test:0-1: the others have waited 8 seconds for it");
    assert_true(frit_time_ns() - begin < most_ns);
    assert_ok(run_steps(session, engine));
    frit_session_free(session);
    frit_engine_free(engine);
}

int main(int argc, char **argv)
{
    wanted = argc > 0 ? argv + 1 : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_architecture_has_its_logits, use_none),
        cmocka_unit_test_teardown(groups_have_names, use_none),
        cmocka_unit_test_teardown(a_member_without_room_ends_with_one_sentence, use_none),
        cmocka_unit_test_teardown(a_lost_member_ends_steps_and_no_other_waits, use_none),
        cmocka_unit_test_teardown(a_lost_device_with_layers_ends_steps, use_none),
        cmocka_unit_test_teardown(a_member_that_does_not_come_is_named, use_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
