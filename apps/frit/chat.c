// SPDX-License-Identifier: MIT
// frit chat: a conversation. Each turn renders the whole conversation again; what the session already holds of it is
// kept, and only what follows the common prefix is run.
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef FRIT_HAVE_EDIT
#include <editline/readline.h>
#endif

typedef struct chat_options {
    const char *system;
    int32_t n_predict;
} chat_options;

typedef struct chat_args {
    cli_common common;
    chat_options chat;
    frit_sampler_options sampler;
    frit_engine_options engine;
    frit_model_options model;
} chat_args;

typedef struct conversation {
    frit_message *messages;   // role: constant; content: owned
    size_t n, capacity;
    frit_token *tokens;   // what the session holds
    size_t n_tokens;
} conversation;

static const frit_option *chat_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "system",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(chat_options, system),
         .metavar = "TEXT",
         .help = "a system message at the start"},
        {.name = "n-predict",
         .letter = 'n',
         .type = FRIT_OPTION_INT,
         .offset = offsetof(chat_options, n_predict),
         .min = -1,
         .max = 2147483647,
         .fallback = "-1",
         .metavar = "N",
         .help = "tokens of one answer at most"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static bool add_message(conversation *talk, const char *role, const char *content, size_t n_bytes)
{
    if (talk->n == talk->capacity) {
        size_t capacity = talk->capacity ? 2 * talk->capacity : 16;
        frit_message *messages = realloc(talk->messages, capacity * sizeof *messages);
        if (!messages) return false;
        talk->messages = messages;
        talk->capacity = capacity;
    }
    char *copy = malloc(n_bytes + 1);
    if (!copy) return false;
    memcpy(copy, content, n_bytes);
    copy[n_bytes] = 0;
    talk->messages[talk->n++] = (frit_message){role, copy};
    return true;
}

static void drop_message(conversation *talk)
{
    free((char *)talk->messages[--talk->n].content);
}

// The next line without its newline (malloc'd), or NULL at the end of the input.
static char *read_line(bool interactive)
{
#ifdef FRIT_HAVE_EDIT
    if (interactive) {
        char *line = readline("> ");
        if (line && *line) add_history(line);
        return line;
    }
#endif
    if (interactive) fputs("> ", stdout), fflush(stdout);
    size_t n = 0, capacity = 256;
    char *line = malloc(capacity), *longer = line;
    while (longer && fgets(line + n, (int)(capacity - n), stdin)) {
        n += strlen(line + n);
        if (n > 0 && line[n - 1] == '\n') {
            line[n - 1] = 0;
            return line;
        }
        if (n + 1 < capacity) continue;
        longer = realloc(line, capacity *= 2);
        if (longer) line = longer;
    }
    if (!longer || n == 0) {
        free(line);
        return NULL;
    }
    return line;
}

// Makes the session hold exactly the rendered conversation, queueing what it lacks.
static int feed(conversation *talk, const frit_model *model, frit_session *session, frit_sampler *sampler)
{
    char *text = cli_template(model, talk->messages, talk->n);
    if (!text) return CLI_FAILED;
    size_t n = 0, keep = 0;
    frit_token *tokens = cli_tokens(model, text, strlen(text), FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL, &n);
    free(text);
    if (!tokens) return CLI_FAILED;
    while (keep < n && keep < talk->n_tokens && tokens[keep] == talk->tokens[keep]) keep++;
    if (keep == n && keep > 0) keep--;   // at least one row must run to give logits
    frit_status status = frit_session_truncate(session, keep);
    if (status == FRIT_OK) status = frit_session_push(session, tokens + keep, n - keep, NULL);
    frit_sampler_reset(sampler);
    for (size_t i = 0; i < n; i++) frit_sampler_accept(sampler, tokens[i]);
    free(talk->tokens);
    talk->tokens = tokens;
    talk->n_tokens = n;
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static void show(void *ctx, const char *text, size_t n_bytes)
{
    (void)ctx;
    fwrite(text, 1, n_bytes, stdout);
    if (fflush(stdout) != 0) cli_interrupted = 1;
}

static int answer_turn(const chat_args *args, conversation *talk, const frit_model *model, frit_engine *engine,
                       frit_session *session, frit_sampler *sampler)
{
    cli_interrupted = 0;
    int code = feed(talk, model, session, sampler);
    if (code != CLI_DONE) {
        talk->n_tokens = 0;
        drop_message(talk);   // the question stays unasked, the conversation goes on
        return code;
    }
    cli_answer answer;
    cli_answer_options options = {.n_predict = args->chat.n_predict, .show = show};
    code = cli_generate(model, engine, session, sampler, &options, &answer);
    putchar('\n');
    // Whatever was generated may differ from how the template will show it: only the common prefix counts next time.
    frit_token *tokens = realloc(talk->tokens, (talk->n_tokens + answer.n_tokens + 1) * sizeof *tokens);
    if (tokens) {
        talk->tokens = tokens;
        size_t room = frit_session_length(session) - talk->n_tokens;
        if (room > answer.n_tokens) room = answer.n_tokens;
        if (room > 0) memcpy(tokens + talk->n_tokens, answer.tokens, room * sizeof *tokens);
        talk->n_tokens += room;
    }
    if (code == CLI_DONE && !add_message(talk, "assistant", answer.text.data, answer.text.n)) code = CLI_NO_MEMORY;
    if (code == CLI_DONE) cli_answer_report(&args->common, &answer);
    if (answer.finish == CLI_FINISH_CONTEXT) cli_note(&args->common, "the context is full; -c N makes it larger");
    cli_answer_free(&answer);
    cli_interrupted = 0;
    return code;
}

static int converse(const chat_args *args, const frit_model *model, frit_engine *engine, frit_session *session,
                    frit_sampler *sampler)
{
    bool interactive = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    conversation talk = {0};
    int code = CLI_DONE;
    if (args->chat.system && !add_message(&talk, "system", args->chat.system, strlen(args->chat.system))) {
        code = CLI_NO_MEMORY;
    }
    if (interactive) cli_note(&args->common, "Ctrl-C stops an answer, Ctrl-D leaves.");
    while (code == CLI_DONE || (interactive && code == CLI_FAILED)) {
        char *line = read_line(interactive);
        if (!line && cli_interrupted && interactive && !feof(stdin)) {
            cli_interrupted = 0;
            continue;
        }
        if (!line) break;
        code = CLI_DONE;
        if (line[strspn(line, " \t")] != 0) {
            code = add_message(&talk, "user", line, strlen(line)) ? CLI_DONE : CLI_NO_MEMORY;
            if (code == CLI_DONE) code = answer_turn(args, &talk, model, engine, session, sampler);
        }
        free(line);
    }
    if (interactive) putchar('\n');
    while (talk.n > 0) drop_message(&talk);
    free(talk.messages);
    free(talk.tokens);
    return code;
}

static int run(void *ctx)
{
    const chat_args *args = ctx;
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    frit_session *session = NULL;
    frit_sampler *sampler = NULL;
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    int code = cli_open_model(&model, &args->common, &args->model, path);
    if (code == CLI_DONE) code = cli_open_engine(&engine, model, &args->engine);
    frit_model_info info = {0};
    if (code == CLI_DONE) {
        frit_model_get_info(model, &info);
        if (!info.chat_format[0])
            code = cli_fail("%s has no chat template; 'frit run --raw' continues a text", info.path);
    }
    if (code == CLI_DONE) {
        frit_status status = frit_session_new(&session, engine);
        frit_sampler_options sampling = args->sampler;
        cli_recommend(&args->common, model, &sampling);
        if (status == FRIT_OK) status = frit_sampler_new(&sampler, model, &sampling);
        if (status != FRIT_OK) code = status == FRIT_E_INVALID ? cli_usage("%s", frit_error()) : cli_report(status);
    }
    if (code == CLI_DONE) code = converse(args, model, engine, session, sampler);
    frit_sampler_free(sampler);
    frit_session_free(session);
    frit_engine_free(engine);
    frit_model_free(model);
    return code;
}

static const cli_group groups[] = {
    {"Conversation", chat_rows, offsetof(chat_args, chat)},
    {"Sampling", frit_sampler_option_rows, offsetof(chat_args, sampler)},
    {"Engine", frit_engine_option_rows, offsetof(chat_args, engine)},
    {"Model", frit_model_option_rows, offsetof(chat_args, model)},
    {"General", cli_common_rows, offsetof(chat_args, common)},
};

const cli_command cli_command_chat = {
    .name = "chat",
    .usage = "[MODEL] [options]",
    .summary = "have a conversation",
    .details =
        "Type a message and press Enter; arrow keys edit and recall lines. Ctrl-C stops an answer, Ctrl-D leaves.\n"
        "In a pipe every line of stdin is a message.\n"
        "\n"
        "  frit chat\n"
        "  frit chat model.gguf --system \"Answer in one sentence.\"",
    .max_positional = 1,
    .args_bytes = sizeof(chat_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
