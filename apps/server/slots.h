// SPDX-License-Identifier: MIT
// server/slots.h: the engine's sessions. What a job has run stays in the engine's prefix cache, so the next turn of a
// conversation only runs what is new, in whichever session.
#pragma once
#include "common/shift.h"

typedef struct server_adapters {
    frit_adapter *const *items;
    const float *scales;   // of requests that do not choose
    size_t n;
} server_adapters;

typedef struct server_slot {
    frit_session *session;
    float *scales;            // [adapters.n]: what its tokens run with
    struct server_job *job;   // NULL: idle
} server_slot;

typedef struct server_slots {
    server_adapters adapters;
    app_shift_options shift;
    int32_t n_ctx;
    server_slot *items;
    int32_t n;
} server_slots;

typedef struct server_prompt {
    const frit_token *tokens;
    size_t n;
    const float *scales;            // of adapters
    const char *salt;               // whose prompts share what has run; NULL: those of all that have none
    const frit_token *prediction;   // of the answer; NULL: none
    size_t n_prediction;
} server_prompt;

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters,
                              const frit_speculate_options *speculate, const app_shift_options *shift);
void server_slots_free(server_slots *slots);
server_slot *server_slots_idle(const server_slots *slots);   // NULL: all are busy
// Queues the prompt in the session, which has nothing else then. `rows` may be NULL; it asks for results of all tokens.
frit_status server_slot_load(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             const frit_push_options *rows);
// The same of an encoder-decoder, whose answer is a text of its own.
frit_status server_slot_read(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             frit_token start);
// The job is over: gives its room in the cache back.
void server_slot_rest(server_slot *slot);
