// SPDX-License-Identifier: MIT
// Submits a step to the devices, and delivers its results to sessions when it has run. Allocates nothing once the
// step's plan exists.
#include "engine/engine.h"
#include "engine/observe.h"

#include "base/time.h"

#include <stdatomic.h>
#include <string.h>

// True if the session stores the logits of token i.
static bool stores_logits(const frit_session *session, size_t i, frit_result result)
{
    return result == FRIT_RESULT_LOGITS && i + 1 == session->n_tokens && session->results.needs_logits &&
           !frit_session_find_pick(session, i);
}

// Where the observer wants the output of the layers for token i of the step's sequence r, or NULL.
static float *observed_row(const frit_engine *engine, int32_t r, size_t i)
{
    const frit_observed_rows *rows = engine->observer ? &engine->observer->rows : NULL;
    return rows && rows->taken ? rows->taken + r * rows->apart + (int64_t)i * engine->hp.n_embd : NULL;
}

// Tells the device where to copy each row of the output: rows are long, and there all threads copy.
static void address_results(frit_flight *flight)
{
    frit_step *step = &flight->step;
    int32_t o = 0;
    flight->output = (frit_step_output){.taken = step->taken, .picked = step->picked, .tops = step->lists.tops};
    for (int32_t r = 0; r < step->n_seqs; r++) {
        const frit_seq *seq = &step->seqs[r];
        frit_session *session = step->owners[r];
        flight->output.wants_rows = flight->output.wants_rows || step->encodes || session->results.n_pushes > 0;
        for (; o < step->n_outs && step->out_rows[o] < seq->first_row + seq->n_rows; o++) {
            const bool is_stored =
                !step->encodes &&
                stores_logits(session, (size_t)(seq->n_past + step->out_rows[o] - seq->first_row), step->result);
            if (is_stored) session->results.logits_at = 0;   // until the values are known to be finite
            const size_t i = (size_t)(seq->n_past + step->out_rows[o] - seq->first_row);
            float *observed = observed_row(session->engine, r, i);
            const frit_pick_request *request = step->encodes ? NULL : frit_session_find_pick(session, i);
            step->taken[o] = (frit_out_row){.copy = is_stored ? session->results.logits : observed,
                                            .is_late = request && request->late == FRIT_PICK_OPEN};
        }
    }
}

// Fails for values that are not finite. Blames the session's adapters if it has some: damaged weights of the model
// would have failed earlier.
static frit_status fail_not_finite(const frit_session *session, size_t i, frit_result result)
{
    const char *what = result == FRIT_RESULT_HIDDEN ? "hidden states" : "logits";
    const frit_engine_adapters *all = &session->engine->adapters;
    const char *path = session->engine->model->info.path;
    for (int32_t k = 0; k < all->n && session->adapters.scales; k++)
        if (session->adapters.scales[k] != 0)
            return frit_fail_file(
                FRIT_E_FORMAT,
                "%s: with %s, times %g, the model's %s after token %zu are not finite (NaN or infinity): the "
                "adapter's numbers or its scale are too large",
                path, all->items[k]->info.path, (double)session->adapters.scales[k], what, i);
    return frit_fail_file(
        FRIT_E_FORMAT, "%s: the model's %s after token %zu are not finite (NaN or infinity): its weights are damaged",
        path, what, i);
}

// A row of results, as it is delivered.
typedef struct result_row {
    const float *values;   // NULL: they are not on the host
    size_t n;
    frit_out_row *taken;
    const frit_pick *pick;      // NULL: none was requested
    const frit_logprob *tops;   // of the step's picks, or of its late picks
    const frit_picked_token *picked;
    bool keeps_failed;   // `values` are still of this step
} result_row;

// Stores the logits of a pick that left no token, so that the caller can sample with another sampler.
static void store_failed_logits(frit_session *session, size_t i, const result_row *row)
{
    if (row->picked->status == FRIT_PICK_DONE || !row->values || !row->keeps_failed || i + 1 < session->n_tokens)
        return;
    memcpy(session->results.logits, row->values, row->n * sizeof *session->results.logits);
    session->results.logits_at = i + 1;
}

