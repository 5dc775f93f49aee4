// SPDX-License-Identifier: MIT
// server/api/answer.h: the answer to a generation: its text comes apart into parts, which the protocol of the request
// writes.
#pragma once
#include "server/api/protocol.h"
#include "server/request/request.h"

typedef struct server_text {
    char *ptr;
    size_t n, capacity;
} server_text;

// A part of the answer. Pieces of text that follow each other are one part, and so are those of reasoning.
typedef struct server_part {
    frit_part_kind kind;
    server_text text;   // of a call: its arguments
    char *name, *id;    // of a call
} server_part;

// What an answer needs to know beside its text. Owned by its job.
typedef struct server_answer {
    server_generation request;   // that of the first answer, where there are several
    const server_protocol *protocol;
    int index;         // among these
    bool is_part;      // not the first of them
    int n_left;        // of the first: answers that have not ended
    json_t *choices;   // of the first: those of a whole reply that have
    bool chat, begun;
    server_finish finish;
    int n_calls;
    server_part *parts;   // of a whole answer, or of a stream whose end repeats them
    size_t n_parts, parts_capacity;
    char id[64];
    int64_t created;   // seconds since 1970
    const frit_model *model;
    const char *name;     // of the model; lives as long as the server
    bool echoed;          // the prompt's tokens have been written
    server_text prompt;   // what is echoed
    uint64_t n_events;    // of the first: that a stream has had
    size_t n_picks;       // of the job's picks that have been written
    size_t n_ids;         // of its tokens
    size_t at, n_chars;   // characters in the first `at` bytes of the answer, and in what is echoed before it
    void *state;          // the protocol's own; freed by free_state
    void (*free_state)(void *state);
} server_answer;

// Becomes the job's ctx; takes the request over and leaves it empty. False: no memory.
bool server_answer_attach(server_job *job, const server_protocol *protocol, bool chat, server_generation *request,
                          const frit_model *model, const char *name);
// As a job of the same request, a further answer (`index`) shares it with the first, which owns it.
bool server_answer_attach_part(server_job *job, server_job *first, int index);
// prefix, then digits that no other call gives.
void server_make_id(char *id, size_t size, const char *prefix);

// For protocols, on the engine thread. Failures for want of memory end the job.
bool server_answer_is_last(server_job *job);   // of several; to be asked once, at the end
bool server_text_add(server_text *text, const char *bytes, size_t n);
// All parts of a kind as one text; NULL: there are none.
json_t *server_answer_join(const server_answer *answer, frit_part_kind kind);
// The numeric options of a sampler under the names of fields.
json_t *server_sampling_json(const frit_sampler_options *options);
// Writes JSON, which it takes over, between two texts.
void server_answer_put(server_job *job, const char *before, json_t *json, const char *after);
// A comment that clients skip: the keep_alive of protocols whose streams are events.
void server_answer_put_comment(server_job *job);
// As llama.cpp tells them: how long prompt and answer took so far, and how much of the prompt has run.
json_t *server_timings_json(const server_job *job);
json_t *server_progress_json(const server_progress *progress);
// "event: NAME\ndata: JSON\n\n"; where clients may come back, "id: N\n" before it, N from 0 on.
void server_answer_put_event(server_job *job, const char *name, json_t *json);
