// SPDX-License-Identifier: MIT
// From a request for generated text to its job.
#include "server/api/answer.h"
#include "server/sched/grammars.h"
#include "server/api/handlers.h"
#include "server/request/prediction.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A seed for a request without one. It depends on the server's seed and the number of such requests so far.
static uint64_t next_seed(uint64_t seed)
{
    static _Atomic uint64_t counter;
    return seed + 0x9e3779b97f4a7c15u * (atomic_fetch_add(&counter, 1) + 1);
}

// A scale for each adapter, the last one if the request names an adapter twice. NULL with a problem, or without one if
// the request names no adapters.
static float *choose_adapters(const server_model *model, const server_generation *request, server_problem *problem)
{
    if (!request->scheduling.lora) return NULL;
    float *scales = calloc(model->adapters.n + 1, sizeof *scales);
    if (!scales) server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    for (size_t i = 0; scales && i < request->scheduling.n_lora; i++) {
        const server_chosen *chosen = &request->scheduling.lora[i];
        if ((size_t)chosen->id >= model->adapters.n) {
            server_refuse(problem, 400, "invalid_value", "lora",
                          "lora[%zu].id is %d, this server has %zu adapters, from 0 on", i, (int)chosen->id,
                          model->adapters.n);
            free(scales);
            return NULL;
        }
        scales[chosen->id] = chosen->scale;
    }
    return scales;
}

// Makes the salt of the request's caller and of its field; NULL: none. False: no memory.
static bool make_salt(const server_exchange *exchange, const char *salt, char **out)
{
    const char *caller = server_key_salt(exchange->caller);
    const size_t n = strlen(caller) + (salt ? strlen(salt) : 0) + 2;
    *out = NULL;
    if (!exchange->caller && !salt) return true;
    *out = malloc(n);
    if (*out) snprintf(*out, n, "%s:%s", caller, salt ? salt : "");
    return *out != NULL;
}

bool server_set_salt(const server_exchange *exchange, const char *salt, server_job *job)
{
    return make_salt(exchange, salt, &job->request.salt);
}

bool server_prepare_pictures(server_exchange *exchange)
{
    server_generation *request = exchange->request;
    const server_model *model = exchange->model;
    char *salt;
    if (!make_salt(exchange, request->scheduling.cache_salt, &salt))
        return server_refuse_status(&exchange->problem, 500, NULL, FRIT_E_MEMORY);
    const server_picture_rules rules = {.model = model->model,
                                        .why_not = model->why_no_pictures[0] ? model->why_no_pictures : NULL,
                                        .max_tokens = model->image_tokens,
                                        .salt = salt,
                                        .memory = exchange->site->pictures};
    const bool good = server_pictures_prepare(&request->prompt.pictures, &request->body, &rules, &exchange->problem);
    free(salt);
    return good;
}

// Requests of a key may have the key's own priority or a less urgent one.
static bool set_priority(const server_exchange *exchange, const server_generation *request, server_job *job,
                         server_problem *problem)
{
    const int32_t most_urgent = server_key_priority(exchange->caller);
    job->caller.priority = request->scheduling.priority;
    job->caller.has_priority = request->scheduling.has_priority;
    if (!request->scheduling.has_priority || !exchange->caller || request->scheduling.priority >= most_urgent)
        return true;
    return server_refuse(problem, 400, "invalid_value", "priority",
                         "priority: %d is more urgent than this key may ask for; expected %d or more",
                         (int)request->scheduling.priority, (int)most_urgent);
}

// Renames the field of a problem, which is one of the converted conversation, to the field of the client's request.
static void rename_field(const server_body *body, server_problem *problem)
{
    char message[sizeof problem->message];
    const size_t n = strlen(problem->param);
    if (problem->status == 0 || n == 0 || strncmp(problem->message, problem->param, n) != 0) return;
    const server_field_name name = server_body_field(body, problem->param);
    snprintf(message, sizeof message, "%s%s", name.text, problem->message + n);
    snprintf(problem->message, sizeof problem->message, "%s", message);
    snprintf(problem->param, sizeof problem->param, "%s", name.text);
}

