// SPDX-License-Identifier: MIT
// Requests that an engine in this process answers: the fastest that a server with this engine could be.
//
// Each lane is a session with one request at a time, as a slot of the server. Steps are submitted as the server submits
// them, before the tokens of the last step are read. Each token is the likeliest one that the grammar allows and that
// does not end the answer, as the server picks it for such a request.
#include "frit/bench/load.h"

#include "hub/disk.h"

#include <stdlib.h>
#include <string.h>

typedef struct lane {
    frit_session *session;
    frit_sampler *sampler;      // of the request: shared by all lanes, or `structured`
    frit_sampler *structured;   // of answers with the grammar; NULL: not made yet
    load_answer answer;
    int32_t n_picks, n_taken;   // tokens of the answer that were requested, and that have come
    bool is_busy;
} lane;

typedef struct offline {
    frit_model *model;
    frit_engine *engine;
    frit_sampler *sampler;   // of answers without a grammar; it has no state
    cli_grammar grammar;
    cli_adapters adapters;
    lane *lanes;
    int32_t n_lanes;
    // The measurement that runs:
    const load_case *load;
    load_result *result;
    load_queue queue;
    double *sent;      // [n_requests]
    int32_t n_begun;   // requests that have a lane, or had one
    frit_token *prompt;
    uint64_t start_ns;
} offline;

static double now_of(const offline *o)
{
    return (double)(cli_now_ns() - o->start_ns) * 1e-9;
}

// ---------------------------------------------------------------------------------------- one lane

static frit_status make_sampler(const offline *o, frit_sampler **out);

// Gives the lane a sampler at the beginning of an answer.
static frit_status choose_sampler(const offline *o, lane *l)
{
    frit_status status = FRIT_OK;
    l->sampler = o->sampler;
    if (!l->answer.is_structured) return FRIT_OK;
    if (!l->structured) status = make_sampler(o, &l->structured);
    if (status == FRIT_OK) status = frit_sampler_reset(l->structured);   // without a grammar
    if (status == FRIT_OK) status = frit_sampler_set_grammar(l->structured, o->grammar.grammar);
    l->sampler = l->structured;
    return status;
}

static frit_status begin(offline *o, lane *l)
{
    const int32_t i = o->n_begun++;
    load_case_prompt(o->load, i, o->prompt);
    l->answer.is_structured = load_case_is_structured(o->load, i);
    load_answer_begin(&l->answer, o->sent[i]);
    frit_status status = choose_sampler(o, l);
    if (status == FRIT_OK) status = frit_session_truncate(l->session, 0);
    if (status == FRIT_OK) status = frit_session_push(l->session, o->prompt, (size_t)o->load->n_in, NULL);
    if (status == FRIT_OK) status = frit_session_pick(l->session, l->sampler, NULL);
    l->n_picks = 1;
    l->n_taken = 0;
    l->is_busy = status == FRIT_OK;
    return status;
}

static frit_status end(offline *o, lane *l)
{
    const frit_status status = frit_session_stop(l->session);
    if (status != FRIT_OK) return status;
    l->is_busy = false;
    l->answer.n_in = o->load->n_in;
    l->answer.n_out = l->n_taken;
    l->answer.n_cached = (int64_t)frit_session_cached(l->session);
    o->queue.n_running--;
    o->queue.n_ended++;
    return load_result_add(o->result, o->load, &l->answer) ? FRIT_OK : FRIT_E_MEMORY;
}

// Takes a token that has been picked. The next one is requested now, unless that was done ahead.
static frit_status take_token(offline *o, lane *l, double now)
{
    frit_picked picked;
    frit_status status = frit_session_picked(l->session, &picked);
    if (status != FRIT_OK) return status;
    if (!load_answer_note(&l->answer, now)) return FRIT_E_MEMORY;
    if (l->answer.is_structured) status = frit_sampler_accept(l->sampler, picked.token);
    if (status != FRIT_OK) return status;
    if (++l->n_taken == o->load->n_out || frit_sampler_is_over(l->sampler)) return end(o, l);
    if (l->n_picks > l->n_taken) return frit_session_complete_pick(l->session, l->sampler);
    status = frit_session_push(l->session, &picked.token, 1, NULL);
    if (status == FRIT_OK) status = frit_session_pick(l->session, l->sampler, NULL);
    l->n_picks++;
    return status;
}

