// SPDX-License-Identifier: MIT
// server/api/json_reply.h: helpers of reply writers whose reply is one JSON object at the end:
// embeddings, reranking.
#pragma once
#include "server/sched/worker.h"

#include <jansson.h>

// Puts the object and a line feed into the job's send queue. Takes over `json`. NULL, or no memory: the queue fails.
void server_json_reply_put(server_job *job, json_t *json);

// Nothing is said before the end, so there is nothing to add to, and nothing to take back.
void server_json_reply_text(server_job *job, app_text text);
void server_json_reply_fail(server_job *job, const server_problem *problem);
