// SPDX-License-Identifier: MIT
// Prompts for filling in the middle, in llama.cpp's order:
//
//     BOS  [REPO "repository" newline]  for each file: SEPARATOR name newline text  [SEPARATOR "filename" newline]
//     PREFIX prefix SUFFIX suffix MIDDLE prompt
//
// Files are left out if the model has no separator token.
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

typedef struct writing {
    const frit_model *model;
    const frit_tokenize_limits *limits;
    frit_token *tokens;
    size_t n;
    server_problem *problem;
} writing;

static bool put_all(writing *w, const frit_token *tokens, size_t n)
{
    frit_token *grown = realloc(w->tokens, (w->n + n + 1) * sizeof *grown);
    if (!grown) return server_refuse_status(w->problem, 500, NULL, FRIT_E_MEMORY);
    w->tokens = grown;
    if (n > 0) memcpy(grown + w->n, tokens, n * sizeof *tokens);
    w->n += n;
    return true;
}

static bool put_role(writing *w, frit_token_role role)
{
    const frit_token token = frit_token_of_role(w->model, role);
    return token < 0 || put_all(w, &token, 1);
}

static bool put_text(writing *w, const char *text, size_t n_bytes)
{
    size_t n;
    if (n_bytes == 0) return true;
    frit_token *tokens = server_tokens(w->model, text, n_bytes, 0, w->limits, &n, w->problem);
    const bool good = tokens && put_all(w, tokens, n);
    free(tokens);
    return good;
}

static bool put_json(writing *w, const json_t *text)
{
    return put_text(w, json_string_value(text), json_string_length(text));
}

static bool put_line(writing *w, const char *text)
{
    const size_t n = strlen(text);
    char *line = malloc(n + 2);
    if (!line) return server_refuse_status(w->problem, 500, NULL, FRIT_E_MEMORY);
    memcpy(line, text, n);
    line[n] = '\n';
    const bool good = put_text(w, line, n + 1);
    free(line);
    return good;
}

static bool put_files(writing *w, const json_t *files)
{
    const bool separates = frit_token_of_role(w->model, FRIT_ROLE_FIM_SEPARATOR) >= 0;
    if (json_array_size(files) == 0 || !separates) return true;
    if (frit_token_of_role(w->model, FRIT_ROLE_FIM_REPO) >= 0 &&
        (!put_role(w, FRIT_ROLE_FIM_REPO) || !put_line(w, "repository")))
        return false;
    for (size_t i = 0; i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i), *name = json_object_get(file, "filename");
        if (!put_role(w, FRIT_ROLE_FIM_SEPARATOR) || !put_line(w, name ? json_string_value(name) : "file") ||
            !put_json(w, json_object_get(file, "text")))
            return false;
    }
    return put_role(w, FRIT_ROLE_FIM_SEPARATOR) && put_line(w, "filename");
}

bool server_infill_tokens(const frit_model *model, server_generation *request, const frit_tokenize_limits *limits,
                          server_problem *problem)
{
    frit_model_info info;
    frit_model_get_info(model, &info);
    if (frit_token_of_role(model, FRIT_ROLE_FIM_PREFIX) < 0 || frit_token_of_role(model, FRIT_ROLE_FIM_SUFFIX) < 0 ||
        frit_token_of_role(model, FRIT_ROLE_FIM_MIDDLE) < 0)
        return server_refuse(problem, 400, "unsupported_model", "model",
                             "the model has no tokens for filling in the middle");
    writing w = {.model = model, .limits = limits, .problem = problem};
    const bool good = (!info.adds_bos || put_role(&w, FRIT_ROLE_BOS)) && put_files(&w, request->prompt.files) &&
                      put_role(&w, FRIT_ROLE_FIM_PREFIX) && put_json(&w, request->prompt.prefix) &&
                      put_role(&w, FRIT_ROLE_FIM_SUFFIX) && put_json(&w, request->prompt.suffix) &&
                      put_role(&w, FRIT_ROLE_FIM_MIDDLE) && put_text(&w, request->prompt.text, request->prompt.n_text);
    if (!good) {
        free(w.tokens);
        return false;
    }
    free(request->prompt.ids);
    request->prompt.ids = w.tokens;
    request->prompt.n_ids = w.n;
    return true;
}
