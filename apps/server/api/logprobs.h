// SPDX-License-Identifier: MIT
// server/api/logprobs.h: the log-probability of a token and of the likeliest tokens in its position, from the model's
// logits before any sampler stage.
#pragma once
#include "frit.h"

// SERVER_MAX_TOP: the most likeliest tokens per position. SERVER_MAX_OF_PROMPTS: the most log-probabilities of prompts
// in a reply; each takes up to 800 bytes while the reply is written.
enum { SERVER_MAX_TOP = 20, SERVER_MAX_OF_PROMPTS = 1 << 19 };

typedef struct server_logprobs {   // one token of a prompt or an answer
    frit_logprob picked;
    size_t at;      // byte offset of the token's text in the answer
    int32_t rank;   // rank of a prompt's token, 1 for the likeliest; 0: unknown
    int32_t n_top;
    frit_logprob top[SERVER_MAX_TOP];   // by falling log-probability; equal ones by token id
} server_logprobs;
