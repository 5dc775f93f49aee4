// SPDX-License-Identifier: MIT
// frit/chat/chat.h: the parts of frit chat. A conversation is JSON (as `frit template --messages` reads it). Input is a
// message, or a command if it begins with a slash.
//
//     chat.c            options, the loop: read, command or answer
//     chat_talk.c       messages, the session's contents, answers
//     chat_room.c       a full context: removes the oldest turns
//     chat_pictures.c   pictures of messages
//     chat_commands.c   the table of slash commands
//     chat_input.c      line editing, pasting, texts of several lines, history
//     chat_view.c       an answer on the screen: Markdown as it arrives, reasoning dimmed; wrap.c: lines
//     chat_file.c       conversations and other files
//     chat_os_*.c       functions that depend on the system
#pragma once
#include "frit/cli/cli.h"

#include <jansson.h>

// ---------------------------------------------------------------------------------------- what is typed

typedef struct chat_input chat_input;

typedef enum chat_key { CHAT_KEY_TEXT, CHAT_KEY_INTERRUPT, CHAT_KEY_END } chat_key;

// `edits`: a terminal with line editing and history; otherwise plain lines, with a prompt if `prompts` is set.
chat_input *chat_input_new(bool edits, bool prompts);
// Reads one message or command, malloc'd: a line, a paste, or the text between """ and """. `draft` (may be NULL) is
// the initial text. *was_empty, after an interrupt: nothing had been typed.
chat_key chat_input_read(chat_input *input, const char *draft, char **text, bool *was_empty);
void chat_input_free(chat_input *input);

// ---------------------------------------------------------------------------------------- what is shown

typedef struct chat_view chat_view;

// `fancy`: a terminal with colours. `columns`: width at which lines break between words; 0: lines do not break.
chat_view *chat_view_new(FILE *out, bool fancy, int columns);
void chat_view_add(chat_view *view, bool is_reasoning, const char *text, size_t n);   // text of the answer, or of its
                                                                                      // reasoning
void chat_view_call(chat_view *view, const char *name, const char *arguments);
// Redraws the answer after the terminal's size changed, if all of the answer is on the screen.
void chat_view_resize(chat_view *view, int columns, int rows);
void chat_view_end(chat_view *view);
void chat_view_stop(chat_view *view);   // after an interrupt: shows nothing more, not even text that was held back
void chat_view_free(chat_view *view);

// ---------------------------------------------------------------------------------------- the conversation

typedef struct chat_pictures chat_pictures;

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
    bool edits;                // the terminal has line editing
    bool verbose;              // statistics after each answer
    app_shift_options shift;   // within answers
    bool keeps_all;            // a full context ends an answer, instead of removing turns
    bool leaves;
    const char *session_path;   // --session, or NULL
    chat_pictures *pictures;
    chat_input *input;
    json_t *messages;    // a list
    size_t n_left_out;   // messages after the system message that the model no longer sees: the oldest
    json_t *tools;       // a list, or NULL
    json_t *variables;   // additional variables of the template; an object
    frit_token *tokens;
    size_t n_tokens;   // tokens of the session
    char *draft;       // initial text of the next message, or NULL
    char *kept_text;   // text that the sampling options borrow
    // Figures of the last answer.
    size_t n_prompt, n_kept, n_answer;
    size_t n_turns_unreported;   // turns that were removed and not reported yet
    double prompt_s, answer_s;
    bool interrupted;
} chat;

void chat_say_stats(const chat *c);                                             // of the last answer
void chat_say(const char *format, ...) __attribute__((format(printf, 1, 2)));   // prints a line on stderr

// Adds a message. One of the user gets the pictures that wait for it.
bool chat_talk_add(chat *c, const char *role, const char *text);
// Returns a call of the last answer that has no result yet, or NULL.
const json_t *chat_talk_open_call(const chat *c);
// Adds a text as the result of the call.
bool chat_talk_add_result(chat *c, const json_t *call, const char *text);
const char *chat_talk_role(const chat *c, size_t i);      // "" past the end
const char *chat_talk_content(const chat *c, size_t i);   // its text, without pictures; "" if it has none
// Sets or (with "") removes the system message.
bool chat_talk_set_system(chat *c, const char *text);
const char *chat_talk_system(const chat *c);   // "" if there is no system message
// Removes the last question with its answer; returns the question, malloc'd, or NULL. Its pictures wait for the next
// message again.
char *chat_talk_drop_turn(chat *c);
// Makes the turn from the messages that the model sees. Returns NULL after printing an error.
frit_turn *chat_talk_turn(const chat *c);
// Makes the session contain exactly these tokens, and queues the missing ones. Takes ownership of the tokens.
frit_status chat_talk_feed(chat *c, frit_token *tokens, size_t n);
// Renders the prompt; malloc'd, or NULL after printing an error.
char *chat_talk_prompt(const chat *c, size_t *n_bytes);
frit_token *chat_talk_tokens(const chat *c, size_t *n_tokens);   // tokens of the prompt, malloc'd, or NULL after an
                                                                 // error
