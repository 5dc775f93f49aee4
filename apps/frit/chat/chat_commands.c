// SPDX-License-Identifier: MIT
// The slash commands of frit chat: a table, and a function for each row. Their messages go to stderr.
#include "frit/chat/chat.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name, *usage, *help;
    int (*run)(chat *c, char *rest);   // `rest`: without spaces around it; may be changed
    bool takes_file;                   // `rest` begins with the name of a file
} command;

void chat_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    cli_say(format, args);
    va_end(args);
}

// Says how many pictures the next message has.
static void say_waiting(const chat *c)
{
    const size_t n = chat_pictures_waiting(c);
    if (n > 0)
        chat_say("%zu %s with the next message; /image - takes them out", n, n == 1 ? "picture goes" : "pictures go");
}

// ---------------------------------------------------------------------------------------- messages

static int run_system(chat *c, char *rest)
{
    if (rest[0]) {
        bool clears = strcmp(rest, "-") == 0;
        if (chat_talk_set_system(c, clears ? "" : rest)) chat_say(clears ? "no system message" : "system message set");
    } else if (chat_talk_system(c)[0]) {
        chat_say("%s", chat_talk_system(c));
    } else {
        chat_say("no system message; /system TEXT sets one, /system - removes it");
    }
    return CLI_DONE;
}

static int run_clear(chat *c, char *rest)
{
    (void)rest;
    char *system = strdup(chat_talk_system(c));
    json_array_clear(c->messages);
    chat_pictures_forget(c);
    c->n_left_out = 0;
    if (system && system[0]) chat_talk_set_system(c, system);
    free(system);
    chat_say("the conversation begins anew");
    return CLI_DONE;
}

static int ask(chat *c, const char *question)
{
    if (!chat_talk_add(c, "user", question)) return CLI_DONE;
    int code = chat_talk_answer(c);
    return code == CLI_FAILED ? CLI_DONE : code;
}

static int run_regen(chat *c, char *rest)
{
    (void)rest;
    char *question = chat_talk_drop_turn(c);
    if (!question) {
        chat_say("there is nothing to answer yet");
        return CLI_DONE;
    }
    c->sampling.seed++;   // the same seed would give the same answer
    int code = chat_talk_make_sampler(c);
    if (code == CLI_DONE) code = ask(c, question);
    free(question);
    return code;
}

static int run_undo(chat *c, char *rest)
{
    (void)rest;
    char *question = chat_talk_drop_turn(c);
    if (!question) {
        chat_say("there is nothing to take back");
        return CLI_DONE;
    }
    chat_say("taken back: %.60s%s", question, strlen(question) > 60 ? "..." : "");
    say_waiting(c);
    free(c->draft);
    c->draft = strchr(question, '\n') ? NULL : strdup(question);
    free(question);
    return CLI_DONE;
}

static int run_edit(chat *c, char *rest)
{
    if (!c->interactive) {
        chat_say("/edit starts an editor, which needs a terminal");
        return CLI_DONE;
    }
    char *before = rest[0] ? strdup(rest) : chat_talk_drop_turn(c);
    char *after = chat_file_edit(before ? before : "");
    int code = CLI_DONE;
    if (!after && before && !rest[0])
        code = chat_talk_add(c, "user", before) ? CLI_DONE : CLI_FAILED;   // the conversation as before, without the
                                                                           // answer
    else if (after && after[0])
        code = ask(c, after);
    else if (after)
        chat_say("the text is empty: nothing was asked");
    free(before);
    free(after);
    return code;
}

// /read FILE [QUESTION]
static int run_read(chat *c, char *rest)
{
    const char *question = chat_file_take_name(rest);
    if (!rest[0]) {
        chat_say("/read FILE [QUESTION]");
        return CLI_DONE;
    }
    char *path = chat_file_path(rest);
    cli_text text = {0};
    int code = CLI_DONE;
    if (path && cli_read_file(path, &text) == CLI_DONE) {
        if (question[0]) {
            cli_text_add(&text, "\n\n", 2);
            cli_text_add(&text, question, strlen(question));
        }
        if (memchr(text.data, 0, text.n))
            chat_say("%s: not a text", path);
        else
            code = ask(c, text.data);
    }
    free(path);
    free(text.data);
    return code;
}

