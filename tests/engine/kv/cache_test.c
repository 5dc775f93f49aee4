// SPDX-License-Identifier: MIT
// The cache under random schedules: sessions are created, pushed to, run, forked, truncated, saved and freed. They need
// more pages than exist, and their texts often have equal beginnings. Some sessions generate with drafts, and some
// shift. No page is lost or unreferenced twice, and logits equal those of a session that ran alone.
#include "support/support.h"
#include "support/tiny_model.h"

#include "engine/engine.h"
#include "frit.h"

enum { N_CTX = 224, N_SESSIONS = 5, ROOM = 2, MOST_PUSH = 90 };

typedef struct world {
    frit_model *model;
    frit_engine *engine, *alone;
    frit_session *sessions[N_SESSIONS];
    frit_rng rng, share_rng;
    int32_t n_vocab;
    int n_compared, n_waited, n_found, n_preempted;
    frit_sampler *sampler;   // NULL: no session generates or shifts
    int n_shifted;
    uint64_t n_drafted;
} world;

static int pick(world *w, int n)
{
    return (int)random_between(&w->rng, 0, n - 1);
}

// ------------------------------------------------------------------------------- the model of the cache

typedef struct counts {
    int32_t *refs;   // [n_pages]
    int32_t n_used;
} counts;

static void count_table(counts *c, const frit_kv_table *table)
{
    for (int32_t p = table->begin; p < table->end; p++) c->n_used += c->refs[table->pages[p - table->first]]++ == 0;
}

// Checks owners and idle pages: an entry owns each of its pages alone, and the list of idle pages has every owned page
// without references.
static void check_entries(const frit_kv *kv, int32_t g)
{
    const frit_kv_group *group = &kv->groups[g];
    int32_t n_owned = 0, n_idle = 0, n_listed = 0;
    for (int32_t i = 0; i < kv->prefix.n_used; i++) {
        const frit_kv_entry *entry = &kv->prefix.entries[i];
        if (entry->stamp == 0 || entry->pages[g] < 0) continue;
        assert_int_equal(group->owners[entry->pages[g]], i);
        n_owned++;
    }
    for (int32_t p = 0; p < group->n_pages; p++) {
        n_owned -= group->owners[p] >= 0;
        n_idle += group->owners[p] >= 0 && group->refs[p] == 0;
    }
    for (int32_t p = group->lru; p >= 0; p = group->after[p]) n_listed++;
    assert_int_equal(n_owned, 0);
    assert_int_equal(n_idle, group->n_idle);
    assert_int_equal(n_listed, group->n_idle);
}

// Checks that each entry has its parent, root and states.
static void check_tree(const frit_kv *kv)
{
    const frit_kv_prefix *prefix = &kv->prefix;
    int32_t n_entries = 0, n_free = 0, n_in_host = 0;
    for (int32_t i = 0; i < prefix->n_used; i++) {
        const frit_kv_entry *entry = &prefix->entries[i];
        if (entry->stamp == 0) continue;
        n_entries++;
        if (entry->parent >= 0) assert_int_equal(prefix->entries[entry->parent].n_tokens, FRIT_PAGE_TOKENS);
        if (entry->parent >= 0) assert_ptr_equal(prefix->entries[entry->parent].root, entry->root);
        if (entry->child >= 0) assert_int_equal(prefix->entries[entry->child].parent, i);
        if (entry->snapshot >= 0) assert_int_equal(kv->snapshots[entry->snapshot].owner, i);
        n_in_host += entry->host_page >= 0;
        for (int32_t g = 0; g < kv->n_groups; g++) assert_false(entry->in_host[g] && entry->pages[g] >= 0);
    }
    for (int32_t i = prefix->first_free; prefix->on && i >= 0; i = prefix->entries[i].link) n_free++;
    assert_int_equal(n_entries + n_free, prefix->n_used);
    assert_int_equal(n_in_host + kv->host.n_free, kv->host.n_pages);
    for (int32_t i = 0; i < kv->n_snapshots; i++) {
        const frit_kv_snapshot *snapshot = &kv->snapshots[i];
        if (snapshot->owner >= 0) assert_int_equal(prefix->entries[snapshot->owner].snapshot, i);
    }
}

