// SPDX-License-Identifier: MIT
// Reads a prompt once, then continues it from each of its likeliest next tokens, in a fork of the session.
//
//     cc branches.c -lfrit -o branches && ./branches model.gguf "Once upon a time"
#include <frit.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PROMPT = 512, N_BRANCHES = 3, N_PREDICT = 12 };

static void print_token(const frit_model *model, frit_token token)
{
    size_t n_bytes;
    const char *piece = frit_token_piece(model, token, &n_bytes);
    fwrite(piece, 1, n_bytes, stdout);
}

// The greedy continuation that begins with this token.
static frit_status print_branch(const frit_model *model, const frit_session *trunk, frit_logprob first)
{
    frit_session *branch = NULL;
    frit_sampler *sampler = NULL;
    frit_status status = frit_session_fork(&branch, trunk);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, NULL);
    if (status == FRIT_OK) status = frit_session_push(branch, &first.token, 1, NULL);
    if (status == FRIT_OK) printf("%5.1f %%:", 100 * exp(first.logprob));
    frit_token token = first.token;
    for (int i = 0; i < N_PREDICT && status == FRIT_OK && !frit_token_is_end(model, token); i++) {
        print_token(model, token);
        status = frit_session_next(branch, sampler, &token);
    }
    putchar('\n');
    frit_sampler_free(sampler);
    frit_session_free(branch);
    return status;
}

static frit_status print_branches(const frit_model *model, frit_engine *engine, const char *prompt)
{
    frit_token tokens[MAX_PROMPT];
    frit_logprob top[N_BRANCHES];
    frit_model_info info;
    frit_session *trunk = NULL;
    size_t n_tokens = 0;
    frit_status status = frit_model_get_info(model, &info);
    if (status == FRIT_OK) status = frit_session_new(&trunk, engine);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(trunk, tokens, n_tokens, NULL);
    while (status == FRIT_OK && frit_session_pending(trunk) > 0) status = frit_engine_step(engine, NULL);
    if (status == FRIT_OK) status = frit_session_status(trunk);
    if (status == FRIT_OK)
        status = frit_logprobs_top(frit_session_logits(trunk), (size_t)info.n_vocab, top, N_BRANCHES);
    for (int i = 0; i < N_BRANCHES && status == FRIT_OK; i++) status = print_branch(model, trunk, top[i]);
    frit_session_free(trunk);
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "models/fable.gguf";
    const char *prompt = argc > 2 ? argv[2] : "Once upon a time there was a";
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    // Each session may use as much of the cache as it needs; all of them share the room of n_sessions contexts.
    const frit_engine_options options = {.n_ctx = 1024, .n_sessions = 2};
    frit_status status = frit_model_open(&model, path, NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, &options);
    if (status == FRIT_OK) status = print_branches(model, engine, prompt);
    if (status != FRIT_OK) fprintf(stderr, "branches: %s\n", frit_error());
    frit_engine_free(engine);
    frit_model_free(model);
    return status == FRIT_OK ? 0 : 1;
}
