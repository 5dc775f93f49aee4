// SPDX-License-Identifier: MIT
// The conversation of frit chat: its messages, and answers. Each turn renders the whole conversation again. Tokens that
// the session has already are kept, and only tokens after the common prefix run. frit_turn converts messages to a
// prompt and splits an answer into parts, as in the server.
#include "frit/chat/chat.h"

#include "frit/os/screen.h"

#include <stdlib.h>
#include <string.h>

// ---------------------------------------------------------------------------------------- messages

bool chat_talk_add(chat *c, const char *role, const char *text)
{
    json_t *content = strcmp(role, "user") == 0 ? chat_pictures_content(c, text) : json_string(text);
    json_t *message = content ? json_pack("{s:s, s:o}", "role", role, "content", content) : NULL;
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
    const json_t *parts = json_object_get(json_array_get(c->messages, i), "content");
    for (size_t k = 0; k < json_array_size(parts); k++) {
        const char *text = json_string_value(json_object_get(json_array_get(parts, k), "text"));
        if (text) return text;
    }
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

// Returns the calls of the assistant's last message, if only *n_results results follow it.
static const json_t *last_calls(const chat *c, size_t *n_results)
{
    size_t i = json_array_size(c->messages);
    *n_results = 0;
    for (; i > 0 && strcmp(chat_talk_role(c, i - 1), "tool") == 0; i--) ++*n_results;
    return i > 0 ? json_object_get(json_array_get(c->messages, i - 1), "tool_calls") : NULL;
}

const json_t *chat_talk_open_call(const chat *c)
{
    size_t n_results;
    const json_t *calls = last_calls(c, &n_results);
    return json_array_get(calls, n_results);
}

bool chat_talk_add_result(chat *c, const json_t *call, const char *text)
{
    const char *id = json_string_value(json_object_get(call, "id"));
    const char *name = json_string_value(json_object_get(json_object_get(call, "function"), "name"));
    json_t *message = json_pack("{s:s, s:s, s:s, s:s}", "role", "tool", "tool_call_id", id ? id : "", "name",
                                name ? name : "", "content", text);
    if (message && json_array_append_new(c->messages, message) == 0) return true;
    chat_say("the message is not UTF-8");
    return false;
}

char *chat_talk_drop_turn(chat *c)
{
    size_t i = json_array_size(c->messages);
    while (i > 0 && strcmp(chat_talk_role(c, i - 1), "user") != 0) i--;
    if (i == 0) return NULL;
    char *question = strdup(chat_talk_content(c, i - 1));
    chat_pictures_take_back(c, json_array_get(c->messages, i - 1));
    while (json_array_size(c->messages) >= i) json_array_remove(c->messages, json_array_size(c->messages) - 1);
    c->n_left_out = 0;   // there may be room now
    return question;
}

// ---------------------------------------------------------------------------------------- prompts

frit_turn *chat_talk_turn(const chat *c)
{
    json_t *messages = chat_room_messages(c);
    json_t *conversation = json_pack("{s:O, s:O}", "messages", messages, "chat_template_kwargs", c->variables);
    if (conversation && c->tools) json_object_set(conversation, "tools", c->tools);
    char *json = conversation ? json_dumps(conversation, JSON_COMPACT) : NULL;
    size_t n_media;
    frit_media **media = chat_pictures_of(c, messages, &n_media);
    frit_turn *turn = NULL;
    frit_status status = FRIT_E_MEMORY;
    if (json && media) status = frit_turn_new_with_media(&turn, c->model, json, strlen(json), media, n_media);
    if (status != FRIT_OK) cli_report(status);
    free(media);
    free(json);
    json_decref(messages);
    json_decref(conversation);
    return turn;
}

char *chat_talk_prompt(const chat *c, size_t *n_bytes)
{
    frit_turn *turn = chat_talk_turn(c);
    char *text = turn ? strdup(frit_turn_prompt(turn, n_bytes)) : NULL;
    frit_turn_free(turn);
    return text;
}

frit_token *chat_talk_tokens(const chat *c, size_t *n_tokens)
{
    frit_turn *turn = chat_talk_turn(c);
    frit_token *tokens = turn ? cli_turn_tokens(turn, n_tokens) : NULL;
    frit_turn_free(turn);
    return tokens;
}

frit_status chat_talk_feed(chat *c, frit_token *tokens, size_t n)
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
    if (cli_use_shift(&c->shift, c->engine, c->session, n) != CLI_DONE) return FRIT_E_INVALID;
    c->n_tokens = n;
    c->n_kept = keep;
    frit_sampler_reset(c->sampler);
    for (size_t i = 0; i < n; i++) frit_sampler_accept(c->sampler, tokens[i]);
    return FRIT_OK;
}

