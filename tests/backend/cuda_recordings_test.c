// SPDX-License-Identifier: MIT
// Recorded steps on the GPU of tests/emulator: steps whose number of sequences changes are launched as graphs when it
// comes again, and old graphs are freed. Also engines whose kernels are compiled before the first step.
#include "backend/cuda/exec.h"
#include "backend/cuda/recordings.h"
#include "backend/gpu.h"
#include "engine/engine.h"
#include "support/tiny_model.h"

#include <dlfcn.h>

enum { N_CTX = 512, MOST_SESSIONS = 20 };

static struct counts {
    int launched, prepared, freed;
} n;

static frit_cuda_driver driver;   // the functions that are counted
static frit_model *model;

static int count_launched(frit_cuda_graph_exec graph, frit_cuda_stream stream)
{
    n.launched++;
    return driver.graph_launch(graph, stream);
}

static int count_prepared(frit_cuda_graph_exec *graph, frit_cuda_graph from, unsigned long long flags)
{
    n.prepared++;
    return driver.graph_prepare(graph, from, flags);
}

static int refuse_prepared(frit_cuda_graph_exec *graph, frit_cuda_graph from, unsigned long long flags)
{
    enum { OUT_OF_MEMORY = 2 };
    (void)graph, (void)from, (void)flags;
    n.prepared++;
    return OUT_OF_MEMORY;
}

static int count_freed(frit_cuda_graph_exec graph)
{
    n.freed++;
    return driver.graph_exec_free(graph);
}

static frit_cuda_device *device_of(const frit_engine *engine)
{
    return (frit_cuda_device *)engine->devices[0];
}

static frit_engine *new_engine(void)
{
    const frit_engine_options options = {.n_ctx = N_CTX,
                                         .n_threads = 1,
                                         .n_batch = 32,

                                         .n_sessions = MOST_SESSIONS,
                                         .device = "cuda",
                                         .gpu_layers = "all"};
    frit_engine *engine;
    assert_ok(frit_engine_new(&engine, model, &options));
    frit_cuda_device *d = device_of(engine);
    driver = d->driver;
    d->driver.graph_launch = count_launched;
    d->driver.graph_prepare = count_prepared;
    d->driver.graph_exec_free = count_freed;
    n = (struct counts){0};
    return engine;
}

// Runs one step of n_sessions new sessions with a token each. Returns a weighted sum of all logits.
static double run(frit_engine *engine, int n_sessions)
{
    frit_session *sessions[MOST_SESSIONS];
    int32_t n_rows;
    double sum = 0;
    for (int i = 0; i < n_sessions; i++) {
        const frit_token token = 4 + i % 26;
        assert_ok(frit_session_new(&sessions[i], engine));
        assert_ok(frit_session_push(sessions[i], &token, 1, NULL));
    }
    assert_ok(frit_engine_step(engine, &n_rows));
    assert_int_equal(n_rows, n_sessions);
    for (int i = 0; i < n_sessions; i++) {
        const float *logits = frit_session_logits(sessions[i]);
        for (int k = 0; k < TINY_VOCAB; k++) sum += (double)logits[k] * (i + 1);
        frit_session_free(sessions[i]);
    }
    return sum;
}

static void numbers_of_sequences_that_come_again_are_launched_as_graphs(void **state)
{
    (void)state;
    static const int numbers[] = {MOST_SESSIONS, 18, 17};
    enum { N = FRIT_COUNT(numbers) };
    double sums[N];
    require_gpu();
    frit_engine *engine = new_engine();
    for (int i = 0; i < N; i++) sums[i] = run(engine, numbers[i]);
    assert_int_equal(n.launched, 0);
    for (int i = 0; i < N; i++) assert_true(run(engine, numbers[i]) == sums[i]);
    const int n_graphs = n.launched;   // some ops of this model run on the CPU, so a step has several executables
    assert_true(n_graphs >= N);
    assert_int_equal(n.prepared, n_graphs);
    for (int round = 2; round <= 3; round++) {
        for (int i = 0; i < N; i++) assert_true(run(engine, numbers[i]) == sums[i]);
        assert_int_equal(n.launched, round * n_graphs);
        assert_int_equal(n.prepared, n_graphs);
    }
    assert_int_equal(n.freed, 0);
    frit_engine_free(engine);
    assert_int_equal(n.freed, n_graphs);
}

static void steps_that_cannot_be_recorded_run(void **state)
{
    (void)state;
    require_gpu();
    frit_engine *engine = new_engine();
    device_of(engine)->driver.graph_prepare = refuse_prepared;
    const double sum = run(engine, 3);
    assert_true(run(engine, 3) == sum);
    const int n_tried = n.prepared;
    assert_true(n_tried > 0);
    for (int round = 0; round < 2; round++) assert_true(run(engine, 3) == sum);
    assert_int_equal(n.prepared, n_tried);   // it is not tried again
    assert_int_equal(n.launched, 0);
    frit_engine_free(engine);
    assert_int_equal(n.freed, 0);
}

