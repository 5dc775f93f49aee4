// SPDX-License-Identifier: MIT
// Continues a text that repeats itself, with guesses from the text so far, and says how many of them were right.
//
//     cc speculate.c -lfrit -o speculate && ./speculate model.gguf
#include <frit.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PROMPT = 512, N_PREDICT = 40, AT_ONCE = 16 };

static const char verse[] = "The fox ran to the wood, and the hare ran to the wood. The fox ran to the wood, and the "
                            "hare ran to the wood. The fox ran to the wood, and the hare ran";

static frit_status print_text(const frit_model *model, frit_session *session, frit_sampler *sampler)
{
    frit_status status = FRIT_OK;
    for (size_t n_all = 0, n = 0; n_all < N_PREDICT && status == FRIT_OK; n_all += n) {
        frit_token tokens[AT_ONCE];
        const size_t n_left = N_PREDICT - n_all;
        status = frit_session_next_tokens(session, sampler, tokens, n_left < AT_ONCE ? n_left : AT_ONCE, &n);
        for (size_t i = 0; i < n; i++) {
            size_t n_bytes;
            const char *piece = frit_token_piece(model, tokens[i], &n_bytes);
            fwrite(piece, 1, n_bytes, stdout);
            if (frit_token_is_end(model, tokens[i])) return FRIT_OK;
        }
    }
    return status;
}

static frit_status go_on(const frit_model *model, frit_engine *engine)
{
    frit_token tokens[MAX_PROMPT];
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_speculation_info info;
    size_t n_tokens = 0;
    // `always` shows what happens; without it, guesses run where they make this machine faster.
    const frit_speculate_options options = {.kind = "ngram", .always = true, .max_drafts = 6};
    frit_status status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, NULL);
    if (status == FRIT_OK)
        status = frit_tokenize(model, verse, strlen(verse), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n_tokens, NULL);
    if (status == FRIT_OK) status = frit_session_speculate(session, &options);
    if (status == FRIT_OK) status = print_text(model, session, sampler);
    if (status == FRIT_OK) status = frit_session_get_speculation(session, &info);
    if (status == FRIT_OK) printf("\n%d of %d guesses were right\n", (int)info.n_accepted, (int)info.n_drafted);
    frit_sampler_free(sampler);
    frit_session_free(session);
    return status;
}

int main(int argc, char **argv)
{
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    frit_status status = frit_model_open(&model, argc > 1 ? argv[1] : "models/fable.gguf", NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, NULL);
    if (status == FRIT_OK) status = go_on(model, engine);
    if (status != FRIT_OK) fprintf(stderr, "speculate: %s\n", frit_error());
    frit_engine_free(engine);
    frit_model_free(model);
    return status != FRIT_OK;
}