// Delivers the results of token i to the session. Fails for values that are not finite.
static frit_status deliver_row(frit_session *session, size_t i, const frit_step *step, const result_row *row)
{
    const frit_push_options *source = &session->source.options;
    if (atomic_load(&row->taken->bad)) return fail_not_finite(session, i, step->result);
    if (step->encodes) {
        source->row(source->row_ctx, i, row->values, row->n);
        return FRIT_OK;
    }
    if (row->taken->copy && row->taken->copy == session->results.logits) session->results.logits_at = i + 1;
    for (size_t q = 0; q < session->results.n_pushes && i >= session->results.n_delivered; q++) {
        const frit_row_push *item = &session->results.pushes[q];
        if (i - item->first < item->n) item->options.row(item->options.row_ctx, i - item->first, row->values, row->n);
    }
    if (!row->pick) return FRIT_OK;
    store_failed_logits(session, i, row);
    const frit_logprob *tops = row->pick->n_top > 0 ? row->tops + row->pick->first_top : NULL;
    frit_session_store_pick(session, i, row->picked, tops);
    return FRIT_OK;
}

// Drops pushes whose tokens have all run.
static void drop_finished_pushes(frit_session *session)
{
    size_t n = 0;
    const size_t n_run = session->n_done - session->n_flying;
    while (n < session->results.n_pushes && session->results.pushes[n].first + session->results.pushes[n].n <= n_run)
        n++;
    if (n == 0) return;
    session->results.n_pushes -= n;
    memmove(session->results.pushes, session->results.pushes + n,
            session->results.n_pushes * sizeof *session->results.pushes);
}

// Runs the step's picks on the host, for devices that run none.
static void run_picks(frit_engine *engine, const frit_flight *flight)
{
    const frit_step *step = &flight->step;
    float *rows = (float *)(uintptr_t)flight->output.rows;   // restored when the picks have run
    frit_pick_alone(engine->pick_runner,
                    &(frit_pick_job){rows, step->picks, step->n_picks, &step->lists, step->picked});
}

static void deliver_hidden(const frit_flight *flight, const frit_seq *seq, const frit_session *session)
{
    if (!session->hidden || !flight->plan->segments.result) return;
    const float *rows = flight->hidden + (size_t)seq->first_row * session->hidden->width;
    frit_hidden_store(session->hidden, (size_t)seq->n_past, rows, (size_t)seq->n_rows);
}

const frit_picked_token *frit_flight_picked(const frit_flight *flight, int32_t i)
{
    const int32_t n_picks = flight->step.n_picks;
    return i < n_picks ? &flight->step.picked[i] : &flight->late.picked[i - n_picks];
}

void frit_step_deliver_late(frit_flight *flight)
{
    frit_late_picks *late = &flight->late;
    for (int32_t i = 0; i < late->n; i++) {
        frit_session *session = late->owners[i];
        const result_row row = {.taken = &flight->step.taken[late->picks[i].row],
                                .pick = &late->picks[i],
                                .tops = late->lists.tops,
                                .picked = &late->picked[i]};
        if (session->failure.status != FRIT_OK) continue;
        const frit_status status = deliver_row(session, late->at[i], &flight->step, &row);
        if (status != FRIT_OK) frit_session_fail(session, status);
    }
    late->n = 0;
}

// The values of batch row out_rows[o] are at output[o]. A session that fails gets no further results.
void frit_step_deliver(frit_engine *engine, frit_flight *flight)
{
    const frit_step *step = &flight->step;
    const size_t n = (size_t)flight->plan->graph.output->shape[1];
    if (step->n_picks > 0 && !frit_flight_runs_picks(flight->plan)) run_picks(engine, flight);
    for (int32_t r = 0; r < step->n_seqs && !step->encodes; r++)
        step->owners[r]->n_flying -= (size_t)step->seqs[r].n_rows;
    int32_t p = 0;
    for (int32_t r = 0, o = 0; r < step->n_seqs; r++) {
        const frit_seq *seq = &step->seqs[r];
        deliver_hidden(flight, seq, step->owners[r]);
        for (; o < step->n_outs && step->out_rows[o] < seq->first_row + seq->n_rows; o++) {
            frit_session *session = step->owners[r];
            const bool is_picked = p < step->n_picks && step->picks[p].row == o;
            const result_row row = {.values = flight->output.rows ? flight->output.rows + (size_t)o * n : NULL,
                                    .n = n,
                                    .taken = &step->taken[o],
                                    .pick = is_picked ? &step->picks[p] : NULL,
                                    .tops = step->lists.tops,
                                    .picked = &step->picked[p],
                                    .keeps_failed = flight->number == engine->flights.n_submitted};
            p += is_picked;
            if (session->failure.status != FRIT_OK) continue;
            const size_t i = (size_t)(seq->n_past + step->out_rows[o] - seq->first_row);
            frit_status status = deliver_row(session, i, step, &row);
            if (status != FRIT_OK) frit_session_fail(session, status);
        }
        drop_finished_pushes(step->owners[r]);
    }
    frit_step_deliver_late(flight);
}

