// SPDX-License-Identifier: MIT
// server/sched/slots.h: the sessions of the engine, which run jobs. The engine's prefix cache keeps what a job ran, so
// the next request of a conversation runs only its new tokens, in any session.
//
// With --slot-save-path, sessions keep their texts after their jobs. A text that was restored from a file is in its
// session alone: the prefix cache has only what this process ran.
#pragma once
#include "common/shift.h"

typedef struct server_adapters {
    frit_adapter *const *items;
    const float *scales;   // defaults of requests, at the start
    size_t n;
} server_adapters;

typedef struct server_slot {
    frit_session *session;
    float *scales;            // [adapters.n]: of the session's tokens
    struct server_job *job;   // NULL: none
    bool is_settling;         // its job has ended, and a step may still run a token of the session
    bool loses_text;          // while it settles: the text is not kept
    size_t n_drafts;          // while it settles: unverified tokens at the end of the text
    bool keeps;               // keeps the text after the job
    bool is_restored;         // the text, or its beginning, is from a file
    char *salt;               // salt of the text; NULL: none
    size_t n_found;           // tokens of the job's prompt that are in the restored text
} server_slot;

typedef struct server_slots {
    server_adapters adapters;
    float *scales;   // [adapters.n]: defaults of prompts
    app_shift_options shift;
    int32_t n_ctx;
    server_slot *items;
    int32_t n;
} server_slots;

typedef struct server_prompt {
    const frit_token *tokens;
    size_t n;
    const float *scales;            // one for each adapter
    const char *salt;               // prompts with equal salts share the prefix cache; NULL: no salt
    const frit_token *prediction;   // of the answer; NULL: none
    size_t n_prediction;
    frit_media *const *media;   // [n_media]: pictures of the prompt
    size_t n_media;
} server_prompt;

frit_status server_slots_init(server_slots *slots, frit_engine *engine, int32_t n, const server_adapters *adapters,
                              const frit_speculate_options *speculate, const app_shift_options *shift, bool keeps);
void server_slots_deinit(server_slots *slots);
// A slot is idle if it has no job and is not settling. NULL: no slot is idle.
server_slot *server_slots_idle(const server_slots *slots);
// The best idle slot for the prompt: one that restored most of it, else one without a restored text, else `idle`.
server_slot *server_slots_best(const server_slots *slots, server_slot *idle, const server_prompt *prompt);
// Replaces the text of the session by the prompt. `rows` asks for the results of all tokens; may be NULL.
frit_status server_slot_load(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             const frit_push_options *rows);
// Like server_slot_load, for an encoder-decoder: encodes the prompt, and begins the answer with `start`.
frit_status server_slot_read(const server_slots *slots, server_slot *slot, const server_prompt *prompt,
                             frit_token start);
// Tokens of the prompt that need not run.
size_t server_slot_cached(const server_slot *slot);
// Ends the slot's job, and waits for nothing. The slot settles when no step runs its session any more: then it keeps
// the text without the `n_drafts` unverified tokens at its end, or frees its room in the cache.
void server_slot_end_job(server_slot *slot, size_t n_drafts);
// Settles the slots whose sessions no step runs. True if others are still settling.
bool server_slots_settle(server_slots *slots);
// Settles the slot; waits for the step that runs its session.
void server_slot_settle_now(server_slot *slot);
// Removes the text.
frit_status server_slot_clear(server_slot *slot);
// Marks the text as restored from a file, for requests with this salt.
frit_status server_slot_mark_restored(server_slot *slot, const char *salt);
const char *server_slot_salt(const server_slot *slot);   // "": none