static void check_pages(const frit_engine *engine)
{
    const frit_kv *kv = &engine->kv;
    check_tree(kv);
    int32_t n_states = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) n_states += s->map.state > 0;
    assert_int_equal(kv->n_free_states, kv->n_states - n_states);
    for (int32_t g = 0; g < kv->n_groups; g++) {
        const frit_kv_group *group = &kv->groups[g];
        counts c = {.refs = calloc((size_t)group->n_pages + 1, sizeof *c.refs)};
        for (const frit_session *s = engine->sessions; s; s = s->next) {
            const frit_kv_table *table = &s->map.tables[g];
            const int32_t first = frit_kv_first_position(group->window, (int32_t)s->n_done);
            assert_true(s->n_done == 0 || table->begin * FRIT_PAGE_TOKENS <= first);
            assert_true(table->end >= frit_kv_pages_of((int32_t)s->n_done));
            count_table(&c, table);
        }
        for (int32_t i = 0; i < kv->n_snapshots; i++) count_table(&c, &kv->snapshots[i].tables[g]);
        assert_memory_equal(c.refs, group->refs, (size_t)group->n_pages * sizeof *c.refs);
        assert_int_equal(frit_kv_available(group), group->n_pages - c.n_used);
        check_entries(kv, g);
        free(c.refs);
    }
}

// ------------------------------------------------------------------------------- what happens

// Compares logits with those of a session that runs alone, unless the context was shifted: the keys then depend on
// dropped tokens.
static void compare(world *w, const frit_session *session)
{
    frit_session *straight;
    frit_shift_info shift;
    const float *found = frit_session_logits(session);
    assert_ok(frit_session_get_shift(session, &shift));
    w->n_shifted += shift.n_dropped > 0;
    if (!found || shift.n_dropped > 0) return;
    assert_ok(frit_session_new(&straight, w->alone));
    assert_ok(frit_session_push(straight, frit_session_tokens(session), frit_session_length(session), NULL));
    while (frit_session_pending(straight) > 0) assert_ok(frit_engine_step(w->alone, NULL));
    const double error = nmse(found, frit_session_logits(straight), (size_t)w->n_vocab);
    if (!(error < 1e-9)) fail_msg("NMSE %g after %zu tokens", error, frit_session_length(session));
    frit_session_free(straight);
    w->n_compared++;
}

// A text is one of three, with some different tokens.
static frit_token next_token(world *w, frit_token first, size_t at)
{
    if (pick(w, 50) == 0) return (frit_token)pick(w, w->n_vocab);
    return (frit_token)(((size_t)first + 3 * (at * 7 + at / 5)) % (size_t)w->n_vocab);
}

static void push(world *w, frit_session *session)
{
    frit_token tokens[MOST_PUSH];
    size_t n = (size_t)(pick(w, 3) == 0 ? 1 + pick(w, MOST_PUSH) : 1 + pick(w, 4));
    const size_t room = N_CTX - frit_session_length(session);
    if (n > room) n = room;
    const size_t at = frit_session_length(session);
    const frit_token first = at > 0 ? frit_session_tokens(session)[0] : (frit_token)pick(w, 3);
    tokens[0] = at > 0 ? next_token(w, first, at) : first;
    for (size_t i = 1; i < n; i++) tokens[i] = next_token(w, first, at + i);
    assert_ok(frit_session_push(session, tokens, n, NULL));
}

// If all sessions wait, one of them is truncated.
static void give_way(world *w, frit_status status)
{
    if (status == FRIT_OK) return;
    if (status != FRIT_E_LIMIT) fail_msg("%d: %s", status, frit_error());
    assert_non_null(strstr(frit_error(), "wait"));
    w->n_waited++;
    assert_ok(frit_session_truncate(w->sessions[pick(w, N_SESSIONS)], 0));
}

static void step(world *w)
{
    int32_t n_rows;
    size_t n_done[N_SESSIONS];
    for (int i = 0; i < N_SESSIONS; i++) n_done[i] = w->sessions[i]->n_done;
    const frit_status status = frit_engine_step(w->engine, &n_rows);
    for (int i = 0; i < N_SESSIONS; i++) w->n_preempted += w->sessions[i]->n_done < n_done[i];
    give_way(w, status);
}

// Generates a few tokens with drafts from the text.
static void generate(world *w, frit_session *session)
{
    static const frit_speculate_options options = {.kind = "ngram", .max_drafts = 6, .always = true};
    frit_speculation_info info;
    frit_token tokens[8];
    size_t n;
    if (frit_session_length(session) + FRIT_COUNT(tokens) >= N_CTX) return;
    assert_ok(frit_session_push(session, (const frit_token[]){1}, 1, NULL));   // otherwise logits may be dropped
    assert_ok(frit_session_speculate(session, &options));
    for (int i = 0; i < 3 && frit_session_length(session) + FRIT_COUNT(tokens) <= N_CTX; i++) {
        const frit_status status = frit_session_next_tokens(session, w->sampler, tokens, FRIT_COUNT(tokens), &n);
        give_way(w, status);
        if (status != FRIT_OK) break;
    }
    assert_ok(frit_session_get_speculation(session, &info));
    w->n_drafted += info.n_drafted;
    if (pick(w, 2) == 0) assert_ok(frit_session_speculate(session, &(frit_speculate_options){.kind = "none"}));
}