static frit_plan_key key_of(const frit_engine *engine, const frit_step *step)
{
    return (frit_plan_key){.n_rows = step->n_rows,
                           .prefill = step->prefill,
                           .joins = !step->prefill && step->n_seqs > engine->rows.joins_above,
                           .kind = step->encodes                        ? FRIT_PLAN_ENCODE
                                   : step->result == FRIT_RESULT_HIDDEN ? FRIT_PLAN_HIDDEN
                                   : step->keeps_hidden                 ? FRIT_PLAN_NEXT
                                                                        : FRIT_PLAN_LOGITS,
                           .media = step->has_soft,
                           .adapted = step->adapted};
}

// Bytes of a result for the rows of this step; shapes in plans are of the largest step.
static uint64_t result_bytes(const frit_node *node, const frit_batch *batch)
{
    uint64_t n_bytes = sizeof(float);
    for (int d = 1; d < node->n_dims; d++) n_bytes *= (uint64_t)node->shape[d];
    const int64_t n = node->rows == FRIT_SHAPE_BATCH  ? batch->n_rows
                      : node->rows == FRIT_SHAPE_OUTS ? batch->n_outs
                                                      : node->shape[0];
    return n_bytes * (uint64_t)n;
}

static frit_status copy_input(const frit_planned_segment *to, const frit_crossing *crossing,
                              const frit_planned_segment *from, const frit_batch *batch)
{
    const uint64_t n_bytes = result_bytes(crossing->result, batch);
    if (n_bytes == 0) return FRIT_OK;
    return frit_backend_copy(to->device->backend->value(to->exec, crossing->input),
                             from->device->backend->value(from->exec, crossing->result), n_bytes);
}

// Copies what later segments read of segment i, as soon as segment i is submitted: the device may use the memory again.
static frit_status copy_results(const frit_shape_class *c, int i, const frit_batch *batch)
{
    for (int k = i + 1; k < c->segments.n; k++) {
        const frit_segment *segment = &c->segments.list[k];
        for (int n = 0; n < segment->n_inputs; n++)
            if (segment->inputs[n].from == i)
                FRIT_TRY(copy_input(&c->planned[k], &segment->inputs[n], &c->planned[i], batch));
    }
    return FRIT_OK;
}

// Writes input that comes with the step's rows: hidden states for a multi-token prediction layer or for the layer that
// an observer begins with, or pictures.
static frit_status write_given(const frit_engine *engine, const frit_shape_class *c, const frit_step *step,
                               const frit_batch *batch)
{
    const uint64_t n_bytes = step->has_soft ? frit_soft_step_bytes(engine, step->n_rows)
                                            : (uint64_t)step->n_rows * (uint64_t)engine->hp.n_embd * sizeof(float);
    const float *given = step->has_soft ? engine->soft.rows : step->given;
    const bool is_observed = engine->observer && engine->observer->rows.given;
    for (int i = 0; i < c->segments.n && (is_observed || given); i++) {
        const frit_planned_segment *planned = &c->planned[i];
        const frit_node *node = c->segments.list[i].given;
        const frit_backend *backend = planned->device->backend;
        if (!node) continue;
        const frit_address to = backend->value(planned->exec, node);
        FRIT_TRY(is_observed ? frit_observe_give(engine, planned, to, batch)
                             : backend->write(planned->device, to, given, n_bytes));
    }
    return FRIT_OK;
}

// Reads the hidden states of all rows if segment i makes them.
static frit_status read_hidden(const frit_shape_class *c, int i, const frit_batch *batch, frit_flight *flight)
{
    const frit_planned_segment *planned = &c->planned[i];
    const frit_node *result = c->segments.result;
    if (!result || i != c->segments.result_segment || !flight->hidden) return FRIT_OK;
    const frit_backend *backend = planned->device->backend;
    return backend->read(planned->device, backend->value(planned->exec, result), flight->hidden,
                         result_bytes(result, batch));
}

// Segments run one after another, each on its device. The host waits for results that cross between devices of
// different kinds, and not for the last segment.
static frit_status submit_segments(const frit_engine *engine, const frit_shape_class *c, const frit_batch *batch,
                                   frit_flight *flight)
{
    memset(flight->tickets, 0, sizeof flight->tickets);
    for (int i = 0; i < c->segments.n; i++) {
        const frit_planned_segment *planned = &c->planned[i];
        frit_ticket ticket;
        FRIT_TRY(planned->device->backend->submit(planned->device, planned->exec, batch, &flight->output, &ticket));
        flight->tickets[c->segments.list[i].device] = ticket;
        FRIT_TRY(read_hidden(c, i, batch, flight));
        if (engine->observer) FRIT_TRY(frit_observe_segment(engine, planned, batch, ticket));
        FRIT_TRY(copy_results(c, i, batch));
    }
    return FRIT_OK;
}

