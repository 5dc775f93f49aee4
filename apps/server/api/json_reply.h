// SPDX-License-Identifier: MIT
// server/api/json_reply.h: functions of reply writers whose reply is one JSON object at the end: embeddings, reranking.
#pragma once
#include "server/sched/worker.h"

#include <jansson.h>

// Puts the object and a line feed into the job's send queue. Takes `json` over. The queue fails if `json` is NULL or
// memory is short.
void server_json_reply_put(server_job *job, json_t *json);

// The `text` and `fail` functions of such writers: they write nothing.
void server_json_reply_text(server_job *job, app_text text);
void server_json_reply_fail(server_job *job, const server_problem *problem);