// The grammar of the answer. NULL with a problem, or without one if any answer is allowed. If is_unknown is not NULL, a
// grammar that is not in the cache is not compiled, and *is_unknown is set.
static frit_grammar *compile_grammar(const server_exchange *exchange, const server_generation *request, bool chat,
                                     bool *is_unknown, server_problem *problem)
{
    const server_model *model = exchange->model;
    const frit_grammar_options how = {
        .kind = request->format.kind,
        .open_objects = request->format.open_objects,
        .cancelled = exchange->cancelled,
        .ctx = exchange->ctx,
    };
    if (!chat)
        return server_grammars_get(model->grammars, model->model, &how, request->format.text, request->format.n_text,
                                   request->format.param, is_unknown, problem);
    const frit_turn_grammar_options options = {.format = request->format.param ? request->format.text : NULL,
                                               .n_format = request->format.n_text,
                                               .kind = request->format.kind,
                                               .one_call = !request->format.parallel_calls,
                                               .open_objects = request->format.open_objects,
                                               .cancelled = exchange->cancelled,
                                               .ctx = exchange->ctx};
    frit_grammar *grammar = server_grammars_get_turn(model->grammars, request->prompt.turn, request->body.root,
                                                     &options, request->format.param, is_unknown, problem);
    rename_field(&request->body, problem);
    return grammar;
}

// Applies the server's format to a request without a format.
static void apply_server_format(const server_format *format, server_generation *request)
{
    request->format.open_objects = request->format.open_objects || format->open_objects;
    if (request->format.param || !format->text) return;
    request->format.text = format->text;
    request->format.n_text = format->n;
    request->format.kind = format->kind;
    request->format.param = format->option;
}

// Sets grammar.is_awaited if the answer may need a grammar, which is compiled while the prompt runs.
static bool check_grammar(const server_generation *request, bool chat, server_job *job, server_problem *problem)
{
    if (request->format.param && request->prompt.heals)
        return server_refuse(problem, 400, "unsupported_parameter", request->format.param,
                             "%s: is not supported together with heal", request->format.param);
    if (request->limits.min_tokens > 0 && request->prompt.heals)
        return server_refuse(problem, 400, "unsupported_parameter", "min_tokens",
                             "min_tokens: is not supported together with heal");
    job->grammar.is_awaited = request->format.param || (chat && json_object_get(request->body.root, "tools"));
    return true;
}

// The request's field for the sampler option of the last error. NULL if the error names no such option.
static const char *sampler_field(void)
{
    static const char *const names[][2] = {{"logit-bias", "logit_bias"},
                                           {"samplers", "samplers"},
                                           {"sampler-seq", "samplers"},
                                           {"dry-sequence-breaker", "dry_sequence_breakers"}};
    const char *field = frit_error_field();
    for (size_t i = 0; field && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(field, names[i][0]) == 0) return names[i][1];
    return NULL;
}

static bool make_sampler(const server_model *model, const frit_sampler_options *options, int32_t index,
                         frit_sampler **out, server_problem *problem)
{
    frit_sampler_options sampler = *options;
    sampler.seed += (uint64_t)index;
    const frit_status status = frit_sampler_new(out, model->model, &sampler);
    if (status == FRIT_OK) return true;
    const char *param = sampler_field();
    return param ? server_refuse_field(problem, 400, param, status) : server_refuse_status(problem, 400, NULL, status);
}

// Makes the samplers of answer `index`. A request with min_tokens has two samplers: the first never picks a token that
// ends the answer, the late one takes over after min_tokens tokens.
static bool make_samplers(const server_model *model, server_generation *request, server_job *job, int32_t index,
                          server_problem *problem)
{
    const frit_option_list *others = &model->sampling.logit_bias;
    const bool is_late = request->limits.min_tokens > 0 && !request->limits.ignores_end;
    if (!server_make_biases(model->model, request, others, request->limits.ignores_end, problem)) return false;
    if (!make_sampler(model, &request->sampling.options, index,
                      is_late ? &job->request.late_sampler : &job->request.sampler, problem))
        return false;
    if (!is_late) return true;
    job->request.min_tokens = request->limits.min_tokens;
    return server_make_biases(model->model, request, others, true, problem) &&
           make_sampler(model, &request->sampling.options, index, &job->request.sampler, problem);
}

