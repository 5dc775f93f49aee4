// SPDX-License-Identifier: MIT
// Answers a question with one of the words that are allowed: a stage of the sampler's own bans every token that leads
// elsewhere. The model is read into memory by the program itself.
//
//     cc constrain.c -lfrit -o constrain && ./constrain model.gguf
#include <frit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PROMPT = 256, MAX_ANSWER = 64 };

typedef struct choice {
    const frit_model *model;
    const char *const *words;
    size_t n_words;
    char text[MAX_ANSWER];   // what was answered so far
} choice;

static int may_follow(const choice *c, const char *piece, size_t n_bytes)
{
    const size_t n = strlen(c->text);
    for (size_t i = 0; i < c->n_words; i++)
        if (n_bytes > 0 && strncmp(c->words[i], c->text, n) == 0 && strlen(c->words[i]) >= n + n_bytes &&
            memcmp(c->words[i] + n, piece, n_bytes) == 0)
            return 1;
    return 0;
}

static int is_done(const choice *c)
{
    for (size_t i = 0; i < c->n_words; i++)
        if (strcmp(c->words[i], c->text) == 0) return 1;
    return 0;
}

static size_t only_words(void *ctx, frit_candidate *candidates, size_t n)
{
    size_t n_kept = 0, n_bytes;
    for (size_t i = 0; i < n; i++) {
        const char *piece = frit_token_piece(((const choice *)ctx)->model, candidates[i].token, &n_bytes);
        if (may_follow(ctx, piece, n_bytes)) candidates[n_kept++] = candidates[i];
    }
    return n_kept;
}

static frit_status answer(frit_model *model, choice *c, const char *prompt)
{
    const frit_engine_options engine_options = {.n_ctx = 512};
    const frit_sampler_options sampler_options = {.stage = only_words, .stage_ctx = c};
    frit_engine *engine = NULL;
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_token tokens[MAX_PROMPT], token;
    size_t n_tokens = 0, n_bytes;
    frit_status status = frit_engine_new(&engine, model, &engine_options);
    if (status == FRIT_OK) status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, &sampler_options);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n_tokens, NULL);
    while (status == FRIT_OK && !is_done(c)) {
        status = frit_session_next(session, sampler, &token);
        if (status != FRIT_OK) break;
        const char *piece = frit_token_piece(model, token, &n_bytes);
        strncat(c->text, piece, n_bytes);
    }
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    return status;
}

static void *read_bytes(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *n = (size_t)ftell(file);
        rewind(file);
        bytes = malloc(*n);
        if (bytes && fread(bytes, 1, *n, file) != *n) {
            free(bytes);
            bytes = NULL;
        }
    }
    if (file) fclose(file);
    return bytes;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {" bread", " gold", " a frog"};
    size_t n_bytes = 0;
    void *bytes = read_bytes(argc > 1 ? argv[1] : "models/fable.gguf", &n_bytes);
    if (!bytes) {
        perror("constrain");
        return 1;
    }
    frit_model *model = NULL;
    frit_status status = frit_model_open_memory(&model, bytes, n_bytes, NULL);
    choice c = {.model = model, .words = words, .n_words = sizeof words / sizeof *words};
    if (status == FRIT_OK) status = answer(model, &c, "The little man could spin straw into");
    if (status == FRIT_OK)
        printf("The little man could spin straw into%s.\n", c.text);
    else
        fprintf(stderr, "constrain: %s\n", frit_error());
    frit_model_free(model);
    free(bytes);   // the model has used them until now
    return status == FRIT_OK ? 0 : 1;
}