// Waits for all devices, also if one has failed. Returns the failure of the first device of the step that has one.
frit_status frit_step_wait(const frit_engine *engine, const frit_flight *flight)
{
    frit_failure failure = {0};
    frit_status status = FRIT_OK;
    for (int i = 0; i < engine->n_devices; i++) {
        if (flight->tickets[i] == 0) continue;
        frit_device *device = engine->devices[i];
        const frit_status waited = device->backend->wait(device, flight->tickets[i]);
        if (waited == FRIT_OK || status != FRIT_OK) continue;
        status = waited;
        frit_failure_get(&failure);
    }
    if (status != FRIT_OK) frit_failure_set(&failure);
    return status;
}

bool frit_step_poll(const frit_engine *engine, const frit_flight *flight)
{
    for (int i = 0; i < engine->n_devices; i++) {
        frit_device *device = engine->devices[i];
        if (flight->tickets[i] > 0 && !device->backend->poll(device, flight->tickets[i])) return false;
    }
    return true;
}

// Sets the tokens of the step before that picks count.
static void resolve_counts(const frit_step *step, const frit_flight *before)
{
    for (int32_t p = 0; p < step->n_picks; p++) {
        const frit_pick_count *unknown = frit_pick_unknown(&step->lists, &step->picks[p]);
        if (!unknown) continue;
        const frit_picked_token *picked = frit_flight_picked(before, ~unknown->token);
        frit_pick_resolve(&step->lists, &step->picks[p], picked->status == FRIT_PICK_DONE ? picked->token : 0);
    }
}

// Resolves input tokens, and counts of picks, that the previous step picks. Nothing to do if one device runs both
// steps: it has the tokens.
static frit_status resolve_tokens(frit_engine *engine, const frit_shape_class *c)
{
    frit_step *step = engine->step;
    const frit_flight *before = &engine->flights.ring[engine->flights.n_submitted % FRIT_MAX_FLIGHTS];
    bool known = true;
    for (int32_t i = 0; i < step->n_rows; i++) known = known && step->tokens[i] >= 0;
    if (known || (c->segments.n == 1 && before->plan->segments.n == 1 && frit_flight_runs_picks(c) &&
                  c->planned[0].device == before->plan->planned[0].device))
        return FRIT_OK;
    FRIT_TRY(frit_flight_wait_all(engine));
    for (int32_t r = 0; r < step->n_seqs; r++) {
        const frit_seq *seq = &step->seqs[r];
        const frit_token *tokens = step->owners[r]->tokens + seq->n_past;
        for (int32_t i = 0; i < seq->n_rows; i++)   // 0 for a session that has failed
            if (step->tokens[seq->first_row + i] < 0) step->tokens[seq->first_row + i] = tokens[i] < 0 ? 0 : tokens[i];
    }
    resolve_counts(step, before);
    return FRIT_OK;
}

frit_status frit_step_submit(frit_engine *engine, frit_flight *flight)
{
    frit_step *step = engine->step;
    if (engine->reads_files) FRIT_TRY(frit_model_check_files(engine->model));   // a system call
    frit_shape_class *c;
    FRIT_TRY(frit_plans_get(engine, key_of(engine, step), &c));
    flight->start_ns = frit_time_ns();   // without the time of making a plan
    FRIT_TRY(resolve_tokens(engine, c));
    flight->plan = c;
    address_results(flight);
    const bool runs_picks = frit_flight_runs_picks(c);
    flight->output.wants_rows = flight->output.wants_rows || (step->n_picks > 0 && !runs_picks);
    const frit_batch batch = {
        .n_rows = step->n_rows,
        .n_outs = step->n_outs,
        .n_seqs = step->n_seqs,
        .tokens = step->tokens,
        .positions = step->positions,
        .out_rows = step->out_rows,
        .n_decode_rows = step->n_decode_rows,
        .n_decode_outs = step->n_decode_outs,
        .seqs = step->seqs,
        .pages = step->tables.pages,
        .n_groups = engine->kv.n_groups,
        .page_stride = step->tables.page_stride,
        .scales = step->adapted.ranks > 0 || step->adapted.steers ? step->tables.scales : NULL,
        .n_adapters = engine->adapters.n,
        .picks = step->picks,
        .n_picks = runs_picks ? step->n_picks : 0,
        .lists = step->lists,
    };
    FRIT_TRY(write_given(engine, c, step, &batch));
    return submit_segments(engine, c, &batch, flight);
}
