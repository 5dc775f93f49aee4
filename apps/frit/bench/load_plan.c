// SPDX-License-Identifier: MIT
// The requests of a measurement: when each begins, and the tokens of its prompt. Both are functions of the seed alone,
// so an engine and servers get the same requests.
#include "frit/bench/load.h"

#include <math.h>
#include <stdlib.h>

// SplitMix64.
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static uint64_t state_of(uint64_t seed, uint64_t stream)
{
    uint64_t state = seed;
    state = next_random(&state) ^ stream;
    return next_random(&state);
}

enum { ARRIVALS = 1, SHARED_PREFIX = 2, FIRST_PROMPT = 16 };   // streams of random numbers

// The first request begins at 0, the others after exponentially distributed intervals.
bool load_case_init(load_case *load)
{
    load->arrivals = calloc((size_t)load->n_requests, sizeof *load->arrivals);
    if (!load->arrivals) return false;
    uint64_t state = state_of(load->seed, ARRIVALS) + load->first;
    for (int32_t i = 1; i < load->n_requests && load->rate > 0; i++) {
        const double uniform = ((double)(next_random(&state) >> 11) + 0.5) * 0x1p-53;   // never 0 or 1
        load->arrivals[i] = load->arrivals[i - 1] - log(uniform) / load->rate;
    }
    return true;
}

void load_case_deinit(load_case *load)
{
    free(load->arrivals);
    load->arrivals = NULL;
}

void load_case_prompt(const load_case *load, int32_t i, frit_token *tokens)
{
    uint64_t state = state_of(load->seed, SHARED_PREFIX);
    for (int32_t k = 0; k < load->n_in; k++) {
        if (k == load->n_shared) state = state_of(load->seed, FIRST_PROMPT + load->first + (uint64_t)i);
        tokens[k] = (frit_token)(next_random(&state) % (uint64_t)load->n_vocab);
    }
}

bool load_case_is_structured(const load_case *load, int32_t i)
{
    return floor((i + 1) * load->structured + 1e-9) > floor(i * load->structured + 1e-9);
}

static bool has_room(const load_queue *queue)
{
    return queue->next < queue->load->n_requests &&
           (queue->load->n_at_once == 0 || queue->n_running < queue->load->n_at_once);
}

bool load_queue_is_due(const load_queue *queue, double now)
{
    return has_room(queue) && queue->load->arrivals[queue->next] <= now;
}

double load_queue_wait(const load_queue *queue, double now, double most)
{
    const double wait = has_room(queue) ? queue->load->arrivals[queue->next] - now : most;
    return wait < 0 ? 0 : wait < most ? wait : most;
}