static frit_status advance(offline *o, lane *l, double now)
{
    static const frit_pick_options options = {.late = true};
    bool is_ahead = false;
    frit_status status = frit_session_status(l->session);
    while (status == FRIT_OK && l->is_busy && frit_session_has_picked(l->session)) status = take_token(o, l, now);
    if (status == FRIT_OK && l->is_busy && l->n_picks < o->load->n_out)
        status = frit_session_pick_ahead(l->session, l->sampler, &options, &is_ahead);
    l->n_picks += is_ahead;
    return status;
}

// ---------------------------------------------------------------------------------------- all lanes

static lane *find_idle(const offline *o)
{
    for (int32_t i = 0; i < o->n_lanes; i++)
        if (!o->lanes[i].is_busy) return &o->lanes[i];
    return NULL;
}

// A request that finds no idle lane waits.
static frit_status begin_due(offline *o)
{
    frit_status status = FRIT_OK;
    for (double now; load_queue_is_due(&o->queue, now = now_of(o));) {
        const int32_t i = o->queue.next++;
        o->sent[i] = o->load->n_at_once > 0 ? now : o->load->arrivals[i];
        if (++o->queue.n_running > o->result->most_running) o->result->most_running = o->queue.n_running;
    }
    for (lane *l; status == FRIT_OK && o->n_begun < o->queue.next && (l = find_idle(o));) status = begin(o, l);
    return status;
}

static frit_status take_tokens(offline *o)
{
    frit_status status = FRIT_OK;
    const double now = now_of(o);
    for (int32_t i = 0; i < o->n_lanes && status == FRIT_OK; i++)
        if (o->lanes[i].is_busy) status = advance(o, &o->lanes[i], now);
    return status;
}

static frit_status run_steps(offline *o, cli_progress *progress)
{
    frit_status status = FRIT_OK;
    while (status == FRIT_OK && o->queue.n_ended < o->load->n_requests) {
        status = begin_due(o);
        if (status == FRIT_OK) status = frit_engine_advance(o->engine, NULL);
        if (status == FRIT_OK) status = take_tokens(o);
        if (status == FRIT_OK && !cli_progress_step(progress, (double)o->queue.n_ended / o->load->n_requests))
            status = FRIT_E_CANCELLED;
        if (status == FRIT_OK && o->queue.n_running == 0)
            hub_sleep_ms((int)(1e3 * load_queue_wait(&o->queue, now_of(o), 0.1)));
    }
    return status;
}

static int run(void *ctx, const load_case *load, load_result *result, cli_progress *progress)
{
    offline *o = ctx;
    o->load = load;
    o->result = result;
    o->queue = (load_queue){.load = load};
    o->n_begun = 0;
    o->prompt = malloc((size_t)load->n_in * sizeof *o->prompt);
    o->sent = calloc((size_t)load->n_requests, sizeof *o->sent);
    o->start_ns = cli_now_ns();
    const frit_status status = o->prompt && o->sent ? run_steps(o, progress) : FRIT_E_MEMORY;
    result->seconds = now_of(o);
    for (int32_t i = 0; i < o->n_lanes; i++) {
        frit_session_truncate(o->lanes[i].session, 0);
        o->lanes[i].is_busy = false;
    }
    free(o->prompt);
    free(o->sent);
    result->client_cores = -1;
    result->is_stopped = status == FRIT_E_CANCELLED;
    if (status == FRIT_E_CANCELLED) return CLI_INTERRUPTED;
    return status == FRIT_E_MEMORY ? cli_no_memory() : status == FRIT_OK ? CLI_DONE : cli_report(status);
}

// ---------------------------------------------------------------------------------------- opening

static void close_offline(void *ctx)
{
    offline *o = ctx;
    for (int32_t i = 0; i < o->n_lanes; i++) {
        frit_session_free(o->lanes[i].session);
        frit_sampler_free(o->lanes[i].structured);
        load_answer_free(&o->lanes[i].answer);
    }
    free(o->lanes);
    frit_sampler_free(o->sampler);
    cli_grammar_free(&o->grammar);
    cli_free_adapters(&o->adapters);
    frit_engine_free(o->engine);
    frit_model_free(o->model);
    free(o);
}