// Answers the conversation, whose last message is not the assistant's. Afterwards, calls in the answer wait for
// results. Returns an exit code; on failure the question is removed.
int chat_talk_answer(chat *c);
int chat_talk_make_sampler(chat *c);   // from c->sampling

// ---------------------------------------------------------------------------------------- pictures

// `max_tokens`: of a picture; 0: the model's limit.
chat_pictures *chat_pictures_new(uint32_t max_tokens);
void chat_pictures_free(chat_pictures *pictures);
// Encodes the pictures of messages that are not encoded yet. Returns an exit code after printing any error; then no
// picture was added.
int chat_pictures_open(chat *c, const json_t *messages);
// Encodes the picture of a file, which waits for the next message. Returns an exit code after printing any error.
int chat_pictures_wait(chat *c, const char *path);
size_t chat_pictures_waiting(const chat *c);
void chat_pictures_forget(chat *c);               // the pictures that wait
bool chat_pictures_names_one(const char *path);   // by the end of the name
// Makes the content of a message: the pictures that wait, then the text. NULL if the text is not UTF-8.
json_t *chat_pictures_content(chat *c, const char *text);
// Makes a message's pictures wait for the next message, before those that wait already.
void chat_pictures_take_back(chat *c, const json_t *message);
// Returns the file of a message's picture i; NULL past the end.
const char *chat_pictures_path(const json_t *message, size_t i);
// Returns the pictures of messages, in their order, malloc'd; NULL: out of memory.
frit_media **chat_pictures_of(const chat *c, const json_t *messages, size_t *n);

// ---------------------------------------------------------------------------------------- a full context

// Returns the messages that the model sees, as a new reference.
json_t *chat_room_messages(const chat *c);
// Makes the turn to answer and its prompt's tokens, with room for n_more others. If there is not enough room, the
// oldest turns are removed until half of the context is free. FRIT_E_LIMIT if that does not suffice or is disabled;
// other failures print an error.
frit_status chat_room_make(chat *c, size_t n_more, frit_turn **turn, frit_token **tokens, size_t *n);
void chat_room_say(chat *c);   // reports the turns that were removed since the last call

// ---------------------------------------------------------------------------------------- commands and files

// Returns word i that may follow "/" (`after` is NULL) or a command's name; NULL past the end.
const char *chat_command_word(const char *after, size_t i);
bool chat_command_takes_file(const char *name);
// Runs "/name rest". Returns an exit code: CLI_DONE also if the command printed an error.
int chat_command_run(chat *c, const char *text);
// Saves the conversation with tools and variables. On failure, an existing file stays unchanged.
int chat_file_save(const chat *c, const char *path);
int chat_file_load(chat *c, const char *path);
// Loads or saves the session beside the conversation's file. Does nothing if there is no session file.
int chat_file_open_session(chat *c, const char *path);
int chat_file_save_session(const chat *c, const char *path);
// Opens a text in $VISUAL or $EDITOR. Returns the changed text, malloc'd, or NULL after printing an error.
char *chat_file_edit(const char *text);
// Expands "~/notes" to a path in the home folder; malloc'd.
char *chat_file_path(const char *path);
// Takes the name of a file from the beginning of a text: a word, in which a backslash keeps the character after it, or
// what stands between quotes. Returns the rest of the text; `text` is changed into the name.
char *chat_file_take_name(char *text);
// Returns the path of a file ("history") in the state folder, which is created; malloc'd, or NULL.
char *chat_file_state(const char *name);

// ---------------------------------------------------------------------------------------- systems (chat_os_*.c)

void chat_os_make_folder(const char *path);   // accessible to the owner only; existing folders stay unchanged
// Runs `editor path` like a shell, so the editor may have options. Returns its exit code, or -1.
int chat_os_run_editor(const char *editor, const char *path);
