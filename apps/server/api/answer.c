// SPDX-License-Identifier: MIT
// Splits the text of an answer into parts and passes them to the functions of its protocol.
#include "common/grow.h"
#include "server/api/answer.h"
#include "server/api/json_text.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// ---------------------------------------------------------------------------------------- parts that are kept

bool server_text_add(server_text *text, const char *bytes, size_t n)
{
    if (!APP_GROW(text->ptr, text->capacity, text->n + n + 1)) return false;
    if (n > 0) memcpy(text->ptr + text->n, bytes, n);
    text->n += n;
    text->ptr[text->n] = 0;
    return true;
}

static server_part *new_part(server_answer *answer, frit_part_kind kind)
{
    if (!APP_GROW(answer->parts, answer->parts_capacity, answer->n_parts + 1)) return NULL;
    server_part *part = &answer->parts[answer->n_parts++];
    *part = (server_part){.kind = kind};
    return part;
}

static bool store_part(server_answer *answer, const frit_part *part)
{
    server_part *kept = answer->n_parts > 0 ? &answer->parts[answer->n_parts - 1] : NULL;
    if (!kept || kept->kind != part->kind || part->kind == FRIT_PART_CALL) kept = new_part(answer, part->kind);
    if (!kept || !server_text_add(&kept->text, part->text, part->n_bytes)) return false;
    if (part->kind != FRIT_PART_CALL) return true;
    kept->name = strdup(part->name);
    kept->id = strdup(part->id);
    return kept->name && kept->id;
}

json_t *server_answer_join(const server_answer *answer, frit_part_kind kind)
{
    server_text all = {0};
    json_t *json = NULL;
    bool good = true;
    for (size_t i = 0; i < answer->n_parts && good; i++)
        if (answer->parts[i].kind == kind)
            good = server_text_add(&all, answer->parts[i].text.ptr, answer->parts[i].text.n);
    if (all.n > 0) json = json_stringn(all.ptr, all.n);
    free(all.ptr);
    return json;
}

// ---------------------------------------------------------------------------------------- the writer

static void write_part(server_job *job, const frit_part *part)
{
    server_answer *answer = job->reply.ctx;
    const server_protocol *protocol = answer->protocol;
    const bool streams = answer->request.stream.is_wanted;
    const bool good = (streams && !protocol->repeats_parts) || store_part(answer, part);
    if (!good) job->reply.queue.failed = true;
    if (!streams || !good) return;
    if (!answer->begun) protocol->begin(job);
    answer->begun = true;
    protocol->part(job, part);
}

// Passes on the parts that are complete. With parallel_tool_calls false the answer ends after its first call.
static void write_parts(server_job *job)
{
    server_answer *answer = job->reply.ctx;
    frit_part part;
    bool thinks = false;
    while (!job->reply.is_over && frit_turn_next(job->request.turn, &part)) {
        thinks = part.kind == FRIT_PART_REASONING;
        write_part(job, &part);
        if (part.kind != FRIT_PART_CALL) continue;
        answer->n_calls++;
        job->reply.is_over = !answer->request.format.parallel_calls;
    }
    job->usage.n_reasoning += thinks;
}

static void write_text(server_job *job, app_text text)
{
    if (!job->request.turn) {
        write_part(job, &(frit_part){.kind = FRIT_PART_TEXT, .text = text.ptr, .n_bytes = text.n});
        return;
    }
    if (job->reply.is_over) return;
    if (frit_turn_push(job->request.turn, text.ptr, text.n) != FRIT_OK) job->reply.queue.failed = true;
    write_parts(job);
}

static void finish_answer(server_job *job, server_finish how)
{
    server_answer *answer = job->reply.ctx;
    if (job->request.turn && !job->reply.is_over) {
        if (frit_turn_end(job->request.turn) != FRIT_OK) job->reply.queue.failed = true;
        write_parts(job);
    }
    answer->finish = how;
    if (!answer->request.stream.is_wanted) {
        answer->protocol->whole(job);
        return;
    }
    if (!answer->begun) answer->protocol->begin(job);
    answer->protocol->end(job);
}

// Writes an error to a stream, or to a background response. A reply that is one object has no bytes before its end, so
// the HTTP thread answers with the error.
static void fail_answer(server_job *job, const server_problem *problem)
{
    const server_answer *answer = job->reply.ctx;
    if (answer->request.stream.is_wanted || answer->request.response.is_background)
        answer->protocol->fail(job, problem);
}

static void put_keep_alive(server_job *job)
{
    const server_answer *answer = job->reply.ctx;
    answer->protocol->keep_alive(job);
}

static void put_progress(server_job *job, const server_progress *so_far)
{
    const server_answer *answer = job->reply.ctx;
    if (answer->protocol->progress) answer->protocol->progress(job, so_far);
}

static const server_reply_writer writer = {write_text, finish_answer, fail_answer, put_keep_alive, put_progress};

