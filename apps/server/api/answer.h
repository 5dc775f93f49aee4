// SPDX-License-Identifier: MIT
// server/api/answer.h: the answer to a request for generated text. Its text is split into parts (text, reasoning, tool
// calls), which the protocol of the request writes.
#pragma once
#include "server/api/protocol.h"
#include "server/request/request.h"

typedef struct server_text {
    char *ptr;
    size_t n, capacity;
} server_text;

// A part of the answer. Consecutive pieces of text are one part, and so are consecutive pieces of reasoning.
typedef struct server_part {
    frit_part_kind kind;
    server_text text;   // the arguments of a call
    char *name, *id;    // of a call; else NULL
} server_part;

// The state of an answer beside its text. Owned by its job. A request for several answers has a job and a server_answer
// for each; the first one's members marked "first" serve all of them.
typedef struct server_answer {
    server_generation request;   // owned by the first answer of a request, copied by the others
    const server_protocol *protocol;
    int index;         // of this answer among the request's answers
    bool is_further;   // not the first answer
    int n_left;        // first: the number of answers that have not ended
    json_t *choices;   // first: the choices of a reply that is one object
    bool chat, begun;
    server_finish finish;
    int n_calls;
    server_part *parts;   // of a reply that is one object, and of a stream whose end repeats all parts
    size_t n_parts, parts_capacity;
    char id[64];
    int64_t created;   // seconds since 1970
    const frit_model *model;
    const char *name;     // the model's; lives as long as the server
    bool echoed;          // the echoed prompt is written
    server_text prompt;   // the text of the echoed prompt
    uint64_t n_events;    // first: the number of events in the stream so far
    size_t n_logprobs;    // the number of the report's tokens that are written
    size_t n_ids;         // the number of the job's token ids that are written
    size_t at, n_chars;   // n_chars: characters of the echoed prompt and of the first `at` bytes of the answer
    void *state;          // the protocol's; freed by free_state
    void (*free_state)(void *state);
} server_answer;

// Makes a server_answer the job's ctx. Takes the contents of `request` over and leaves it empty. False if memory is
// short.
bool server_answer_attach(server_job *job, const server_protocol *protocol, bool chat, server_generation *request,
                          const frit_model *model, const char *name);
// Makes answer `index` of the request, whose other answers are attached to `first`. False if memory is short.
bool server_answer_attach_further(server_job *job, server_job *first, int index);
// Writes the prefix and digits that no other call gives.
void server_make_id(char *id, size_t size, const char *prefix);

// Functions for protocols, called on the engine thread. If memory is short they fail the job's send queue.
// True if this is the last of the request's answers to end. Called once by each answer, at its end.
bool server_answer_is_last(server_job *job);
bool server_text_add(server_text *text, const char *bytes, size_t n);
// All parts of a kind as one text, or NULL if there are none.
json_t *server_answer_join(const server_answer *answer, frit_part_kind kind);
// The numeric options of a sampler as an object with the names of request fields.
json_t *server_sampling_json(const frit_sampler_options *options);
// Writes `before`, the JSON and `after`. Takes `json` over.
void server_answer_put(server_job *job, const char *before, json_t *json, const char *after);
// The `keep_alive` function of protocols whose streams are events: writes a comment, which clients ignore.
void server_answer_put_comment(server_job *job);
// The members "timings" and "prompt_progress" of llama.cpp: times of the prompt and the answer, and how much of the
// prompt is done.
json_t *server_timings_json(const server_job *job);
json_t *server_progress_json(const server_progress *progress);
// Writes "event: NAME\ndata: JSON\n\n", without the first line if name is NULL. If the stream can be resumed, "id: N\n"
// comes first, with N from 0 on. Takes `json` over.
void server_answer_put_event(server_job *job, const char *name, json_t *json);
