// SPDX-License-Identifier: MIT
// A program of version 0.2: compiled with the headers of this version (abi/0.2), linked to the current library.
//
//     old_caller models/fable.gguf
#include <frit_tools.h>

#include <stdio.h>
#include <string.h>

enum { MAX_PROMPT = 64, N_PREDICT = 6 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, frit_error());
    return 1;
}

// Checks that information functions fill only the fields that the program knows.
static int check_info(const frit_model *model)
{
    struct {
        frit_model_info info;
        unsigned char after[64];
    } guarded;
    memset(&guarded, 0x5a, sizeof guarded);
    if (frit_model_get_info(model, &guarded.info) != FRIT_OK) return fail("information");
    for (size_t i = 0; i < sizeof guarded.after; i++)
        if (guarded.after[i] != 0x5a) return fail("the library wrote after frit_model_info");
    return strcmp(guarded.info.architecture, "llama") == 0 && guarded.info.n_vocab > 0 ? 0 : fail("another model");
}

static int continue_text(const frit_model *model, frit_engine *engine)
{
    const frit_sampler_options options = {.temp = 0, .samplers = "top-k,temp"};
    const char *prompt = "Once upon a time";
    frit_token tokens[MAX_PROMPT];
    char text[256];
    size_t n = 0, n_bytes = 0;
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_status status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, &options);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n, &(frit_push_options){0});
    for (int i = 0; i < N_PREDICT && status == FRIT_OK; i++) status = frit_session_next(session, sampler, &tokens[i]);
    if (status == FRIT_OK) status = frit_detokenize(model, tokens, N_PREDICT, 0, text, sizeof text, &n_bytes);
    frit_sampler_free(sampler);
    frit_session_free(session);
    if (status != FRIT_OK) return fail("generating");
    printf("%.*s\n", (int)n_bytes, text);
    return n_bytes > 12 && memcmp(text, " there was a", 12) == 0 ? 0 : fail("another text");
}

int main(int argc, char **argv)
{
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    const frit_model_options model_options = {.no_mmap = true};
    const frit_engine_options engine_options = {.n_ctx = 64, .n_threads = 1};
    if (argc != 2) return 2;
    if (frit_model_open(&model, argv[1], &model_options) != FRIT_OK) return fail("opening");
    int code = check_info(model);
    if (frit_engine_new(&engine, model, &engine_options) != FRIT_OK) code = fail("an engine");
    if (code == 0) code = continue_text(model, engine);
    frit_engine_free(engine);
    frit_model_free(model);
    return code;
}