// /image FILE [QUESTION]
static int run_image(chat *c, char *rest)
{
    if (strcmp(rest, "-") == 0) {
        chat_pictures_forget(c);
        chat_say("the next message has no pictures");
        return CLI_DONE;
    }
    const char *question = chat_file_take_name(rest);
    if (!rest[0]) {
        chat_say("/image FILE [QUESTION]");
        say_waiting(c);
        return CLI_DONE;
    }
    char *path = chat_file_path(rest);
    const int code = path ? chat_pictures_wait(c, path) : cli_no_memory();
    free(path);
    if (code != CLI_DONE) return CLI_DONE;   // the error was printed
    if (question[0]) return ask(c, question);
    say_waiting(c);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- settings

static void print_value(const frit_option *row, const void *fields, char *out, size_t size)
{
    const char *at = (const char *)fields + row->offset;
    int32_t i;
    float f;
    uint64_t u;
    const char *text;
    switch (row->type) {
    case FRIT_OPTION_FLAG:
        snprintf(out, size, "%s", *(const bool *)at ? "on" : "off");
        return;
    case FRIT_OPTION_INT:
        memcpy(&i, at, sizeof i);
        snprintf(out, size, "%d", i);
        return;
    case FRIT_OPTION_FLOAT:
        memcpy(&f, at, sizeof f);
        snprintf(out, size, "%g", (double)f);
        return;
    case FRIT_OPTION_SEED:
        memcpy(&u, at, sizeof u);
        snprintf(out, size, "%llu", (unsigned long long)u);
        return;
    case FRIT_OPTION_TEXT:
    case FRIT_OPTION_CHOICE:
        memcpy(&text, at, sizeof text);
        snprintf(out, size, "%s", text ? text : "(default)");
        return;
    default:
        snprintf(out, size, "-");
    }
}

static void show_settings(const chat *c)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    char value[128];
    for (size_t i = 0; i < n_rows; i++) {
        print_value(&rows[i], &c->sampling, value, sizeof value);
        if (rows[i].type != FRIT_OPTION_LIST) chat_say("  %-18s %-10s %s", rows[i].name, value, rows[i].help);
    }
    chat_say("  %-18s %-10d %s", "n-predict", c->n_predict, "tokens of one answer at most; -1: no limit");
    char *variables = json_dumps(c->variables, JSON_COMPACT);
    chat_say("  %-18s %s  what the template is told, as in /set vars {\"enable_thinking\": false}", "vars",
             variables ? variables : "");
    free(variables);
}

static void show_messages(const chat *c)
{
    for (size_t i = 0; i < json_array_size(c->messages); i++) {
        const json_t *calls = json_object_get(json_array_get(c->messages, i), "tool_calls");
        const char *path;
        for (size_t k = 0; (path = chat_pictures_path(json_array_get(c->messages, i), k)); k++)
            chat_say("%s: picture %s", chat_talk_role(c, i), path);
        chat_say("%s: %s", chat_talk_role(c, i), chat_talk_content(c, i));
        for (size_t k = 0; k < json_array_size(calls); k++) {
            const json_t *function = json_object_get(json_array_get(calls, k), "function");
            const char *name = json_string_value(json_object_get(function, "name"));
            const char *arguments = json_string_value(json_object_get(function, "arguments"));
            chat_say("  calls %s %s", name ? name : "?", arguments ? arguments : "");
        }
    }
    if (json_array_size(c->messages) == 0) chat_say("no messages yet");
}

static const char *const topics[] = {"settings", "messages", "system", "prompt", "model"};

static int run_show(chat *c, char *rest)
{
    frit_model_info info;
    frit_engine_info engine;
    frit_model_get_info(c->model, &info);
    frit_engine_get_info(c->engine, &engine);
    size_t n = 0;
    if (!rest[0] || strcmp(rest, "settings") == 0) {
        show_settings(c);
    } else if (strcmp(rest, "messages") == 0) {
        show_messages(c);
    } else if (strcmp(rest, "system") == 0) {
        run_system(c, "");
    } else if (strcmp(rest, "prompt") == 0) {
        char *prompt = json_array_size(c->messages) > 0 ? chat_talk_prompt(c, &n) : strdup("no messages yet");
        if (prompt) chat_say("%s", prompt);
        free(prompt);
    } else if (strcmp(rest, "model") == 0) {
        chat_say("%s\n%s, %s, template %s, %d threads (%s), context %d", info.path, info.architecture, info.file_type,
                 info.chat_format[0] ? info.chat_format : "guessed", engine.n_threads, engine.isa, engine.n_ctx);
    } else {
        chat_say("/show settings, messages, system, prompt or model");
    }
    return CLI_DONE;
}

static int set_variables(chat *c, const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (json_is_object(json)) {
        json_decref(c->variables);
        c->variables = json;
        return CLI_DONE;
    }
    json_decref(json);
    chat_say("vars: not a JSON object");
    return CLI_DONE;
}

