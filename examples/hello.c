// SPDX-License-Identifier: MIT
// Opens a model, continues a text with the likeliest tokens, prints it.
//
//     cc hello.c -lfrit -o hello && ./hello model.gguf "Once upon a time"
#include <frit.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PROMPT = 512, N_PREDICT = 48 };

// Shows tokens as they come, until the answer ends.
static frit_status generate(const frit_model *model, frit_session *session, frit_sampler *sampler,
                            frit_text_stream *stream)
{
    frit_status status = FRIT_OK;
    frit_token token;
    const char *text;
    size_t n_bytes;
    for (int i = 0; i < N_PREDICT && status == FRIT_OK; i++) {
        status = frit_session_next(session, sampler, &token);
        if (status != FRIT_OK || frit_token_is_end(model, token)) break;
        status = frit_text_stream_push(stream, token, &text, &n_bytes);
        if (status == FRIT_OK) fwrite(text, 1, n_bytes, stdout);
    }
    putchar('\n');
    return status;
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "models/fable.gguf";
    const char *prompt = argc > 2 ? argv[2] : "Once upon a time";
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_text_stream *stream = NULL;
    frit_token tokens[MAX_PROMPT];
    size_t n_tokens = 0;

    frit_status status = frit_model_open(&model, path, NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, NULL);
    if (status == FRIT_OK) status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, NULL);
    if (status == FRIT_OK) status = frit_text_stream_new(&stream, model, 0);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n_tokens, NULL);
    if (status == FRIT_OK) printf("%s", prompt);
    if (status == FRIT_OK) status = generate(model, session, sampler, stream);
    if (status != FRIT_OK) fprintf(stderr, "hello: %s\n", frit_error());

    frit_text_stream_free(stream);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return status == FRIT_OK ? 0 : 1;
}