int chat_talk_make_sampler(chat *c)
{
    frit_sampler *sampler;
    const frit_status status = frit_sampler_new(&sampler, c->model, &c->sampling);
    if (status != FRIT_OK) return cli_report(status);
    frit_sampler_free(c->sampler);
    c->sampler = sampler;
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- answers

typedef struct answering {
    frit_turn *turn;
    chat_view *view;
    json_t *calls;   // a list
    cli_text content, reasoning;
} answering;

static void take_call(answering *a, const frit_part *part)
{
    chat_view_call(a->view, part->name, part->text);
    json_t *call = json_pack("{s:s, s:s, s:{s:s, s:s}}", "id", part->id, "type", "function", "function", "name",
                             part->name, "arguments", part->text);
    if (!call || json_array_append_new(a->calls, call) != 0) exit(cli_no_memory());
}

static void take_parts(answering *a)
{
    frit_part part;
    while (frit_turn_next(a->turn, &part)) {
        bool is_reasoning = part.kind == FRIT_PART_REASONING;
        if (part.kind == FRIT_PART_CALL) {
            take_call(a, &part);
            continue;
        }
        chat_view_add(a->view, is_reasoning, part.text, part.n_bytes);
        cli_text_add(is_reasoning ? &a->reasoning : &a->content, part.text, part.n_bytes);
    }
}

static void show(void *ctx, const char *text, size_t n_bytes)
{
    answering *a = ctx;
    if (cli_interrupted) return;   // nothing more is shown
    if (cli_was_resized()) chat_view_resize(a->view, cli_columns(stdout), cli_rows(stdout));
    if (frit_turn_push(a->turn, text, n_bytes) != FRIT_OK) exit(cli_fail("%s", frit_error()));
    take_parts(a);
    cli_flush();
}

// Notes the session's tokens. The template may render the answer differently, so next time only the common prefix is
// kept.
static void remember(chat *c)
{
    const size_t n = frit_session_length(c->session);
    frit_token *tokens = realloc(c->tokens, (n + 1) * sizeof *tokens);
    if (!tokens) return;
    memcpy(tokens, frit_session_tokens(c->session), n * sizeof *tokens);
    c->tokens = tokens;
    c->n_tokens = n;
}

static bool keep_answer(chat *c, const answering *a)
{
    const char *content = a->content.data ? a->content.data : "";
    json_t *message = json_pack("{s:s, s:s}", "role", "assistant", "content", content);
    if (message && a->reasoning.n > 0)
        json_object_set_new(message, "reasoning_content", json_string(a->reasoning.data));
    if (message && json_array_size(a->calls) > 0) json_object_set(message, "tool_calls", a->calls);
    return message && json_array_append_new(c->messages, message) == 0;
}

static void ask_for_result(const chat *c)
{
    const json_t *call = chat_talk_open_call(c), *function = json_object_get(call, "function");
    if (call)
        chat_say("what %s gives is the next message; /undo takes the question back",
                 json_string_value(json_object_get(function, "name")));
}

static int finish_answer(chat *c, answering *a, const cli_answer *answer)
{
    c->interrupted = answer->finish == CLI_FINISH_INTERRUPT;
    if (!c->interrupted) {
        if (frit_turn_end(a->turn) != FRIT_OK) return cli_report(FRIT_E_MEMORY);
        take_parts(a);
        chat_view_end(a->view);
    } else {
        chat_view_stop(a->view);
    }
    putchar('\n');
    c->n_prompt = answer->n_prompt;
    c->n_answer = answer->n_tokens;
    c->prompt_s = answer->prompt_s;
    c->answer_s = answer->answer_s;
    return CLI_DONE;
}

// Appends a later part of the answer.
static void join(cli_answer *answer, cli_answer *more)
{
    frit_token *tokens = realloc(answer->tokens, (answer->n_tokens + more->n_tokens + 1) * sizeof *tokens);
    if (!tokens) exit(cli_no_memory());
    if (more->n_tokens > 0) memcpy(tokens + answer->n_tokens, more->tokens, more->n_tokens * sizeof *tokens);
    answer->tokens = tokens;
    answer->n_tokens += more->n_tokens;
    answer->n_prompt += more->n_prompt;
    answer->n_cached += more->n_cached;
    answer->prompt_s += more->prompt_s;
    answer->answer_s += more->answer_s;
    answer->finish = more->finish;
    cli_answer_free(more);
}

// Makes room when the context is full within an answer: removes older turns, and gives the session the rest with the
// answer so far.
static bool make_room(chat *c, const cli_answer *answer)
{
    frit_turn *turn = NULL;
    frit_token *tokens = NULL, *all;
    size_t n = 0;
    const size_t n_before = c->n_left_out;
    frit_status status = c->keeps_all ? FRIT_E_LIMIT : chat_room_make(c, answer->n_tokens, &turn, &tokens, &n);
    const bool gained = status == FRIT_OK && c->n_left_out > n_before;
    all = gained ? realloc(tokens, (n + answer->n_tokens) * sizeof *all) : NULL;
    frit_turn_free(turn);
    if (!all) {
        free(tokens);
        return false;
    }
    memcpy(all + n, answer->tokens, answer->n_tokens * sizeof *all);
    return chat_talk_feed(c, all, n + answer->n_tokens) == FRIT_OK;
}

// Generates one answer. Whenever the context is full, a new part begins.
static int generate_parts(chat *c, answering *a, cli_answer *answer)
{
    cli_answer_options options = {.turn = a->turn, .n_predict = c->n_predict, .show = show, .show_ctx = a};
    *answer = (cli_answer){0};
    frit_grammar *grammar;
    if (frit_turn_grammar(&grammar, a->turn, &c->format) != FRIT_OK) return cli_fail("%s", frit_error());
    const bool has_grammar = grammar != NULL;
    const frit_status status = has_grammar ? frit_sampler_set_grammar(c->sampler, grammar) : FRIT_OK;
    frit_grammar_free(grammar);   // the sampler keeps it
    if (status != FRIT_OK) return cli_fail("%s", frit_error());
    int code = cli_generate(c->model, c->engine, c->session, c->sampler, &options, answer);
    remember(c);
    // A new part restarts the sampler, and with it the grammar, so an answer with a grammar ends with the context.
    while (code == CLI_DONE && answer->finish == CLI_FINISH_CONTEXT && !has_grammar && make_room(c, answer)) {
        cli_answer more;
        options.follows = answer->tokens;
        options.n_follows = answer->n_tokens;
        if (c->n_predict >= 0) options.n_predict = c->n_predict - (int32_t)answer->n_tokens;
        code = cli_generate(c->model, c->engine, c->session, c->sampler, &options, &more);
        remember(c);
        join(answer, &more);
    }
    return code;
}

static int generate(chat *c, frit_turn *turn)
{
    cli_answer answer;
    answering a = {.turn = turn,
                   .view = chat_view_new(stdout, c->fancy, c->interactive ? cli_columns(stdout) : 0),
                   .calls = json_array()};
    if (!a.view || !a.calls) return cli_no_memory();
    cli_was_resized();
    int code = generate_parts(c, &a, &answer);
    int finished = finish_answer(c, &a, &answer);
    if (code == CLI_DONE) code = finished;
    if (code == CLI_DONE && !keep_answer(c, &a)) code = cli_no_memory();
    chat_room_say(c);
    if (code == CLI_DONE && c->verbose && !c->common->quiet && cli_flush()) chat_say_stats(c);
    if (code == CLI_DONE) ask_for_result(c);
    if (answer.finish == CLI_FINISH_CONTEXT) cli_note(c->common, "the context is full; -c N makes it larger");
    cli_answer_free(&answer);
    chat_view_free(a.view);
    json_decref(a.calls);
    free(a.content.data);
    free(a.reasoning.data);
    return code;
}

int chat_talk_answer(chat *c)
{
    if (!cli_was_told_to_end()) cli_interrupted = 0;
    if (c->interactive) cli_hold_keys(!c->edits);
    size_t n = 0;
    frit_turn *turn = NULL;
    frit_token *tokens = NULL;
    frit_status status = chat_room_make(c, 0, &turn, &tokens, &n);
    int code = status == FRIT_OK ? CLI_DONE : CLI_FAILED;
    chat_room_say(c);
    if (status == FRIT_E_LIMIT)
        chat_say(c->keeps_all
                     ? "the conversation has become too long; /undo takes a turn back, /clear begins anew, -c N "
                       "gives more room"
                     : "the message is too long for the context; -c N gives more room");
    if (code == CLI_DONE && (status = chat_talk_feed(c, tokens, n)) != FRIT_OK)
        code = cli_report(status);
    else if (code != CLI_DONE)
        free(tokens);
    if (code == CLI_DONE) code = generate(c, turn);
    if (code != CLI_DONE) free(chat_talk_drop_turn(c));   // the question is removed and the conversation continues
    frit_turn_free(turn);
    cli_release_keys();
    if (!cli_was_told_to_end()) cli_interrupted = 0;
    return code;
}
