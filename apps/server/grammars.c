// SPDX-License-Identifier: MIT
// A short list, the grammar that was used longest ago goes first. Compiling happens outside of the lock.
#include "server/grammars.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEPT = 32 };

typedef struct kept {
    frit_grammar_kind kind;
    char *text;   // owned
    size_t n;
    frit_grammar *grammar;
    uint64_t used;
} kept;

struct server_grammars {
    pthread_mutex_t lock;
    kept items[MAX_KEPT];
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
    for (int i = 0; i < MAX_KEPT; i++) {
        frit_grammar_free(g->items[i].grammar);
        free(g->items[i].text);
    }
    pthread_mutex_destroy(&g->lock);
    free(g);
}

// With the lock held.
static kept *find(server_grammars *g, frit_grammar_kind kind, const char *text, size_t n)
{
    for (int i = 0; i < MAX_KEPT; i++) {
        kept *k = &g->items[i];
        if (k->grammar && k->kind == kind && k->n == n && memcmp(k->text, text, n) == 0) return k;
    }
    return NULL;
}

// Takes the grammar over, with the lock held.
static void keep(server_grammars *g, frit_grammar_kind kind, const char *text, size_t n, frit_grammar *grammar)
{
    kept *oldest = &g->items[0];
    char *copy = malloc(n + 1);
    for (int i = 1; i < MAX_KEPT; i++)
        if (g->items[i].used < oldest->used) oldest = &g->items[i];
    if (!copy) {
        frit_grammar_free(grammar);
        return;
    }
    memcpy(copy, text, n);
    frit_grammar_free(oldest->grammar);
    free(oldest->text);
    *oldest = (kept){kind, copy, n, grammar, ++g->clock};
}

static void refuse(server_problem *problem, const char *param, frit_status status)
{
    if (status == FRIT_E_MEMORY)
        server_refuse_status(problem, 500, NULL, status);
    else
        server_refuse(problem, 400, status == FRIT_E_UNSUPPORTED ? "unsupported_value" : "invalid_value", param,
                      "%s: %s", param, frit_error());
}

frit_grammar *server_grammars_get(server_grammars *g, const frit_model *model, frit_grammar_kind kind, const char *text,
                                  size_t n, const char *param, server_problem *problem)
{
    const frit_grammar_options options = {.kind = kind};
    frit_grammar *grammar = NULL;
    pthread_mutex_lock(&g->lock);
    kept *known = find(g, kind, text, n);
    if (known) {
        known->used = ++g->clock;
        grammar = known->grammar;
        frit_grammar_retain(grammar);
    }
    pthread_mutex_unlock(&g->lock);
    if (grammar) return grammar;
    const frit_status status = frit_grammar_new(&grammar, model, text, n, &options);
    if (status != FRIT_OK) {
        refuse(problem, param, status);
        return NULL;
    }
    frit_grammar_retain(grammar);
    pthread_mutex_lock(&g->lock);
    keep(g, kind, text, n, grammar);
    pthread_mutex_unlock(&g->lock);
    return grammar;
}
