// SPDX-License-Identifier: MIT
// server/api/logprobs.h: how likely the model found a token, and which others it found likeliest: by the logits as they
// came, before any sampling stage.
#pragma once
#include "frit.h"

// Log-probabilities of prompts that one request may ask for: each takes up to 800 bytes while it is written.
enum { SERVER_MAX_TOP = 20, SERVER_MAX_OF_PROMPTS = 1 << 19 };

typedef struct server_pick {   // one token of a prompt or an answer
    frit_logprob picked;
    size_t at;      // where its text begins in the answer, in bytes
    int32_t rank;   // of a prompt's token: 1 is the likeliest one; 0: not known
    int32_t n_top;
    frit_logprob top[SERVER_MAX_TOP];   // falling; the lower id among equals
} server_pick;
