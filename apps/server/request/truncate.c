// SPDX-License-Identifier: MIT
// Conversations that are longer than the context: "truncation": "auto" of /v1/responses.
//
// Whole turns go, the oldest first: a message of the user with all that follows it up to the user's next one, so that
// no result loses its call and templates that want roles in turn get them. Messages before the first one of the user
// stay, and so does the last turn.
#include "server/request/message_origins.h"
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

typedef struct conversation {
    const frit_model *model;
    const json_t *root, *messages;
    size_t *turns;   // [n_turns]: places of the user's messages
    size_t n_turns;
    frit_tokenize_limits limits;
} conversation;

static bool is_of_user(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "user") == 0;
}

static bool find_turns(conversation *c)
{
    const size_t n = json_array_size(c->messages);
    c->turns = malloc((n + 1) * sizeof *c->turns);
    for (size_t i = 0; c->turns && i < n; i++)
        if (is_of_user(json_array_get(c->messages, i))) c->turns[c->n_turns++] = i;
    return c->turns != NULL;
}

// The body's root with the messages before the first turn, and the last n_kept turns; NULL: no memory.
static json_t *root_with(const conversation *c, size_t n_kept)
{
    json_t *root = json_copy((json_t *)c->root), *kept = json_array();
    bool good = kept != NULL;
    for (size_t i = 0; i < c->turns[0]; i++) good &= json_array_append(kept, json_array_get(c->messages, i)) == 0;
    for (size_t i = c->turns[c->n_turns - n_kept]; i < json_array_size(c->messages); i++)
        good &= json_array_append(kept, json_array_get(c->messages, i)) == 0;
    if (json_object_set_new(root, "messages", kept) == 0 && good) return root;
    json_decref(root);
    return NULL;
}

// False with a problem, of code context_length_exceeded where it is too long.
static bool fits(const conversation *c, size_t n_kept, server_problem *problem)
{
    server_generation probe = {0};
    frit_token *tokens = NULL;
    size_t n_tokens;
    *problem = (server_problem){0};
    const bool good = server_body_convert(&probe.body, root_with(c, n_kept), problem) &&
                      server_prompt_tokens(c->model, &probe, true, &c->limits, &tokens, &n_tokens, problem);
    free(tokens);
    frit_turn_free(probe.turn);
    json_decref(probe.body.root);
    free(probe.body.owned);
    return good;
}

static bool is_too_long(const server_problem *problem)
{
    return problem->code && strcmp(problem->code, "context_length_exceeded") == 0;
}

// How many turns stay: twice as many are tried each time, from the last one on, so that what is far longer than the
// context is never rendered as a whole. All, if something else is wrong, which is said later.
static size_t count_fitting(const conversation *c)
{
    server_problem why = {0};
    size_t enough = 1, too_many = c->n_turns + 1;
    if (!fits(c, 1, &why)) return is_too_long(&why) ? 1 : c->n_turns;
    while (enough + 1 < too_many) {
        size_t next = (enough + too_many) / 2;
        if (too_many > c->n_turns && 2 * enough < next) next = 2 * enough;
        if (fits(c, next, &why))
            enough = next;
        else if (is_too_long(&why))
            too_many = next;
        else
            return c->n_turns;
    }
    return enough;
}

bool server_truncate(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                     server_problem *problem)
{
    const json_t *root = request->body.root;
    conversation c = {.model = model, .root = root, .messages = json_object_get(root, "messages"), .limits = *limits};
    if (!find_turns(&c)) return server_refuse_status(problem, 500, NULL, FRIT_E_MEMORY);
    const size_t n_kept = c.n_turns < 2 ? c.n_turns : count_fitting(&c);
    bool good = true;
    if (n_kept < c.n_turns) {
        server_origins_remove(request->body.origins, c.turns[0], c.turns[c.n_turns - n_kept] - c.turns[0]);
        good = server_body_convert(&request->body, root_with(&c, n_kept), problem);
    }
    free(c.turns);
    return good;
}