// Sets choices.n to the number of answers to generate and choices.n_given to the number of answers in the reply.
static bool choose_number(server_generation *request, server_problem *problem)
{
    const int32_t n_prompts = request->prompt.n_all > 1 ? request->prompt.n_all : 1;
    if (request->choices.n > SERVER_MAX_CHOICES / n_prompts)
        return server_refuse(problem, 400, "invalid_value", "n", "n: %d answers to %d prompts, at most %d are possible",
                             request->choices.n, n_prompts, SERVER_MAX_CHOICES);
    if (n_prompts > 1 && request->choices.best_of > request->choices.n)
        return server_refuse(problem, 400, "invalid_value", "best_of",
                             "best_of: is possible with one prompt; the request has %d", n_prompts);
    request->choices.n_given = request->choices.n *= n_prompts;
    if (n_prompts > 1) return true;
    if (request->choices.best_of == 0 || request->choices.best_of == request->choices.n) return true;
    if (request->choices.best_of < request->choices.n)
        return server_refuse(problem, 400, "invalid_value", "best_of", "best_of: %d is less than n, %d",
                             request->choices.best_of, request->choices.n);
    if (request->stream.is_wanted)
        return server_refuse(problem, 400, "invalid_value", "best_of",
                             "best_of: the best answers are known at the end only; without stream it is possible");
    request->choices.n = request->choices.best_of;
    return true;
}

// Sets the prompt of answer `index`. Answers to the first prompt copy the first job's tokens.
static bool copy_prompt(server_exchange *exchange, const server_generation *request, server_job *job, int32_t index)
{
    server_problem *problem = &exchange->problem;
    const server_job *first = job->group.first;
    const int32_t per_prompt =
        request->prompt.n_all > 1 ? request->choices.n / request->prompt.n_all : request->choices.n;
    if (index < per_prompt) {
        job->request.n_prompt = first->request.n_prompt;
        job->request.prompt = malloc((first->request.n_prompt + 1) * sizeof *job->request.prompt);
        if (!job->request.prompt) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
        memcpy(job->request.prompt, first->request.prompt, first->request.n_prompt * sizeof *job->request.prompt);
        return true;
    }
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)exchange->model->n_ctx - 1);
    server_generation own = *request;
    const bool good = server_choose_prompt(&own, (size_t)(index / per_prompt), problem) &&
                      server_prompt_tokens(exchange->model->model, &own, false, &limits, &job->request.prompt,
                                           &job->request.n_prompt, problem);
    free(own.prompt.ids);
    job->request.has_own_prompt = index % per_prompt == 0;
    return good;
}

// Makes the job of a further answer of a request, with the next seed.
static bool make_further_job(server_exchange *exchange, server_generation *request, server_job *first, int32_t index)
{
    const server_model *model = exchange->model;
    server_problem *problem = &exchange->problem;
    server_job *job = server_job_new();
    if (!job) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    job->group.first = first;
    job->group.next = first->group.further;
    first->group.further = job;
    job->request.continues = first->request.continues;
    job->request.heals = first->request.heals;
    job->report.echoes = first->report.echoes;
    job->report.wants_prompt_logprobs =
        first->report.wants_prompt_logprobs &&
        !request->prompt.turn;   // a chat's reply has the log-probabilities of the prompt once
    job->report.n_prompt_top = first->report.n_prompt_top;
    job->request.max_tokens = first->request.max_tokens;
    job->report.n_top = first->report.n_top;
    job->report.wants_ids = first->report.wants_ids;
    job->request.max_ms = first->request.max_ms;
    job->grammar.is_awaited = first->grammar.is_awaited;
    if (!copy_prompt(exchange, request, job, index)) return false;
    if (first->request.scales) job->request.scales = malloc((model->adapters.n + 1) * sizeof *job->request.scales);
    if (first->request.scales && !job->request.scales) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (first->request.scales)
        memcpy(job->request.scales, first->request.scales, (model->adapters.n + 1) * sizeof *job->request.scales);
    if (request->prompt.turn &&
        !(job->request.turn = server_turn(model->model, &request->body, first->request.pictures, problem)))
        return false;
    const int32_t n_prompts = request->prompt.n_all > 1 ? request->prompt.n_all : 1;
    return make_samplers(model, request, job, index % (request->choices.n / n_prompts), problem);
}

