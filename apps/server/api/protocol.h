// SPDX-License-Identifier: MIT
// server/api/protocol.h: how a kind of answer, and what goes wrong, is written for the clients of a protocol.
//
//     body --> parser (its table of fields, and `convert`) --> server_generation: messages in OpenAI's form
//     the answer's parts (text, reasoning, calls), its end or failure --> a row of functions --> bytes
//
// A protocol is such a row, a table of fields, and mostly one file for each. answer.c takes an answer apart and calls
// the functions on the engine thread; a route names its protocol, so that errors have its shape too.
#pragma once
#include "server/sched/worker.h"

typedef struct server_protocol {
    char *(*problem)(const server_problem *problem);   // malloc'd JSON, or NULL
    const char *id_header;                             // of the request's id, beside X-Request-Id; may be NULL
    // What follows is NULL for protocols whose answers are one JSON object that a handler writes.
    const char *stream_type;   // Content-Type of its streams
    const char *id_prefix;     // of the ids of its answers
    bool keeps_parts;          // the end of a stream repeats all parts
    // Events of a stream: before all others; a part, while answer->n_calls counts the calls before it; the end, where
    // answer->finish says why; a failure after the first event.
    void (*begin)(server_job *job);
    void (*part)(server_job *job, const frit_part *part);
    void (*end)(server_job *job);
    void (*fail)(server_job *job, const server_problem *problem);
    // Maybe before `begin`: nothing else has come for long; so much of the prompt has run (NULL: that is not told).
    void (*keep_alive)(server_job *job);
    void (*progress)(server_job *job, const server_progress *progress);
    // Of a job in the background: sets what is shown of it until it ends. NULL: there are no such jobs.
    void (*show)(server_job *job);
    // The answer as one object; answer->parts has what was generated.
    void (*whole)(server_job *job);
} server_protocol;

extern const server_protocol server_openai, server_openai_chat, server_openai_completion, server_anthropic,
    server_openai_responses, server_native, server_ollama, server_ollama_chat, server_ollama_generate;
