// SPDX-License-Identifier: MIT
// frit chat: a conversation. The options, and the loop: reads input, which is a command or a message to answer.
#include "frit/chat/chat.h"

#include "frit/os/screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct chat_options {
    const char *system, *load, *session, *variables;
    int32_t n_predict, image_tokens;
    frit_option_list images;
    bool verbose, no_context_shift;
} chat_options;

typedef struct chat_args {
    cli_common common;
    chat_options chat;
    frit_sampler_options sampler;
    cli_grammar_options grammar;
    cli_adapter_options adapters;
    cli_speculate_options speculate;
    app_shift_options shift;
    frit_engine_options engine;
    frit_model_options model;
} chat_args;

static const frit_option *chat_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "system",
         .letters = "sys",
         .aliases = "system-prompt",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(chat_options, system),
         .metavar = "TEXT",
         .help = "a system message at the start"},
        {.name = "image",
         .type = FRIT_OPTION_LIST,
         .offset = offsetof(chat_options, images),
         .metavar = "FILE",
         .help = "a picture before the first message, as /image adds it (may be given several times)"},
        {.name = "image-tokens",
         .aliases = "image-max-tokens",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(chat_options, image_tokens),
         .min = 0,
         .max = 1 << 20,
         .metavar = "N",
         .help = "shrink pictures until they have N tokens at most; 0: the model's limit"},
        {.name = "load",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(chat_options, load),
         .metavar = "FILE",
         .help = "continue a conversation that was saved"},
        {.name = "session",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(chat_options, session),
         .metavar = "FILE",
         .help = "go on where the last chat with this file ended, without reading it again"},
        {.name = "vars",
         .aliases = "chat-template-kwargs",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(chat_options, variables),
         .metavar = "JSON",
         .help = "variables for the chat template, a JSON object, as '{\"enable_thinking\": false}'"},
        {.name = "n-predict",
         .letter = 'n',
         .aliases = "predict",
         .type = FRIT_OPTION_INT,
         .offset = offsetof(chat_options, n_predict),
         .min = -1,
         .max = 2147483647,
         .fallback = "-1",
         .metavar = "N",
         .help = "tokens of one answer at most"},
        {.name = "no-context-shift",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(chat_options, no_context_shift),
         .help = "end an answer where the context is full; without it the oldest turns are dropped"},
        {.name = "verbose",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(chat_options, verbose),
         .help = "statistics after each answer, as /stats shows them"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// Returns true for the name of a picture's file and nothing else, which is what a terminal types when a file is dropped
// on it.
static bool is_picture(const char *text)
{
    char *name = strdup(text);
    const char *rest = name ? chat_file_take_name(name) : "";
    const bool is_it = name && !rest[0] && chat_pictures_names_one(name) && access(name, R_OK) == 0;
    free(name);
    return is_it;
}

static int add_picture(chat *c, const char *text)
{
    cli_text command = {0};
    cli_text_add(&command, "/image ", 7);
    cli_text_add(&command, text, strlen(text));
    const int code = chat_command_run(c, command.data);
    free(command.data);
    return code;
}

static int take(chat *c, const char *text)
{
    if (text[strspn(text, " \t\n")] == 0) return CLI_DONE;
    if (is_picture(text)) return add_picture(c, text);
    if (text[0] == '/' && text[1] != '/') return chat_command_run(c, text);
    text += text[0] == '/';
    const json_t *call = chat_talk_open_call(c);
    bool added = call ? chat_talk_add_result(c, call, text) : chat_talk_add(c, "user", text);
    return added && !chat_talk_open_call(c) ? chat_talk_answer(c) : CLI_DONE;
}

// Writes settings that differ from the defaults: "temp 0.8, top-k 40".
static void write_sampling(const frit_sampler_options *s, cli_text *out)
{
    char text[160];
    if (s->temp <= 0) {
        cli_text_add(out, "greedy", 6);
        return;
    }
    snprintf(text, sizeof text, "temp %g", (double)s->temp);
    cli_text_add(out, text, strlen(text));
    const struct {
        const char *name;
        double value, off;
    } rows[] = {
        {"top-k", s->top_k, 0},
        {"top-p", (double)s->top_p, 1},
        {"min-p", (double)s->min_p, 0},
        {"repeat-penalty", (double)s->repeat_penalty, 1},
    };
    for (size_t i = 0; i < CLI_COUNT(rows); i++) {
        snprintf(text, sizeof text, ", %s %g", rows[i].name, rows[i].value);
        if (rows[i].value != 0 && rows[i].value != rows[i].off) cli_text_add(out, text, strlen(text));
    }
}

static void greet(const chat *c)
{
    frit_model_info info;
    frit_engine_info engine;
    frit_model_get_info(c->model, &info);
    frit_engine_get_info(c->engine, &engine);
    const char *slash = strrchr(info.path, '/');
    cli_text sampling = {0};
    write_sampling(&c->sampling, &sampling);
    cli_note(c->common, "%s (%s, %s), context %d, %s", slash && slash[1] ? slash + 1 : info.path, info.architecture,
             info.file_type, engine.n_ctx, sampling.data);
    cli_note(c->common, "/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves.");
    free(sampling.data);
}

static int converse(chat *c)
{
    bool warned = false;   // an interrupt was reported; the next one ends the program
    int code = CLI_DONE;
    if (c->interactive) greet(c);
    while (!c->leaves && !cli_was_told_to_end() && cli_flush() &&
           (code == CLI_DONE || (c->interactive && code == CLI_FAILED))) {
        char *text;
        bool was_empty = false;
        chat_key key = chat_input_read(c->input, c->draft, &text, &was_empty);
        free(c->draft);
        c->draft = NULL;
        if (key == CHAT_KEY_END) break;
        if (key == CHAT_KEY_INTERRUPT) {
            if (!c->interactive || cli_was_told_to_end()) return CLI_INTERRUPTED;
            if (warned && was_empty) break;
            chat_say(was_empty ? "\nCtrl-C once more leaves" : "");
            warned = was_empty;
            continue;
        }
        c->interrupted = false;
        code = take(c, text);
        warned = c->interrupted;
        free(text);
    }
    if (c->interactive && !c->leaves) putchar('\n');
    return code == CLI_DONE && (cli_was_told_to_end() || !cli_flush()) ? CLI_INTERRUPTED : code;
}

static int open_session(chat *c, const cli_adapters *adapters)
{
    frit_model_info info;
    frit_model_get_info(c->model, &info);
    if (strcmp(info.tokenizer, "none") == 0) return cli_fail("%s has no vocabulary, which a chat needs", info.path);
    if (frit_session_new(&c->session, c->engine) != FRIT_OK) return cli_report(FRIT_E_MEMORY);
    const frit_status status = cli_use_adapters(adapters, c->session);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static int open_chat(chat *c, const chat_args *args)
{
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    json_error_t error;
    c->messages = json_array();
    c->variables = args->chat.variables ? json_loads(args->chat.variables, 0, &error) : json_object();
    if (!json_is_object(c->variables)) return cli_usage("--vars: expected a JSON object");
    if (args->shift.on && args->chat.no_context_shift)
        return cli_usage("chat: --context-shift and --no-context-shift are given; expected one");
    int code = cli_check_shift(&args->shift);
    if (code == CLI_DONE) code = cli_open_model(&c->model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_check_generates(c->model, true);
    cli_adapters adapters = {0};
    if (code == CLI_DONE) code = cli_open_adapters(&adapters, c->model, &args->common, &args->adapters);
    if (code == CLI_DONE) code = cli_open_engine(&c->engine, &args->common, c->model, &args->engine);
    if (code == CLI_DONE) code = open_session(c, &adapters);
    cli_free_adapters(&adapters);
    if (code == CLI_DONE)
        code = cli_use_speculation(&c->drafter, &args->speculate, c->model, &args->common, &args->engine, c->session);
    if (code == CLI_DONE)
        code = cli_use_shift(&args->shift, c->engine, c->session, 0);   // fails before the first question
    if (code != CLI_DONE) return code;
    c->sampling = args->sampler;
    cli_recommend(&args->common, c->model, &c->sampling);
    code = chat_talk_make_sampler(c);
    if (code == CLI_DONE) code = cli_read_format(&c->format, c->model, &args->grammar);
    if (code == CLI_DONE && args->chat.load && args->chat.session)
        return cli_usage("chat: --load and --session both name a conversation; give one");
    if (code == CLI_DONE && args->chat.session) code = cli_check_writable(args->chat.session);
    if (code == CLI_DONE && args->chat.load) code = chat_file_load(c, args->chat.load);
    if (code == CLI_DONE && args->chat.session) code = chat_file_open_session(c, args->chat.session);
    if (code == CLI_DONE && args->chat.system && !chat_talk_set_system(c, args->chat.system)) code = CLI_USAGE;
    for (size_t i = 0; code == CLI_DONE && i < args->chat.images.n; i++)
        code = strcmp(args->chat.images.items[i], "-") == 0
                   ? cli_usage("chat: --image -: stdin has the conversation; expected a file")
                   : chat_pictures_wait(c, args->chat.images.items[i]);
    return code;
}

static int run(void *ctx)
{
    const chat_args *args = ctx;
    const char *term = getenv("TERM");
    chat c = {.common = &args->common,
              .n_predict = args->chat.n_predict,
              .verbose = args->chat.verbose,
              .keeps_all = args->chat.no_context_shift,
              .session_path = args->chat.session,
              .pictures = chat_pictures_new((uint32_t)args->chat.image_tokens),
              .shift = args->shift};
    c.interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    c.fancy = cli_color(&args->common, stdout);
    int code = c.pictures ? open_chat(&c, args) : cli_no_memory();
    c.edits = c.interactive && term && strcmp(term, "dumb") != 0;
    if (c.interactive) cli_watch_size();
    if (code == CLI_DONE && !(c.input = chat_input_new(c.edits, c.interactive))) code = cli_no_memory();
    if (code == CLI_DONE) {
        code = converse(&c);
        int saved = args->chat.session ? chat_file_save_session(&c, args->chat.session) : CLI_DONE;
        if (code == CLI_DONE) code = saved;
    }
    chat_input_free(c.input);
    free((void *)c.format.format);
    frit_sampler_free(c.sampler);
    frit_session_free(c.session);
    chat_pictures_free(c.pictures);
    cli_drafter_free(&c.drafter);
    frit_engine_free(c.engine);
    frit_model_free(c.model);
    json_decref(c.messages);
    json_decref(c.tools);
    json_decref(c.variables);
    free(c.tokens);
    free(c.draft);
    free(c.kept_text);
    return code;
}

static const cli_group groups[] = {
    {"Conversation", chat_rows, offsetof(chat_args, chat)},
    {"Sampling", frit_sampler_option_rows, offsetof(chat_args, sampler)},
    {"Constrained answers", cli_grammar_rows, offsetof(chat_args, grammar)},
    {"Adapters", cli_adapter_rows, offsetof(chat_args, adapters)},
    {"Speculation", cli_speculate_rows, offsetof(chat_args, speculate)},
    {"Long answers", cli_shift_rows, offsetof(chat_args, shift)},
    {"Engine", frit_engine_option_rows, offsetof(chat_args, engine)},
    {"Model", frit_model_option_rows, offsetof(chat_args, model)},
    {"General", cli_common_rows, offsetof(chat_args, common)},
};

const cli_command cli_command_chat = {
    .name = "chat",
    .usage = "[MODEL] [options]",
    .summary = "have a conversation",
    .usual = "system image load session n-predict verbose temp top-k top-p repeat-penalty seed json-schema lora "
             "ctx threads gpu-layers type model hf-repo quiet",
    .details =
        "Type a message and press Enter; arrow keys edit and recall lines, a paste is one message however many lines\n"
        "it has, and so is what stands between \"\"\" and \"\"\". /help lists the commands: settings, files, undo and\n"
        "others; Tab completes them. Ctrl-C stops an answer, a second one leaves; so does Ctrl-D. What was typed is "
        "kept in\n"
        "$XDG_STATE_HOME/frit/history (~/.local/state), for its owner alone.\n"
        "Where the context is full the oldest turns leave, the system message stays, and what is left runs again.\n"
        "With --context-shift an answer that fills it drops the oldest tokens instead, and nothing runs again.\n"
        "In a pipe every line of stdin is a message or a command; only answers go to stdout, reasoning between\n"
        "<think> and </think>, calls of tools as JSON. After a call the next message is what the tool gave.\n"
        "/image FILE, or the name of a picture alone, adds the picture to the next message, where the model reads "
        "some.\n"
        "\n"
        "  frit chat\n"
        "  frit chat model.gguf --system \"Answer in one sentence.\"\n"
        "  frit chat model.gguf --load talk.json\n"
        "  frit chat model.gguf --session talk.frit",
    .max_positional = 1,
    .args_bytes = sizeof(chat_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
