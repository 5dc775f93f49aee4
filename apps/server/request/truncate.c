// SPDX-License-Identifier: MIT
// Conversations that are longer than the context: "truncation": "auto" of /v1/responses.
//
// A conversation is cut by rounds: a message of the user and all messages up to the next message of the user. The
// oldest rounds are removed first. No tool result loses its call this way, and roles still alternate as some templates
// require. Messages before the first round stay, and so does the last round.
#include "server/request/message_origins.h"
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

typedef struct conversation {
    const frit_model *model;
    const json_t *root, *messages;
    size_t *rounds;   // [n_rounds]: indices of the user's messages
    size_t n_rounds;
    frit_tokenize_limits limits;
    server_pictures *pictures;   // borrowed
} conversation;

static bool is_of_user(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "user") == 0;
}

static bool find_rounds(conversation *c)
{
    const size_t n = json_array_size(c->messages);
    c->rounds = malloc((n + 1) * sizeof *c->rounds);
    for (size_t i = 0; c->rounds && i < n; i++)
        if (is_of_user(json_array_get(c->messages, i))) c->rounds[c->n_rounds++] = i;
    return c->rounds != NULL;
}

// The body with the messages before the first round and the last n_last rounds. NULL if memory is short.
static json_t *copy_root_with(const conversation *c, size_t n_last)
{
    json_t *root = json_copy((json_t *)c->root), *messages = json_array();
    bool good = messages != NULL;
    for (size_t i = 0; i < c->rounds[0]; i++) good &= json_array_append(messages, json_array_get(c->messages, i)) == 0;
    for (size_t i = c->rounds[c->n_rounds - n_last]; i < json_array_size(c->messages); i++)
        good &= json_array_append(messages, json_array_get(c->messages, i)) == 0;
    if (json_object_set_new(root, "messages", messages) == 0 && good) return root;
    json_decref(root);
    return NULL;
}

// True if the last n_last rounds fit. Else false with a problem, whose code is context_length_exceeded if they are too
// long.
static bool check_fit(const conversation *c, size_t n_last, server_problem *problem)
{
    server_generation probe = {.prompt.pictures = c->pictures};
    frit_token *tokens = NULL;
    size_t n_tokens;
    *problem = (server_problem){0};
    const bool good = server_body_convert(&probe.body, copy_root_with(c, n_last), problem) &&
                      server_prompt_tokens(c->model, &probe, true, &c->limits, &tokens, &n_tokens, problem);
    free(tokens);
    frit_turn_free(probe.prompt.turn);
    json_decref(probe.body.root);
    free(probe.body.owned);
    return good;
}

static bool is_too_long(const server_problem *problem)
{
    return problem->code && strcmp(problem->code, "context_length_exceeded") == 0;
}

// The most rounds that fit. Tries 1, 2, 4 and so on before it bisects, so that a conversation far longer than the
// context is never rendered as a whole. Returns all rounds if there is another problem, which the caller meets again.
static size_t count_fitting(const conversation *c)
{
    server_problem why = {0};
    size_t enough = 1, too_many = c->n_rounds + 1;
    if (!check_fit(c, 1, &why)) return is_too_long(&why) ? 1 : c->n_rounds;
    while (enough + 1 < too_many) {
        size_t next = (enough + too_many) / 2;
        if (too_many > c->n_rounds && 2 * enough < next) next = 2 * enough;
        if (check_fit(c, next, &why))
            enough = next;
        else if (is_too_long(&why))
            too_many = next;
        else
            return c->n_rounds;
    }
    return enough;
}

bool server_truncate(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                     server_problem *problem)
{
    const json_t *root = request->body.root;
    conversation c = {.model = model,
                      .root = root,
                      .messages = json_object_get(root, "messages"),
                      .limits = *limits,
                      .pictures = request->prompt.pictures};
    if (!find_rounds(&c)) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    const size_t n_last = c.n_rounds < 2 ? c.n_rounds : count_fitting(&c);
    bool good = true;
    if (n_last < c.n_rounds) {
        server_origins_remove(request->body.origins, c.rounds[0], c.rounds[c.n_rounds - n_last] - c.rounds[0]);
        good = server_body_convert(&request->body, copy_root_with(&c, n_last), problem);
    }
    free(c.rounds);
    return good;
}
