// SPDX-License-Identifier: MIT
// Parses any bytes as the body of a request with pictures, decodes these, and makes the tokens of the conversation, as
// the server does before the engine. The first byte selects the protocol. The model is one of ../shared that reads
// pictures; without it, pictures are refused after they were parsed.
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

#define GIF "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
#define PNG "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

static frit_model *model;
static const char *why_not;

static const struct {
    const server_parser *parser;
    const char *start;
} rows[] = {
    {&server_chat_parser,
     "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/gif;"
     "base64," GIF "\",\"detail\":\"low\"}},{\"type\":\"text\",\"text\":\"hi\"},{\"type\":\"image_url\",\"image_url\":"
     "\"data:image/png;base64," PNG "\"}]}]}"},
    {&server_responses_parser,
     "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_image\",\"image_url\":\"data:image/gif;base64," GIF
     "\",\"detail\":\"auto\"},{\"type\":\"input_text\",\"text\":\"a\"}]},{\"type\":\"function_call_output\","
     "\"call_id\":\"c\",\"output\":[{\"type\":\"input_image\",\"file_id\":null,\"image_url\":\"data:image/"
     "png;base64," PNG "\"}]}]}"},
    {&server_anthropic_parser,
     "{\"max_tokens\":5,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":{\"type\":"
     "\"base64\",\"media_type\":\"image/gif\",\"data\":\"" GIF "\"}},{\"type\":\"tool_result\",\"tool_use_id\":\"i\","
     "\"content\":[{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"data\":\"" PNG "\"}}]}]}]}"},
    {&server_ollama_chat_parser,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"images\":[\"" GIF "\",\"" PNG "\"]}]}"},
    {&server_ollama_generate_parser, "{\"prompt\":\"p\",\"images\":[\"" GIF "\"]}"},
};
enum { N_PARSERS = sizeof rows / sizeof rows[0] };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (frit_model_open(&model, FRIT_SOURCE_DIR "/../shared/goldens/media/qwen2_5_vl", NULL) == FRIT_OK) return 0;
    const frit_model_options options = {.vocab_only = true};
    why_not = "no model that reads pictures is here";
    if (frit_model_open(&model, FRIT_SOURCE_DIR "/models/fable.gguf", &options) != FRIT_OK) abort();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    const char *start = rows[seed % N_PARSERS].start;
    const size_t n = strlen(start) + 1;
    if (n_bytes < 8 && max_bytes >= n) {
        bytes[0] = (uint8_t)(seed % N_PARSERS);
        memcpy(bytes + 1, start, n - 1);
        n_bytes = n;
    }
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

static void check_problem(const server_problem *problem)
{
    char *text = server_problem_json(problem);
    json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    if (problem->status < 400 || problem->status > 599 || !problem->message[0] || !json) abort();
    json_decref(json);
    free(text);
}

static bool use_request(server_generation *request, server_picture_memory *memory, server_problem *problem)
{
    frit_token *tokens;
    size_t n = 0;
    const frit_tokenize_limits limits = {.max_tokens = 1 << 16};
    const server_picture_rules rules = {
        .model = model, .why_not = why_not, .max_tokens = 64, .salt = "salt", .memory = memory};
    if (!server_pictures_prepare(&request->prompt.pictures, &request->body, &rules, problem)) return false;
    const server_pictures *pictures = request->prompt.pictures;
    frit_media *media[SERVER_MAX_PICTURES];
    if (server_pictures_list(pictures, &request->body, media) != (pictures ? pictures->n : 0)) abort();
    if (!server_prompt_tokens(model, request, true, &limits, &tokens, &n, problem)) return false;
    if (n == 0) abort();
    free(tokens);
    server_pictures_drop_data(request->prompt.pictures);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return 0;
    const server_parser *parser = rows[bytes[0] % N_PARSERS].parser;
    server_generation request = {0};
    server_picture_memory memory = {0};
    server_problem problem = {0};
    const bool good = server_parse(parser, (const char *)bytes + 1, n_bytes - 1, &request, &problem) &&
                      use_request(&request, &memory, &problem);
    if (!good) check_problem(&problem);
    server_request_deinit(parser, &request);
    if (memory.n_bytes != 0) abort();
    return 0;
}
