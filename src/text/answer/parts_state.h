// SPDX-License-Identifier: MIT
// text/answer/parts_state.h: the state of a split, which parts.c, parts_calls.c and parts_channels.c share.
#pragma once
#include "text/answer/parts.h"

#include <stdlib.h>

typedef enum split_state {
    SPLIT_TEXT,
    SPLIT_REASONING,
    SPLIT_REPLY_OPEN,    // before the quote of a reply in an object
    SPLIT_REPLY,         // within the string of a reply
    SPLIT_REPLY_CLOSE,   // after the string of a reply
    SPLIT_RAW,           // raw text to the end of the answer
    SPLIT_SECTION,       // before the mark that opens all calls
    SPLIT_OPEN,          // before the mark that opens a call
    SPLIT_PAYLOAD,       // the payload of a call in JSON or Python
    SPLIT_NAME,
    SPLIT_ID,
    SPLIT_ARGS_OPEN,
    SPLIT_ARGS,   // arguments in JSON or loose syntax
    SPLIT_ARG,    // tagged: before another parameter or the end
    SPLIT_KEY,
    SPLIT_VALUE_LINE,
    SPLIT_VALUE,
    SPLIT_AFTER,       // after a call: before its closing mark, another call, or the end of all calls
    SPLIT_HEADER,      // channels: until the header is closed
    SPLIT_BODY,        // channels: a message to the user, or reasoning
    SPLIT_CALL_BODY,   // channels: a call
} split_state;

typedef struct split_part {
    frit_part_kind kind;
    size_t text, n, name, id;   // offsets into `out`
} split_part;

struct frit_parts {
    const answer_format *format;
    const struct json_t *tools;
    split_state state;
    frit_buf held;      // bytes that are not parts yet
    size_t at;          // in held: bytes before it are consumed, except bytes of an unfinished call
    size_t call_at;     // in held: the start of the unfinished call
    size_t n_mark;      // length of the mark that opened the call
    bool last;          // no more input follows
    bool fresh;         // no text yet, so reasoning or a bare call may begin
    bool after_marks;   // white space before the next text belongs to a mark
    frit_buf space;     // white space that may belong to a mark
    bool is_bare;       // the call began without a mark
    bool scanning;      // `scan` is in use
    value_scan scan;
    size_t name_from, name_to, id_from, id_to, key_from, key_to, value_from;   // of held
    bool key_is_text;
    frit_buf args;   // tagged parameters so far
    frit_part_kind body_kind;
    size_t n_prompt;   // bytes of the first header that are in the prompt
    frit_buf out;      // bytes of parts
    split_part *parts;
    size_t n_parts, capacity, n_given;
    uint64_t id_seed;
    bool failed;
};

typedef enum split_step { STEP_ON, STEP_WAIT } split_step;

// The bytes of `held` that are not read yet.
frit_str frit_parts_rest(const frit_parts *s);
void frit_parts_skip_space(frit_parts *s);
void frit_parts_put(frit_parts *s, frit_part_kind kind, frit_str text);   // merges with the previous part
void frit_parts_put_space(frit_parts *s, frit_part_kind kind);            // the bytes of `space`
// True if a text can be the name or the id of a call, which are C strings: valid UTF-8 without control characters.
bool frit_parts_is_name(frit_str text);
void frit_parts_put_call(frit_parts *s, frit_str name, frit_str id, frit_str args);

typedef enum mark_match { MARK_NONE, MARK_PARTIAL, MARK_WHOLE } mark_match;
// True if the text starts with the mark; white space in the mark matches any white space. *n is the length of the
// match.
mark_match frit_mark_match(frit_str mark, frit_str text, size_t *n);

split_step frit_parts_call_step(frit_parts *s);
split_step frit_parts_channel_step(frit_parts *s);
split_step frit_parts_reply_step(frit_parts *s);
// Turns the bytes from call_at to `at`, which are not a call, into text.
split_step frit_parts_give_up(frit_parts *s);
// frit_mark_match in which white space must match exactly.
mark_match frit_mark_match_exactly(frit_str mark, frit_str text);
