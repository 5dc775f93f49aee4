// SPDX-License-Identifier: MIT
// Problems as OpenAI's error objects.
#include "server/api/problem.h"
#include "server/api/json_text.h"

#include "frit.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool server_refuse(server_problem *problem, int status, const char *code, const char *param, const char *format, ...)
{
    *problem = (server_problem){.status = status, .code = code};
    snprintf(problem->param, sizeof problem->param, "%s", param ? param : "");
    va_list args;
    va_start(args, format);
    vsnprintf(problem->message, sizeof problem->message, format, args);
    va_end(args);
    return false;
}

const char *server_without_folder(const char *sentence)
{
    const char *end = sentence[0] == '/' ? strstr(sentence, ": ") : NULL, *name = sentence;
    for (const char *at = sentence; end && at < end; at++)
        if (*at == '/') name = at + 1;
    return name;
}

bool server_refuse_shutting_down(server_problem *problem)
{
    server_refuse(problem, 503, "shutting_down", NULL, "the server is shutting down");
    problem->retry_after = 5;
    return false;
}

bool server_refuse_status(server_problem *problem, int http_status, const char *param, int status)
{
    if (status == FRIT_E_MEMORY) http_status = 500;
    const char *sentence = status == FRIT_E_MEMORY ? frit_status_text(status) : server_without_folder(frit_error());
    return server_refuse(problem, http_status, NULL, param, "%s", sentence);
}

bool server_refuse_field(server_problem *problem, int http_status, const char *param, int status)
{
    const char *field = frit_error_field();
    if (status == FRIT_E_MEMORY || !field) return server_refuse_status(problem, http_status, param, status);
    return server_refuse(problem, http_status, frit_error_code(), param, "%s%s", param, frit_error() + strlen(field));
}

static const char *type_of(int status)
{
    switch (status) {
    case 401:
        return "authentication_error";
    case 403:
        return "permission_error";
    case 429:
        return "rate_limit_error";
    default:
        return status < 500 ? "invalid_request_error" : "server_error";
    }
}

// The text as JSON. A text that is not UTF-8, because it was cut within a character or quotes such bytes, is shown in
// ASCII.
static json_t *text_json(const char *text)
{
    json_t *json = json_string(text);
    if (json) return json;
    char ascii[sizeof((server_problem *)0)->message];
    snprintf(ascii, sizeof ascii, "%s", text);
    for (char *c = ascii; *c; c++)
        if ((unsigned char)*c >= 128) *c = '?';
    return json_string(ascii);
}

json_t *server_problem_message(const server_problem *problem)
{
    return text_json(problem->message);
}

char *server_problem_json(const server_problem *problem)
{
    json_t *param = problem->param[0] ? text_json(problem->param) : json_null();
    json_t *json = json_pack("{s:{s:o, s:s, s:o, s:s?}}", "error", "message", text_json(problem->message), "type",
                             type_of(problem->status), "param", param, "code", problem->code);
    return server_json_text(json);
}
