// SPDX-License-Identifier: MIT
// Files of frit chat: conversations, the history of input, and a text in the user's editor.
#include "frit/chat/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *join(const char *folder, const char *name)
{
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    if (path) snprintf(path, n, "%s/%s", folder, name);
    return path;
}

char *chat_file_path(const char *path)
{
    const char *home = getenv("HOME");
    return strncmp(path, "~/", 2) == 0 && home ? join(home, path + 2) : strdup(path);
}

char *chat_file_take_name(char *text)
{
    const char quote = text[0] == '"' || text[0] == '\'' ? text[0] : 0;
    char *from = text + (quote != 0), *to = text;
    for (; *from && *from != quote && (quote || !strchr(" \t\n", *from)); from++) {
        if (!quote && *from == '\\' && from[1]) from++;
        *to++ = *from;
    }
    if (*from) from++;   // the quote, or a space
    *to = 0;
    return from + strspn(from, " \t\n");
}

// Creates the folders of a path, readable by the user only.
static void make_folders(char *path)
{
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        chat_os_make_folder(path);
        *at = '/';
    }
}

char *chat_file_state(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *base = state && state[0] == '/' ? strdup(state) : home && *home ? join(home, ".local/state") : NULL;
    char *folder = base ? join(base, "frit") : NULL, *path = folder ? join(folder, name) : NULL;
    free(base);
    free(folder);
    if (path) make_folders(path);
    return path;
}

// ---------------------------------------------------------------------------------------- conversations

// Returns the conversation; NULL if memory is short.
static json_t *conversation(const chat *c)
{
    json_t *all = json_pack("{s:O, s:O}", "messages", c->messages, "variables", c->variables);
    if (all && c->tools) json_object_set(all, "tools", c->tools);
    return all;
}

int chat_file_save(const chat *c, const char *path)
{
    json_t *all = conversation(c);
    char *text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
    json_decref(all);
    if (!text) return cli_no_memory();
    cli_file file;
    int code = cli_check_model_target(path, c->model);
    if (code == CLI_DONE) code = cli_file_open(&file, path);
    if (code == CLI_DONE) {
        cli_file_write(&file, text, strlen(text));
        code = cli_file_close(&file, code);
    }
    free(text);
    return code;
}

static bool are_messages(const json_t *messages)
{
    if (!json_is_array(messages)) return false;
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!json_is_string(json_object_get(json_array_get(messages, i), "role"))) return false;
    return true;
}

static int take_conversation(chat *c, json_t *all, const char *path)
{
    json_t *messages = json_is_array(all) ? all : json_object_get(all, "messages");
    json_t *tools = json_object_get(all, "tools"), *variables = json_object_get(all, "variables");
    int code = CLI_DONE;
    if (!are_messages(messages)) {
        code = cli_fail("%s: neither a list of messages nor an object with \"messages\"", path);
    } else if ((code = chat_pictures_open(c, messages)) == CLI_DONE) {
        json_decref(c->messages);
        c->messages = json_incref(messages);
        chat_pictures_forget(c);
        c->n_left_out = 0;
        json_decref(c->tools);
        c->tools = json_is_array(tools) ? json_deep_copy(tools) : NULL;
        if (json_is_object(variables)) {
            json_decref(c->variables);
            c->variables = json_deep_copy(variables);
        }
    }
    return code;
}

int chat_file_load(chat *c, const char *path)
{
    json_t *all;
    int code = cli_read_json(path, 0, &all);
    if (code == CLI_DONE) code = take_conversation(c, all, path);
    json_decref(all);
    return code;
}

int chat_file_open_session(chat *c, const char *path)
{
    frit_status status = frit_session_load(c->session, path);
    if (status == FRIT_E_NOT_FOUND) return CLI_DONE;   // a new conversation
    if (status != FRIT_OK) return cli_fail("%s", frit_error());
    size_t n_bytes, n = frit_session_length(c->session);
    const char *note = frit_session_note(c->session, &n_bytes);
    if (n_bytes == 0) return cli_fail("%s: is the file of a session; expected the file of a chat", path);
    json_t *all = json_loadb(note, n_bytes, JSON_ALLOW_NUL, NULL);
    int code = all ? take_conversation(c, all, path) : cli_fail("%s: its note about the chat is not JSON", path);
    json_decref(all);
    if (code != CLI_DONE) return code;
    c->tokens = malloc((n + 1) * sizeof *c->tokens);
    if (!c->tokens) return cli_no_memory();
    memcpy(c->tokens, frit_session_tokens(c->session), n * sizeof *c->tokens);
    c->n_tokens = n;
    cli_note(c->common, "%s: %zu messages, %zu tokens; /show messages shows them", path, json_array_size(c->messages),
             n);
    return CLI_DONE;
}

int chat_file_save_session(const chat *c, const char *path)
{
    json_t *all = conversation(c);
    char *note = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    if (!note) return cli_no_memory();
    frit_status status = frit_session_set_note(c->session, note, strlen(note));
    free(note);
    if (status == FRIT_OK) status = frit_session_save(c->session, path);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

// ---------------------------------------------------------------------------------------- the editor

char *chat_file_edit(const char *text)
{
    const char *editor = getenv("VISUAL");
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (!editor || !*editor) editor = "vi";
    const char *folder = getenv("TMPDIR");
    char *path = join(folder && *folder ? folder : "/tmp", "frit-XXXXXX");
    int file = path ? mkstemp(path) : -1;
    cli_text edited = {0};
    size_t n = strlen(text);
    bool good = file >= 0 && write(file, text, n) == (ssize_t)n;
    if (file >= 0) close(file);
    if (!good) {
        cli_fail("%s: %s", path ? path : "/tmp", strerror(errno));
    } else {
        int code = chat_os_run_editor(editor, path);
        good = code == 0 && cli_read_file(path, &edited) == CLI_DONE;
        if (code != 0) cli_fail("the editor '%s' ended with %d; the text is as it was", editor, code);
    }
    if (file >= 0) remove(path);
    free(path);
    if (!good) {
        free(edited.data);
        return NULL;
    }
    while (edited.n > 0 && edited.data[edited.n - 1] == '\n') edited.data[--edited.n] = 0;
    return edited.data;
}
