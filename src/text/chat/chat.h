// SPDX-License-Identifier: MIT
// text/chat/chat.h: messages to prompt text. frit_chat is opened once per model from its template's source; rendering
// has no side effects. Templates are programs in the Jinja language (template/template.h); they behave as in Hugging
// Face transformers.
//
// Templates write the BOS themselves if the model needs one. So tokenize the result with FRIT_TEXT_PARSE_SPECIAL and
// the untrusted ranges, and add nothing before or after it.
#pragma once
#include "base/buf.h"
#include "base/log.h"
#include "base/spans.h"
#include "text/answer/format.h"
#include "text/chat/chat_shape.h"

struct json_t;   // of Jansson
struct tm;

typedef struct frit_chat frit_chat;

typedef struct frit_chat_tokens {   // texts that templates insert; "" if the vocabulary has none
    frit_str bos, eos;
    bool begins;   // texts of the model begin with `bos`; ChatML, if it replaces a template, writes it too
} frit_chat_tokens;

// Opens a template. FRIT_OK and *out = NULL if it is empty. A template that cannot be parsed is replaced by ChatML,
// with a warning.
frit_status frit_chat_new(frit_chat **out, frit_str source, frit_chat_tokens tokens, const frit_log *log);
// For a model without a template: chooses the known template whose marks are all tokens of the vocabulary (`has`), or
// ChatML. The first conversation warns about the choice.
frit_status frit_chat_guess(frit_chat **out, bool (*has)(const void *ctx, const char *mark), const void *ctx,
                            frit_chat_tokens tokens, const frit_log *log);
// The template's family, recognized by its marks: "llama3"; "custom" if unknown; "" if the template was assumed.
const char *frit_chat_name(const frit_chat *chat);
const chat_shape *frit_chat_get_shape(const frit_chat *chat);
const answer_format *frit_chat_get_format(const frit_chat *chat);
frit_str frit_chat_source(const frit_chat *chat);
// Renders the template. `variables` is an object with messages, tools, add_generation_prompt and other variables of the
// template, as text/chat/conversation.h makes it from a request; bos_token and eos_token are added. FRIT_E_INVALID with
// the template's message if it refuses the messages. `untrusted` (may be NULL) becomes the ranges that come from the
// variables: see frit_template_render.
frit_status frit_chat_apply_json(const frit_chat *chat, const struct json_t *variables, frit_buf *out,
                                 frit_spans *untrusted);
// frit_chat_apply_json at a given time.
frit_status frit_chat_apply_at(const frit_chat *chat, const struct json_t *variables, const struct tm *now,
                               frit_buf *out, frit_spans *untrusted);
// frit_chat_apply_json for a sample conversation (chat_shape.h). All samples of a chat together have a limit of steps.
frit_status frit_chat_probe(const frit_chat *chat, const struct json_t *variables, const struct tm *now, frit_buf *out);
void frit_chat_free(frit_chat *chat);
