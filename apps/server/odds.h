// SPDX-License-Identifier: MIT
// server/odds.h: how likely the model found a token, and which others it found likeliest: logarithms of the softmax of
// the logits as they came, before any sampling stage.
#pragma once
#include "frit.h"

enum { SERVER_MAX_TOP = 20 };

typedef struct server_odds {
    frit_token token;
    float log_probability;
} server_odds;

typedef struct server_pick {   // one token of an answer
    server_odds picked;
    size_t at;   // where its text begins in the answer, in bytes
    int32_t n_top;
    server_odds top[SERVER_MAX_TOP];   // falling; the lower id among equals
} server_pick;

// Fills the n_top likeliest tokens. Returns the logarithm of the sum of all exp(logit): a logit less this is the
// logarithm of its probability.
double server_odds_top(const float *logits, int32_t n_vocab, int32_t n_top, server_pick *pick);
