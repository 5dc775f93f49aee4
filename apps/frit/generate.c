// SPDX-License-Identifier: MIT
// Makes engines and prompts, and generates an answer from a session.
#include "frit/cli/cli.h"

#include "common/answer.h"
#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

void cli_log(void *ctx, frit_log_level level, const char *sentence)
{
    const cli_common *common = ctx;
    if (level <= FRIT_LOG_WARNING) cli_note(common, "%s: %s", level == FRIT_LOG_ERROR ? "error" : "warning", sentence);
}

int cli_check_generates(const frit_model *model, bool chats)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    if (info.kind == FRIT_KIND_ENCODER)
        return cli_usage("%s: an encoder gives embeddings and generates no text; try 'frit embed'", info.path);
    if (info.kind == FRIT_KIND_ENCODER_DECODER && chats)
        return cli_usage("%s: an encoder-decoder turns one text into another and does not chat; try 'frit run'",
                         info.path);
    return CLI_DONE;
}

void cli_check_threads(const cli_common *common, const char *option, int32_t n_threads)
{
    static int32_t last;   // a draft model's engine has the same number
    frit_machine machine = {0};
    if (n_threads == last) return;
    last = n_threads;
    if (n_threads <= 1 || frit_machine_probe(&machine, 0) != FRIT_OK) return;   // reads only names
    if (machine.n_cores > 0 && n_threads > 2 * machine.n_cores)
        cli_note(common, "warning: %s %d: this machine has %d core%s; more threads only wait for each other", option,
                 n_threads, machine.n_cores, machine.n_cores == 1 ? "" : "s");
}

