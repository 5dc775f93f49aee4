// SPDX-License-Identifier: MIT
// Replies in a JSON object: {"response": "TEXT"}. The text is output while the string is read.
#include "text/answer/parts_state.h"

// True if an escape of four digits is one half of a surrogate pair; `digits` select the first or the second half.
static bool is_surrogate(const char *escape, const char *digits)
{
    return (escape[2] == 'd' || escape[2] == 'D') && escape[3] != 0 && strchr(digits, escape[3]);
}

// The length of the escape at the start of the text: 2, 6, or 12 for a pair of surrogates. 0: more input is needed.
static size_t escape_length(frit_str text)
{
    if (text.len < 2) return 0;
    if (text.ptr[1] != 'u') return 2;
    if (text.len < 6) return 0;
    if (!is_surrogate(text.ptr, "89abAB")) return 6;
    if (text.len < 8) return 0;
    if (text.ptr[6] != '\\' || text.ptr[7] != 'u') return 6;
    return text.len < 12 ? 0 : is_surrogate(text.ptr + 6, "cdefCDEF") ? 12 : 6;
}

// Outputs an escaped character. A zero, an unpaired surrogate and an unknown escape become U+FFFD.
static void put_escape(frit_parts *s, frit_str escape)
{
    frit_buf quoted = {0}, text = {0};
    frit_buf_char(&quoted, '"');
    frit_buf_append(&quoted, escape.ptr, escape.len);
    frit_buf_char(&quoted, '"');
    const bool good = !quoted.failed && frit_json_string((frit_str){quoted.data, quoted.len}, &text) && text.len > 0;
    frit_parts_put(s, FRIT_PART_TEXT, good ? (frit_str){text.data, text.len} : frit_str_of("\xef\xbf\xbd"));
    s->failed |= quoted.failed || text.failed;
    frit_buf_free(&quoted);
    frit_buf_free(&text);
}

// Ends the object; the rest of the answer is plain text.
static split_step leave(frit_parts *s)
{
    s->state = SPLIT_TEXT;
    s->fresh = false;
    return STEP_ON;
}

static split_step text_step(frit_parts *s)
{
    const frit_str rest = frit_parts_rest(s);
    size_t n = 0;
    while (n < rest.len && rest.ptr[n] != '"' && rest.ptr[n] != '\\') n++;
    frit_parts_put(s, FRIT_PART_TEXT, (frit_str){rest.ptr, n});
    s->at += n;
    if (n == rest.len) return STEP_WAIT;
    if (rest.ptr[n] == '"') {
        s->at++;
        s->state = SPLIT_REPLY_CLOSE;
        return STEP_ON;
    }
    const frit_str escape = {rest.ptr + n, rest.len - n};
    const size_t n_escape = escape_length(escape);
    if (n_escape > 0) put_escape(s, (frit_str){escape.ptr, n_escape});
    s->at += n_escape > 0 ? n_escape : s->last ? escape.len : 0;   // an incomplete escape is dropped
    return n_escape > 0 ? STEP_ON : STEP_WAIT;
}

split_step frit_parts_reply_step(frit_parts *s)
{
    if (s->state == SPLIT_REPLY) return text_step(s);
    if (s->state != SPLIT_RAW) frit_parts_skip_space(s);
    const frit_str rest = frit_parts_rest(s);
    if (rest.len == 0) return STEP_WAIT;
    if (s->state == SPLIT_RAW) {
        frit_parts_put(s, FRIT_PART_TEXT, rest);
        s->at += rest.len;
        return STEP_WAIT;
    }
    if (s->state == SPLIT_REPLY_OPEN && rest.ptr[0] == '"') {
        s->at++;
        s->state = SPLIT_REPLY;
        return STEP_ON;
    }
    if (s->state == SPLIT_REPLY_OPEN) {   // no string: everything is text
        frit_parts_put(s, FRIT_PART_TEXT, s->format->reply_open);
        s->after_marks = false;
        return leave(s);
    }
    size_t n = 0;
    const mark_match match = frit_mark_match(s->format->reply_close, rest, &n);
    if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
    s->at += match == MARK_WHOLE ? n : 0;
    return leave(s);
}
