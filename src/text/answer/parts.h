// SPDX-License-Identifier: MIT
// text/answer/parts.h: splits a streaming answer into reasoning, text and tool calls.
//
//     push: bytes --> held --> [ text | reasoning | call: which part of it ] --> parts --> next
//
// A call becomes a part once it is complete and valid. Until then its bytes are buffered; an invalid call becomes text.
// White space next to marks belongs to the marks. Every byte is read a bounded number of times, and at most
// FRIT_PARTS_MAX_CALL bytes are buffered.
#pragma once
#include "text/answer/format.h"
#include "text/answer/values.h"

typedef struct frit_parts frit_parts;

enum { FRIT_PARTS_MAX_CALL = 4 << 20 };

typedef struct frit_parts_options {
    const answer_format *format;   // must outlive the split
    const struct json_t *tools;    // must outlive the split; NULL: no calls
    frit_str prompt;               // the prompt of the answer, which may open the reasoning
    bool continues;                // the prompt ends within an answer
} frit_parts_options;

frit_status frit_parts_new(frit_parts **out, const frit_parts_options *options);
void frit_parts_push(frit_parts *split, frit_str bytes);
void frit_parts_end(frit_parts *split);   // buffered bytes become parts
// Returns the next part; false if no part is complete. Its pointers are valid until the next push or end.
bool frit_parts_next(frit_parts *split, frit_part *part);
bool frit_parts_failed(const frit_parts *split);   // out of memory
void frit_parts_free(frit_parts *split);
// True if a prompt leaves the model within its reasoning.
bool frit_answer_is_thinking(const answer_format *format, frit_str prompt, bool continues);
// True if the model may still begin with reasoning. It may not after a prompt with an empty reasoning.
bool frit_answer_may_think(const answer_format *format, frit_str prompt, bool continues);
// True if the text of a special token is part of one of the format's marks.
bool frit_answer_has_mark(const answer_format *format, bool calls, frit_str token);