// All kernels are compiled when the engine is prepared: steps of any number of rows add none.
static void steps_of_prepared_engines_compile_nothing(void **state)
{
    (void)state;
    static const int numbers[] = {1, 2, 3, 6, 12, 18, MOST_SESSIONS};
    require_gpu();
    frit_engine *engine = new_engine();
    assert_ok(frit_engine_prepare(engine, NULL, NULL));
    const size_t n_kernels = device_of(engine)->n_kernels, n_made = engine->plans.n_made;
    for (size_t i = 0; i < FRIT_COUNT(numbers); i++) run(engine, numbers[i]);
    assert_int_equal(device_of(engine)->n_kernels, n_kernels);
    assert_int_equal(engine->plans.n_made, n_made);
    frit_engine_free(engine);
}

static bool stop(void *ctx, double done)
{
    (void)ctx, (void)done;
    return false;
}

static void compiling_can_be_cancelled(void **state)
{
    (void)state;
    require_gpu();
    frit_engine *engine = new_engine();
    const size_t n_kernels = device_of(engine)->n_kernels;
    assert_fails(frit_engine_prepare(engine, stop, NULL), FRIT_E_CANCELLED, "compiling kernels was cancelled");
    assert_int_equal(device_of(engine)->n_kernels, n_kernels);
    run(engine, 3);
    frit_engine_free(engine);
}

// ------------------------------------------------------------------------------- what is forgotten

static frit_status launch_nothing(frit_exec *exec, const frit_cuda_step *step)
{
    (void)exec, (void)step;
    return FRIT_OK;
}

// The recording of a step with n_rows, or NULL.
static frit_cuda_recording *find(frit_exec *exec, int32_t n_rows)
{
    frit_cuda_recording *recording;
    assert_ok(
        frit_cuda_recordings_find(exec->device, &(frit_cuda_graph_key){.n_rows = n_rows, .exec = exec}, &recording));
    return recording;
}

static void record(frit_exec *exec, int32_t n_rows)
{
    assert_null(find(exec, n_rows));
    frit_cuda_recording *recording = find(exec, n_rows);
    assert_non_null(recording);
    assert_null(recording->graph);
    frit_cuda_recordings_record(recording, exec, NULL, launch_nothing);
    assert_non_null(recording->graph);
}

static bool has_graph(frit_exec *exec, int32_t n_rows)
{
    const frit_cuda_recording *recording = find(exec, n_rows);
    return recording && recording->graph;
}

static void the_graph_that_was_used_least_recently_is_freed(void **state)
{
    (void)state;
    require_gpu();
    frit_engine *engine = new_engine();
    frit_exec one = {.device = device_of(engine)}, other = one;
    record(&other, 1);
    for (int32_t i = 1; i < FRIT_CUDA_MOST_GRAPHS; i++) record(&one, i);
    assert_true(has_graph(&other, 1));
    assert_int_equal(n.freed, 0);
    record(&one, FRIT_CUDA_MOST_GRAPHS);
    assert_int_equal(n.freed, 1);
    assert_true(has_graph(&other, 1));
    assert_true(has_graph(&one, 2));
    record(&one, 1);   // was freed, and is recorded when it is seen twice again
    assert_int_equal(n.freed, 2);
    for (int32_t i = 0; i < 2 * FRIT_CUDA_MOST_KEYS; i++) assert_null(find(&one, 1000 + i));   // each once
    assert_true(has_graph(&other, 1));
    assert_int_equal(n.freed, 2);
    frit_cuda_recordings_drop(one.device, &one);
    assert_int_equal(n.freed, 2 + FRIT_CUDA_MOST_GRAPHS - 1);
    assert_true(has_graph(&other, 1));
    assert_false(has_graph(&one, 2));
    frit_engine_free(engine);
    assert_int_equal(n.freed, n.prepared);
}

static void little_memory_has_few_graphs(void **state)
{
    (void)state;
    require_gpu();
    if (is_real()) skip_because("only the emulator's memory can be taken");
    void *library = dlopen(driver_path, RTLD_NOW);
    assert_non_null(library);
    void (*take_memory)(uint64_t n_bytes);
    *(void **)&take_memory = dlsym(library, "emulated_take");
    frit_engine *engine = new_engine();
    frit_exec exec = {.device = device_of(engine)};
    size_t n_free, n_all;
    assert_int_equal(driver.memory_info(&n_free, &n_all), 0);
    take_memory(n_free - (1 << 20));
    for (int32_t i = 0; i < 2 * FRIT_CUDA_LEAST_GRAPHS; i++) record(&exec, i);
    assert_int_equal(n.prepared - n.freed, FRIT_CUDA_LEAST_GRAPHS);
    take_memory(0);
    frit_engine_free(engine);
    assert_int_equal(n.freed, n.prepared);
    dlclose(library);
}

static int open_model(void **state)
{
    use_emulator(state);
    return frit_model_open(&model, tiny_model("recordings.gguf", &(tiny_options){.n_ctx = N_CTX}), NULL) != FRIT_OK;
}

static int close_model(void **state)
{
    frit_model_free(model);
    return use_no_emulator(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_sequences_that_come_again_are_launched_as_graphs),
        cmocka_unit_test(steps_that_cannot_be_recorded_run),
        cmocka_unit_test(steps_of_prepared_engines_compile_nothing),
        cmocka_unit_test(compiling_can_be_cancelled),
        cmocka_unit_test(the_graph_that_was_used_least_recently_is_freed),
        cmocka_unit_test(little_memory_has_few_graphs),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