// Limits the log-probabilities of prompts in a reply: 128 answers may each report their prompt.
static bool limit_prompt_logprobs(const server_job *first, const char *field, server_problem *problem)
{
    size_t n = 0;
    for (const server_job *job = first; job; job = job == first ? first->group.further : job->group.next)
        if (server_job_has_rows(job)) n += job->request.n_prompt * (size_t)(1 + server_job_prompt_top(job));
    return n <= SERVER_MAX_OF_PROMPTS ||
           server_refuse(problem, 400, "invalid_value", field,
                         "%s: %zu log-probabilities of prompts, at most %d are possible in one request", field, n,
                         SERVER_MAX_OF_PROMPTS);
}

// Attaches a reply to the job of each further answer. A reply that echoes the prompt needs the prompt of its own
// answer.
static bool attach_further(server_job *first)
{
    int index = 1;
    for (server_job *job = first->group.further; job; job = job->group.next, index++) {
        if (!server_answer_attach_further(job, first, index)) return false;
        server_generation *request = &((server_answer *)job->reply.ctx)->request;
        if (request->prompt.n_all <= 1) continue;
        const json_t *prompt =
            json_array_get(request->prompt.all, (size_t)(index / (request->choices.n / request->prompt.n_all)));
        request->prompt.text = json_string_value(prompt);
        request->prompt.n_text = json_string_length(prompt);
    }
    return true;
}

static bool is_stream_name(const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if (name[i] <= 32 || name[i] >= 127) return false;
    return n > 0 && n <= SERVER_MAX_NAME;
}

// Makes the replay buffer of a stream that outlives its connection. Its name is the client's X-Conversation-Id, or the
// id of a background response.
static bool make_replay(server_exchange *exchange, bool is_background)
{
    server_job *job = exchange->job;
    const server_answer *answer = job->reply.ctx;
    const char *name = is_background ? answer->id : exchange->stream ? exchange->conversation : NULL;
    if (!name) return true;
    if (!is_stream_name(name))
        return server_refuse(&exchange->problem, 400, "invalid_value", NULL,
                             "X-Conversation-Id: expected 1 to %d letters, digits and signs", SERVER_MAX_NAME);
    job->reply.replay = server_replay_new(exchange->site->replays, name, exchange->key,
                                          exchange->stream ? exchange->protocol->stream_type : NULL);
    if (!job->reply.replay) return false;
    if (is_background) answer->protocol->show(job);
    job->reply.begun = is_background;   // errors are a part of the response from here on
    return true;
}

// Refuses combinations in which nothing can be reported about the prompt's tokens.
static bool check_prompt_logprobs(const server_model *model, const server_generation *request, server_problem *problem)
{
    const char *field = request->contents.echo ? "echo" : "prompt_logprobs";
    if (!request->contents.echo && !request->contents.wants_prompt_logprobs) return true;
    if (request->prompt.heals)
        return server_refuse(problem, 400, "unsupported_parameter", field, "%s: is not possible with a healed prompt",
                             field);
    if (request->prompt.pictures)
        return server_refuse(problem, 400, "unsupported_parameter", field, "%s: is not possible with pictures", field);
    if (model->info.kind == FRIT_KIND_ENCODER_DECODER)
        return server_refuse(problem, 400, "unsupported_parameter", field,
                             "%s: the model turns one text into another; its answer does not continue the prompt",
                             field);
    return !request->contents.wants_prompt_logprobs || !request->stream.is_wanted ||
           server_refuse(problem, 400, "invalid_value", "prompt_logprobs",
                         "prompt_logprobs: is possible without stream only");
}

