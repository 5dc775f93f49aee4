// SPDX-License-Identifier: MIT
// server/sched/slots.h: the engine's sessions. What a job has run stays in the engine's prefix cache, so the next turn
// of a conversation only runs what is new, in whichever session.
//
// Where sessions can be saved they keep their text after the job. A text that came from a file is found in its session
// alone, for the prefix cache has only what this process has run.
#pragma once
#include "common/shift.h"

typedef struct server_adapters {
    frit_adapter *const *items;
    const float *scales;   // of requests that do not choose, at the start
    size_t n;
} server_adapters;

typedef struct server_slot {
    frit_session *session;
    float *scales;            // [adapters.n]: what its tokens run with
    struct server_job *job;   // NULL: idle
    bool keeps;               // its text, after the job
    bool is_restored;         // the text, or how it begins, is from a file
    char *salt;               // of the text; NULL: none
    size_t n_found;           // tokens of the job's prompt that the restored text has
} server_slot;

typedef struct server_slots {
    server_adapters adapters;
    float *scales;   // [adapters.n]: of prompts that choose none
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
                              const frit_speculate_options *speculate, const app_shift_options *shift, bool keeps);
void server_slots_free(server_slots *slots);
server_slot *server_slots_idle(const server_slots *slots);   // NULL: all are busy
// The idle one that is best for the prompt: that has it from a file, or else `idle` or one whose text is no loss.
server_slot *server_slots_best(const server_slots *slots, server_slot *idle, const server_prompt *prompt);
// Queues the prompt in the session, which has nothing else then. `rows` may be NULL; it asks for results of all tokens.
frit_status server_slot_load(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             const frit_push_options *rows);
// The same of an encoder-decoder, whose answer is a text of its own.
frit_status server_slot_read(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             frit_token start);
// Of its prompt, what need not run.
size_t server_slot_cached(const server_slot *slot);
// The job is over, and so many guesses at the end of its text are not verified: gives its room in the cache back, or
// keeps the text.
void server_slot_rest(server_slot *slot, size_t n_drafts);
// Forgets the text.
frit_status server_slot_clear(server_slot *slot);
// The text is from a file, and is that of requests with this salt.
frit_status server_slot_own(server_slot *slot, const char *salt);
const char *server_slot_salt(const server_slot *slot);   // "": none
