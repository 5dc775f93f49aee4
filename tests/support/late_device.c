// SPDX-License-Identifier: MIT
// A device that runs steps late, and engines on it.
#include "support/late_device.h"
#include "support/engines.h"
#include "support/support.h"

#include "engine/engine.h"

#include <stdlib.h>

enum { MAX_JOBS = 4 };

typedef struct job {
    frit_exec *exec;
    void *block;
    frit_step_output *output;
} job;

static struct {
    frit_backend backend;
    job jobs[MAX_JOBS];
    frit_ticket n_submitted, n_done;
    int n_polls, fails_in;   // 0: never; 1: the next one that runs
    bool failed;
} late;

static void run_first(frit_device *device)
{
    job *j = &late.jobs[++late.n_done % MAX_JOBS];
    frit_batch batch = frit_batch_view(j->block);
    frit_ticket ticket;
    if (late.fails_in == 1) late.failed = true;
    if (late.fails_in > 0) late.fails_in--;
    if (!late.failed) assert_ok(frit_backend_cpu.submit(device, j->exec, &batch, j->output, &ticket));
    free(j->block);
    *j = (job){0};
}

static void drain(frit_device *device)
{
    while (late.n_done < late.n_submitted) run_first(device);
}

static frit_status late_open(frit_device **out, const frit_device_options *options)
{
    late.n_submitted = late.n_done = 0;
    FRIT_TRY(frit_backend_cpu.open(out, options));
    (*out)->backend = &late.backend;
    return FRIT_OK;
}

static frit_status late_submit(frit_device *device, frit_exec *exec, const frit_batch *batch, frit_step_output *output,
                               frit_ticket *ticket)
{
    (void)device;
    assert_in_range(late.n_submitted - late.n_done, 0, FRIT_MAX_FLIGHTS - 1);
    *ticket = ++late.n_submitted;
    void *block = malloc((size_t)frit_batch_bytes(batch));
    frit_batch_pack(block, batch);
    late.jobs[*ticket % MAX_JOBS] = (job){exec, block, output};
    return FRIT_OK;
}

static bool late_poll(frit_device *device, frit_ticket ticket)
{
    if (late.n_done < ticket && ++late.n_polls % 2 == 0) run_first(device);
    return late.n_done >= ticket;
}

static frit_status late_wait(frit_device *device, frit_ticket ticket)
{
    while (late.n_done < ticket) run_first(device);
    const bool failed = late.failed;
    late.failed = false;
    return failed ? frit_fail(FRIT_E_IO, "the device was lost") : FRIT_OK;
}

static frit_status late_read(frit_device *device, frit_address from, void *to, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.read(device, from, to, n_bytes);
}

static frit_status late_write(frit_device *device, frit_address to, const void *from, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.write(device, to, from, n_bytes);
}

static frit_status late_copy(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes)
{
    drain(device);
    return frit_backend_cpu.copy(device, to, from, n_bytes);
}

// ------------------------------------------------------------------------------- engines

static const struct {
    const char *cpu;
    bool late, picks;
} devices[LATE_DEVICES] = {{"reference", false, false}, {NULL, false, false}, {NULL, true, true}, {NULL, true, false}};

static void choose_device(size_t d)
{
    late.backend = frit_backend_cpu;
    late.backend.name = "late";
    late.backend.picks = devices[d].picks;
    late.backend.queues = devices[d].late;
    late.backend.open = late_open;
    late.backend.submit = late_submit;
    late.backend.poll = late_poll;
    late.backend.wait = late_wait;
    late.backend.read = late_read;
    late.backend.write = late_write;
    late.backend.copy = late_copy;
    late.n_polls = late.fails_in = 0;
    late.failed = false;
    frit_backend_set_first(devices[d].late ? &late.backend : NULL);
}

frit_engine *late_engine(size_t d, frit_engine_options options, const tiny_options *tiny)
{
    choose_device(d);
    options.cpu = devices[d].cpu;
    options.n_sessions = LATE_SESSIONS;
    options.n_threads = 2;
    return tiny_engine(tiny ? tiny : &(tiny_options){0}, options);
}

int late_close(void **state)
{
    (void)state;
    frit_backend_set_first(NULL);
    return 0;
}

static frit_sampler_options sampling(int s)
{
    static const char *const biases[] = {"7=3.5", "9=-inf", "11=2"};
    const frit_sampler_options rows[LATE_SESSIONS] = {
        {.temp = 1.5f, .top_k = 30, .top_p = 0.9f, .repeat_penalty = 1.3f, .frequency_penalty = 0.2f, .seed = 1},
        {.temp = 2, .top_p = 0.95f, .min_p = 0.01f, .logit_bias = {biases, 3}, .seed = 2},
        {.repeat_penalty = 1.5f, .presence_penalty = 0.5f, .repeat_last_n = 5, .seed = 3},
        {.temp = 1, .seed = 4},
    };
    return rows[s];
}

frit_sampler *late_sampler(int s)
{
    const frit_sampler_options options = sampling(s);
    frit_sampler *sampler = NULL;
    assert_ok(frit_sampler_create(&sampler, TINY_VOCAB, &options));
    return sampler;
}

void late_sample(frit_engine *engine, int s, frit_token *tokens, size_t n)
{
    frit_session *session = begin_session(engine, (frit_token)(3 + s), (size_t)(1 + s));
    frit_sampler *sampler = late_sampler(s);
    for (size_t i = 0; i < n; i++) {
        run_all(engine);
        assert_non_null(frit_session_logits(session));
        frit_sampler_set_position(sampler, frit_session_length(session));
        assert_ok(frit_sampler_run_chain(sampler, frit_session_logits(session), &tokens[i]));
        frit_sampler_accept(sampler, tokens[i]);
        assert_ok(frit_session_push(session, &tokens[i], 1, NULL));
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
}

void late_fail_in(int n)
{
    late.fails_in = n;
}