static bool make_job(server_exchange *exchange, server_generation *request, bool chat)
{
    const server_model *model = exchange->model;
    server_problem *problem = &exchange->problem;
    server_job *job = exchange->job = server_job_new();
    if (!job) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    job->request.continues = !chat;
    job->request.scales = choose_adapters(model, request, problem);
    if (problem->status) return false;
    if (!server_set_salt(exchange, request->scheduling.cache_salt, job))
        return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    if (!set_priority(exchange, request, job, problem)) return false;
    job->request.heals = request->prompt.heals;
    job->report.echoes = request->contents.echo;
    job->request.wanted_slot = request->scheduling.wanted_slot;
    job->report.wants_prompt_logprobs = request->contents.wants_prompt_logprobs;
    job->report.n_prompt_top = request->contents.n_prompt_top;
    if (chat && !server_prepare_pictures(exchange)) return false;
    if (!check_prompt_logprobs(model, request, problem)) return false;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)model->n_ctx - 1);
    if (!server_prompt_tokens(model->model, request, chat, &limits, &job->request.prompt, &job->request.n_prompt,
                              problem))
        return false;
    job->request.pictures = request->prompt.pictures;
    request->prompt.pictures = NULL;
    job->request.prediction = server_prediction_tokens(model->model, request, &limits, &job->request.n_prediction);
    request->sampling.options.seed =
        request->sampling.has_seed ? request->sampling.seed : next_seed(model->sampling.seed);
    if (!make_samplers(model, request, job, 0, problem)) return false;
    if (!check_grammar(request, chat, job, problem) || !choose_number(request, problem)) return false;
    const bool is_set = request->limits.max_completion_tokens != SERVER_UNSET;
    job->request.max_tokens = is_set ? request->limits.max_completion_tokens : request->limits.max_tokens;
    job->report.wants_ids = request->contents.wants_ids;
    const bool compares = request->choices.n_given < request->choices.n;
    job->report.n_top = request->contents.wants_logprobs ? request->contents.n_top : compares ? 0 : -1;
    job->request.max_ms = request->limits.max_ms;
    exchange->stream = request->stream.is_wanted;
    if (request->stream.is_wanted && request->stream.keep_alive_s >= 0)
        job->reply.keep_alive_s =
            request->stream.keep_alive_s > 0 ? request->stream.keep_alive_s : exchange->site->keep_alive_s;
    job->reply.ends_on_finisher = request->response.ends_on_finisher;
    job->reply.wants_progress = request->stream.is_wanted && request->stream.wants_progress;
    for (int32_t i = request->choices.n - 1; i > 0; i--)
        if (!make_further_job(exchange, request, job, i)) return false;
    server_pictures_drop_data(job->request.pictures);
    if (!limit_prompt_logprobs(job, request->contents.wants_prompt_logprobs ? "prompt_logprobs" : "logprobs", problem))
        return false;
    const bool is_background = request->response.is_background;
    if (server_answer_attach(job, exchange->protocol, chat, request, model->model, model->name) &&
        attach_further(job) && make_replay(exchange, is_background))
        return true;
    return problem->status ? false : server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
}

typedef struct late_grammar {   // compiled after the handler has returned
    server_generation request;
    bool chat;
} late_grammar;

static void compile_late(server_exchange *exchange)
{
    late_grammar *late = exchange->deferred;
    server_problem problem = {0};
    frit_grammar *grammar = compile_grammar(exchange, &late->request, late->chat, NULL, &problem);
    server_worker_give_grammar(exchange->model->worker, exchange->job, grammar, problem.status ? &problem : NULL);
    free(late);
}

