// SPDX-License-Identifier: MIT
// The conversation of frit chat: its messages, and answers to them. Each turn renders the whole conversation again;
// what the session already holds of it is kept, and only what follows the common prefix is run.
#include "chat.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- messages

bool chat_talk_add(chat *c, const char *role, const char *text)
{
    json_t *message = json_pack("{s:s, s:s}", "role", role, "content", text);
    if (message && json_array_append_new(c->messages, message) == 0) return true;
    chat_say("the message is not UTF-8");
    return false;
}

static const char *member(const chat *c, size_t i, const char *name)
{
    const char *text = json_string_value(json_object_get(json_array_get(c->messages, i), name));
    return text ? text : "";
}

const char *chat_talk_role(const chat *c, size_t i)
{
    return member(c, i, "role");
}

const char *chat_talk_content(const chat *c, size_t i)
{
    return member(c, i, "content");
}

const char *chat_talk_system(const chat *c)
{
    return strcmp(chat_talk_role(c, 0), "system") == 0 ? chat_talk_content(c, 0) : "";
}

bool chat_talk_set_system(chat *c, const char *text)
{
    if (strcmp(chat_talk_role(c, 0), "system") == 0) json_array_remove(c->messages, 0);
    if (!text[0]) return true;
    json_t *message = json_pack("{s:s, s:s}", "role", "system", "content", text);
    if (message && json_array_insert_new(c->messages, 0, message) == 0) return true;
    chat_say("the message is not UTF-8");
    return false;
}

char *chat_talk_drop_turn(chat *c)
{
    size_t i = json_array_size(c->messages);
    while (i > 0 && strcmp(chat_talk_role(c, i - 1), "user") != 0) i--;
    if (i == 0) return NULL;
    char *question = strdup(chat_talk_content(c, i - 1));
    while (json_array_size(c->messages) >= i) json_array_remove(c->messages, json_array_size(c->messages) - 1);
    return question;
}

// ---------------------------------------------------------------------------------------- prompts

char *chat_talk_prompt(const chat *c, size_t *n_bytes)
{
    json_t *variables = json_deep_copy(c->variables);
    if (variables) json_object_set(variables, "messages", c->messages);
    if (variables && c->tools) json_object_set(variables, "tools", c->tools);
    char *json = variables ? json_dumps(variables, JSON_COMPACT) : NULL, *text = NULL;
    size_t n_json = json ? strlen(json) : 0;
    frit_status status = json ? frit_chat_render_json(c->model, NULL, json, n_json, NULL, 0, n_bytes) : FRIT_E_MEMORY;
    if (status == FRIT_OK || (status == FRIT_E_LIMIT && *n_bytes > 0)) {
        text = malloc(*n_bytes + 1);
        status = text ? frit_chat_render_json(c->model, NULL, json, n_json, text, *n_bytes, n_bytes) : FRIT_E_MEMORY;
    }
    if (status == FRIT_OK) {
        text[*n_bytes] = 0;
    } else {
        cli_report(status);
        free(text);
        text = NULL;
    }
    free(json);
    json_decref(variables);
    return text;
}

// Makes the session hold exactly these tokens, queueing what it lacks.
static frit_status feed(chat *c, frit_token *tokens, size_t n)
{
    size_t keep = 0;
    while (keep < n && keep < c->n_tokens && tokens[keep] == c->tokens[keep]) keep++;
    if (keep == n && keep > 0) keep--;   // at least one row must run to give logits
    free(c->tokens);
    c->tokens = tokens;
    c->n_tokens = 0;
    frit_status status = frit_session_truncate(c->session, keep);
    if (status == FRIT_OK) status = frit_session_push(c->session, tokens + keep, n - keep, NULL);
    if (status != FRIT_OK) return status;
    c->n_tokens = n;
    c->n_kept = keep;
    frit_sampler_reset(c->sampler);
    for (size_t i = 0; i < n; i++) frit_sampler_accept(c->sampler, tokens[i]);
    return FRIT_OK;
}

