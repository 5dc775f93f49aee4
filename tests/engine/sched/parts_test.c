// SPDX-License-Identifier: MIT
// Caches in parts: some layers on a device whose memory the host does not see, the others on the CPU. Sessions, their
// forks and their files do not depend on the devices of layers.
#include "support/support.h"
#include "support/tiny_model.h"

#include "backend/backend.h"
#include "frit.h"

enum { N = 75, N_NEXT = 6 };

// ------------------------------------------------------------------------------- a device with hidden memory

static frit_backend hidden;   // the CPU, except for `map`
static bool takes_odd_only;   // layers
static int n_reads, n_writes, n_copies;

static frit_status hidden_open(frit_device **out, const frit_device_options *options)
{
    FRIT_TRY(frit_backend_cpu.open(out, options));
    (*out)->backend = &hidden;
    return FRIT_OK;
}

static void *hidden_map(const frit_memory *memory)
{
    (void)memory;
    return NULL;
}

static bool hidden_runs(const frit_device *device, const frit_node *node)
{
    (void)device;
    return !takes_odd_only || node->depth % 2 == 1;
}

static frit_status hidden_read(frit_device *device, frit_address from, void *to, uint64_t n_bytes)
{
    n_reads++;
    return frit_backend_cpu.read(device, from, to, n_bytes);
}

static frit_status hidden_write(frit_device *device, frit_address to, const void *from, uint64_t n_bytes)
{
    n_writes++;
    return frit_backend_cpu.write(device, to, from, n_bytes);
}

static frit_status hidden_copy(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes)
{
    n_copies++;
    return frit_backend_cpu.copy(device, to, from, n_bytes);
}

typedef enum placing { ON_CPU, ON_HIDDEN, ON_BOTH, N_PLACINGS } placing;

static void place_on(placing where)
{
    hidden = frit_backend_cpu;
    hidden.name = "hidden";
    hidden.open = hidden_open;
    hidden.map = hidden_map;
    hidden.runs = hidden_runs;
    hidden.read = hidden_read;
    hidden.write = hidden_write;
    hidden.copy = hidden_copy;
    takes_odd_only = where == ON_BOTH;
    frit_backend_set_first(where == ON_CPU ? NULL : &hidden);
}

// ------------------------------------------------------------------------------- sessions on it

typedef struct fixture {
    frit_model *model;
    frit_engine *engine;
} fixture;

static fixture open_on(placing where, const char *path)
{
    fixture f;
    const frit_engine_options options = {.n_ctx = 128, .n_sessions = 3, .n_threads = 1, .n_state_copies = 2};
    place_on(where);
    assert_ok(frit_model_open(&f.model, path, NULL));
    assert_ok(frit_engine_new(&f.engine, f.model, &options));
    place_on(ON_CPU);
    return f;
}

static void close_fixture(fixture *f)
{
    frit_engine_free(f->engine);
    frit_model_free(f->model);
}

static void push(const fixture *f, frit_session *session, uint64_t seed, size_t n)
{
    frit_token tokens[N];
    frit_rng rng;
    frit_rng_init(&rng, seed);
    for (size_t i = 0; i < n; i++) tokens[i] = (frit_token)random_between(&rng, 0, 63);
    assert_ok(frit_session_push(session, tokens, n, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(f->engine, NULL));
}

static frit_session *new_session(const fixture *f, bool reads)
{
    static const frit_token source[] = {3, 9, 27, 60, 1};
    frit_session *session;
    assert_ok(frit_session_new(&session, f->engine));
    if (reads) assert_ok(frit_session_encode(session, source, FRIT_COUNT(source), NULL));
    return session;
}

// A session with several operations: logits after each part.
typedef struct story {
    float pushed[128], truncated[128], forked[128], loaded[128];
    uint8_t *saved;
    size_t n_saved;
} story;

static void note_logits(float *to, const frit_session *session)
{
    assert_non_null(frit_session_logits(session));
    memcpy(to, frit_session_logits(session), 64 * sizeof *to);
}

static void save(const frit_session *session, story *s)
{
    assert_int_equal(frit_session_save_memory(session, NULL, 0, &s->n_saved), FRIT_E_LIMIT);
    s->saved = malloc(s->n_saved);
    assert_ok(frit_session_save_memory(session, s->saved, s->n_saved, &s->n_saved));
}

static void live(const fixture *f, bool reads, story *s)
{
    frit_session *session = new_session(f, reads), *fork, *loaded;
    push(f, session, 1, N);
    note_logits(s->pushed, session);
    save(session, s);
    assert_ok(frit_session_fork(&fork, session));
    push(f, session, 2, 20);
    assert_ok(frit_session_truncate(session, N - 6));   // to a snapshot of the states, if there are any
    push(f, session, 3, 3);
    note_logits(s->truncated, session);
    push(f, fork, 4, 9);
    note_logits(s->forked, fork);
    assert_ok(frit_session_new(&loaded, f->engine));
    assert_ok(frit_session_load_memory(loaded, s->saved, s->n_saved));
    push(f, loaded, 5, 9);
    note_logits(s->loaded, loaded);
    frit_session_free(session);
    frit_session_free(fork);
    frit_session_free(loaded);
}

static void check_model(const char *path, bool reads, placing last)
{
    story stories[N_PLACINGS] = {0};
    for (placing w = ON_CPU; w <= last; w++) {
        fixture f = open_on(w, path);
        n_reads = n_writes = n_copies = 0;
        live(&f, reads, &stories[w]);
        if (w != ON_CPU) assert_true(n_reads > 0 && n_writes > 0 && n_copies > 0);
        close_fixture(&f);
        const story *a = &stories[ON_CPU], *b = &stories[w];
        assert_memory_equal(a->pushed, b->pushed, 64 * sizeof(float));
        assert_memory_equal(a->truncated, b->truncated, 64 * sizeof(float));
        assert_memory_equal(a->forked, b->forked, 64 * sizeof(float));
        assert_memory_equal(a->loaded, b->loaded, 64 * sizeof(float));
        assert_int_equal(a->n_saved, b->n_saved);
        assert_memory_equal(a->saved, b->saved, a->n_saved);
    }
    for (placing w = ON_CPU; w <= last; w++) free(stories[w].saved);
}

static void sessions_do_not_depend_on_where_layers_lie(void **state)
{
    (void)state;
    check_model(tiny_model("a.gguf", &(tiny_options){0}), false, ON_BOTH);
    check_model(shared_path("goldens/arch/jamba-dense.gguf"), false, ON_BOTH);
    check_model(shared_path("goldens/arch/qwen35-dense.gguf"), false, ON_BOTH);
    check_model(shared_path("goldens/hf/t5"), true, ON_HIDDEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sessions_do_not_depend_on_where_layers_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
