// SPDX-License-Identifier: MIT
// Any bytes as text, as a conversation and as options. Decoding the tokens must give the text, the stream must give it
// in valid UTF-8, and every refusal must have an error text.
#include "base/utf8.h"
#include "frit_tools.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MAX_TOKENS = 1 << 16, MAX_BYTES = 1 << 20 };
static frit_model *model;
static frit_token tokens[MAX_TOKENS];
static char text[MAX_BYTES];

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const frit_model_options options = {.vocab_only = true};
    require(frit_model_open(&model, FRIT_SOURCE_DIR "/models/fable.gguf", &options) == FRIT_OK);
    return 0;
}

static size_t tokenize(const char *bytes, size_t n_bytes, unsigned flags)
{
    size_t n;
    require(frit_tokenize(model, bytes, n_bytes, flags, tokens, MAX_TOKENS, &n) == FRIT_OK && n <= MAX_TOKENS);
    return n;
}

static void round_trip(const char *bytes, size_t n_bytes)
{
    size_t n_tokens = tokenize(bytes, n_bytes, 0), n_back;
    require(frit_detokenize(model, tokens, n_tokens, 0, text, MAX_BYTES, &n_back) == FRIT_OK);
    if (frit_utf8_valid_prefix(bytes, n_bytes) != n_bytes) return;   // invalid text is replaced
    require(n_back == n_bytes && memcmp(text, bytes, n_bytes) == 0);
}

static void stream(const char *bytes, size_t n_bytes)
{
    size_t n_tokens = tokenize(bytes, n_bytes, FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL), n;
    frit_text_stream *s;
    const char *piece;
    require(frit_text_stream_new(&s, model, FRIT_TEXT_SPECIAL) == FRIT_OK);
    for (size_t i = 0; i < n_tokens; i++) {
        require(frit_text_stream_push(s, tokens[i], &piece, &n) == FRIT_OK);
        require(frit_utf8_valid_prefix(piece, n) == n && piece[n] == 0);
    }
    require(frit_text_stream_flush(s, &piece, &n) == FRIT_OK && frit_utf8_valid_prefix(piece, n) == n);
    frit_text_stream_free(s);
}

static void render(char *content, size_t n_bytes)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    size_t third = n_bytes / 3, n;
    frit_message messages[3];
    for (int i = 0; i < 3; i++) {
        messages[i] = (frit_message){.role = roles[n_bytes > 0 ? content[i * third] & 3 : 0],
                                     .content = content + (size_t)i * third};
        if (i > 0 && third > 0) content[(size_t)i * third - 1] = 0;   // each ends before the next begins
    }
    if (frit_chat_render(model, messages, 3, NULL, text, MAX_BYTES, &n) != FRIT_OK) require(frit_error()[0] != 0);
}

static void set_options(const char *value)
{
    frit_sampler_options options = {0};
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++)
        if (frit_option_set(&rows[i], &options, value) != FRIT_OK) require(frit_error()[0] != 0);
    frit_sampler *sampler;
    if (frit_sampler_new(&sampler, model, &options) != FRIT_OK) require(frit_error()[0] != 0);
    frit_sampler_free(sampler);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes > MAX_TOKENS / 4) return 0;
    char *copy = malloc(n_bytes + 4);
    require(copy != NULL);
    if (n_bytes > 0) memcpy(copy, bytes, n_bytes);
    memset(copy + n_bytes, 0, 4);
    round_trip(copy, n_bytes);
    stream(copy, n_bytes);
    set_options(copy);
    render(copy, n_bytes);
    free(copy);
    return 0;
}
