// SPDX-License-Identifier: MIT
// Picks of GPUs (kernels/pick.cu) and CPUs have the same tokens, log-probabilities and failures, bit for bit, for
// random logits and samplers. On the GPU of tests/emulator or, with FRIT_TEST_GPU=FOLDER, on the machine's.
#include "backend/cuda/picks.h"
#include "backend/gpu.h"
#include "sample/pick_runner.h"
#include "sample/random_picks.h"

#include <stdatomic.h>

enum { N_PICKS = 10, MOST_VOCAB = 5000 };

typedef struct fixture {
    frit_cuda_device *device;
    frit_memory *rows;
    frit_pick_runner *run;
} fixture;

static fixture f;

static int open_gpu(void **state)
{
    use_emulator(state);
    if (!is_real() && !has_emulator()) return 0;
    frit_device *device;
    assert_ok(frit_backend_cuda.open(&device, &(frit_device_options){.n_threads = 2}));
    f.device = (frit_cuda_device *)device;
    assert_ok(frit_backend_cuda.alloc(device, (uint64_t)N_PICKS * MOST_VOCAB * sizeof(float), &f.rows));
    assert_ok(frit_cuda_picks_prepare(f.device, N_PICKS));
    assert_ok(frit_cuda_kernels_build(f.device));
    assert_ok(frit_pick_runner_new(&f.run, 1, FRIT_PICK_BATCH));
    return 0;
}

static int close_gpu(void **state)
{
    if (f.device) {
        frit_pick_runner_free(f.run);
        frit_backend_cuda.free(&f.device->base, f.rows);
        frit_backend_cuda.close(&f.device->base);
    }
    return use_no_emulator(state);
}

// n_passes: number of launches, on which the result must not depend.
static void run_on_gpu(const float *rows, const frit_batch *batch, frit_step_output *output, int n_passes)
{
    frit_cuda_device *d = f.device;
    frit_cuda_flight *flight = &d->flights[0];
    const size_t n = (size_t)batch->n_picks * sizeof(frit_gpu_pick), n_lists = frit_cuda_picks_lists_bytes(batch);
    const size_t row_bytes = (size_t)batch->lists.n_vocab * sizeof(float);
    const frit_address place = {f.rows, 0};
    assert_ok(frit_backend_cuda.write(&d->base, place, rows, (uint64_t)batch->n_picks * row_bytes));
    assert_ok(frit_cuda_buffer_reserve(d, &flight->input, n + n_lists, true, true));
    flight->results = output;
    flight->n_picks = batch->n_picks;
    uint8_t *host = flight->input.host;
    assert_ok(frit_cuda_picks_write(d, flight, batch,
                                    &(frit_cuda_picks_staging){.picks = (frit_gpu_pick *)(void *)host,
                                                               .lists = host + n,
                                                               .lists_address = flight->input.address + n}));
    assert_int_equal(d->driver.copy_up(flight->input.address, host, n + n_lists, d->stream), 0);
    assert_ok(frit_cuda_picks_run(d, ((frit_cuda_memory *)f.rows)->address, flight->input.address,
                                  frit_cuda_picks_next_tokens(d), batch, n_passes));
    assert_int_equal(d->driver.stream_wait(d->stream), 0);
    frit_cuda_picks_deliver(flight);
}

// Picks after a step that had as many picks as leave room for those of the batch.
static void run_late_on_gpu(const float *rows, const frit_batch *batch, frit_step_output *output)
{
    frit_cuda_device *d = f.device;
    frit_cuda_flight *flight = &d->flights[FRIT_CUDA_FLIGHTS];
    const size_t row_bytes = (size_t)batch->lists.n_vocab * sizeof(float);
    assert_ok(frit_backend_cuda.write(&d->base, (frit_address){f.rows, 0}, rows, (uint64_t)batch->n_picks * row_bytes));
    flight->results = output;
    flight->n_picks = batch->n_picks;
    d->picks.n = N_PICKS - batch->n_picks;
    assert_ok(frit_cuda_picks_run_late(d, flight, ((frit_cuda_memory *)f.rows)->address, batch));
    assert_int_equal(d->picks.n, N_PICKS);
    assert_int_equal(d->driver.stream_wait(d->stream), 0);
    frit_cuda_picks_deliver(flight);
}