// Pushes more tokens than fit: the oldest tokens leave.
static void overflow(world *w, frit_session *session)
{
    frit_token tokens[MOST_PUSH];
    assert_ok(frit_session_set_shift(session, &(frit_shift_options){.n_drop = 64}));
    for (size_t i = 0; i < MOST_PUSH; i++) tokens[i] = next_token(w, 1, i);
    const size_t n = frit_session_length(session) + MOST_PUSH > N_CTX ? MOST_PUSH : 4;
    const frit_status status = frit_session_push(session, tokens, n, NULL);
    if (status != FRIT_OK) assert_int_equal(status, FRIT_E_LIMIT);   // only tokens that have run can leave
    assert_ok(frit_session_set_shift(session, NULL));
}

static void fork_from(world *w, int i, int from)
{
    frit_session *fork;
    if (i == from) return;
    frit_session_free(w->sessions[i]);
    w->sessions[i] = NULL;
    const frit_status status = frit_session_fork(&fork, w->sessions[from]);
    if (status == FRIT_E_LIMIT)   // no slot for states
        assert_ok(frit_session_new(&fork, w->engine));
    else
        assert_int_equal(status, FRIT_OK);
    w->sessions[i] = fork;
}

static void reload(world *w, const frit_session *from, frit_session *to)
{
    const size_t n_tokens = frit_session_length(from), n_pending = frit_session_pending(from);
    size_t n;
    assert_int_equal(frit_session_save_memory(from, NULL, 0, &n), FRIT_E_LIMIT);
    void *bytes = malloc(n);
    assert_ok(frit_session_save_memory(from, bytes, n, &n));
    const frit_status status = frit_session_load_memory(to, bytes, n);
    if (status == FRIT_OK) {
        assert_int_equal(frit_session_length(to), n_tokens);
        assert_int_equal(frit_session_pending(to), n_pending);
    } else {
        assert_int_equal(status, FRIT_E_LIMIT);
        assert_int_equal(frit_session_length(to), 0);
        w->n_waited++;
    }
    free(bytes);
}

static void happen(world *w)
{
    const int i = pick(w, N_SESSIONS), other = pick(w, N_SESSIONS);
    frit_session *session = w->sessions[i];
    switch (pick(w, w->sampler ? 19 : 16)) {
    case 16:
    case 17:
        generate(w, session);
        break;
    case 18:
        overflow(w, session);
        break;
    case 0:
        assert_ok(frit_session_truncate(session, (size_t)pick(w, (int)frit_session_length(session) + 1)));
        break;
    case 1: {   // a few tokens
        const size_t n = frit_session_length(session), less = (size_t)pick(w, 8);
        assert_ok(frit_session_truncate(session, n > less ? n - less : 0));
        break;
    }
    case 2:
        fork_from(w, i, other);
        break;
    case 3:
        reload(w, session, w->sessions[other]);
        break;
    case 4:
        w->n_found += frit_session_cached(session) > 0;
        frit_session_free(session);
        assert_ok(frit_session_new(&w->sessions[i], w->engine));
        if (pick(w, 4) == 0) assert_ok(frit_session_set_salt(w->sessions[i], "salt", 4));
        assert_ok(frit_session_set_share(w->sessions[i], (int32_t)random_between(&w->share_rng, 1, 9),
                                         (int32_t)random_between(&w->share_rng, -1, 1)));
        break;
    case 5:
    case 6:
    case 7:
        push(w, session);
        break;
    default:
        step(w);
    }
}

// Variants of a schedule: memory for fewer sessions than exist, host memory and a disk for evicted pages, and sessions
// that generate and shift. On the test device a quarter of the rounds run, because it computes by the reference.
typedef struct extras {
    int32_t host_mib;
    const char *disk;
    bool generates;
    int32_t n_sessions;   // number of full-length sessions with room; 0: ROOM
} extras;

