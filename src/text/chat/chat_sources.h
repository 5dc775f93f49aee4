// SPDX-License-Identifier: MIT
// text/chat/chat_sources.h: the chat templates that a model is published with, by name.
//
// Most models have one template, named "default". Others have an additional template for conversations with tools,
// "tool_use", or for other tasks:
//
//     GGUF                    tokenizer.chat_template; tokenizer.chat_templates: names, each with a key
//                             tokenizer.chat_template.NAME
//     tokenizer_config.json   chat_template: a text, {NAME: text} or [{"name", "template"}]; also chat_template.json
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

// Copies name and text. A template with an equal name is replaced; an empty text is ignored. FRIT_E_FORMAT for too
// many.
frit_status frit_chat_sources_set(frit_chat_sources *sources, frit_str name, frit_str text, frit_arena *arena);
frit_status frit_chat_sources_read(frit_chat_sources *sources, const frit_meta *meta, frit_arena *arena);
// Writes the templates as metadata, which borrows the texts.
frit_status frit_chat_sources_write(const frit_chat_sources *sources, frit_meta *meta);
// The text of a template; empty if no template has this name.
frit_str frit_chat_sources_find(const frit_chat_sources *sources, const char *name);
// Chooses a template as transformers does: "tool_use" for a conversation with tools, if it exists, otherwise "default".
// A single template is used for everything, whatever its name. Empty if there are several, but not the needed one.
frit_str frit_chat_sources_choose(const frit_chat_sources *sources, bool with_tools);
// Writes the names: 'rag', 'tool_use'.
void frit_chat_sources_list(const frit_chat_sources *sources, frit_buf *out);
