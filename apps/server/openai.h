// SPDX-License-Identifier: MIT
// server/openai.h: the answers of /v1/chat/completions and /v1/completions, whole and as streams of events.
#pragma once
#include "server/request.h"
#include "server/worker.h"

typedef struct openai_text {
    char *ptr;
    size_t n, capacity;
} openai_text;

// What an answer needs to know beside its text. Owned by its job.
typedef struct openai_answer {
    server_generation request;   // that of the first answer, where there are several
    int index;                   // among these
    bool is_part;                // not the first of them
    int n_left;                  // of the first: answers that have not ended
    json_t *choices;             // of the first: those of a whole reply that have
    bool chat, opened;           // opened: the first event was written
    int n_calls;
    json_t *calls;                    // of a whole answer
    openai_text content, reasoning;   // likewise
    char id[48];
    int64_t created;   // seconds since 1970
    const frit_model *model;
    const char *name;     // of the model; lives as long as the server
    bool echoed;          // the prompt's tokens have been written
    openai_text prompt;   // what is echoed
    size_t n_picks;       // of the job's picks that have been written
    size_t at, n_chars;   // characters in the first `at` bytes of the answer, and in what is echoed before it
} openai_answer;

// Becomes the job's ctx with the voice that fits; takes the request over and leaves it empty.
// As a job of the same request, a further answer (`index`) shares it with the first, which owns it.
bool openai_answer_attach_part(server_job *job, server_job *first, int index);
bool openai_answer_attach(server_job *job, bool chat, server_generation *request, const frit_model *model,
                          const char *name);
