// SPDX-License-Identifier: MIT
// Writes JSON that a schema allows: the grammar leaves the sampler only tokens that can follow.
//
//     cc schema.c -lfrit -o schema && ./schema model.gguf "A king, as JSON: "
#include <frit.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PROMPT = 256, MOST_TOKENS = 200 };

static const char person[] = "{\"type\": \"object\", \"additionalProperties\": false,"
                             " \"required\": [\"name\", \"age\", \"job\"],"
                             " \"properties\": {\"name\": {\"type\": \"string\", \"maxLength\": 20},"
                             " \"age\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 120},"
                             " \"job\": {\"enum\": [\"king\", \"miller\", \"spinner\"]}}}";

static frit_status print_answer(const frit_model *model, frit_session *session, frit_sampler *sampler)
{
    frit_status status = FRIT_OK;
    for (int i = 0; i < MOST_TOKENS && status == FRIT_OK && !frit_sampler_is_over(sampler); i++) {
        frit_token token;
        size_t n_bytes;
        status = frit_session_next(session, sampler, &token);
        if (status != FRIT_OK || frit_token_is_end(model, token)) break;
        const char *piece = frit_token_piece(model, token, &n_bytes);
        fwrite(piece, 1, n_bytes, stdout);
    }
    putchar('\n');
    return status;
}

static frit_status answer(const frit_model *model, frit_engine *engine, const char *prompt)
{
    const frit_grammar_options options = {.kind = FRIT_GRAMMAR_SCHEMA};
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    frit_grammar *grammar = NULL;
    frit_token tokens[MAX_PROMPT];
    size_t n_tokens = 0;
    frit_status status = frit_grammar_new(&grammar, model, person, strlen(person), &options);
    if (status == FRIT_OK) status = frit_session_new(&session, engine);
    if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, NULL);
    if (status == FRIT_OK) status = frit_sampler_set_grammar(sampler, grammar);
    if (status == FRIT_OK)
        status = frit_tokenize(model, prompt, strlen(prompt), FRIT_TEXT_SPECIAL, tokens, MAX_PROMPT, &n_tokens);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n_tokens, NULL);
    if (status == FRIT_OK) status = print_answer(model, session, sampler);
    frit_grammar_free(grammar);
    frit_sampler_free(sampler);
    frit_session_free(session);
    return status;
}

int main(int argc, char **argv)
{
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    const frit_engine_options options = {.n_ctx = 512};
    frit_status status = frit_model_open(&model, argc > 1 ? argv[1] : "models/fable.gguf", NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, &options);
    if (status == FRIT_OK) status = answer(model, engine, argc > 2 ? argv[2] : "A king, as JSON: ");
    if (status != FRIT_OK) fprintf(stderr, "schema: %s\n", frit_error());
    frit_engine_free(engine);
    frit_model_free(model);
    return status != FRIT_OK;
}
