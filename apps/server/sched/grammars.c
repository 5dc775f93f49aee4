// SPDX-License-Identifier: MIT
// A short list that evicts the least recently used grammar. Grammars are compiled without the lock.
#include "server/sched/grammars.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CACHED = 32, TURN = -1, TAIL = 64 };

typedef struct cached_grammar {
    int kind;     // frit_grammar_kind and options, or TURN
    char *text;   // owned
    size_t n;
    frit_grammar *grammar;
    uint64_t used;
} cached_grammar;

struct server_grammars {
    pthread_mutex_t lock;
    cached_grammar items[MAX_CACHED];
    uint64_t clock;
};

server_grammars *server_grammars_new(void)
{
    server_grammars *g = calloc(1, sizeof *g);
    if (g) pthread_mutex_init(&g->lock, NULL);
    return g;
}

void server_grammars_free(server_grammars *g)
{
    if (!g) return;
    for (int i = 0; i < MAX_CACHED; i++) {
        frit_grammar_free(g->items[i].grammar);
        free(g->items[i].text);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}

// With the lock held.
static cached_grammar *find_cached(server_grammars *g, int kind, const char *text, size_t n)
{
    for (int i = 0; i < MAX_CACHED; i++) {
        cached_grammar *k = &g->items[i];
        if (k->grammar && k->kind == kind && k->n == n && memcmp(k->text, text, n) == 0) return k;
    }
    return NULL;
}

// Adds a grammar, which it takes over. With the lock held.
static void add_cached(server_grammars *g, int kind, const char *text, size_t n, frit_grammar *grammar)
{
    cached_grammar *oldest = &g->items[0];
    char *copy = malloc(n + 1);
    for (int i = 1; i < MAX_CACHED; i++)
        if (g->items[i].used < oldest->used) oldest = &g->items[i];
    if (!copy) {
        frit_grammar_free(grammar);
        return;
    }
    memcpy(copy, text, n);
    frit_grammar_free(oldest->grammar);
    free(oldest->text);
    *oldest = (cached_grammar){kind, copy, n, grammar, ++g->clock};
}

static void refuse_grammar(server_problem *problem, const char *param, frit_status status)
{
    if (status == FRIT_E_CANCELLED)
        server_refuse(problem, 499, NULL, NULL, "the client went away");
    else if (status == FRIT_E_MEMORY)
        server_refuse_status(problem, 500, NULL, status);
    else
        server_refuse(problem, 400, status == FRIT_E_UNSUPPORTED ? "unsupported_value" : "invalid_value", param,
                      "%s: %s", param, frit_error());
}

static frit_grammar *get_known(server_grammars *g, int kind, const char *text, size_t n)
{
    frit_grammar *grammar = NULL;
    pthread_mutex_lock(&g->lock);
    cached_grammar *known = find_cached(g, kind, text, n);
    if (known) {
        known->used = ++g->clock;
        grammar = known->grammar;
        frit_grammar_retain(grammar);
    }
    pthread_mutex_unlock(&g->lock);
    return grammar;
}

static void add_copy(server_grammars *g, int kind, const char *text, size_t n, frit_grammar *grammar)
{
    frit_grammar_retain(grammar);
    pthread_mutex_lock(&g->lock);
    add_cached(g, kind, text, n, grammar);
    pthread_mutex_unlock(&g->lock);
}

frit_grammar *server_grammars_get(server_grammars *g, const frit_model *model, const frit_grammar_options *options,
                                  const char *text, size_t n, const char *param, bool *is_unknown,
                                  server_problem *problem)
{
    const int kind = (int)options->kind * 2 + options->open_objects;   // one text with other options is another grammar
    frit_grammar *grammar = get_known(g, kind, text, n);
    if (is_unknown) *is_unknown = !grammar;
    if (grammar || is_unknown) return grammar;
    const frit_status status = frit_grammar_new(&grammar, model, text, n, options);
    if (status != FRIT_OK) {
        refuse_grammar(problem, param, status);
        return NULL;
    }
    add_copy(g, kind, text, n, grammar);
    return grammar;
}

// All that the grammar of a turn depends on, as JSON: tools, tool choice, format, and how the prompt ends. The last
// bytes of the prompt stand for what the template writes there.
static char *turn_key(const frit_turn *turn, const json_t *request, const frit_turn_grammar_options *options)
{
    char tail[4 * TAIL + 1] = "";
    size_t n;
    const char *prompt = frit_turn_prompt(turn, &n);
    for (size_t i = n > TAIL ? n - TAIL : 0, at = 0; i < n; i++, at += 2)
        snprintf(tail + at, 3, "%02x", (unsigned char)prompt[i]);
    json_t *key = json_pack(
        "{s:O?, s:O?, s:O?, s:b, s:b, s:b, s:i, s:s#, s:b, s:s}", "tools", json_object_get(request, "tools"), "choice",
        json_object_get(request, "tool_choice"), "continues", json_object_get(request, "continue_final_message"), "one",
        options->one_call, "open", options->open_objects, "thinking", frit_turn_is_thinking(turn), "kind",
        (int)options->kind, "format", options->format ? options->format : "", options->format ? options->n_format : 0,
        "formatted", options->format != NULL, "tail", tail);
    char *text = key ? json_dumps(key, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(key);
    return text;
}

// Refuses a turn whose grammar failed: the problem names a field of the conversation, or that of the format.
static void refuse_turn(server_problem *problem, const char *param, frit_status status)
{
    const char *field = frit_error_field();
    if (status == FRIT_E_MEMORY || status == FRIT_E_CANCELLED || !field)
        refuse_grammar(problem, param ? param : "tools", status);
    else
        server_refuse_field(problem, 400, field, status);
}

frit_grammar *server_grammars_get_turn(server_grammars *g, const frit_turn *turn, const json_t *request,
                                       const frit_turn_grammar_options *options, const char *param, bool *is_unknown,
                                       server_problem *problem)
{
    if (!options->format && !json_object_get(request, "tools")) return NULL;
    char *key = turn_key(turn, request, options);
    frit_grammar *grammar = key ? get_known(g, TURN, key, strlen(key)) : NULL;
    if (is_unknown) *is_unknown = !grammar;
    if (grammar || is_unknown) {
        free(key);
        return grammar;
    }
    const frit_status status = frit_turn_grammar(&grammar, turn, options);
    if (status != FRIT_OK)
        refuse_turn(problem, param, status);
    else if (grammar && key)
        add_copy(g, TURN, key, strlen(key), grammar);
    free(key);
    return grammar;
}
