// SPDX-License-Identifier: MIT
// Continues several texts at once: each step runs a token of every session that has one, so all of them take little
// longer than one alone.
//
//     cc batch.c -lfrit -o batch && ./batch model.gguf "Once upon a time" "The king" "In the forest"
#include <frit.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TEXTS = 8, MAX_PROMPT = 256, N_PREDICT = 16 };

typedef struct text {
    frit_session *session;
    frit_sampler *sampler;
    frit_token tokens[N_PREDICT];
    int n_tokens;
    int is_done;
} text;

static frit_status begin(text *t, const frit_model *model, frit_engine *engine, const char *prompt)
{
    frit_token tokens[MAX_PROMPT];
    size_t n_tokens = 0;
    frit_status status = frit_session_new(&t->session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&t->sampler, model, NULL);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(t->session, tokens, n_tokens, NULL);
    return status;
}

// After a step: the next token of a session whose tokens have run. Long prompts take several steps, others wait for
// room in the cache.
static frit_status go_on(text *t, const frit_model *model)
{
    frit_token token;
    if (t->is_done || frit_session_pending(t->session) > 0) return frit_session_status(t->session);
    frit_status status = frit_sampler_sample(t->sampler, frit_session_logits(t->session), &token);
    if (status == FRIT_OK) status = frit_sampler_accept(t->sampler, token);
    if (status != FRIT_OK) return status;
    t->is_done = frit_token_is_end(model, token);
    if (!t->is_done) t->tokens[t->n_tokens++] = token;
    if (t->n_tokens == N_PREDICT) t->is_done = 1;
    return t->is_done ? FRIT_OK : frit_session_push(t->session, &token, 1, NULL);
}

static frit_status run(text *texts, int n_texts, const frit_model *model, frit_engine *engine)
{
    int n_steps = 0, n_all = 0;
    frit_status status = FRIT_OK;
    for (int n_left = n_texts; n_left > 0 && status == FRIT_OK;) {
        status = frit_engine_step(engine, NULL);
        n_steps++;
        n_left = 0;
        for (int i = 0; i < n_texts && status == FRIT_OK; i++) {
            status = go_on(&texts[i], model);
            n_left += !texts[i].is_done;
        }
    }
    for (int i = 0; i < n_texts; i++) n_all += texts[i].n_tokens;
    if (status == FRIT_OK) printf("%d tokens of %d texts in %d steps\n", n_all, n_texts, n_steps);
    return status;
}

static void print_text(const text *t, const frit_model *model, const char *prompt)
{
    size_t n_bytes;
    printf("%s", prompt);
    for (int i = 0; i < t->n_tokens; i++) {
        const char *piece = frit_token_piece(model, t->tokens[i], &n_bytes);
        fwrite(piece, 1, n_bytes, stdout);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    const char *own[] = {"Once upon a time", "The king", "In the forest"};
    const char **prompts = argc > 2 ? (const char **)argv + 2 : own;
    int n_texts = argc > 2 ? argc - 2 : 3;
    if (n_texts > MAX_TEXTS) n_texts = MAX_TEXTS;
    text texts[MAX_TEXTS] = {{0}};
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    const frit_engine_options options = {.n_ctx = 512, .n_sessions = n_texts};
    frit_status status = frit_model_open(&model, argc > 1 ? argv[1] : "models/fable.gguf", NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, &options);
    for (int i = 0; i < n_texts && status == FRIT_OK; i++) status = begin(&texts[i], model, engine, prompts[i]);
    if (status == FRIT_OK) status = run(texts, n_texts, model, engine);
    for (int i = 0; i < n_texts && status == FRIT_OK; i++) print_text(&texts[i], model, prompts[i]);
    if (status != FRIT_OK) fprintf(stderr, "batch: %s\n", frit_error());
    for (int i = 0; i < n_texts; i++) {
        frit_sampler_free(texts[i].sampler);
        frit_session_free(texts[i].session);
    }
    frit_engine_free(engine);
    frit_model_free(model);
    return status != FRIT_OK;
}