static int set_sampling(chat *c, const char *name, const char *value)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    const char *names[64];
    for (size_t i = 0; i < n_rows; i++) {
        if (i < CLI_COUNT(names)) names[i] = rows[i].name;
        if (strcmp(rows[i].name, name) != 0) continue;
        if (rows[i].type == FRIT_OPTION_LIST) {
            chat_say("%s can be given on the command line only", name);
            return CLI_DONE;
        }
        frit_sampler_options before = c->sampling;
        // The options borrow their texts, but only one text: the order of samplers, by names or by letters.
        char *kept = rows[i].type == FRIT_OPTION_TEXT || rows[i].type == FRIT_OPTION_CHOICE ? strdup(value) : NULL;
        if (kept) c->sampling.samplers = c->sampling.sampler_seq = NULL;
        bool good = frit_option_set(&rows[i], &c->sampling, kept ? kept : value) == FRIT_OK;
        if (!good) chat_say("%s", frit_error());
        good = good && chat_talk_make_sampler(c) == CLI_DONE;
        if (!good) c->sampling = before;
        if (kept) {
            free(good ? c->kept_text : kept);
            if (good) c->kept_text = kept;
        }
        return CLI_DONE;
    }
    const char *nearest = frit_name_nearest(name, names, n_rows < CLI_COUNT(names) ? n_rows : CLI_COUNT(names));
    if (nearest)
        chat_say("no setting '%s'; did you mean '%s'?", name, nearest);
    else
        chat_say("no setting '%s'; /show lists them", name);
    return CLI_DONE;
}

