// SPDX-License-Identifier: MIT
// Answers of several messages, each with a header that names its recipient.
//
//     <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>commentary to=functions.NAME
//     <|constrain|>json<|message|>{...}<|call|>       gpt-oss
//     >>>all\n...>>>NAME\n{...}                       Functionary 3.2
//
// The prompt ends within the first header.
#include "text/answer/parts_state.h"

enum { MAX_HEADER = 512 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static frit_str trim(frit_str s)
{
    while (s.len > 0 && is_space(s.ptr[0])) s.ptr++, s.len--;
    while (s.len > 0 && is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

// The word after `mark`, up to white space or another mark; may be empty.
static frit_str word_after(frit_str header, const char *mark)
{
    size_t n = strlen(mark);
    for (size_t i = 0; i + n <= header.len; i++) {
        if (memcmp(header.ptr + i, mark, n) != 0) continue;
        size_t end = i + n;
        while (end < header.len && !is_space(header.ptr[end]) && header.ptr[end] != '<') end++;
        return (frit_str){header.ptr + i + n, end - i - n};
    }
    return (frit_str){"", 0};
}

static bool is_name(frit_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (is_space(text.ptr[i]) || text.ptr[i] == '<' || text.ptr[i] == '{' || text.ptr[i] == '"') return false;
    return frit_parts_is_name(text);
}

static split_step begin_header(frit_parts *s)
{
    s->state = SPLIT_HEADER;
    s->call_at = s->at;
    s->n_mark = s->n_prompt = 0;
    return STEP_ON;
}

// ------------------------------------------------------------------------------------- headers

// Turns an invalid header into text, without the part that is in the prompt.
static split_step header_is_text(frit_parts *s, size_t to)
{
    size_t from = s->call_at + s->n_prompt;
    if (from < to) frit_parts_put(s, FRIT_PART_TEXT, (frit_str){s->held.data + from, to - from});
    s->at = s->call_at = to;
    s->n_prompt = 0;
    s->body_kind = FRIT_PART_TEXT;
    s->state = SPLIT_BODY;
    return STEP_ON;
}

static split_step read_header(frit_parts *s, size_t end)
{
    frit_str header = {s->held.data + s->call_at, end - s->call_at}, channel = {"", 0}, name = trim(header);
    bool is_call;
    if (s->format->recipient_only) {
        if (!is_name(name)) return header_is_text(s, s->at);
        is_call = !frit_str_is(name, "all");
    } else {
        channel = word_after(header, "<|channel|>");
        name = word_after(header, "to=");
        is_call = name.len > 0 && !frit_str_is(name, "user") && !frit_str_is(name, "all");
        if (frit_str_starts(name, "functions.")) name = (frit_str){name.ptr + 10, name.len - 10};
        if (is_call && !is_name(name)) return header_is_text(s, s->at);
    }
    s->call_at += s->n_prompt < end - s->call_at ? s->n_prompt : end - s->call_at;
    s->n_prompt = 0;
    s->body_kind = frit_str_is(channel, "analysis") ? FRIT_PART_REASONING : FRIT_PART_TEXT;
    if (is_call && s->tools && is_name(name)) {
        s->name_from = (size_t)(name.ptr - s->held.data);
        s->name_to = s->name_from + name.len;
        s->value_from = s->at;
        s->state = SPLIT_CALL_BODY;
    } else {
        s->call_at = s->at;
        s->state = SPLIT_BODY;
    }
    return STEP_ON;
}

static split_step header_step(frit_parts *s)
{
    frit_str close = s->format->header_close;
    for (; s->at < s->held.len && s->at - s->call_at <= MAX_HEADER; s->at++) {
        mark_match match = frit_mark_match_exactly(close, frit_parts_rest(s));
        if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
        if (match != MARK_WHOLE) continue;
        size_t end = s->at;
        s->at += close.len;
        return read_header(s, end);
    }
    if (s->at - s->call_at > MAX_HEADER) return header_is_text(s, s->at);
    if (!s->last) return STEP_WAIT;
    size_t n_left = s->at - s->call_at - s->n_prompt;
    if (s->at > s->call_at + s->n_prompt && trim((frit_str){s->held.data + s->call_at + s->n_prompt, n_left}).len > 0)
        return header_is_text(s, s->at);
    s->call_at = s->at;
    return STEP_WAIT;
}

// ------------------------------------------------------------------------------------- bodies

// Matches a mark that ends the body at `at`; *n is its length.
static mark_match match_body_end(const frit_parts *s, frit_str rest, size_t *n)
{
    mark_match best = MARK_NONE;
    for (size_t i = 0; i < FRIT_COUNT(s->format->body_ends) && s->format->body_ends[i]; i++) {
        frit_str mark = frit_str_of(s->format->body_ends[i]);
        mark_match match = frit_mark_match_exactly(mark, rest);
        if (match == MARK_WHOLE) *n = mark.len;
        if (match > best) best = match;
    }
    return best;
}

// Moves to the next possible end of the body. False if it is not in the input yet.
static bool find_body_end(frit_parts *s, mark_match *match, size_t *n)
{
    char first = s->format->body_ends[0][0];   // all begin with the same character
    for (;;) {
        const char *found = s->at < s->held.len ? memchr(s->held.data + s->at, first, s->held.len - s->at) : NULL;
        s->at = found ? (size_t)(found - s->held.data) : s->held.len;
        if (!found) return false;
        *match = match_body_end(s, frit_parts_rest(s), n);
        if (*match == MARK_WHOLE || (*match == MARK_PARTIAL && !s->last)) return true;
        s->at++;
    }
}

static split_step body_step(frit_parts *s)
{
    size_t from = s->at, n = 0;
    mark_match match = MARK_NONE;
    find_body_end(s, &match, &n);
    if (s->at > from) frit_parts_put(s, s->body_kind, (frit_str){s->held.data + from, s->at - from});
    s->call_at = s->at;
    if (match != MARK_WHOLE) return STEP_WAIT;
    s->at += n;
    return begin_header(s);
}

static split_step call_body_step(frit_parts *s)
{
    size_t n = 0;
    mark_match match = MARK_NONE;
    bool found = find_body_end(s, &match, &n);
    if (!s->last && (!found || match != MARK_WHOLE)) return STEP_WAIT;
    frit_str args = trim((frit_str){s->held.data + s->value_from, s->at - s->value_from});
    frit_str name = {s->held.data + s->name_from, s->name_to - s->name_from};
    if (frit_json_check_object(args))
        frit_parts_put_call(s, name, (frit_str){"", 0}, args);
    else
        frit_parts_put(s, FRIT_PART_TEXT, (frit_str){s->held.data + s->call_at, s->at - s->call_at});
    s->at += match == MARK_WHOLE ? n : 0;
    return begin_header(s);
}

split_step frit_parts_channel_step(frit_parts *s)
{
    return s->state == SPLIT_HEADER ? header_step(s) : s->state == SPLIT_BODY ? body_step(s) : call_body_step(s);
}
