// SPDX-License-Identifier: MIT
// Replies that are one JSON object.
#include "server/api/json_reply.h"
#include "server/api/json_text.h"

#include <stdlib.h>
#include <string.h>

void server_json_reply_put(server_job *job, json_t *json)
{
    char *text = server_json_text(json);
    if (text) {
        server_job_put(job, text, strlen(text));
        server_job_put(job, "\n", 1);
    } else {
        job->reply.queue.failed = true;
    }
    free(text);
}

void server_json_reply_text(server_job *job, app_text text)
{
    (void)job, (void)text;
}

void server_json_reply_fail(server_job *job, const server_problem *problem)
{
    (void)job, (void)problem;
}
