// SPDX-License-Identifier: MIT
// Loading with simulated sources, which load until the test releases them, or find no memory beside another model.
#include "server/sched/loading.h"
#include "support/support.h"
#include "support/tiny_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum { N = 3 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int n_loaded, n_begun;
    bool is_held;      // loading waits until it is released
    bool fits_alone;   // no memory for two
    bool never_fits;
} world;

static char path[1024];
static server_source sources[N];
static server_loaded first;
static server_models *models;
static const server_model *all;

static void open_engine(server_loaded *out)
{
    *out = (server_loaded){.worker = {.n_sessions = 1, .max_waiting = 2}};
    assert_ok(frit_model_open(&out->model, path, NULL));
    assert_ok(frit_engine_new(&out->engine, out->model, &(frit_engine_options){.n_ctx = 64, .n_sessions = 1}));
}

static server_opened open_source(const server_source *source, server_loaded *out, char sentence[SERVER_MAX_SENTENCE])
{
    (void)source;
    pthread_mutex_lock(&world.lock);
    world.n_begun++;
    pthread_cond_broadcast(&world.news);
    while (world.is_held) pthread_cond_wait(&world.news, &world.lock);
    const bool fits = !world.never_fits && !(world.fits_alone && world.n_loaded > 0);
    world.n_loaded += fits;
    pthread_mutex_unlock(&world.lock);
    snprintf(sentence, SERVER_MAX_SENTENCE, "it needs 9 GiB, 1 GiB is free");
    if (!fits) return SERVER_OPEN_NO_MEMORY;
    open_engine(out);
    return SERVER_OPENED;
}

static void close_source(const server_source *source, server_loaded *loaded)
{
    (void)source;
    frit_engine_free(loaded->engine);
    frit_model_free(loaded->model);
    pthread_mutex_lock(&world.lock);
    world.n_loaded--;
    pthread_mutex_unlock(&world.lock);
}

static int set_up_some(int32_t max_models)
{
    static const char *const names[N] = {"a", "b", "c"};
    server_problem problem;
    size_t n;
    pthread_mutex_init(&world.lock, NULL);
    pthread_cond_init(&world.news, NULL);
    world.is_held = world.fits_alone = world.never_fits = false;
    world.n_loaded = 1;
    world.n_begun = 0;
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("loading.gguf", &(tiny_options){.n_ctx = 64}));
    for (int i = 0; i < N; i++)
        sources[i] = (server_source){.name = names[i], .path = path, .open = open_source, .close = close_source};
    open_engine(&first);
    const server_models_options options = {
        .sources = sources, .n = N, .first = &first, .max_models = max_models, .max_waiting = 4};
    assert_true(server_models_new(&models, &options, &problem));
    all = server_models_all(models, &n);
    assert_int_equal(n, N);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    return set_up_some(0);
}

static int set_up_two(void **state)
{
    (void)state;
    return set_up_some(2);
}

static int tear_down(void **state)
{
    (void)state;
    server_models_free(models);
    assert_int_equal(world.n_loaded, 0);
    return 0;
}

static void set(bool *flag, bool value)
{
    pthread_mutex_lock(&world.lock);
    *flag = value;
    pthread_cond_broadcast(&world.news);
    pthread_mutex_unlock(&world.lock);
}

static int world_loaded(void)
{
    pthread_mutex_lock(&world.lock);
    const int n = world.n_loaded;
    pthread_mutex_unlock(&world.lock);
    return n;
}

static void wait_for_begun(int n)
{
    pthread_mutex_lock(&world.lock);
    while (world.n_begun < n) pthread_cond_wait(&world.news, &world.lock);
    pthread_mutex_unlock(&world.lock);
}

typedef struct client {
    server_waiter waiter;   // first
    _Atomic bool left, is_ready;
    server_problem problem;
} client;

static void ready(server_waiter *waiter, const server_problem *problem)
{
    client *c = (client *)waiter;
    if (problem) c->problem = *problem;
    atomic_store(&c->is_ready, true);
}

static bool is_gone(server_waiter *waiter)
{
    return atomic_load(&((client *)waiter)->left);
}

static bool await(client *c, int which)
{
    *c = (client){.waiter = {.ready = ready, .is_gone = is_gone}};
    server_problem problem = {0};
    const bool held = server_models_await(models, &all[which], &c->waiter, &problem);
    if (problem.status) c->problem = problem;   // the callback is not called then
    return held;
}

static server_model_status status_of(int which)
{
    server_model_status status;
    if (server_models_look(models, &all[which], &status)) server_models_release(models, &all[which], false);
    return status;
}

