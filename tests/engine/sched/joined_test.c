// SPDX-License-Identifier: MIT
// Many sequences in a step of single tokens. Up to engine->rows.joins_above of them, each gets the results that it gets
// alone, bit for bit. The rows of more sequences are multiplied together if prefill kernels differ, and their results
// are close.
#include "support/engines.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"

#include <math.h>

enum { N_MOST = 70, N_TOKENS = 6, N_FIRST = 3 };

static frit_token token_of(int session, int k)
{
    return 3 + (session * 7 + k * k * 5 + k) % (TINY_VOCAB - 3);
}

static frit_engine *joined_engine(frit_model **model, const char *type)
{
    const char *path = tiny_model("joined.gguf", &(tiny_options){.n_layer = 2});
    assert_ok(frit_model_open(model, path, &(frit_model_options){.type = type}));
    const frit_engine_options options = {.n_ctx = TINY_CTX, .n_sessions = N_MOST, .n_batch = 256, .n_threads = 2};
    return make_engine(*model, options);
}

// Computes the logits after the last token of `n` sessions that run together, with one token each in every step but the
// first.
static void run(frit_engine *engine, int first, int n, float *logits)
{
    frit_session *sessions[N_MOST];
    for (int i = 0; i < n; i++) assert_ok(frit_session_new(&sessions[i], engine));
    for (int k = 0; k < N_TOKENS; k++) {
        for (int i = 0; i < n; i++) {
            frit_token tokens[N_FIRST];
            const int n_now = k == 0 ? N_FIRST : 1;
            for (int m = 0; m < n_now; m++) tokens[m] = token_of(first + i, k == 0 ? m : N_FIRST + k);
            assert_ok(frit_session_push(sessions[i], tokens, (size_t)n_now, NULL));
        }
        while (frit_session_pending(sessions[n - 1]) > 0) assert_ok(frit_engine_step(engine, NULL));
    }
    for (int i = 0; i < n; i++) {
        memcpy(logits + i * TINY_VOCAB, frit_session_logits(sessions[i]), TINY_VOCAB * sizeof *logits);
        frit_session_free(sessions[i]);
    }
}

static double distance(const float *a, const float *b)
{
    double sum = 0, all = 0;
    for (int i = 0; i < TINY_VOCAB; i++) {
        sum += (a[i] - b[i]) * (a[i] - b[i]);
        all += b[i] * b[i];
    }
    return sqrt(sum / all);
}

static void sessions_compute_as_alone_or_near(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double most;   // limit of the distance: vectors round inputs of q8_0 products to 8 bits, tiles to bfloat16
    } types[] = {{"q8_0", 0.1}, {"f16", 0.001}};
    static float alone[N_MOST * TINY_VOCAB], together[N_MOST * TINY_VOCAB];
    for (size_t t = 0; t < FRIT_COUNT(types); t++) {
        frit_model *model;
        frit_engine *engine = joined_engine(&model, types[t].name);
        const int counts[] = {2, engine->rows.joins_above < N_MOST ? engine->rows.joins_above : 24, 25, 33, N_MOST};
        for (int i = 0; i < N_MOST; i++) run(engine, i, 1, alone + i * TINY_VOCAB);
        for (size_t c = 0; c < FRIT_COUNT(counts); c++) {
            const int n = counts[c];
            run(engine, 0, n, together);
            for (int i = 0; i < n; i++) {
                const float *a = together + i * TINY_VOCAB, *b = alone + i * TINY_VOCAB;
                if (n <= engine->rows.joins_above)
                    assert_memory_equal(a, b, TINY_VOCAB * sizeof *a);
                else
                    assert_true(distance(a, b) < types[t].most);
            }
        }
        frit_engine_free(engine);
        frit_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_compute_as_alone_or_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
