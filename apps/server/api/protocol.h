// SPDX-License-Identifier: MIT
// server/api/protocol.h: how answers and errors are written for the clients of a protocol.
//
//     body --> parser (field table and `convert`) --> server_generation, with messages in OpenAI's form
//     parts of the answer (text, reasoning, calls), its end or error --> server_protocol --> bytes
//
// A protocol is a server_protocol and a parser, mostly in two files (NAME.c, NAME_request.c). answer.c splits an answer
// into parts and calls the functions on the engine thread. A route names its protocol, so that its errors have the
// protocol's form too.
#pragma once
#include "server/sched/worker.h"

typedef struct server_protocol {
    char *(*problem)(const server_problem *problem);   // malloc'd JSON, or NULL
    const char *id_header;                             // header with the request's id, beside X-Request-Id; NULL: none
    // All further members are NULL in protocols whose reply is one JSON object that a handler writes.
    const char *stream_type;   // Content-Type of streams
    const char *id_prefix;     // prefix of the ids of answers
    bool repeats_parts;        // the last event of a stream repeats all parts
    // Write the events of a stream. begin: before all other events. part: answer->n_calls counts the calls before this
    // part. end: answer->finish has the reason. fail: an error after the first event.
    void (*begin)(server_job *job);
    void (*part)(server_job *job, const frit_part *part);
    void (*end)(server_job *job);
    void (*fail)(server_job *job, const server_problem *problem);
    // Both may be called before `begin`. keep_alive: no event was written for a while. progress: so much of the prompt
    // is done; NULL: the protocol has no such event.
    void (*keep_alive)(server_job *job);
    void (*progress)(server_job *job, const server_progress *progress);
    // Sets the reply to a query for a background job that has not ended. NULL: the protocol has no background jobs.
    void (*show)(server_job *job);
    // Writes the answer as one object; answer->parts has all parts.
    void (*whole)(server_job *job);
} server_protocol;

extern const server_protocol server_openai, server_openai_chat, server_openai_completion, server_anthropic,
    server_openai_responses, server_native, server_ollama, server_ollama_chat, server_ollama_generate;