// The addresses of the tokens that were picked.
static uint64_t tokens_of(const frit_batch *batch, bool is_late)
{
    if (!is_late) return frit_cuda_picks_next_tokens(f.device);
    return frit_cuda_picks_tokens(f.device) + (uint64_t)(N_PICKS - batch->n_picks) * sizeof(int32_t);
}

static void assert_same(const frit_batch *batch, const frit_step_output *got, const frit_step_output *wanted, int round,
                        bool is_late)
{
    int32_t tokens[N_PICKS];
    frit_cuda_memory picked = {.base = {&f.device->base, sizeof tokens}, .address = tokens_of(batch, is_late)};
    assert_ok(frit_backend_cuda.read(&f.device->base, (frit_address){&picked.base, 0}, tokens,
                                     (uint64_t)batch->n_picks * sizeof *tokens));
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick *p = &batch->picks[i];
        const frit_picked_token *g = &got->picked[i], *w = &wanted->picked[i];
        if (g->token != w->token || g->status != w->status || g->logprob != w->logprob)
            print_message("round %d, pick %d of %d tokens: temp %g top-k %d top-p %g min-p %g sigma %g, %d biases, "
                          "%d counts, mask %d, first top %d of %d: %d (%d, %g) for %d (%d, %g)\n",
                          round, i, batch->lists.n_vocab, (double)p->temp, p->top_k, (double)p->top_p, (double)p->min_p,
                          (double)p->top_n_sigma, p->n_biases, p->n_counts, p->mask, p->first_top, p->n_top, g->token,
                          g->status, (double)g->logprob, w->token, w->status, (double)w->logprob);
        assert_int_equal(g->token, w->token);
        assert_int_equal(g->status, w->status);
        assert_true(g->logprob == w->logprob);
        assert_int_equal(tokens[i], w->status == FRIT_PICK_DONE ? w->token : 0);
        if (p->first_top >= 0 && w->status == FRIT_PICK_DONE)
            assert_memory_equal(got->tops + p->first_top, wanted->tops + p->first_top,
                                (size_t)p->n_top * sizeof *got->tops);
    }
}

// before: the tokens of the step before, on the GPU too. Pick i may count before[i]; NULL: late picks.
static void compare_picks(float *rows, const frit_batch *batch, const int32_t *before, int n_passes, int round)
{
    static frit_logprob tops[2][N_PICKS * FRIT_PICK_MAX_TOP];
    frit_picked_token picked[2][N_PICKS];
    frit_out_row taken[N_PICKS] = {{0}};
    frit_step_output got = {.taken = taken, .picked = picked[0], .tops = tops[0]},
                     wanted = {.picked = picked[1], .tops = tops[1]};
    frit_pick_lists lists = batch->lists;
    lists.tops = wanted.tops;
    memset(tops, 0xff, sizeof tops);
    if (before)
        run_on_gpu(rows, batch, &got, n_passes ? n_passes : frit_cuda_picks_passes(batch));
    else
        run_late_on_gpu(rows, batch, &got);
    for (int32_t i = 0; i < batch->n_picks && before; i++) frit_pick_resolve(&lists, &batch->picks[i], before[i]);
    frit_pick_alone(f.run, &(frit_pick_job){rows, batch->picks, batch->n_picks, &lists, wanted.picked});
    assert_same(batch, &got, &wanted, round, !before);
    for (int32_t i = 0; i < batch->n_picks; i++) {
        bool is_bad = false;
        const float *row = rows + (size_t)batch->picks[i].row * (size_t)lists.n_vocab;
        for (int32_t t = 0; t < lists.n_vocab; t++) is_bad = is_bad || !isfinite(row[t]);
        assert_int_equal(atomic_load(&taken[i].bad), is_bad);
    }
}

