// SPDX-License-Identifier: MIT
// Writes each line with one call, so that lines of several threads and processes do not mix.
#include "server/ops/access_log.h"
#include "server/api/json_text.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct server_access_log {
    int fd;
};

bool server_access_log_open(server_access_log **out, const char *path, server_problem *problem)
{
    server_access_log *log = *out = calloc(1, sizeof *log);
    if (!log) return server_refuse(problem, 500, NULL, NULL, "out of memory");
    const bool is_stderr = strcmp(path, "-") == 0;
    log->fd = is_stderr ? STDERR_FILENO : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (log->fd >= 0) return true;
    server_refuse(problem, 500, NULL, NULL, "--access-log %s: cannot be opened: %s", path, strerror(errno));
    free(log);
    *out = NULL;
    return false;
}

const char *server_access_path(const char *path, char *out, size_t size)
{
    snprintf(out, size, "%s", path ? path : "");
    for (char *c = out; *c; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
    return out;
}

static json_t *access_json(const server_access *access)
{
    struct timespec now;
    struct tm utc;
    char time[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(time, sizeof time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_t *json =
        json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:i, s:b, s:s?, s:f, s:s?}", "time", time, "id", access->id, "method",
                  access->method, "path", access->path, "model", access->model, "status", access->status, "aborted",
                  access->aborted, "code", access->code, "ms", round(1e6 * access->seconds) / 1e3, "key", access->key);
    if (!access->has_usage) return json;
    json_object_set_new(json, "prompt_tokens", json_integer((json_int_t)access->n_prompt));
    json_object_set_new(json, "cached_tokens", json_integer((json_int_t)access->n_cached));
    json_object_set_new(json, "answer_tokens", json_integer((json_int_t)access->n_answer));
    return json;
}

void server_access_log_write(server_access_log *log, const server_access *access)
{
    if (!log) return;
    json_t *json = access_json(access);
    char *text = server_json_text(json);
    if (!text) return;
    const size_t n = strlen(text);
    text[n] = '\n';   // instead of the final zero
    const ssize_t written = write(log->fd, text, n + 1);
    (void)written;   // a full disk loses lines, but no replies
    free(text);
}

void server_access_log_close(server_access_log *log)
{
    if (!log) return;
    if (log->fd != STDERR_FILENO) close(log->fd);
    free(log);
}