static void open_world(world *w, const char *path, extras more)
{
    frit_model_info info;
    const frit_engine_options options = {.n_ctx = N_CTX,
                                         .n_sessions = more.n_sessions > 0 ? more.n_sessions : ROOM,
                                         .n_threads = 1,
                                         .n_batch = 48,
                                         .deterministic = true,   // texts are divided into steps in many ways
                                         .prefix_host_mib = more.host_mib,
                                         .prefix_disk = more.disk};
    const frit_engine_options alone = {
        .n_ctx = N_CTX, .n_threads = 1, .full_windows = true, .no_prefix_cache = true, .deterministic = true};
    *w = (world){0};
    assert_ok(frit_model_open(&w->model, path, NULL));
    assert_ok(frit_engine_new(&w->engine, w->model, &options));
    assert_ok(frit_engine_new(&w->alone, w->model, &alone));
    assert_ok(frit_model_get_info(w->model, &info));
    w->n_vocab = info.n_vocab;
    frit_rng_init(&w->rng, 7);
    frit_rng_init(&w->share_rng, 9);
    if (more.generates) assert_ok(frit_sampler_create(&w->sampler, w->n_vocab, &(frit_sampler_options){.temp = 0}));
    for (int i = 0; i < N_SESSIONS; i++) assert_ok(frit_session_new(&w->sessions[i], w->engine));
}

static void close_world(world *w)
{
    frit_sampler_free(w->sampler);
    for (int i = 0; i < N_SESSIONS; i++) frit_session_free(w->sessions[i]);
    check_pages(w->engine);
    frit_engine_free(w->engine);
    frit_engine_free(w->alone);
    frit_model_free(w->model);
}

static void live_with(const char *path, int n_rounds, bool scarce, extras more)
{
    const bool on_device = getenv("FRIT_TEST_DEVICE") != NULL;
    if (on_device) n_rounds /= 4;
    world w;
    open_world(&w, path, more);
    for (int round = 0; round < n_rounds; round++) {
        happen(&w);
        check_pages(w.engine);
        if (round % 5 == 0) compare(&w, w.sessions[pick(&w, N_SESSIONS)]);
    }
    assert_true(w.n_compared > n_rounds / 40);
    if (!on_device) assert_true(w.n_found > n_rounds / 300);   // the test device runs too few rounds
    if (!on_device || !more.generates) assert_int_equal(w.n_waited > 0, scarce);
    if (more.generates && !on_device) assert_true(w.n_shifted > 0 && w.n_drafted > 100);
    close_world(&w);
}

static void live(const char *path, int n_rounds, bool scarce)
{
    live_with(path, n_rounds, scarce, (extras){0});
}

static void random_schedules_of_full_attention(void **state)
{
    (void)state;
    live(tiny_model("a.gguf", &(tiny_options){0}), 4000, true);
}

static void random_schedules_of_windows(void **state)
{
    (void)state;
    live(shared_path("goldens/hf/gemma3_text"), 3000, true);    // with windows and full attention
    live(shared_path("goldens/hf/mistral"), 1500, false);       // windows only
    live(shared_path("goldens/hf/gemma3n_text"), 1000, true);   // some layers share a cache
}

static void random_schedules_with_pages_in_the_host(void **state)
{
    (void)state;
    live_with(tiny_model("a.gguf", &(tiny_options){0}), 2000, true, (extras){.host_mib = 1});
    live_with(shared_path("goldens/hf/gemma3_text"), 2000, true, (extras){.host_mib = 1});
    live_with(shared_path("goldens/arch/jamba-dense.gguf"), 1000, true, (extras){.host_mib = 1});
}

static void random_schedules_with_guesses_and_shifts(void **state)
{
    (void)state;
    live_with(tiny_model("a.gguf", &(tiny_options){0}), 2000, true, (extras){.generates = true});
    live_with(shared_path("goldens/hf/gemma3_text"), 1000, true, (extras){.generates = true});
}

static void random_schedules_with_pages_on_disk(void **state)
{
    (void)state;
    live_with(tiny_model("a.gguf", &(tiny_options){0}), 1500, true,
              (extras){.host_mib = 1, .disk = temp_path("pages"), .generates = true});
}

static void random_schedules_of_states(void **state)
{
    (void)state;
    live(shared_path("goldens/arch/jamba-dense.gguf"), 2000, true);
    live(shared_path("goldens/arch/mamba-dense.gguf"), 1000, true);   // without pages
}

// ------------------------------------------------------------------------------- schedules from the beginning

static int32_t count_used(const frit_kv *kv)
{
    int32_t n = 0;
    for (int32_t g = 0; g < kv->n_groups; g++)
        for (int32_t p = 0; p < kv->groups[g].n_pages; p++) n += kv->groups[g].refs[p] > 0;
    return n;
}