static void expect_ready(client *c, int status)
{
    for (int i = 0; i < 30000 && !atomic_load(&c->is_ready); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(atomic_load(&c->is_ready));
    assert_int_equal(c->problem.status, status);
}

static void others_are_served_while_a_model_loads(void **state)
{
    (void)state;
    client c, second;
    set(&world.is_held, true);
    assert_false(await(&c, 1));
    wait_for_begun(1);
    assert_string_equal(status_of(1).value, "loading");
    assert_true(server_models_hold(models, &all[0], true));
    server_models_release(models, &all[0], true);
    assert_false(await(&second, 1));   // one load for both
    assert_int_equal(server_models_load_of_all(models).n_waiting, 2);
    assert_false(atomic_load(&c.is_ready));
    set(&world.is_held, false);
    expect_ready(&c, 0);
    expect_ready(&second, 0);
    assert_int_equal(world.n_begun, 1);
    assert_non_null(all[1].worker);
    server_models_release(models, &all[1], true);
    server_models_release(models, &all[1], true);
}

static void a_client_that_leaves_holds_nothing(void **state)
{
    (void)state;
    client c, d, e;
    server_problem problem;
    set(&world.is_held, true);
    assert_false(await(&c, 1));
    wait_for_begun(1);
    assert_false(await(&d, 2));   // queued after it
    atomic_store(&c.left, true);
    atomic_store(&d.left, true);
    expect_ready(&c, 499);
    expect_ready(&d, 499);
    assert_int_equal(server_models_load_of_all(models).n_waiting, 0);
    set(&world.is_held, false);
    assert_false(await(&e, 2));
    expect_ready(&e, 0);
    server_models_release(models, &all[2], true);
    assert_true(server_models_hold(models, &all[1], false));   // the loaded model stays, and is idle
    server_models_release(models, &all[1], false);
    assert_true(server_models_unload(models, &all[1], &problem));
}

static bool is_loaded(int which)
{
    return strcmp(status_of(which).value, "loaded") == 0;
}

static void use(int which)
{
    client c;
    if (!server_models_hold(models, &all[which], true) && !await(&c, which)) expect_ready(&c, 0);
    server_models_release(models, &all[which], true);
}

static void the_model_that_was_used_longest_ago_makes_room(void **state)
{
    (void)state;
    use(1);
    use(0);
    use(2);
    assert_true(is_loaded(0) && !is_loaded(1) && is_loaded(2));
    use(1);
    assert_true(!is_loaded(0) && is_loaded(1) && is_loaded(2));
}

static void an_idle_model_gives_its_memory(void **state)
{
    (void)state;
    client c;
    set(&world.fits_alone, true);
    assert_false(await(&c, 1));
    expect_ready(&c, 0);
    assert_int_equal(world.n_begun, 2);   // the first attempt found no memory
    assert_false(server_models_hold(models, &all[0], true));
    server_models_release(models, &all[1], true);
}

static void a_model_that_is_used_gives_its_memory_when_it_is_done(void **state)
{
    (void)state;
    client c, d;
    set(&world.fits_alone, true);
    assert_true(server_models_hold(models, &all[0], true));
    assert_false(await(&c, 1));
    wait_for_begun(1);
    while (server_models_hold(models, &all[0], true)) {   // until it is being unloaded: new requests wait
        server_models_release(models, &all[0], true);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_false(await(&d, 0));
    assert_false(atomic_load(&c.is_ready));
    assert_non_null(all[0].worker);
    server_models_release(models, &all[0], true);
    expect_ready(&c, 0);
    server_models_release(models, &all[1], true);
    expect_ready(&d, 0);   // the first model is loaded again
    server_models_release(models, &all[0], true);
}

// A model that was to be unloaded stays if its memory is no longer needed, and its waiting requests are served.
static void a_model_stays_when_nobody_needs_its_memory_any_more(void **state)
{
    (void)state;
    client c, d;
    set(&world.fits_alone, true);
    assert_true(server_models_hold(models, &all[0], true));
    assert_false(await(&c, 1));
    wait_for_begun(1);
    while (server_models_hold(models, &all[0], true)) {
        server_models_release(models, &all[0], true);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_false(await(&d, 0));
    atomic_store(&c.left, true);
    expect_ready(&c, 499);
    expect_ready(&d, 0);
    assert_true(server_models_hold(models, &all[0], true));
    for (int i = 0; i < 3; i++) server_models_release(models, &all[0], true);
}

// Holding a model only to inspect it delays unloading, but does not prevent it.
static void a_model_that_only_is_looked_at_can_be_freed(void **state)
{
    (void)state;
    server_problem problem;
    assert_true(server_models_hold(models, &all[0], false));
    assert_true(server_models_unload(models, &all[0], &problem));
    assert_string_equal(status_of(0).value, "unloaded");
    assert_int_equal(world_loaded(), 1);
    server_models_release(models, &all[0], false);
    for (int i = 0; i < 30000 && world_loaded() > 0; i++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_int_equal(world_loaded(), 0);
    assert_false(server_models_unload(models, &all[0], &problem));
    assert_string_equal(problem.code, "model_not_loaded");
}

static void what_never_fits_is_refused_with_the_numbers(void **state)
{
    (void)state;
    client c, d;
    set(&world.never_fits, true);
    assert_false(await(&c, 1));
    expect_ready(&c, 500);
    assert_string_equal(c.problem.message, "The model 'b' cannot be loaded: it needs 9 GiB, 1 GiB is free");
    assert_true(status_of(1).failed);
    set(&world.never_fits, false);
    assert_false(await(&d, 1));
    expect_ready(&d, 0);
    assert_false(status_of(1).failed);
    server_models_release(models, &all[1], true);
}

static void so_many_wait_and_a_drain_ends_them(void **state)
{
    (void)state;
    client c[5];
    set(&world.is_held, true);
    for (int i = 0; i < 4; i++) assert_false(await(&c[i], 1 + i % 2));
    assert_false(await(&c[4], 1));
    assert_int_equal(c[4].problem.status, 429);
    server_models_drain(models);
    for (int i = 0; i < 4; i++) expect_ready(&c[i], 503);
    assert_false(await(&c[4], 1));
    assert_int_equal(c[4].problem.status, 503);
    set(&world.is_held, false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(others_are_served_while_a_model_loads),
        TEST(a_client_that_leaves_holds_nothing),
        cmocka_unit_test_setup_teardown(the_model_that_was_used_longest_ago_makes_room, set_up_two, tear_down),
        TEST(an_idle_model_gives_its_memory),
        TEST(a_model_that_is_used_gives_its_memory_when_it_is_done),
        TEST(a_model_stays_when_nobody_needs_its_memory_any_more),
        TEST(a_model_that_only_is_looked_at_can_be_freed),
        TEST(what_never_fits_is_refused_with_the_numbers),
        TEST(so_many_wait_and_a_drain_ends_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
