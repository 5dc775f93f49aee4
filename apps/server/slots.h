// SPDX-License-Identifier: MIT
// server/slots.h: the engine's sessions, and what each still holds from its last job, so that the next turn of a
// conversation only runs what is new.
#pragma once
#include "frit.h"

typedef struct server_adapters {
    frit_adapter *const *items;
    const float *scales;   // of requests that do not choose
    size_t n;
} server_adapters;

typedef struct server_slot {
    frit_session *session;
    float *scales;        // [adapters.n]: what its tokens ran with
    frit_token *tokens;   // [n_ctx]: what the session holds
    size_t n_tokens;
    struct server_job *job;   // NULL: idle
    uint64_t used_at;         // grows with each use
} server_slot;

typedef struct server_slots {
    server_adapters adapters;
    server_slot *items;
    int32_t n;
    uint64_t clock;
} server_slots;

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters);
void server_slots_free(server_slots *slots);
// The idle slot that suits the prompt best, or NULL if all are busy. What ran with other scales of adapters does not.
server_slot *server_slots_choose(server_slots *slots, const frit_token *prompt, size_t n_prompt, const float *scales);
// Makes the session hold exactly the prompt, and queues what it lacks: at least the last token. *n_cached: the rest.
// `rows` may be NULL; it asks for results of all tokens, so that all of them run.
frit_status server_slot_load(const server_slots *slots, server_slot *slot, const frit_token *prompt, size_t n_prompt,
                             const float *scales, const frit_push_options *rows, size_t *n_cached);
// The same of an encoder-decoder, whose answer is a text of its own.
frit_status server_slot_read(const server_slots *slots, server_slot *slot, const frit_token *prompt, size_t n_prompt,
                             const float *scales, frit_token start);
// The idle slot becomes a copy of what another one holds, of its first n tokens: the cache is shared.
frit_status server_slot_fork(server_slot *slot, const server_slot *from, size_t n, size_t n_scales);
void server_slot_clear(server_slot *slot);   // gives its room in the cache back
frit_status server_slot_push(server_slot *slot, frit_token token);
// The job is over: forgets what has not run yet and keeps the rest for the next.
void server_slot_rest(server_slots *slots, server_slot *slot);
