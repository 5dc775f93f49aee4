// SPDX-License-Identifier: MIT
// Conversations that are longer than the context: "truncation": "auto" of /v1/responses.
//
// Whole turns go, the oldest first: a message of the user with all that follows it up to the user's next one, so that
// no result loses its call and templates that want roles in turn get them. Messages before the first one of the user
// stay, and so does the last turn.
#include "server/request.h"

#include <stdlib.h>
#include <string.h>

typedef struct conversation {
    const frit_model *model;
    const json_t *root, *messages;
    size_t n_head;   // messages before the user's first one
    frit_tokenize_limits limits;
} conversation;

static bool is_of_user(const json_t *message)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "user") == 0;
}

// The place of the i-th message of the user; the number of messages where there are fewer.
static size_t find_turn(const json_t *messages, size_t i)
{
    const size_t n = json_array_size(messages);
    for (size_t at = 0; at < n; at++)
        if (is_of_user(json_array_get(messages, at)) && i-- == 0) return at;
    return n;
}

static size_t count_turns(const json_t *messages)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) n += is_of_user(json_array_get(messages, i));
    return n;
}

// The body's root without its first n_dropped turns; NULL: no memory.
static json_t *root_without(const conversation *c, size_t n_dropped)
{
    json_t *root = json_copy((json_t *)c->root), *kept = json_array();
    const size_t from = n_dropped > 0 ? find_turn(c->messages, n_dropped) : c->n_head;
    bool good = true;
    for (size_t i = 0; i < json_array_size(c->messages); i++)
        if (i < c->n_head || i >= from) good &= json_array_append(kept, json_array_get(c->messages, i)) == 0;
    if (json_object_set_new(root, "messages", kept) == 0 && good) return root;
    json_decref(root);
    return NULL;
}

// False with a problem, of code context_length_exceeded where it is too long.
static bool fits(const conversation *c, size_t n_dropped, server_problem *problem)
{
    server_generation probe = {0};
    frit_token *tokens = NULL;
    size_t n_tokens;
    *problem = (server_problem){0};
    const bool good = server_body_convert(&probe.body, root_without(c, n_dropped), problem) &&
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

bool server_truncate(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                     server_problem *problem)
{
    const json_t *root = request->body.root, *messages = json_object_get(root, "messages");
    const conversation c = {model, root, messages, find_turn(messages, 0), *limits};
    server_problem why;
    const size_t n_turns = count_turns(messages);
    if (fits(&c, 0, &why) || !is_too_long(&why) || n_turns < 2) return true;   // what is wrong is said later
    size_t too_few = 0, enough = n_turns - 1;
    while (too_few + 1 < enough) {
        const size_t middle = (too_few + enough) / 2;
        *(fits(&c, middle, &why) ? &enough : &too_few) = middle;
    }
    return server_body_convert(&request->body, root_without(&c, enough), problem);
}
