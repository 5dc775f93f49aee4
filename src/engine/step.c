// SPDX-License-Identifier: MIT
// One step: schedule, run the plan, hand out the results. Allocates nothing once its plan exists.
#include "engine/engine.h"

#include "base/time.h"

#include <stdatomic.h>
#include <string.h>

// Whether the session keeps the results of token i.
static bool keeps(const frit_session *session, size_t i, frit_result result)
{
    return result == FRIT_RESULT_LOGITS && i + 1 == session->n_tokens && session->wants_logits;
}

// Where the results of the rows go: all threads copy them, for a vocabulary is long.
static void address_results(frit_step *step)
{
    int32_t o = 0;
    for (int32_t r = 0; r < step->n_runs; r++) {
        const frit_run *run = &step->runs[r];
        frit_session *session = step->owners[r];
        for (; o < step->n_outs && step->out_rows[o] < run->first_row + run->n_rows; o++) {
            const bool kept = !step->encodes &&
                              keeps(session, (size_t)(run->n_past + step->out_rows[o] - run->first_row), step->result);
            if (kept) session->logits_at = 0;   // until they are known to be good
            step->taken[o] = (frit_taken){.copy = kept ? session->logits : NULL};
        }
    }
}

// The adapters are to blame where there are some: without them damaged weights would have been noticed before.
static frit_status fail_not_finite(const frit_session *session, size_t i, frit_result result)
{
    const char *what = result == FRIT_RESULT_HIDDEN ? "hidden states" : "logits";
    const frit_adapter_slots *slots = &session->engine->adapters;
    const char *path = session->engine->model->info.path;
    for (int32_t k = 0; k < slots->n && session->scales; k++)
        if (session->scales[k] != 0)
            return frit_fail(
                FRIT_E_FORMAT,
                "%s: with %s, times %g, the model's %s after token %zu are not finite (NaN or infinity): the "
                "adapter's numbers or its scale are too large",
                path, slots->items[k]->info.path, (double)session->scales[k], what, i);
    return frit_fail(FRIT_E_FORMAT,
                     "%s: the model's %s after token %zu are not finite (NaN or infinity): its weights are damaged",
                     path, what, i);
}

// Gives the values of token i to the session's row function, and logits to the session. Fails for values that are not
// finite.
static frit_status deliver(frit_session *session, size_t i, const float *values, size_t n, const frit_step *step,
                           const frit_taken *taken)
{
    const frit_result result = step->result;
    const frit_push_options *source = &session->source_options;
    if (atomic_load(&taken->bad)) return fail_not_finite(session, i, result);
    if (step->encodes) {
        source->row(source->row_ctx, i, values, n);
        return FRIT_OK;
    }
    if (taken->copy) session->logits_at = i + 1;
    for (size_t q = 0; q < session->n_queue && i >= session->n_handed; q++) {
        const frit_queue_item *item = &session->queue[q];
        if (i - item->first < item->n) item->options.row(item->options.row_ctx, i - item->first, values, n);
    }
    return FRIT_OK;
}

static void drop_finished(frit_session *session)
{
    size_t n = 0;
    while (n < session->n_queue && session->queue[n].first + session->queue[n].n <= session->n_done) n++;
    if (n == 0) return;
    session->n_queue -= n;
    memmove(session->queue, session->queue + n, session->n_queue * sizeof *session->queue);
}

// Row out_rows[o] of the batch has its values at output[o]. A session that fails gets no further results; the others
// do.
static void hand_out(const frit_step *step, const float *output, size_t n)
{
    int32_t o = 0;
    for (int32_t r = 0; r < step->n_runs; r++) {
        step->owners[r]->n_done += step->encodes ? 0 : (size_t)step->runs[r].n_rows;
        if (step->encodes) step->owners[r]->source_waits = false;
    }
    for (int32_t r = 0; r < step->n_runs; r++) {
        const frit_run *run = &step->runs[r];
        for (; o < step->n_outs && step->out_rows[o] < run->first_row + run->n_rows; o++) {
            frit_session *session = step->owners[r];
            if (session->status != FRIT_OK) continue;
            size_t i = (size_t)(run->n_past + step->out_rows[o] - run->first_row);
            frit_status status = deliver(session, i, output + (size_t)o * n, n, step, &step->taken[o]);
            if (status != FRIT_OK) frit_session_fail(session, status);
        }
        drop_finished(step->owners[r]);
    }
}

