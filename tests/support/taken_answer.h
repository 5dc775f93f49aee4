// SPDX-License-Identifier: MIT
// support/taken_answer.h: an answer taken apart, in chunks of a size.
#pragma once
#include "text/answer/parts.h"
#include "text/chat/chat.h"

#include <jansson.h>

extern const char answer_tools[];   // definitions of two tools, as JSON

typedef struct taken {
    frit_buf text, reasoning;
    json_t *calls;   // [{name, id, arguments}]
} taken;

taken take(const answer_format *format, const json_t *tools, frit_str prompt, frit_str answer, size_t chunk);
void taken_free(taken *t);
const char *text_of(const frit_buf *buf);                 // "" for an empty one
bool same_calls(const json_t *got, const json_t *want);   // names and arguments
