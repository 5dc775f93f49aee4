// SPDX-License-Identifier: MIT
// text/answer/format.h: how a model writes reasoning and tool calls. The format is derived from what its chat template
// renders (derive.c), or is a row for formats that templates do not show (rows.c). parts.c parses answers with it.
//
//     section_open { call_open CALL call_close } section_close
//
//     style     CALL                                               seen in
//     JSON      {"name": NAME, "arguments": {...}}, or a list       Hermes, Qwen, Mistral, Command-R, Llama 3, Granite
//     NAMED     NAME [id_open ID] args_open {...}                   DeepSeek, Kimi, newer Mistral, Functionary 3.1
//     TAGGED    NAME name_close { arg_open KEY key_close VALUE value_close }      Qwen3-Coder, GLM, MiniMax, Seed
//     PYTHON    [NAME(KEY=VALUE, ...), ...]                         LFM2, Llama 4
//     LOOSE     NAME{KEY:VALUE, ...}, texts between `quote` marks   Gemma
//     CHANNELS  messages with a header naming the recipient           gpt-oss, Functionary 3.2
//
// If a template renders no calls that frit understands, calls have the style JSON (`plain`). If it does not render
// tools either, the model is asked for one JSON object (conversation_tools.h), which is a list of calls in style JSON,
// or
//
//     reply_open "TEXT" reply_close       a reply, as a JSON string
//     raw_open TEXT                       a text in a form that the caller demands, to the end of the answer
//
// Marks are stored without white space at their ends; white space inside them matches any white space.
#pragma once
#include "base/buf.h"

struct frit_chat;
struct frit_arena;
struct json_t;

typedef enum call_style {
    CALL_NONE,
    CALL_JSON,
    CALL_NAMED,
    CALL_TAGGED,
    CALL_PYTHON,
    CALL_LOOSE,
    CALL_CHANNELS,
} call_style;

typedef struct answer_format {
    frit_str think_open, think_close;   // empty: no reasoning
    call_style style;
    frit_str section_open, call_open, call_close, section_close;   // each may be empty
    bool bare;                                                     // the whole answer may be a call without marks
    // JSON
    frit_str name_key, args_key, id_key;          // name_key empty: {NAME: {...}}
    bool in_list;                                 // calls are items of a list
    bool plain;                                   // the template does not show how calls are written
    frit_str reply_open, reply_close, raw_open;   // empty: answers without calls are plain text
    // NAMED
    frit_str id_open, args_open;
    // TAGGED. Two marks may close the key: one before texts, one before other values.
    frit_str name_close, arg_open, key_close_text, key_close_other, value_close;
    bool value_on_lines;   // a newline before and after the value is not part of it
    // LOOSE
    frit_str quote;
    // CHANNELS
    frit_str message_open, header_close;
    const char *body_ends[4];
    bool recipient_only;   // the header is a name: "all" is the user
} answer_format;

// Derives the format. Strings of the result are in the arena or constant. Never fails: marks that are not found stay
// empty.
void frit_answer_derive(answer_format *format, const struct frit_chat *chat, struct frit_arena *arena);
typedef enum answer_row_when {
    ROW_FIRST,   // looked up before anything is derived
    ROW_AFTER,   // looked up if derivation finds nothing
    ROW_PLAIN,   // looked up if the template has no place for tools
} answer_row_when;

// Finds a row of the table; false if no row fits the template.
bool frit_answer_find_row(answer_format *format, frit_str source, answer_row_when when);
// True if the whole answer is one JSON object, a reply or calls; such an answer needs its grammar. `tools` is NULL if
// there are none; `continues`: the prompt ends within the answer.
bool frit_answer_is_object(const answer_format *format, const struct json_t *tools, bool continues);
// Finds the marks of reasoning in the template's source; false if there are none.
bool frit_answer_find_think(answer_format *format, frit_str source);
