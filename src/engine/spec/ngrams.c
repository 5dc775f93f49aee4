// SPDX-License-Identifier: MIT
// Looks up what followed the last tokens of a text when they occurred before.
#include "engine/spec/ngrams.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COMPARED = 32 };   // occurrences that a lookup compares

frit_status frit_ngrams_init(frit_ngrams *ngrams, size_t capacity)
{
    *ngrams = (frit_ngrams){.capacity = capacity, .n_buckets = 64};
    while (ngrams->n_buckets < capacity && ngrams->n_buckets < 1u << 30) ngrams->n_buckets *= 2;
    ngrams->tokens = malloc(capacity * sizeof *ngrams->tokens);
    ngrams->before = malloc(capacity * sizeof *ngrams->before);
    ngrams->last = malloc(ngrams->n_buckets * sizeof *ngrams->last);
    if (ngrams->tokens && ngrams->before && ngrams->last) {
        memset(ngrams->last, -1, ngrams->n_buckets * sizeof *ngrams->last);
        return FRIT_OK;
    }
    frit_ngrams_deinit(ngrams);
    return frit_fail_memory(capacity * 2 * sizeof(int32_t) + ngrams->n_buckets * sizeof(int32_t),
                            "a session's index of n-grams");
}

void frit_ngrams_deinit(frit_ngrams *ngrams)
{
    free(ngrams->tokens);
    free(ngrams->before);
    free(ngrams->last);
    *ngrams = (frit_ngrams){0};
}

// The bucket of the pair that ends at index i.
static int32_t *bucket_of(const frit_ngrams *ngrams, size_t i)
{
    const uint32_t a = (uint32_t)ngrams->tokens[i - 1], b = (uint32_t)ngrams->tokens[i];
    const uint32_t hash = (a * 0x9e3779b1u) ^ (b * 0x85ebca6bu);
    return &ngrams->last[(hash ^ hash >> 15) & (ngrams->n_buckets - 1)];
}

static void add_tokens(frit_ngrams *ngrams, const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < n; i++, ngrams->n++) {
        ngrams->tokens[ngrams->n] = tokens[i];
        if (ngrams->n == 0) continue;
        int32_t *bucket = bucket_of(ngrams, ngrams->n);
        ngrams->before[ngrams->n] = *bucket;
        *bucket = (int32_t)ngrams->n;
    }
}

// Shortens the index to the first n tokens. The last token is always the last of its bucket.
static void shorten_index(frit_ngrams *ngrams, size_t n)
{
    for (; ngrams->n > n; ngrams->n--)
        if (ngrams->n > 1) *bucket_of(ngrams, ngrams->n - 1) = ngrams->before[ngrams->n - 1];
    ngrams->drafted_n = 0;
}

frit_status frit_ngrams_set_prediction(frit_ngrams *ngrams, const frit_token *prediction, size_t n)
{
    shorten_index(ngrams, 0);
    ngrams->n_predicted = 0;
    if (n == 0) return FRIT_OK;
    const size_t room = n + ngrams->capacity;
    frit_token *tokens = realloc(ngrams->tokens, room * sizeof *tokens);
    if (tokens) ngrams->tokens = tokens;
    int32_t *before = tokens ? realloc(ngrams->before, room * sizeof *before) : NULL;
    if (!before) return frit_fail_memory(room * sizeof *before, "a session's index of n-grams");
    ngrams->before = before;
    add_tokens(ngrams, prediction, n);
    ngrams->n_predicted = n;
    return FRIT_OK;
}

void frit_ngrams_follow(frit_ngrams *ngrams, const frit_token *tokens, size_t n)
{
    const frit_token *own = ngrams->tokens + ngrams->n_predicted;
    const size_t n_own = ngrams->n - ngrams->n_predicted;
    size_t n_same = n_own < n ? n_own : n;
    if (memcmp(own, tokens, n_same * sizeof *tokens) != 0) {
        n_same = 0;
        while (own[n_same] == tokens[n_same]) n_same++;
    }
    if (n_same < n_own) shorten_index(ngrams, ngrams->n_predicted + n_same);
    add_tokens(ngrams, tokens + n_same, n - n_same);
}

// Length of the match that ends at index i: tokens up to i that equal tokens up to the end of the text.
static int32_t match_length(const frit_ngrams *ngrams, size_t i)
{
    const frit_token *end = ngrams->tokens + ngrams->n - 1, *at = ngrams->tokens + i;
    int32_t n = 0;
    while (n < FRIT_LONGEST_MATCH && (size_t)n <= i && at[-n] == end[-n]) n++;
    return n;
}

// Index at which the longest match ends. Among equally long matches, first the one that continues the prediction after
// the last drafts, then the latest.
static size_t find_match(const frit_ngrams *ngrams, int32_t *n_match)
{
    size_t best = 0;
    *n_match = 0;
    if (ngrams->drafted_n > 0) {
        const size_t next = ngrams->drafted + ngrams->n - ngrams->drafted_n;
        const int32_t n = next + 1 < ngrams->n ? match_length(ngrams, next) : 0;
        if (n >= 2) *n_match = n, best = next;
    }
    int32_t end = ngrams->before[ngrams->n - 1];
    for (int k = 0; k < MOST_COMPARED && end > 0 && *n_match < FRIT_LONGEST_MATCH; k++) {
        const int32_t n = match_length(ngrams, (size_t)end);
        if (n >= 2 && n > *n_match) *n_match = n, best = (size_t)end;
        end = ngrams->before[end];
    }
    return best;
}

int32_t frit_ngrams_draft(frit_ngrams *ngrams, frit_token *drafts, int32_t most, int32_t *n_match)
{
    *n_match = 0;
    if (ngrams->n < ngrams->n_predicted + 3) return 0;
    const size_t best = find_match(ngrams, n_match);
    const bool in_predicted = *n_match > 0 && best < ngrams->n_predicted;
    ngrams->drafted_n = in_predicted ? ngrams->n : 0;
    ngrams->drafted = best;
    if (*n_match == 0) return 0;
    // Drafts end at the end of a prediction. Past the end of the text they repeat themselves.
    const size_t n_known = (in_predicted ? ngrams->n_predicted : ngrams->n) - 1 - best;
    if (in_predicted && n_known < (size_t)most) most = (int32_t)n_known;
    for (int32_t i = 0; i < most; i++)
        drafts[i] = (size_t)i < n_known ? ngrams->tokens[best + 1 + (size_t)i] : drafts[(size_t)i - n_known];
    return most;
}