static int run_set(chat *c, char *rest)
{
    char *end = rest + strcspn(rest, " \t="), *value = end + strspn(end, " \t=");
    *end = 0;
    if (!rest[0] || !value[0]) {
        if (rest[0]) chat_say("/set NAME VALUE");
        show_settings(c);
        return CLI_DONE;
    }
    if (strcmp(rest, "vars") == 0) return set_variables(c, value);
    if (strcmp(rest, "n-predict") != 0) return set_sampling(c, rest, value);
    static const frit_option row = {.name = "n-predict", .type = FRIT_OPTION_INT, .min = -1, .max = 2147483647};
    if (frit_option_set(&row, &c->n_predict, value) != FRIT_OK) chat_say("%s", frit_error());
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- files

static int run_save(chat *c, char *rest)
{
    char *path = rest[0] ? chat_file_path(rest) : NULL;
    if (!rest[0])
        chat_say("/save FILE");
    else if (path && chat_file_save(c, path) == CLI_DONE)
        chat_say("%s: %zu messages", path, json_array_size(c->messages));
    free(path);
    return CLI_DONE;
}

static int run_load(chat *c, char *rest)
{
    char *path = rest[0] ? chat_file_path(rest) : NULL;
    if (!rest[0])
        chat_say("/load FILE");
    else if (path && chat_file_load(c, path) == CLI_DONE)
        chat_say("%s: %zu messages", path, json_array_size(c->messages));
    free(path);
    return CLI_DONE;
}

static int run_tools(chat *c, char *rest)
{
    if (strcmp(rest, "-") == 0) {
        json_decref(c->tools);
        c->tools = NULL;
    } else if (rest[0]) {
        char *path = chat_file_path(rest);
        json_t *tools = NULL;
        const int code = path ? cli_read_json(path, 0, &tools) : CLI_FAILED;
        if (json_is_array(tools)) {
            json_decref(c->tools);
            c->tools = tools;
        } else {
            if (code == CLI_DONE) chat_say("%s: not a JSON list of tools", rest);
            json_decref(tools);
        }
        free(path);
    }
    if (!c->tools) chat_say("no tools; /tools FILE tells the model of some, /tools - removes them");
    for (size_t i = 0; i < json_array_size(c->tools); i++) {
        const json_t *tool = json_array_get(c->tools, i), *function = json_object_get(tool, "function");
        const char *name = json_string_value(json_object_get(function ? function : tool, "name"));
        const char *about = json_string_value(json_object_get(function ? function : tool, "description"));
        chat_say("  %-20s %s", name ? name : "?", about ? about : "");
    }
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- figures

static int run_tokens(chat *c, char *rest)
{
    frit_engine_info info;
    frit_engine_get_info(c->engine, &info);
    size_t n = 0;
    if (rest[0]) {
        frit_token *tokens = cli_tokens(c->model, rest, strlen(rest), 0, &n);
        if (tokens) chat_say("%zu tokens", n);
        free(tokens);
        return CLI_DONE;
    }
    if (json_array_size(c->messages) == 0) {
        chat_say("the conversation has no messages yet: 0 %% of the context of %d", info.n_ctx);
        return CLI_DONE;
    }
    frit_token *tokens = chat_talk_tokens(c, &n);
    if (tokens)
        chat_say("the conversation has %zu messages, %zu tokens: %.1f %% of the context of %d",
                 json_array_size(c->messages), n, 100 * (double)n / info.n_ctx, info.n_ctx);
    free(tokens);
    return CLI_DONE;
}

void chat_say_stats(const chat *c)
{
    frit_engine_info info;
    frit_engine_get_info(c->engine, &info);
    const size_t n = frit_session_length(c->session);
    double n_steps = c->n_answer > 1 ? (double)c->n_answer - 1 : 0;
    chat_say("  prompt   %6zu tokens were kept from the last turn\n"
             "           %6zu tokens were run in %.2f s, %.1f tokens/s\n"
             "  answer   %6zu tokens in %.2f s, %.1f tokens/s\n"
             "  context  %6zu of %d tokens, %.0f %%",
             c->n_kept, c->n_prompt, c->prompt_s, c->prompt_s > 0 ? (double)c->n_prompt / c->prompt_s : 0, c->n_answer,
             c->answer_s, c->answer_s > 0 ? n_steps / c->answer_s : 0, n, info.n_ctx, 100 * (double)n / info.n_ctx);
}

static int run_stats(chat *c, char *rest)
{
    (void)rest;
    if (c->n_prompt == 0)
        chat_say("nothing has been answered yet");
    else
        chat_say_stats(c);
    return CLI_DONE;
}

// ---------------------------------------------------------------------------------------- the table

static int run_exit(chat *c, char *rest)
{
    (void)rest;
    c->leaves = true;
    return CLI_DONE;
}

static int run_help(chat *c, char *rest);   // it shows the table

static const command commands[] = {
    {"help", "", "this list", run_help, false},
    {"system", "[TEXT | -]", "show, set or remove the system message", run_system, false},
    {"set", "[NAME VALUE]", "change how answers are sampled", run_set, false},
    {"show", "[settings | ...]", "settings, messages, system, prompt, model", run_show, false},
    {"save", "FILE", "write the conversation as JSON", run_save, true},
    {"load", "FILE", "continue a conversation that /save wrote", run_load, true},
    {"clear", "", "forget all but the system message", run_clear, false},
    {"regen", "", "answer the last message again", run_regen, false},
    {"edit", "[TEXT]", "edit the last message, or TEXT, in $VISUAL or $EDITOR, and ask it", run_edit, false},
    {"undo", "", "take the last message and its answer back", run_undo, false},
    {"tokens", "[TEXT]", "how many tokens the conversation, or a text, has", run_tokens, false},
    {"stats", "", "tokens, speed and context of the last answer", run_stats, false},
    {"tools", "[FILE | -]", "show, set or remove the tools that the model is told of", run_tools, true},
    {"read", "FILE [QUESTION]", "ask about the contents of a file", run_read, true},
    {"image", "FILE [QUESTION] | -", "ask about a picture; - takes out those of the next message", run_image, true},
    {"exit", "", "leave", run_exit, false},
};
enum { N_COMMANDS = CLI_COUNT(commands) };

const char *chat_command_word(const char *after, size_t i)
{
    size_t n_rows;
    const frit_option *rows = frit_sampler_option_rows(&n_rows);
    if (!after) return i < N_COMMANDS ? commands[i].name : NULL;
    if (strcmp(after, "show") == 0) return i < CLI_COUNT(topics) ? topics[i] : NULL;
    if (strcmp(after, "set") != 0) return NULL;
    static const char *const others[] = {"n-predict", "vars"};
    if (i < n_rows) return rows[i].name;
    return i - n_rows < CLI_COUNT(others) ? others[i - n_rows] : NULL;
}

bool chat_command_takes_file(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return commands[i].takes_file;
    return false;
}

static int run_help(chat *c, char *rest)
{
    (void)c, (void)rest;
    for (size_t i = 0; i < N_COMMANDS; i++)
        chat_say("  /%-8s %-20s %s", commands[i].name, commands[i].usage, commands[i].help);
    chat_say("Three quotes (\"\"\") begin and end a message of several lines; // begins one with a slash.\n"
             "Tab completes commands, settings and names of files.\n"
             "Ctrl-C stops an answer; a second Ctrl-C, or Ctrl-D, leaves.");
    return CLI_DONE;
}

int chat_command_run(chat *c, const char *text)
{
    char *copy = strdup(text + 1);
    if (!copy) return cli_no_memory();
    char *end = copy + strcspn(copy, " \t\n"), *rest = end + strspn(end, " \t\n");
    *end = 0;
    for (size_t n = strlen(rest); n > 0 && strchr(" \t\n", rest[n - 1]);) rest[--n] = 0;
    const char *names[CLI_COUNT(commands)];
    int code = CLI_DONE;
    bool is_found = false;
    for (size_t i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i].name;
        if (strcmp(copy, names[i]) != 0) continue;
        is_found = true;
        code = commands[i].run(c, rest);
    }
    if (!is_found) {
        const char *nearest = frit_name_nearest(copy, names, N_COMMANDS);
        if (nearest)
            chat_say("no command /%s; did you mean /%s?", copy, nearest);
        else
            chat_say("no command /%s; /help lists them, // begins a message with a slash", copy);
    }
    free(copy);
    return code == CLI_FAILED ? CLI_DONE : code;   // the command printed the error
}
