// SPDX-License-Identifier: MIT
// frit/turn.h: chats: from messages to a prompt, and from an answer to its parts.
#ifndef FRIT_TURN_H
#define FRIT_TURN_H

#include "text.h"

#ifdef __cplusplus
extern "C" {
#endif

// There are three ways from messages to a prompt:
// - frit_turn takes a conversation as OpenAI's clients send it, adapts it to the template, and parses the answer too.
//   It is for chats and servers.
// - frit_chat_render takes roles and texts. It is for small programs.
// - frit_chat_render_json takes any variables and any template. It shows the text that a template makes of them.
//
// frit_turn_tokenize and frit_chat_tokenize give the prompt's tokens: only text of the template becomes control tokens,
// never text of messages, tools or other variables. Tokenizing the prompt's text with FRIT_TEXT_PARSE_SPECIAL instead
// would let a message "<|im_end|>" end its turn.

// Renders a chat template. `variables`: a JSON object of "messages" and any other variables of the template (tools,
// enable_thinking, bos_token, ...); add_generation_prompt is true unless the object sets it. Messages and tools in
// OpenAI's form are adapted to the template as by frit_turn_new; others are passed on as they are.
// `source`: a template to use instead of the model's, or NULL; with one, the model may be NULL. Two-call pattern as in
// frit_detokenize. FRIT_E_UNSUPPORTED if the model has no chat template, FRIT_E_INVALID if the template refuses.
FRIT_API frit_status frit_chat_render_json(const frit_model *model, const char *source, const char *variables,
                                           size_t n_variable_bytes, char *text, size_t capacity, size_t *n_bytes);

typedef struct frit_message {
    const char *role;      // "system", "user", "assistant"
    const char *content;   // UTF-8
    uint64_t reserved[8];
} frit_message;

typedef struct frit_chat_options {
    bool no_generation_prompt;   // do not open the assistant's turn at the end
    uint64_t reserved[8];
} frit_chat_options;

// Renders messages with the model's chat template; two-call pattern as in frit_detokenize. The text is for people to
// read: use frit_chat_tokenize for the tokens that the model runs.
// A model without a template gets one that fits its vocabulary, or ChatML, with a warning (frit_model_info.chat_format
// is "" then). FRIT_E_UNSUPPORTED if the model has no vocabulary, FRIT_E_INVALID if the template refuses the messages.
FRIT_API frit_status frit_chat_render(const frit_model *model, const frit_message *messages, size_t n_messages,
                                      const frit_chat_options *options, char *text, size_t capacity, size_t *n_bytes);
// Makes the tokens of the prompt that frit_chat_render renders; two-call pattern as in frit_tokenize. Control tokens
// come from the template alone, not from roles or contents. No BOS or EOS is added to those of the template.
FRIT_API frit_status frit_chat_tokenize(const frit_model *model, const frit_message *messages, size_t n_messages,
                                        const frit_chat_options *options, frit_token *tokens, size_t capacity,
                                        size_t *n_tokens);

// One turn of a chat with tools, reasoning and template variables: renders a conversation as a prompt, and parses the
// model's answer as it is generated. Belongs to one thread at a time; keeps its model alive.
//
//     frit_turn_new(&turn, model, conversation, n_bytes);
//     frit_turn_tokenize(turn, NULL, tokens, capacity, &n);   // push, and for every token of the answer:
//     frit_turn_push(turn, text, n);                     // its text; that of special tokens if frit_turn_shows is true
//     while (frit_turn_next(turn, &part)) ...            // reasoning, text, calls of tools
//     frit_turn_end(turn);                               // the answer is over; next again
typedef struct frit_turn frit_turn;

// Makes a turn. `conversation` is a JSON object as OpenAI's clients send it. Other members are ignored:
//   messages                list of {role, content, ...}. Roles: system, developer, user, assistant, tool. Content: a
//                           text, or a list of {"type": "text", "text"}; of an assistant also null. Of an assistant:
//                           reasoning_content, tool_calls: [{id, type: "function", function: {name, arguments}}] with
//                           arguments as the text of a JSON object; another text stays what it is, as the
//                           object {"arguments": text} where the template wants one. Of a tool: tool_call_id.
//   tools                   list of {type: "function", function: {name, description, parameters: a JSON schema,
//                           strict: true where every call obeys the schema}}
//   tool_choice             "auto" (the default); "none": the tools are left out; "required", or {type: "function",
//                           function: {name}}: the answer calls a tool. frit_turn_grammar sees to that and to strict
//   chat_template_kwargs    object: variables of the template, {"enable_thinking": false}
//   reasoning_effort        text: a variable of the template; "none" also sets enable_thinking to false
//   add_generation_prompt   true by default: the prompt opens the assistant's turn
//   continue_final_message  false by default; true: the model continues the last message, an assistant's
// The conversation is adapted to the template: a system prompt is put at the beginning of the user's first message if
// the template takes no system prompt, arguments become text or objects, and reasoning gets the name that the template
// uses. FRIT_E_INVALID with a sentence that begins with the field ("messages[2].content: ...") or is the template's
// own; FRIT_E_LIMIT if the template exceeds its steps or memory, as for a conversation far longer than any context;
// FRIT_E_UNSUPPORTED if the model has no vocabulary.
FRIT_API frit_status frit_turn_new(frit_turn **out, const frit_model *model, const char *conversation, size_t n_bytes);
// Returns the prompt's text, for people to read. Zero-terminated; lives as long as the turn.
FRIT_API const char *frit_turn_prompt(const frit_turn *turn, size_t *n_bytes);
// Makes the prompt's tokens as frit_chat_tokenize does. Limits (may be NULL) and room: as in frit_tokenize_within.
FRIT_API frit_status frit_turn_tokenize(const frit_turn *turn, const frit_tokenize_limits *limits, frit_token *tokens,
                                        size_t capacity, size_t *n_tokens);

typedef enum frit_part_kind { FRIT_PART_TEXT, FRIT_PART_REASONING, FRIT_PART_CALL } frit_part_kind;

typedef struct frit_part {
    frit_part_kind kind;
    const char *text;   // the next piece of text or reasoning, or all arguments of a call, a JSON object
    size_t n_bytes;     // length of `text`, which is zero-terminated too
    const char *name;   // the tool that is called; NULL for text and reasoning
    const char *id;     // the call's id: the model's own, or nine letters and digits
    uint64_t reserved[8];
} frit_part;

// Takes the next bytes of the answer, which must not end within a character. FRIT_E_MEMORY.
FRIT_API frit_status frit_turn_push(frit_turn *turn, const char *text, size_t n_bytes);
// Ends the answer: text that was held back because it might have become a call becomes parts. FRIT_E_MEMORY.
FRIT_API frit_status frit_turn_end(frit_turn *turn);
// Gives the next part; false after the last one. A call is one whole part; text that only resembles a call (bad JSON, a
// missing mark, more than 4 MiB) is given as text. Calls are recognised only if the conversation has tools. The part's
// texts live until the next frit_turn_push or frit_turn_end.
FRIT_API bool frit_turn_next(frit_turn *turn, frit_part *part);
// True for special tokens that mark reasoning or calls in this model's answers. Pass their text (frit_detokenize with
// FRIT_TEXT_SPECIAL) to frit_turn_push, but not the text of other special tokens.
FRIT_API bool frit_turn_shows(const frit_turn *turn, frit_token token);
// True if the prompt ends within the model's reasoning.
FRIT_API bool frit_turn_is_thinking(const frit_turn *turn);
FRIT_API void frit_turn_free(frit_turn *turn);

#ifdef __cplusplus
}
#endif
#endif
