// SPDX-License-Identifier: MIT
// text/chat/chat_sources.h: the chat templates that a model is published with, by their names.
//
// Most models have one, which is "default". Others have one more for conversations with tools, "tool_use", or for tasks
// of their own:
//
//     GGUF                    tokenizer.chat_template; tokenizer.chat_templates: names, each with a key
//                             tokenizer.chat_template.NAME
//     tokenizer_config.json   chat_template: a text, {NAME: text} or [{"name", "template"}]; chat_template.json too
//     a folder's files        chat_template.jinja, additional_chat_templates/NAME.jinja
#pragma once
#include "base/arena.h"
#include "base/buf.h"
#include "format/meta.h"

enum { FRIT_MOST_CHAT_SOURCES = 32 };

typedef struct frit_named_template {
    frit_str name, text;
} frit_named_template;

typedef struct frit_chat_sources {
    frit_named_template items[FRIT_MOST_CHAT_SOURCES];
    size_t n;
} frit_chat_sources;

// Copies both texts; one of the same name is replaced, and an empty one is left out. FRIT_E_FORMAT for too many.
frit_status frit_chat_sources_set(frit_chat_sources *sources, frit_str name, frit_str text, frit_arena *arena);
frit_status frit_chat_sources_read(frit_chat_sources *sources, const frit_meta *meta, frit_arena *arena);
// The texts are borrowed.
frit_status frit_chat_sources_write(const frit_chat_sources *sources, frit_meta *meta);
// Empty if no template has this name.
frit_str frit_chat_sources_find(const frit_chat_sources *sources, const char *name);
// What a conversation is rendered with, as transformers chooses: with tools "tool_use", or else "default". A single
// template is used for everything, whatever its name is. Empty: there are several, and neither.
frit_str frit_chat_sources_choose(const frit_chat_sources *sources, bool with_tools);
// 'rag', 'tool_use'
void frit_chat_sources_list(const frit_chat_sources *sources, frit_buf *out);
