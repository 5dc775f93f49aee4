// SPDX-License-Identifier: MIT
// text/answer/parts.h: takes an answer apart while it comes: reasoning, text and tool calls.
//
//     push: bytes --> held --> [ text | reasoning | call: which part of it ] --> parts --> next
//
// A call is given out when all of it is there and it is one: until then its bytes are held, and what turns out to be no
// call is text. White space beside marks belongs to the marks. Every byte is looked at a bounded number of times, and
// at most FRIT_PARTS_MAX_CALL bytes are held.
#pragma once
#include "text/answer/format.h"
#include "text/answer/values.h"

typedef struct frit_parts frit_parts;

enum { FRIT_PARTS_MAX_CALL = 4 << 20 };

typedef struct frit_parts_options {
    const answer_format *format;   // outlives the split
    const struct json_t *tools;    // likewise; NULL: there are no calls
    frit_str prompt;               // what the answer goes on from: it may have opened the reasoning
    frit_str begun;                // the end of the prompt, where a call was begun for the model
    bool continues;                // the prompt ends within an answer
} frit_parts_options;

frit_status frit_parts_new(frit_parts **out, const frit_parts_options *options);
void frit_parts_push(frit_parts *split, frit_str bytes);
void frit_parts_end(frit_parts *split);   // what was held back becomes parts
// False when there are no more for now. What a part points to lives until the next push or end.
bool frit_parts_next(frit_parts *split, frit_part *part);
bool frit_parts_failed(const frit_parts *split);   // out of memory
void frit_parts_free(frit_parts *split);
// Whether a prompt leaves the model within its reasoning.
bool frit_answer_is_thinking(const answer_format *format, frit_str prompt, bool continues);
// Whether the text of a special token is a part of one of the format's marks.
bool frit_answer_has_mark(const answer_format *format, bool calls, frit_str token);