int cli_open_engine(frit_engine **engine, const cli_common *common, frit_model *model,
                    const frit_engine_options *options)
{
    cli_check_threads(common, "-t", options->n_threads);
    cli_check_threads(common, "-tb", options->n_threads_batch);
    cli_progress progress;
    cli_progress_start(&progress, common, "packing");
    frit_engine_options with = *options;
    with.progress = cli_progress_step;
    with.progress_ctx = &progress;
    frit_status status = frit_engine_new(engine, model, &with);
    cli_progress_end(&progress);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

int cli_prepare_engine(frit_engine *engine, const cli_common *common)
{
    cli_progress progress;
    cli_progress_start(&progress, common, "preparing");
    cli_begin_wait();
    const frit_status status = frit_engine_prepare(engine, cli_progress_step, &progress);
    cli_end_wait();
    cli_progress_end(&progress);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

// Functions of frit.h that return the tokens of a text, a chat or a turn, with their two-call pattern.
typedef frit_status (*tokens_fn)(const void *source, frit_token *tokens, size_t capacity, size_t *n_tokens);

static frit_token *give_tokens(tokens_fn give, const void *source, size_t capacity, size_t *n_tokens)
{
    for (;;) {
        frit_token *tokens = malloc(capacity * sizeof *tokens);
        frit_status status = tokens ? give(source, tokens, capacity, n_tokens) : FRIT_E_MEMORY;
        if (status == FRIT_OK) return tokens;
        free(tokens);
        if (status != FRIT_E_LIMIT || *n_tokens <= capacity) {
            cli_report(status);
            return NULL;
        }
        capacity = *n_tokens;
    }
}

typedef struct plain_text {
    const frit_model *model;
    const char *text;
    size_t n_bytes;
    unsigned flags;
} plain_text;

static frit_status text_tokens(const void *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    const plain_text *plain = source;
    return frit_tokenize(plain->model, plain->text, plain->n_bytes, plain->flags, tokens, capacity, n_tokens);
}

frit_token *cli_tokens(const frit_model *model, const char *text, size_t n_bytes, unsigned flags, size_t *n_tokens)
{
    return give_tokens(text_tokens, &(plain_text){model, text, n_bytes, flags}, n_bytes / 2 + 16, n_tokens);
}

typedef struct chat_messages {
    const frit_model *model;
    const frit_message *items;
    size_t n;
} chat_messages;

static frit_status chat_tokens(const void *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    const chat_messages *messages = source;
    return frit_chat_tokenize(messages->model, messages->items, messages->n, NULL, tokens, capacity, n_tokens);
}

frit_token *cli_chat_tokens(const frit_model *model, const frit_message *messages, size_t n, size_t *n_tokens)
{
    return give_tokens(chat_tokens, &(chat_messages){model, messages, n}, 4096, n_tokens);
}

static frit_status turn_tokens(const void *source, frit_token *tokens, size_t capacity, size_t *n_tokens)
{
    return frit_turn_tokenize(source, NULL, tokens, capacity, n_tokens);
}

frit_token *cli_turn_tokens(const frit_turn *turn, size_t *n_tokens)
{
    size_t n_bytes;
    frit_turn_prompt(turn, &n_bytes);
    return give_tokens(turn_tokens, turn, n_bytes / 2 + 16, n_tokens);
}

static void remember(cli_answer *answer, frit_token token)
{
    if (!APP_GROW(answer->tokens, answer->capacity, answer->n_tokens + 1)) exit(cli_no_memory());
    answer->tokens[answer->n_tokens++] = token;
}

static frit_status run_prompt(frit_engine *engine, frit_session *session, cli_answer *answer)
{
    uint64_t start = cli_now_ns();
    const size_t before = frit_session_cached(session);
    answer->n_prompt = frit_session_pending(session);
    while (frit_session_pending(session) > 0 && !cli_interrupted) {
        int32_t n_rows;
        frit_status status = frit_engine_step(engine, &n_rows);
        if (status != FRIT_OK) return status;
    }
    answer->prompt_s = (double)(cli_now_ns() - start) * 1e-9;
    answer->n_cached = frit_session_cached(session) - before;
    return frit_session_status(session);
}

static void give_out(const cli_answer_options *options, app_text shown)
{
    if (shown.n > 0 && options->show) options->show(options->show_ctx, shown.ptr, shown.n);
}

static frit_status end_text(const cli_answer_options *options, app_answer *text, cli_answer *answer)
{
    app_text shown;
    const frit_status status = app_answer_end(text, &shown);
    if (status != FRIT_OK) return status;
    give_out(options, shown);
    if (text->stopped) answer->finish = CLI_FINISH_STOP;
    return FRIT_OK;
}

// True if the answer ends with this token.
static frit_status take_token(const frit_model *model, frit_token token, const cli_answer_options *options,
                              app_answer *text, cli_answer *answer, bool *ended)
{
    app_text shown;
    remember(answer, token);
    *ended = frit_token_is_end(model, token);
    if (*ended) answer->finish = CLI_FINISH_END;
    if (*ended) return FRIT_OK;
    const frit_status status = app_answer_push(text, token, &shown);
    if (status != FRIT_OK) return status;
    give_out(options, shown);
    *ended = text->stopped;
    return FRIT_OK;
}

static frit_status step_all(frit_engine *engine, frit_session *session)
{
    while (frit_session_pending(session) > 0) {
        int32_t n_rows;
        const frit_status status = frit_engine_step(engine, &n_rows);
        if (status != FRIT_OK) return status;
    }
    return frit_session_status(session);
}

// Returns the token of frit_session_next, and its log-probability.
static frit_status next_with_logprobs(frit_engine *engine, frit_session *session, frit_sampler *sampler,
                                      cli_logprobs *logprobs, size_t n_vocab, frit_token *token)
{
    frit_shift_info shift;
    frit_status status = step_all(engine, session);
    const float *logits = status == FRIT_OK ? frit_session_logits(session) : NULL;
    if (status == FRIT_OK && !logits) return frit_session_next(session, sampler, token);   // returns the error
    if (status == FRIT_OK) status = frit_session_get_shift(session, &shift);
    if (status != FRIT_OK) return status;
    const uint64_t position = frit_session_length(session) + shift.n_dropped;
    status = frit_sampler_set_position(sampler, position);
    if (status == FRIT_OK) status = frit_sampler_sample(sampler, logits, token);
    if (status == FRIT_OK) status = cli_logprobs_add(logprobs, *token, logits, n_vocab);
    if (status != FRIT_OK) return status;
    status = frit_session_push(session, token, 1, NULL);
    if (status != FRIT_OK) logprobs->n--;   // the context is full: the token does not belong to the answer
    if (status == FRIT_OK) status = frit_sampler_set_position(sampler, position);
    return status == FRIT_OK ? frit_sampler_accept(sampler, *token) : status;
}

static frit_status generate_tokens(const frit_model *model, frit_engine *engine, frit_session *session,
                                   frit_sampler *sampler, const cli_answer_options *options, app_answer *text,
                                   cli_answer *answer)
{
    enum { AT_ONCE = 65 };
    frit_token tokens[AT_ONCE];
    bool ended = false;
    frit_model_info info;
    frit_model_get_info(model, &info);
    answer->finish = CLI_FINISH_LENGTH;
    while (!ended) {
        const size_t n_left = options->n_predict < 0 ? AT_ONCE : (size_t)options->n_predict - answer->n_tokens;
        if (n_left == 0) break;
        if (cli_interrupted) {
            answer->finish = CLI_FINISH_INTERRUPT;
            break;
        }
        size_t n = 1, i = 0;
        frit_status status =
            options->logprobs
                ? next_with_logprobs(engine, session, sampler, options->logprobs, (size_t)info.n_vocab, tokens)
                : frit_session_next_tokens(session, sampler, tokens, n_left < AT_ONCE ? n_left : AT_ONCE, &n);
        if (status == FRIT_E_LIMIT) {
            answer->finish = CLI_FINISH_CONTEXT;
            break;
        }
        while (status == FRIT_OK && i < n && !ended)
            status = take_token(model, tokens[i++], options, text, answer, &ended);
        // Removes tokens of the step after the end of the answer, so that the session has exactly the answer.
        if (status == FRIT_OK && i < n) status = frit_session_truncate(session, frit_session_length(session) - (n - i));
        if (status != FRIT_OK) return status;
        if (!ended && frit_sampler_is_over(sampler)) {
            answer->finish = CLI_FINISH_END;
            break;
        }
    }
    return end_text(options, text, answer);
}

// Runs a beam search. The likeliest beam is the answer.
static frit_status search(const frit_model *model, frit_session *session, const cli_answer_options *options,
                          app_answer *text, cli_answer *answer)
{
    frit_beams *beams = NULL;
    frit_beam best = {0};
    app_text shown;
    const frit_beam_options how = {.n_beams = options->n_beams,
                                   .n_predict = options->n_predict < 0 ? 0 : options->n_predict};
    cli_exit_on_signal(true);   // nothing is written yet
    frit_status status = options->n_predict != 0 ? frit_beam_search(&beams, session, &how) : FRIT_OK;
    cli_exit_on_signal(false);
    if (beams) frit_beams_get(beams, 0, &best);
    answer->finish = best.ended ? CLI_FINISH_END : options->n_predict < 0 ? CLI_FINISH_CONTEXT : CLI_FINISH_LENGTH;
    for (size_t i = 0; i < best.n_tokens && status == FRIT_OK && !text->stopped; i++) {
        remember(answer, best.tokens[i]);
        if (frit_token_is_end(model, best.tokens[i])) break;
        status = app_answer_push(text, best.tokens[i], &shown);
        if (status == FRIT_OK) give_out(options, shown);
    }
    frit_beams_free(beams);
    return status == FRIT_OK ? end_text(options, text, answer) : status;
}

int cli_generate(const frit_model *model, frit_engine *engine, frit_session *session, frit_sampler *sampler,
                 const cli_answer_options *options, cli_answer *answer)
{
    *answer = (cli_answer){0};
    app_answer text = {0};
    frit_speculation_info before, after;
    frit_session_get_speculation(session, &before);
    frit_status status = app_answer_init(&text, model, options->stop);
    if (status == FRIT_OK && options->turn) status = app_answer_show_marks(&text, options->turn);
    if (status == FRIT_OK) status = app_answer_follow(&text, options->follows, options->n_follows, options->n_healed);
    if (status == FRIT_OK) status = run_prompt(engine, session, answer);
    const int code = status == FRIT_OK && options->grammar ? cli_use_grammar(options->grammar, sampler) : CLI_DONE;
    if (code != CLI_DONE) {
        app_answer_deinit(&text);
        return code;
    }
    uint64_t start = cli_now_ns();
    if (status == FRIT_OK)
        status = options->n_beams > 0 ? search(model, session, options, &text, answer)
                                      : generate_tokens(model, engine, session, sampler, options, &text, answer);
    answer->answer_s = (double)(cli_now_ns() - start) * 1e-9;
    frit_session_get_speculation(session, &after);
    answer->n_drafted = after.n_drafted - before.n_drafted;
    answer->n_accepted = after.n_accepted - before.n_accepted;
    cli_text_add(&answer->text, text.text ? text.text : "", text.n);
    app_answer_deinit(&text);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

void cli_answer_free(cli_answer *answer)
{
    free(answer->text.data);
    free(answer->tokens);
    *answer = (cli_answer){0};
}

const char *cli_finish_text(cli_finish finish)
{
    static const char *const texts[] = {"end", "length", "stop", "context", "interrupt"};
    return texts[finish];
}

static void say_line(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cli_say(format, args);
    va_end(args);
}

typedef struct rate_text {
    char text[32];
} rate_text;

// Writes ", 12.3 tokens/s"; an empty text if no time passed.
static rate_text rate_of(double n, double seconds)
{
    rate_text rate = {""};
    if (n > 0 && seconds > 0) snprintf(rate.text, sizeof rate.text, ", %.1f tokens/s", n / seconds);
    return rate;
}

void cli_answer_report(const cli_common *common, const cli_answer *answer)
{
    static const char *const why[] = {
        [CLI_FINISH_END] = "the answer is complete", [CLI_FINISH_LENGTH] = "cut off by -n",
        [CLI_FINISH_STOP] = "ended by --stop",       [CLI_FINISH_CONTEXT] = "cut off: the context is full",
        [CLI_FINISH_INTERRUPT] = "interrupted",
    };
    if (common->quiet || !cli_flush()) return;   // prints nothing if the answer could not be written
    // The first new token comes from the prompt's last row; each other token takes a step.
    double n_steps = answer->n_tokens > 1 ? (double)answer->n_tokens - 1 : 0;
    char drafts[80] = "", cached[40] = "";
    if (answer->n_cached > 0) snprintf(cached, sizeof cached, " (%zu cached)", answer->n_cached);
    if (answer->n_drafted > 0)
        snprintf(drafts, sizeof drafts, " | drafts: %llu of %llu accepted", (unsigned long long)answer->n_accepted,
                 (unsigned long long)answer->n_drafted);
    say_line("[prompt: %zu token%s%s%s | answer: %zu token%s%s%s | %s]", answer->n_prompt,
             answer->n_prompt == 1 ? "" : "s", cached, rate_of((double)answer->n_prompt, answer->prompt_s).text,
             answer->n_tokens, answer->n_tokens == 1 ? "" : "s", rate_of(n_steps, answer->answer_s).text, drafts,
             why[answer->finish]);
}