// ---------------------------------------------------------------------------------------- for protocols

bool server_answer_is_last(server_job *job)
{
    server_answer *first = server_job_first(job)->reply.ctx;
    return --first->n_left == 0;
}

void server_answer_put(server_job *job, const char *before, json_t *json, const char *after)
{
    char *text = server_json_text(json);
    if (!text) {
        job->reply.queue.failed = true;
        return;
    }
    server_job_put(job, before, strlen(before));
    server_job_put(job, text, strlen(text));
    server_job_put(job, after, strlen(after));
    free(text);
}

// Pads the event to a multiple of MULTIPLE bytes, so that lengths on the wire reveal less of the tokens.
static void pad_event(json_t *json)
{
    enum { MULTIPLE = 128 };
    static const char member[] = ",\"obfuscation\":\"\"";
    char filling[MULTIPLE];
    const size_t n = json_dumpb(json, NULL, 0, SERVER_JSON_FLAGS) + sizeof member - 1;
    const size_t n_filling = (MULTIPLE - n % MULTIPLE) % MULTIPLE;
    memset(filling, 'x', sizeof filling);
    json_object_set_new(json, "obfuscation", json_stringn(filling, n_filling));
}

void server_answer_put_event(server_job *job, const char *name, json_t *json)
{
    char before[128];
    server_job *first = server_job_first(job);
    server_answer *answer = first->reply.ctx;
    int n = 0;
    if (first->reply.replay) n = snprintf(before, sizeof before, "id: %llu\n", (unsigned long long)answer->n_events);
    if (name) n += snprintf(before + n, sizeof before - (size_t)n, "event: %s\n", name);
    snprintf(before + n, sizeof before - (size_t)n, "data: ");
    answer->n_events++;
    if (answer->request.stream.pads && json) pad_event(json);
    server_answer_put(job, before, json, "\n\n");
}

void server_answer_put_comment(server_job *job)
{
    static const char comment[] = ": keep-alive\n\n";
    server_job_put(job, comment, sizeof comment - 1);
}

json_t *server_progress_json(const server_progress *progress)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "total", (json_int_t)progress->n_prompt, "cache",
                     (json_int_t)progress->n_cached, "processed", (json_int_t)progress->n_done, "time_ms",
                     (json_int_t)(1e3 * progress->seconds));
}

// ---------------------------------------------------------------------------------------- attaching

static void free_answer(void *ctx)
{
    server_answer *answer = ctx;
    if (!answer->is_further) server_request_deinit(answer->request.body.parser, &answer->request);
    for (size_t i = 0; i < answer->n_parts; i++) {
        free(answer->parts[i].text.ptr);
        free(answer->parts[i].name);
        free(answer->parts[i].id);
    }
    free(answer->parts);
    json_decref(answer->choices);
    free(answer->prompt.ptr);
    if (answer->free_state) answer->free_state(answer->state);
    free(answer);
}

static void attach_answer(server_job *job, server_answer *answer)
{
    job->reply.writer = &writer;
    job->request.stop = answer->request.limits.stop;
    job->reply.ctx = answer;
    job->reply.free_ctx = free_answer;
}

void server_make_id(char *id, size_t size, const char *prefix)
{
    static _Atomic uint32_t counter;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(id, size, "%s%08llx%08lx%08x", prefix, (unsigned long long)now.tv_sec, (unsigned long)now.tv_nsec,
             (unsigned)atomic_fetch_add(&counter, 1));
}

bool server_answer_attach(server_job *job, const server_protocol *protocol, bool chat, server_generation *request,
                          const frit_model *model, const char *name)
{
    server_answer *answer = calloc(1, sizeof *answer);
    if (!answer) return false;
    answer->protocol = protocol;
    answer->chat = chat;
    answer->created = (int64_t)time(NULL);
    answer->model = model;
    answer->name = name;
    server_make_id(answer->id, sizeof answer->id, protocol->id_prefix);
    answer->choices = json_array();
    answer->n_left = request->choices.n;
    for (int32_t i = 0; i < request->choices.n; i++) json_array_append_new(answer->choices, json_null());
    answer->request = *request;
    memset(request, 0, sizeof *request);
    job->request.turn = answer->request.prompt.turn;   // the job owns the turn from here on
    answer->request.prompt.turn = NULL;
    attach_answer(job, answer);
    return true;
}

bool server_answer_attach_further(server_job *job, server_job *first, int index)
{
    const server_answer *of = first->reply.ctx;
    server_answer *answer = calloc(1, sizeof *answer);
    if (!answer) return false;
    answer->request = of->request;
    answer->protocol = of->protocol;
    answer->chat = of->chat;
    answer->created = of->created;
    answer->model = of->model;
    answer->name = of->name;
    memcpy(answer->id, of->id, sizeof answer->id);
    answer->index = index;
    answer->is_further = true;
    attach_answer(job, answer);
    return true;
}
