// SPDX-License-Identifier: MIT
// Parses any bytes as the body of a request, then does what the server does before the engine: renders and tokenizes
// with the bundled model's vocabulary, makes a sampler. The first byte selects the kind of request. A refusal must have
// a status, a message and an error object that is JSON.
#include "server/request/request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

enum { N_CTX = 4096 };

static frit_model *model;

typedef enum use { USE_CHAT, USE_COMPLETION, USE_TEXT, USE_TEMPLATE } use;

// Each parser, the processing of its requests, and a complete request, so that an empty corpus is enough.
static const struct {
    const server_parser *parser;
    use use;
    const char *start;
} rows[] = {
    {&server_chat_parser, USE_CHAT,
     "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":[{\"type\":"
     "\"text\",\"text\":\"hi\"}]},{\"role\":\"assistant\",\"content\":null}],\"stream\":true,\"stream_options\":{"
     "\"include_usage\":true},\"max_tokens\":5,\"max_completion_tokens\":5,\"temperature\":0.5,\"top_p\":0.9,"
     "\"top_k\":4,\"min_p\":0.1,\"seed\":1,\"stop\":[\"a\",\"b\"],\"logit_bias\":{\"5\":-1.5},\"n\":1,\"tools\":[],"
     "\"tool_choice\":\"auto\",\"parallel_tool_calls\":false,\"chat_template_kwargs\":{\"a\":1},"
     "\"reasoning_effort\":\"low\"}"},
    {&server_completion_parser, USE_COMPLETION,
     "{\"prompt\":\"once\",\"echo\":false,\"logprobs\":null,\"prompt_logprobs\":2,\"stop\":\"x\",\"frequency_penalty\":"
     "0.1,"
     "\"presence_penalty\":0.2,\"repeat_penalty\":1.1,\"repeat_last_n\":-1}"},
    {&server_tokenize_parser, USE_TEXT,
     "{\"content\":\"hello\",\"add_special\":true,\"parse_special\":false,\"with_pieces\":true}"},
    {&server_detokenize_parser, USE_TEXT, "{\"tokens\":[1,2,3],\"special\":true}"},
    {&server_template_parser, USE_TEMPLATE,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"add_generation_prompt\":false}"},
    {&server_anthropic_parser, USE_CHAT,
     "{\"max_tokens\":5,\"system\":[{\"type\":\"text\",\"text\":\"s\"}],\"messages\":[{\"role\":\"user\",\"content\":"
     "\"hi\"},{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"\"},{"
     "\"type\":\"text\",\"text\":\"a\"},{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"f\",\"input\":{}}]},{\"role\":"
     "\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"i\",\"content\":[{\"type\":\"text\",\"text\":"
     "\"r\"}]}]}],\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}}],\"tool_choice\":{\"type\":"
     "\"any\"},"
     "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":5},\"stop_sequences\":[\"x\"],\"output_config\":{\"effort\":"
     "\"low\",\"format\":{\"type\":\"json_schema\",\"schema\":{}}}}"},
    {&server_responses_parser, USE_CHAT,
     "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]},{\"type\":\"reasoning\","
     "\"summary\":[],\"content\":[{\"type\":\"reasoning_text\",\"text\":\"r\"}]},{\"type\":\"message\",\"role\":"
     "\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"a\"}]},{\"type\":\"function_call\",\"call_id\":"
     "\"c\","
     "\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"1\"}],"
     "\"instructions\":\"i\",\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}],\"tool_choice\":{"
     "\"type\":\"function\",\"name\":\"f\"},\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{}}},"
     "\"reasoning\":{\"effort\":\"low\"},\"store\":false,\"max_output_tokens\":5,\"truncation\":\"auto\"}"},
    {&server_native_parser, USE_COMPLETION,
     "{\"prompt\":\"p\",\"n_predict\":5,\"n_probs\":2,\"logit_bias\":[[5,-1.5],[6,false]],\"input_prefix\":\"a\","
     "\"input_suffix\":\"b\",\"input_extra\":[{\"filename\":\"f\",\"text\":\"t\"}]}"},
    {&server_ollama_chat_parser, USE_CHAT,
     "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"\",\"thinking\":"
     "\"t\","
     "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]},{\"role\":\"tool\",\"content\":\"r\"}],"
     "\"tools\":[],\"stream\":false,\"format\":\"json\",\"think\":true,\"options\":{\"num_predict\":5,\"stop\":[\"x\"],"
     "\"seed\":1,\"temperature\":0.5,\"top_k\":3}}"},
    {&server_ollama_generate_parser, USE_CHAT,
     "{\"prompt\":\"p\",\"system\":\"s\",\"raw\":false,\"format\":{\"type\":\"object\"},\"suffix\":\"\"}"},
    {&server_adapters_parser, USE_COMPLETION, "[{\"id\":0,\"scale\":0.5},{\"id\":1}]"},
};
enum { N_PARSERS = sizeof rows / sizeof rows[0] };

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const frit_model_options options = {.vocab_only = true};
    if (frit_model_open(&model, FRIT_SOURCE_DIR "/models/fable.gguf", &options) != FRIT_OK) abort();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    const char *start = rows[seed % N_PARSERS].start;
    size_t n = strlen(start) + 1;
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

static bool use_generation(server_generation *request, bool chat, server_problem *problem)
{
    frit_token *tokens;
    size_t n = 0;
    const frit_tokenize_limits limits = {.max_tokens = N_CTX - 1};
    if ((request->prompt.prefix || request->prompt.suffix) && !server_infill_tokens(model, request, &limits, problem))
        return false;
    if (!server_prompt_tokens(model, request, chat, &limits, &tokens, &n, problem)) return false;
    if (n == 0 || n >= N_CTX) abort();
    free(tokens);
    frit_sampler *sampler;
    frit_status status = frit_sampler_new(&sampler, model, &request->sampling.options);
    if (status == FRIT_OK) frit_sampler_free(sampler);
    return status == FRIT_OK || server_refuse_status(problem, 400, NULL, status);
}

static bool use_text(const server_text_request *request, bool chat, server_problem *problem)
{
    size_t n = 0;
    bool good = true;
    if (request->text) {
        frit_token *tokens = server_tokens(model, request->text, request->n_text,
                                           request->parse_special ? FRIT_TEXT_PARSE_SPECIAL : FRIT_TEXT_SPECIAL,
                                           &(frit_tokenize_limits){0}, &n, problem);
        good = tokens != NULL;
        free(tokens);
    }
    if (chat) {
        frit_turn *turn = server_turn(model, &request->body, NULL, problem);
        good = turn != NULL;
        frit_turn_free(turn);
    }
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    if (n_bytes == 0) return 0;
    size_t kind = bytes[0] % N_PARSERS;
    union {
        server_generation generation;
        server_text_request text;
    } request;
    memset(&request, 0, sizeof request);
    server_problem problem = {0};
    bool good = server_parse(rows[kind].parser, (const char *)bytes + 1, n_bytes - 1, &request, &problem);
    if (good)
        good = rows[kind].use <= USE_COMPLETION
                   ? use_generation(&request.generation, rows[kind].use == USE_CHAT, &problem)
                   : use_text(&request.text, rows[kind].use == USE_TEMPLATE, &problem);
    if (!good) check_problem(&problem);
    server_request_deinit(rows[kind].parser, &request);
    return 0;
}