static frit_plan_key key_of(const frit_step *step)
{
    return (frit_plan_key){.n_rows = step->n_rows,
                           .many = step->many,
                           .kind = step->encodes                        ? FRIT_PLAN_ENCODE
                                   : step->result == FRIT_RESULT_HIDDEN ? FRIT_PLAN_HIDDEN
                                                                        : FRIT_PLAN_LOGITS,
                           .adapted = step->adapted};
}

static frit_status carry(const frit_plan_part *to, const frit_crossing *crossing, const frit_plan_part *from)
{
    uint64_t n_bytes = sizeof(float);
    for (int d = 0; d < crossing->result->n_dims; d++) n_bytes *= (uint64_t)crossing->result->shape[d];
    if (n_bytes == 0) return FRIT_OK;
    return frit_backend_carry(to->device->backend->value(to->exec, crossing->input),
                              from->device->backend->value(from->exec, crossing->result), n_bytes);
}

// What others read of part i, as soon as it runs: the device may use the memory again.
static frit_status carry_results(const frit_plan_class *c, int i)
{
    for (int k = i + 1; k < c->segments.n; k++) {
        const frit_segment *segment = &c->segments.list[k];
        for (int n = 0; n < segment->n_inputs; n++)
            if (segment->inputs[n].from == i) FRIT_TRY(carry(&c->parts[k], &segment->inputs[n], &c->parts[i]));
    }
    return FRIT_OK;
}

// Devices work on their parts one after the other.
static frit_status run_parts(const frit_plan_class *c, const frit_batch *batch, frit_step_output *output)
{
    for (int i = 0; i < c->segments.n; i++) frit_plan_set_rows(c->parts[i].plan, batch->n_rows, batch->n_outs);
    for (int i = 0; i < c->segments.n; i++) {
        const frit_plan_part *part = &c->parts[i];
        frit_ticket ticket;
        FRIT_TRY(part->device->backend->submit(part->device, part->exec, batch, output, &ticket));
        FRIT_TRY(carry_results(c, i));
        if (i == c->segments.n - 1 || i == c->segments.output)
            FRIT_TRY(part->device->backend->wait(part->device, ticket));
    }
    return FRIT_OK;
}

static frit_status run_step(frit_engine *engine)
{
    frit_step *step = &engine->step;
    FRIT_TRY(frit_model_check_files(engine->model));
    frit_plan_class *c;
    FRIT_TRY(frit_plans_get(engine, key_of(step), &c));
    address_results(step);
    const frit_batch batch = {
        .n_rows = step->n_rows,
        .n_outs = step->n_outs,
        .n_runs = step->n_runs,
        .tokens = step->tokens,
        .positions = step->positions,
        .out_rows = step->out_rows,
        .runs = step->runs,
        .pages = step->tables.pages,
        .n_groups = engine->kv.n_groups,
        .page_stride = step->tables.page_stride,
        .scales = step->adapted ? step->tables.scales : NULL,
        .n_adapters = engine->adapters.n,
    };
    frit_step_output output = {.taken = step->taken};
    FRIT_TRY(run_parts(c, &batch, &output));
    hand_out(step, output.rows, (size_t)c->graph.output->shape[1]);
    return FRIT_OK;
}

frit_status frit_engine_step(frit_engine *engine, int32_t *n_rows)
{
    FRIT_REQUIRE(engine);
    if (n_rows) *n_rows = 0;
    if (engine->in_step) return frit_fail(FRIT_E_INVALID, "a step cannot be started from within a row function");
    frit_schedule(engine);
    if (engine->step.n_rows == 0) return FRIT_OK;
    engine->in_step = true;
    const uint64_t start = frit_time_ns();
    frit_status status = run_step(engine);
    frit_schedule_measure(engine, frit_time_ns() - start);
    engine->in_step = false;
    if (status == FRIT_OK && n_rows) *n_rows = engine->step.n_rows;
    return status;
}