// A sampler of the likeliest token that does not end the answer.
static frit_status make_sampler(const offline *o, frit_sampler **out)
{
    enum { ITEM_BYTES = 24 };
    frit_sampler_options options = {0};
    frit_model_info info;
    frit_model_get_info(o->model, &info);
    const int32_t n_vocab = info.n_vocab;
    size_t n = 0;
    for (frit_token t = 0; t < n_vocab; t++) n += frit_token_is_end(o->model, t);
    char *texts = malloc(n * ITEM_BYTES + 1);
    const char **items = calloc(n + 1, sizeof *items);
    frit_status status = texts && items ? FRIT_OK : FRIT_E_MEMORY;
    for (frit_token t = 0; t < n_vocab && status == FRIT_OK; t++) {
        if (!frit_token_is_end(o->model, t)) continue;
        char *item = texts + options.logit_bias.n * ITEM_BYTES;
        snprintf(item, ITEM_BYTES, "%d=-inf", t);
        items[options.logit_bias.n++] = item;
    }
    options.logit_bias.items = items;
    if (status == FRIT_OK) status = frit_sampler_new(out, o->model, &options);
    free(items);
    free(texts);
    return status;
}

static int open_lanes(offline *o, int32_t n)
{
    frit_status status = FRIT_OK;
    o->lanes = calloc((size_t)n, sizeof *o->lanes);
    if (!o->lanes) return cli_no_memory();
    for (; o->n_lanes < n && status == FRIT_OK; o->n_lanes += status == FRIT_OK) {
        lane *l = &o->lanes[o->n_lanes];
        status = frit_session_new(&l->session, o->engine);
        if (status == FRIT_OK) status = cli_use_adapters(&o->adapters, l->session);
        if (status != FRIT_OK) frit_session_free(l->session);
    }
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static int open_parts(offline *o, const bench_args *args, int32_t n_lanes)
{
    frit_engine_options options = args->engine;
    bench_setup setup = {0};
    const int32_t n_needed = args->load.n_in + args->load.n_out;
    int code = bench_single_setup(&setup, args);
    if (code == CLI_DONE && options.n_ctx > 0 && options.n_ctx < n_needed)
        code = cli_usage("bench: -c %d is less than a request of %d tokens", options.n_ctx, n_needed);
    if (code == CLI_DONE) code = bench_open_model(&o->model, args, 0);
    if (code == CLI_DONE) code = cli_check_generates(o->model, true);
    if (code != CLI_DONE) return code;
    if (options.n_ctx == 0) options.n_ctx = n_needed + 64;
    options.n_sessions = n_lanes;
    options.n_threads = setup.n_threads;
    options.n_batch = setup.n_ubatch;
    options.cache_type_k = setup.type_k;
    options.cache_type_v = setup.type_v;
    code = cli_open_adapters(&o->adapters, o->model, &args->common, &args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&o->engine, &args->common, o->model, &options);
    return code == CLI_DONE ? open_lanes(o, n_lanes) : code;
}

int load_open_offline(load_driver *driver, const bench_args *args, int32_t n_lanes)
{
    offline *o = calloc(1, sizeof *o);
    if (!o) return cli_no_memory();
    *driver = (load_driver){.ctx = o, .run = run, .close = close_offline, .kind = "offline"};
    int code = open_parts(o, args, n_lanes);
    if (code == CLI_DONE) code = cli_begin_grammar(&o->grammar, o->model, &args->grammar);
    if (code != CLI_DONE) return code;
    driver->has_grammar = o->grammar.job != NULL;
    frit_model_info info;
    frit_engine_info engine;
    frit_model_get_info(o->model, &info);
    frit_engine_get_info(o->engine, &engine);
    snprintf(driver->name, sizeof driver->name, "%s %s", info.architecture, info.file_type);
    driver->n_vocab = info.n_vocab;
    snprintf(driver->what, sizeof driver->what,
             "an engine in this process: %d sessions of %d tokens, %s %s, steps of %d tokens, no speculation", n_lanes,
             engine.n_ctx, engine.backend, engine.isa ? engine.isa : "", engine.n_batch);
    const frit_status status = make_sampler(o, &o->sampler);
    if (status != FRIT_OK) return status == FRIT_E_MEMORY ? cli_no_memory() : cli_report(status);
    return cli_finish_grammar(&o->grammar);
}
