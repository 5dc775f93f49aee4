// SPDX-License-Identifier: MIT
// frit/chat/chat.h: the parts of frit chat. A conversation is JSON (as `frit template --messages` reads it); everything
// that is typed is a message, or a command when it begins with a slash.
//
//     chat.c            options, the loop: read, command or answer
//     chat_talk.c       messages, what the session holds of them, answers
//     chat_room.c       a full context: the oldest turns leave
//     chat_commands.c   the table of slash commands
//     chat_input.c      line editing, pasting, texts of several lines, history
//     chat_view.c       an answer on the screen: Markdown as it comes, reasoning dimmed; wrap.c: lines
//     chat_file.c       conversations and other files
//     chat_os_*.c       what each system does in its own way
#pragma once
#include "frit/cli/cli.h"

#include <jansson.h>

// ---------------------------------------------------------------------------------------- what is typed

typedef struct chat_input chat_input;

typedef enum chat_key { CHAT_KEY_TEXT, CHAT_KEY_INTERRUPT, CHAT_KEY_END } chat_key;

// `edits`: a terminal with line editing and history; otherwise plain lines, with a prompt if `prompts`.
chat_input *chat_input_new(bool edits, bool prompts);
// One message or command, malloc'd: a line, what was pasted, or what stands between """ and """. `draft` (may be NULL)
// is there already. *was_empty, for an interrupt: nothing had been typed.
chat_key chat_input_read(chat_input *input, const char *draft, char **text, bool *was_empty);
void chat_input_free(chat_input *input);

// ---------------------------------------------------------------------------------------- what is shown

typedef struct chat_view chat_view;

// `fancy`: a terminal with colours. `columns`: lines break between words there; 0: nowhere.
chat_view *chat_view_new(FILE *out, bool fancy, int columns);
void chat_view_add(chat_view *view, bool reasons, const char *text, size_t n);   // of the answer, or of its reasoning
void chat_view_call(chat_view *view, const char *name, const char *arguments);
// The terminal has another size: what is on the screen is shown again, if all of it is there.
void chat_view_resize(chat_view *view, int columns, int rows);
void chat_view_end(chat_view *view);
void chat_view_stop(chat_view *view);   // an interrupt: nothing more is shown, not even what was held back
void chat_view_free(chat_view *view);

// ---------------------------------------------------------------------------------------- the conversation

typedef struct chat {
    const cli_common *common;
    frit_model *model;
    frit_engine *engine;
    frit_session *session;
    cli_drafter drafter;
    frit_sampler *sampler;
    frit_sampler_options sampling;
    frit_turn_grammar_options format;   // of answers; its text is owned
    int32_t n_predict;
    bool interactive, fancy;   // fancy: colours
    bool edits;                // lines are edited
    bool verbose;              // statistics after each answer
    app_shift_options shift;   // within answers
    bool keeps_all;            // the end of the context ends an answer: no turn leaves
    bool leaves;
    chat_input *input;
    json_t *messages;    // a list
    size_t n_left_out;   // of them, after the system message: the oldest, which the model no longer sees
    json_t *tools;       // a list, or NULL
    json_t *variables;   // further ones of the template; an object
    frit_token *tokens;
    size_t n_tokens;   // what the session holds
    char *draft;       // what the next message begins with, or NULL
    char *kept_text;   // which sampling borrows
    // Figures of the last answer.
    size_t n_prompt, n_kept, n_answer;
    size_t n_turns_left;   // turns that have left and were not spoken of
    double prompt_s, answer_s;
    bool interrupted;
} chat;

void chat_say_stats(const chat *c);                                             // of the last answer
void chat_say(const char *format, ...) __attribute__((format(printf, 1, 2)));   // a line on stderr

bool chat_talk_add(chat *c, const char *role, const char *text);
// A call of the last answer that has no result yet, or NULL.
const json_t *chat_talk_open_call(const chat *c);
// Takes a text as the result of that call.
bool chat_talk_add_result(chat *c, const json_t *call, const char *text);
const char *chat_talk_role(const chat *c, size_t i);      // "" past the end
const char *chat_talk_content(const chat *c, size_t i);   // "" where it is no text
// Sets or (with "") removes the system message.
bool chat_talk_set_system(chat *c, const char *text);
const char *chat_talk_system(const chat *c);   // "" without one
// Drops the last question with its answer; returns the question, malloc'd, or NULL.
char *chat_talk_drop_turn(chat *c);
// What the model is told: the messages that it sees. NULL, having said why.
frit_turn *chat_talk_turn(const chat *c);
// Makes the session hold exactly these tokens, queueing what it lacks; takes them.
frit_status chat_talk_feed(chat *c, frit_token *tokens, size_t n);
// The prompt as the template makes it; malloc'd, or NULL having said why.
char *chat_talk_prompt(const chat *c, size_t *n_bytes);
frit_token *chat_talk_tokens(const chat *c, size_t *n_tokens);   // its tokens, likewise
// Answers the conversation, whose last message is not the assistant's; what was called waits for its results then. An
// exit code; on failure the question is gone.
int chat_talk_answer(chat *c);
int chat_talk_make_sampler(chat *c);   // of c->sampling

// The messages that the model sees; a new reference.
json_t *chat_room_messages(const chat *c);
// The turn to answer and its prompt's tokens, for which, with n_more others, there is room: where there is not, the
// oldest turns leave until half of the context is free. FRIT_E_LIMIT if that is not enough, or not wanted; other
// failures have been said.
frit_status chat_room_make(chat *c, size_t n_more, frit_turn **turn, frit_token **tokens, size_t *n);
void chat_room_say(chat *c);   // how many turns have left, where some did since the last call

// ---------------------------------------------------------------------------------------- commands and files

// Word i that may follow "/" (`after` NULL) or the name of a command; NULL past the end.
const char *chat_command_word(const char *after, size_t i);
// Runs "/name rest". CLI_DONE, also where the command said what is wrong with it; CLI_NO_MEMORY.
int chat_command_run(chat *c, const char *text);
// The conversation with tools and variables, whole or not at all.
int chat_file_save(const chat *c, const char *path);
int chat_file_load(chat *c, const char *path);
// Loads or saves the session beside the conversation's file. Does nothing if there is no session file.
int chat_file_open_session(chat *c, const char *path);
int chat_file_save_session(const chat *c, const char *path);
// Lets $VISUAL or $EDITOR change a text; malloc'd, or NULL having said why.
char *chat_file_edit(const char *text);
// "~/notes" to the home folder's; malloc'd.
char *chat_file_path(const char *path);
// The state folder's file of this name ("history"), whose folders are made; malloc'd, or NULL.
char *chat_file_state(const char *name);

// ---------------------------------------------------------------------------------------- systems (chat_os_*.c)

void chat_os_make_folder(const char *path);   // for its owner alone; what exists stays as it is
// Runs `editor path` as a shell would: the editor may have options. Its exit code, or -1.
int chat_os_run_editor(const char *editor, const char *path);