// Runs schedules, each with random numbers of its own and up to N_EVENTS events, until all sessions are freed. After
// each event, pages are compared with a model of the cache. The prefix cache keeps pages of earlier schedules.
static void run_schedules(const char *path, int n_schedules, extras more)
{
    enum { N_EVENTS = 40 };
    world w;
    open_world(&w, path, more);
    if (getenv("FRIT_TEST_DEVICE")) n_schedules /= 20;
    for (int k = 0; k < n_schedules; k += FRIT_TEST_STRIDE) {
        frit_rng_init(&w.rng, 1000 + (uint64_t)k);
        const int n_events = 1 + pick(&w, N_EVENTS);
        for (int i = 0; i < n_events; i++) {
            happen(&w);
            check_pages(w.engine);
        }
        compare(&w, w.sessions[pick(&w, N_SESSIONS)]);
        for (int i = 0; i < N_SESSIONS; i++) {
            w.n_found += frit_session_cached(w.sessions[i]) > 0;
            frit_session_free(w.sessions[i]);
        }
        for (int i = 0; i < N_SESSIONS; i++) w.sessions[i] = NULL;
        check_pages(w.engine);
        if (w.engine->kv.n_snapshots == 0) assert_int_equal(count_used(&w.engine->kv), 0);
        for (int i = 0; i < N_SESSIONS; i++) assert_ok(frit_session_new(&w.sessions[i], w.engine));
    }
    print_message(
        "%d schedules: %d texts compared, %d found in the prefix cache, %d preempted, %d times out of pages\n",
        n_schedules, w.n_compared, w.n_found, w.n_preempted, w.n_waited);
    if (n_schedules >= 1000) assert_true(w.n_compared > 0 && w.n_found > 0 && w.n_preempted + w.n_waited > 0);
    close_world(&w);
}

static void ten_thousand_random_schedules(void **state)
{
    (void)state;
    const char *tiny = tiny_model("a.gguf", &(tiny_options){0});
    run_schedules(tiny, 5000, (extras){.n_sessions = 1});
    run_schedules(tiny, 2000, (extras){.host_mib = 1, .generates = true, .n_sessions = 1});
    run_schedules(shared_path("goldens/hf/gemma3_text"), 2000, (extras){.generates = true, .n_sessions = 1});
    run_schedules(shared_path("goldens/arch/jamba-dense.gguf"), 1000, (extras){0});
}

// ------------------------------------------------------------------------------- windows

// A long text uses no more pages of windows than a short one, and continues as it does with all positions cached.
static void windows_give_their_pages_back(void **state)
{
    (void)state;
    frit_model *model;
    frit_engine *engine, *full;
    assert_ok(frit_model_open(&model, shared_path("goldens/hf/gemma3_text"), NULL));
    assert_ok(frit_engine_new(&engine, model, &(frit_engine_options){.n_ctx = 2048, .n_threads = 1, .n_batch = 64}));
    assert_ok(frit_engine_new(
        &full, model, &(frit_engine_options){.n_ctx = 2048, .n_threads = 1, .n_batch = 64, .full_windows = true}));
    frit_engine_info small, large;
    assert_ok(frit_engine_get_info(engine, &small));
    assert_ok(frit_engine_get_info(full, &large));
    assert_true(small.kv_bytes < large.kv_bytes);
    assert_int_equal(full->kv.n_groups, 1);
    assert_int_equal(engine->kv.n_groups, 2);
    frit_session *session;
    frit_token text[1500];
    for (int i = 0; i < 1500; i++) text[i] = (frit_token)(i * 7 % 50);
    assert_ok(frit_session_new(&session, engine));
    assert_ok(frit_session_push(session, text, 1500, NULL));
    while (frit_session_pending(session) > 0) assert_ok(frit_engine_step(engine, NULL));
    const frit_kv_group *window = &engine->kv.groups[engine->kv.groups[0].window > 0 ? 0 : 1];
    assert_int_equal(window->window, 16);
    assert_in_range(window->n_pages - frit_kv_available(window), 1, 8);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_engine_free(full);
    frit_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_of_full_attention),
        cmocka_unit_test(random_schedules_of_windows),
        cmocka_unit_test(random_schedules_of_states),
        cmocka_unit_test(random_schedules_with_pages_in_the_host),
        cmocka_unit_test(random_schedules_with_guesses_and_shifts),
        cmocka_unit_test(random_schedules_with_pages_on_disk),
        cmocka_unit_test(ten_thousand_random_schedules),
        cmocka_unit_test(windows_give_their_pages_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