// Gives the job its grammar. A grammar of the cache is given at once. Compiling another one may take a second or two,
// so exchange->defer has it done by a thread that other requests do not need.
static void attach_grammar(server_exchange *exchange, const server_generation *request, bool chat)
{
    bool is_unknown = false;
    server_problem problem = {0};
    late_grammar *late = exchange->defer ? malloc(sizeof *late) : NULL;
    frit_grammar *grammar = compile_grammar(exchange, request, chat, late ? &is_unknown : NULL, &problem);
    if (is_unknown) {
        *late = (late_grammar){*request, chat};
        exchange->deferred = late;
        exchange->defer(exchange, compile_late);
        return;
    }
    server_worker_give_grammar(exchange->model->worker, exchange->job, grammar, problem.status ? &problem : NULL);
    free(late);
}

void server_generate(server_exchange *exchange, bool chat)
{
    server_generation *request = exchange->request;
    if (exchange->model->info.kind == FRIT_KIND_ENCODER) {
        server_refuse(&exchange->problem, 400, "unsupported_model", "model",
                      "'%.200s' is an encoder: it gives embeddings (/v1/embeddings) and generates no text.",
                      exchange->model->name);
        return;
    }
    if (exchange->model->info.kind == FRIT_KIND_ENCODER_DECODER && chat) {
        server_refuse(&exchange->problem, 400, "unsupported_model", "model",
                      "'%.200s' turns one text into another and does not chat: use /v1/completions.",
                      exchange->model->name);
        return;
    }
    apply_server_format(&exchange->model->format, request);
    // The job takes ownership of what the request points to, and lives as long as the exchange. `taken` still has the
    // pointers after make_job has moved them.
    server_generation taken = *request;
    if (!make_job(exchange, request, chat)) {
        server_job_leave(NULL, exchange->job);
        exchange->job = NULL;
        return;
    }
    if (!exchange->job->grammar.is_awaited || !exchange->submit(exchange)) return;
    taken.prompt.turn = exchange->job->request.turn;
    attach_grammar(exchange, &taken, chat);
}

// llama.cpp's POST /lora-adapters: sets the scales for requests without `lora`. Adapters that the body does not name
// get the scale 0.
void server_change_adapters(server_exchange *exchange)
{
    const server_generation *request = exchange->request;
    float *scales = choose_adapters(exchange->model, request, &exchange->problem);
    if (!request->scheduling.lora)
        server_refuse(&exchange->problem, 400, "missing_required_parameter", "lora",
                      "lora: is missing; the body is a list of objects with id and scale, or an object with this list");
    if (scales) server_worker_set_scales(exchange->model->worker, scales);
    if (scales) server_reply(exchange, json_pack("{s:b}", "success", 1));
    free(scales);
}

// Refuses top_logprobs without logprobs, which would be ignored silently.
static bool check_top(server_exchange *exchange)
{
    const server_generation *request = exchange->request;
    if (request->contents.n_top == 0 || request->contents.wants_logprobs) return true;
    return server_refuse(&exchange->problem, 400, "invalid_value", "top_logprobs",
                         "top_logprobs: is %d, expected logprobs true beside it", request->contents.n_top);
}

void server_complete_chat(server_exchange *exchange)
{
    if (check_top(exchange)) server_generate(exchange, true);
}

// Makes the infill prompt of a completion with a suffix.
static bool make_infill_prompt(server_exchange *exchange, server_generation *request)
{
    if (json_string_length(request->prompt.suffix) == 0) return true;
    if (request->prompt.ids || request->contents.echo || request->prompt.heals || request->prompt.n_all > 1)
        return server_refuse(&exchange->problem, 400, "unsupported_parameter", "suffix",
                             "suffix: the prompt must be one text, without echo and heal");
    request->prompt.prefix = json_object_get(request->body.root, "prompt");
    if (json_is_array(request->prompt.prefix)) request->prompt.prefix = json_array_get(request->prompt.prefix, 0);
    request->prompt.text = NULL;
    request->prompt.n_text = 0;
    const frit_tokenize_limits limits = server_exchange_limits(exchange, (size_t)exchange->model->n_ctx);
    return server_infill_tokens(exchange->model->model, request, &limits, &exchange->problem);
}

void server_complete_text(server_exchange *exchange)
{
    if (make_infill_prompt(exchange, exchange->request)) server_generate(exchange, false);
}
