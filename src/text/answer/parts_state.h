// SPDX-License-Identifier: MIT
// text/answer/parts_state.h: the state of a split, and what its parts (parts.c, parts_calls.c, parts_channels.c) share.
#pragma once
#include "text/answer/parts.h"

#include <stdlib.h>

typedef enum split_state {
    SPLIT_TEXT,
    SPLIT_REASONING,
    SPLIT_REPLY_OPEN,    // a reply in an object: before its quote
    SPLIT_REPLY,         // ... within the string
    SPLIT_REPLY_CLOSE,   // ... after it
    SPLIT_RAW,           // ... to the end of the answer, as it is
    SPLIT_SECTION,       // a call: the mark before all of them
    SPLIT_OPEN,          // ... before one
    SPLIT_PAYLOAD,       // JSON, Python
    SPLIT_NAME,
    SPLIT_ID,
    SPLIT_ARGS_OPEN,
    SPLIT_ARGS,   // JSON, loose
    SPLIT_ARG,    // tagged: another parameter, or the end
    SPLIT_KEY,
    SPLIT_VALUE_LINE,
    SPLIT_VALUE,
    SPLIT_AFTER,       // after a call: its closing mark, another call, the end of all
    SPLIT_HEADER,      // channels: until the header is closed
    SPLIT_BODY,        // ... a message to the user, or to itself
    SPLIT_CALL_BODY,   // ... a call
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
    size_t at;          // of held: bytes before it are consumed, except those of an unfinished call
    size_t call_at;     // of held: where that call begins
    size_t n_mark;      // bytes of the mark that began it
    bool last;          // no more input follows
    bool fresh;         // no text yet, so reasoning or a bare call may begin
    bool after_marks;   // white space before the next text belongs to a mark
    frit_buf space;     // white space that may belong to a mark
    bool is_bare;       // the call began without a mark
    bool scanning;      // `scan` is at work
    value_scan scan;
    size_t name_from, name_to, id_from, id_to, key_from, key_to, value_from;   // of held
    bool key_is_text;
    frit_buf args;   // tagged parameters so far
    frit_part_kind body_kind;
    size_t n_prompt;   // bytes of the first header that the prompt has written
    frit_buf out;      // bytes of parts
    split_part *parts;
    size_t n_parts, capacity, n_given;
    uint64_t id_seed;
    bool failed;
};

typedef enum split_step { STEP_ON, STEP_WAIT } split_step;

// The unread bytes of held.
frit_str frit_parts_rest(const frit_parts *s);
void frit_parts_skip_space(frit_parts *s);
void frit_parts_put(frit_parts *s, frit_part_kind kind, frit_str text);   // merges with the part before
void frit_parts_put_space(frit_parts *s, frit_part_kind kind);            // the bytes of `space`
// Whether a text can be the name or the id of a call, which are C strings: valid UTF-8 without control characters.
bool frit_parts_is_name(frit_str text);
void frit_parts_put_call(frit_parts *s, frit_str name, frit_str id, frit_str args);

typedef enum mark_match { MARK_NONE, MARK_PARTIAL, MARK_WHOLE } mark_match;
// Whether the text starts with the mark; white space in the mark matches any. *n: the bytes that it took.
mark_match frit_mark_match(frit_str mark, frit_str text, size_t *n);

split_step frit_parts_call_step(frit_parts *s);
split_step frit_parts_channel_step(frit_parts *s);
split_step frit_parts_reply_step(frit_parts *s);
// The bytes from call_at to `at` are not a call: they become text.
split_step frit_parts_give_up(frit_parts *s);
// frit_mark_match without white space.
mark_match frit_mark_match_exactly(frit_str mark, frit_str text);
