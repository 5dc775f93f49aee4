// SPDX-License-Identifier: MIT
// text/chat.h: messages to prompt text. frit_chat is opened once per model from its template's source; rendering is
// pure. Today a template is recognised as one of a table of families by its marks (chat.c); an interpreter of the
// template language will take its place behind the same functions.
//
// Templates write the BOS themselves where the model wants one. So tokenize what comes out with
// FRIT_TEXT_PARSE_SPECIAL; with FRIT_TEXT_SPECIAL too, a BOS is added only where the text does not begin with it.
#pragma once
#include "base/buf.h"
#include "base/log.h"

typedef struct frit_chat frit_chat;

typedef struct frit_chat_tokens {   // texts that templates insert; "" if the vocabulary has none
    frit_str bos, eos;
} frit_chat_tokens;

// FRIT_OK and *out = NULL if the template is empty. An unknown template is opened as ChatML with a warning.
frit_status frit_chat_new(frit_chat **out, frit_str source, frit_chat_tokens tokens, const frit_log *log);
const char *frit_chat_name(const frit_chat *chat);   // "llama3"
// FRIT_E_INVALID with the template's own words if it refuses the messages.
frit_status frit_chat_apply(const frit_chat *chat, const frit_message *messages, size_t n,
                            const frit_chat_options *options, frit_buf *out);
void frit_chat_free(frit_chat *chat);