// Tokens of the step before, which often are among those that a pick counts.
static void write_before(frit_rng *rng, const frit_batch *batch, int32_t *before)
{
    const frit_cuda_device *d = f.device;
    frit_cuda_memory memory = {.base = {&f.device->base, N_PICKS * sizeof *before},
                               .address = frit_cuda_picks_tokens(d)};
    for (int32_t i = 0; i < batch->n_picks; i++) {
        const frit_pick *p = &batch->picks[i];
        const frit_pick_count *count =
            &batch->lists.counts[p->first_count + random_between(rng, 0, p->n_counts > 1 ? p->n_counts - 2 : 0)];
        before[i] = p->n_counts > 1 && random_between(rng, 0, 1)
                        ? count->token
                        : (int32_t)random_between(rng, 0, batch->lists.n_vocab - 1);
    }
    assert_ok(frit_backend_cuda.write(&f.device->base, (frit_address){&memory.base, 0}, before,
                                      (uint64_t)batch->n_picks * sizeof *before));
}

// Adds a pick, half of the time after a token that is not known yet.
static void add_pick(frit_rng *rng, frit_sampler *sampler, frit_batch *batch, frit_pick *pick, int32_t i, bool is_late)
{
    frit_sampler_mark mark;
    const bool is_after_unknown = random_between(rng, 0, 1) && !is_late;
    if (is_after_unknown) frit_sampler_try_count(sampler, -1, &mark);
    assert_ok(frit_sampler_add_pick(sampler, &batch->lists, pick));
    if (is_after_unknown) frit_sampler_go_back(sampler, &mark);
    frit_pick_count *unknown = frit_pick_unknown(&batch->lists, pick);
    if (unknown) unknown->token = ~i;
    pick->row = i;
}

static void check_round(frit_rng *rng, int round)
{
    static float rows[N_PICKS * MOST_VOCAB];
    static frit_str pieces[MOST_VOCAB];
    const int32_t n_vocab = (int32_t)random_between(rng, 1, is_real() ? MOST_VOCAB : round % 8 ? 300 : 2500);
    const bool is_late = round % 4 == 3;
    frit_sampler *samplers[N_PICKS];
    frit_pick picks[N_PICKS];
    int32_t before[N_PICKS];
    frit_batch batch = {
        .picks = picks, .n_picks = (int32_t)random_between(rng, 1, N_PICKS), .lists = {.n_vocab = n_vocab}};
    for (int32_t i = 0; i < batch.n_picks; i++) {
        float *row = rows + (size_t)i * (size_t)n_vocab;
        frit_sampler *s = samplers[i] = random_sampler(rng, n_vocab);
        random_logits(rng, row, n_vocab, (int)random_between(rng, 0, 1000));
        if (random_between(rng, 0, 5) == 0) force(s, pieces, n_vocab);
        if (random_between(rng, 0, 30) == 0) row[random_between(rng, 0, n_vocab - 1)] = i % 2 ? NAN : INFINITY;
        add_pick(rng, s, &batch, &picks[i], i, is_late);
        if (random_between(rng, 0, 2) > 0) continue;
        const int32_t n_top = (int32_t)random_between(rng, 0, random_between(rng, 0, 3) ? 5 : FRIT_PICK_MAX_TOP);
        picks[i].n_top = n_top < n_vocab ? n_top : n_vocab;
        picks[i].first_top = batch.lists.n_tops;
        batch.lists.n_tops += picks[i].n_top;
    }
    assert_ok(frit_pick_lists_reserve(&batch.lists, &(frit_pick_room){0}));
    f.device->picks.next = !f.device->picks.last;
    write_before(rng, &batch, before);
    compare_picks(rows, &batch, is_late ? NULL : before, round % 3 == 0 ? 1 : 0, round);
    if (!is_late) frit_cuda_picks_advance(f.device, batch.n_picks);
    for (int32_t i = 0; i < batch.n_picks; i++) frit_sampler_free(samplers[i]);
    frit_pick_lists_free(&batch.lists);
}

static void picks_are_those_of_the_cpu(void **state)
{
    (void)state;
    require_gpu();
    frit_rng rng;
    frit_rng_init(&rng, 5);
    const char *rounds = getenv("FRIT_TEST_ROUNDS");
    const int n = rounds ? atoi(rounds) : is_real() ? 2000 : 24;
    for (int round = 0; round < n; round++) check_round(&rng, round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_are_those_of_the_cpu),
    };
    return cmocka_run_group_tests(tests, open_gpu, close_gpu);
}