int chat_talk_make_sampler(chat *c)
{
    frit_sampler *sampler;
    if (frit_sampler_new(&sampler, c->model, &c->sampling) != FRIT_OK) return cli_usage("%s", frit_error());
    frit_sampler_free(c->sampler);
    c->sampler = sampler;
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- answers

static void show(void *ctx, const char *text, size_t n_bytes)
{
    chat_view_add(ctx, text, n_bytes);
    if (ferror(stdout)) cli_interrupted = 1;   // nobody reads on
}

// What the session holds now. How the template shows the answer may differ: only the common prefix counts next time.
static void remember(chat *c, const cli_answer *answer)
{
    frit_token *tokens = realloc(c->tokens, (c->n_tokens + answer->n_tokens + 1) * sizeof *tokens);
    if (!tokens) return;
    c->tokens = tokens;
    size_t n = frit_session_length(c->session) - c->n_tokens;
    if (n > answer->n_tokens) n = answer->n_tokens;
    if (n > 0) memcpy(tokens + c->n_tokens, answer->tokens, n * sizeof *tokens);
    c->n_tokens += n;
}

static bool keep_answer(chat *c, const chat_view *view)
{
    json_t *message = json_pack("{s:s, s:s}", "role", "assistant", "content", chat_view_content(view));
    if (message && chat_view_reasoning(view)[0])
        json_object_set_new(message, "reasoning_content", json_string(chat_view_reasoning(view)));
    return message && json_array_append_new(c->messages, message) == 0;
}

static void report(const chat *c, const cli_answer *answer)
{
    if (c->common->quiet) return;
    frit_engine_info info;
    frit_engine_get_info(c->engine, &info);
    fflush(stdout);
    bool dim = cli_color(c->common, stderr);
    if (dim) fputs("\033[2m", stderr);
    cli_answer_report(c->common, answer);
    fprintf(stderr, "[context: %zu of %d tokens, %.0f %%]%s\n", frit_session_length(c->session), info.n_ctx,
            100 * (double)frit_session_length(c->session) / info.n_ctx, dim ? "\033[0m" : "");
}

// "...<think>\n" at the end of a prompt: the answer begins within its reasoning.
static bool opens_reasoning(const char *prompt, size_t n)
{
    while (n > 0 && strchr(" \n", prompt[n - 1])) n--;
    return n >= 7 && memcmp(prompt + n - 7, "<think>", 7) == 0;
}

static int generate(chat *c, bool reasons)
{
    cli_answer answer;
    chat_view *view = chat_view_new(stdout, c->fancy, reasons);
    if (!view) return CLI_NO_MEMORY;
    cli_answer_options options = {.n_predict = c->n_predict, .show = show, .show_ctx = view};
    int code = cli_generate(c->model, c->engine, c->session, c->sampler, &options, &answer);
    chat_view_end(view);
    putchar('\n');
    remember(c, &answer);
    c->n_prompt = answer.n_prompt;
    c->n_answer = answer.n_tokens;
    c->prompt_s = answer.prompt_s;
    c->answer_s = answer.answer_s;
    c->interrupted = answer.finish == CLI_FINISH_INTERRUPT;
    if (code == CLI_DONE && !keep_answer(c, view)) code = CLI_NO_MEMORY;
    if (code == CLI_DONE) report(c, &answer);
    if (answer.finish == CLI_FINISH_CONTEXT) cli_note(c->common, "the context is full; -c N makes it larger");
    cli_answer_free(&answer);
    chat_view_free(view);
    return code;
}

int chat_talk_answer(chat *c)
{
    cli_interrupted = 0;
    size_t n_bytes = 0, n = 0;
    char *prompt = chat_talk_prompt(c, &n_bytes);
    frit_token *tokens =
        prompt ? cli_tokens(c->model, prompt, n_bytes, FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, &n) : NULL;
    frit_status status = tokens ? feed(c, tokens, n) : FRIT_OK;
    int code = !tokens ? CLI_FAILED : status == FRIT_OK ? CLI_DONE : cli_report(status);
    if (status == FRIT_E_LIMIT)
        chat_say(
            "the conversation has become too long; /undo takes a turn back, /clear begins anew, -c N gives more room");
    if (code == CLI_DONE) code = generate(c, opens_reasoning(prompt, n_bytes));
    if (code != CLI_DONE) free(chat_talk_drop_turn(c));   // the question stays unasked, the conversation goes on
    free(prompt);
    cli_interrupted = 0;
    return code;
}
