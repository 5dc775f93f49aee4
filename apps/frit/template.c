// SPDX-License-Identifier: MIT
// frit template: renders messages with a chat template.
#include "frit/cli/cli.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct template_options {
    const char *source, *messages, *tools, *variables;
    bool no_generation_prompt;
} template_options;

typedef struct template_args {
    cli_common common;
    template_options template;
} template_args;

static const frit_option *template_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "template",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(template_options, source),
         .metavar = "FILE",
         .help = "a template (Jinja) to use instead of the model's"},
        {.name = "messages",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(template_options, messages),
         .metavar = "FILE",
         .help = "JSON: a list of messages, or an object with \"messages\" ('-': from stdin)"},
        {.name = "tools",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(template_options, tools),
         .metavar = "FILE",
         .help = "JSON: a list of tools"},
        {.name = "vars",
         .aliases = "chat-template-kwargs",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(template_options, variables),
         .metavar = "JSON",
         .help = "an object of further variables, as in '{\"enable_thinking\": false}'"},
        {.name = "no-generation-prompt",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(template_options, no_generation_prompt),
         .help = "do not open the assistant's turn at the end"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int set_messages(json_t *variables, const char *path)
{
    json_t *json;
    int code = cli_read_json(path, JSON_DECODE_ANY, &json);
    if (code != CLI_DONE) return code;
    if (json_is_array(json))
        json_object_set(variables, "messages", json);
    else if (json_is_array(json_object_get(json, "messages")))
        json_object_update(variables, json);
    else
        code = cli_fail("%s: neither a list of messages nor an object with \"messages\"", path);
    json_decref(json);
    return code;
}

static int set_tools(json_t *variables, const char *path)
{
    json_t *json;
    const int code = cli_read_json(path, JSON_DECODE_ANY, &json);
    if (code != CLI_DONE) return code;
    if (json_is_array(json)) {
        json_object_set_new(variables, "tools", json);
        return CLI_DONE;
    }
    json_decref(json);
    return cli_fail("%s: expected a list of tools", path);
}

static int set_variables(json_t *variables, const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    if (!json) return cli_usage("--vars: is not JSON: %s", error.text);
    int code = json_is_object(json) ? CLI_DONE : cli_usage("--vars: expected a JSON object");
    json_object_update(variables, json);
    json_decref(json);
    return code;
}

static int print_prompt(const frit_model *model, const char *source, const json_t *variables)
{
    char *json = json_dumps(variables, JSON_COMPACT);
    if (!json) return cli_no_memory();
    size_t n_json = strlen(json), n = 0;
    char *text = NULL;
    frit_status status = frit_chat_render_json(model, source, json, n_json, NULL, 0, &n);
    if (status == FRIT_E_LIMIT && n > 0) {
        text = malloc(n);
        status = text ? frit_chat_render_json(model, source, json, n_json, text, n, &n) : FRIT_E_MEMORY;
    }
    // Messages that a template refuses are not wrong usage.
    int code = status == FRIT_OK          ? CLI_DONE
               : status == FRIT_E_INVALID ? cli_fail("%s", frit_error())
                                          : cli_report(status);
    if (code == CLI_DONE) cli_put_text(stdout, text, n);
    free(text);
    free(json);
    return code;
}

static int run(void *ctx)
{
    const template_args *args = ctx;
    const template_options *o = &args->template;
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    if (!o->messages) return cli_usage("template: --messages FILE is missing");
    frit_model *model = NULL;
    cli_text source = {0};
    json_t *variables = json_object();
    int code = CLI_DONE;
    cli_exit_on_signal(true);   // the command writes no file
    if (o->source && cli_read_file(o->source, &source) != CLI_DONE) code = CLI_BAD_MODEL;
    // A given template needs no model: a model is opened only if it is named.
    if (code == CLI_DONE && (!o->source || path || args->common.model))
        code = cli_open_model(&model, &args->common, &(frit_model_options){.vocab_only = true}, path);
    if (code == CLI_DONE) code = set_messages(variables, o->messages);
    if (code == CLI_DONE && o->tools) code = set_tools(variables, o->tools);
    if (code == CLI_DONE && o->no_generation_prompt)
        json_object_set_new(variables, "add_generation_prompt", json_false());
    if (code == CLI_DONE && o->variables) code = set_variables(variables, o->variables);
    if (code == CLI_DONE) code = print_prompt(model, o->source ? source.data : NULL, variables);
    json_decref(variables);
    free(source.data);
    frit_model_free(model);
    return code;
}

static const cli_group groups[] = {
    {"Prompt", template_rows, offsetof(template_args, template)},
    {"General", cli_common_rows, offsetof(template_args, common)},
};

const cli_command cli_command_template = {
    .name = "template",
    .usage = "[MODEL | --template FILE] --messages FILE [options]",
    .summary = "show the prompt that a chat template makes",
    .details = "Prints the prompt to the byte, without a newline after it. The model may be a folder or a tokenizer's\n"
               "own file; what 'frit chat' saves can be read as messages.\n"
               "\n"
               "  frit template model.gguf --messages talk.json\n"
               "  frit template --template chat_template.jinja --messages talk.json --tools tools.json\n"
               "  echo '[{\"role\": \"user\", \"content\": \"Hello\"}]' | frit template --messages -",
    .max_positional = 1,
    .args_bytes = sizeof(template_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
