// SPDX-License-Identifier: MIT
// Text and reasoning, and the loop over all states.
#include "text/answer/parts_state.h"

#include "base/grow.h"
#include "base/utf8.h"

#include <jansson.h>

enum { MAX_SPACE = 4096, MAX_MARK_SPACE = 64 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// ------------------------------------------------------------------------------------- shared

frit_str frit_parts_rest(const frit_parts *s)
{
    return (frit_str){s->held.data ? s->held.data + s->at : "", s->held.len - s->at};
}

void frit_parts_skip_space(frit_parts *s)
{
    while (s->at < s->held.len && is_space(s->held.data[s->at])) s->at++;
}

static split_part *add_part(frit_parts *s, frit_part_kind kind)
{
    if (FRIT_GROW(s->parts, s->capacity, s->n_parts + 1, "the parts of an answer") != FRIT_OK) {
        s->failed = true;
        return NULL;
    }
    if (s->n_parts > 0) frit_buf_char(&s->out, 0);
    split_part *part = &s->parts[s->n_parts++];
    *part = (split_part){.kind = kind, .text = s->out.len};
    return part;
}

void frit_parts_put(frit_parts *s, frit_part_kind kind, frit_str text)
{
    if (text.len == 0) return;
    bool goes_on = s->n_parts > 0 && s->parts[s->n_parts - 1].kind == kind && kind != FRIT_PART_CALL;
    split_part *part = goes_on ? &s->parts[s->n_parts - 1] : add_part(s, kind);
    if (!part) return;
    frit_buf_append(&s->out, text.ptr, text.len);
    part->n += text.len;
}

void frit_parts_put_space(frit_parts *s, frit_part_kind kind)
{
    if (!s->after_marks && s->space.len > 0) frit_parts_put(s, kind, (frit_str){s->space.data, s->space.len});
    s->after_marks = false;
    frit_buf_clear(&s->space);
}

// Makes an id of nine letters and digits, which every template accepts; different for each call and each prompt.
static void make_id(frit_parts *s, char id[10])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    s->id_seed = s->id_seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t bits = s->id_seed ^ (s->id_seed >> 29);
    id[0] = 'c';
    for (int i = 1; i < 9; i++, bits /= 36) id[i] = digits[bits % 36];
    id[9] = 0;
}

bool frit_parts_is_name(frit_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool is_c1 = c == 0xc2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xa0;
        if (c < ' ' || c == 0x7f || is_c1) return false;
    }
    return text.len > 0 && frit_utf8_valid_prefix(text.ptr, text.len) == text.len;
}

void frit_parts_put_call(frit_parts *s, frit_str name, frit_str id, frit_str args)
{
    char made[10];
    make_id(s, made);
    split_part *part = add_part(s, FRIT_PART_CALL);
    if (!part) return;
    frit_buf_append(&s->out, args.ptr, args.len);
    part->n = args.len;
    frit_buf_char(&s->out, 0);
    part->name = s->out.len;
    frit_buf_append(&s->out, name.ptr, name.len);
    frit_buf_char(&s->out, 0);
    part->id = s->out.len;
    if (!frit_parts_is_name(id)) id = frit_str_of(made);
    frit_buf_append(&s->out, id.ptr, id.len);
    frit_buf_clear(&s->space);
    s->fresh = false;
    s->after_marks = true;
}

mark_match frit_mark_match(frit_str mark, frit_str text, size_t *n)
{
    size_t m = 0, t = 0;
    while (m < mark.len) {
        bool gap = is_space(mark.ptr[m]) || (m > 0 && (mark.ptr[m - 1] == '>' || mark.ptr[m] == '<'));
        while (m < mark.len && is_space(mark.ptr[m])) m++;
        size_t start = t;
        while (gap && t < text.len && is_space(text.ptr[t]) && t - start < MAX_MARK_SPACE) t++;
        if (m == mark.len) break;
        if (t == text.len) return MARK_PARTIAL;
        if (text.ptr[t] != mark.ptr[m]) return MARK_NONE;
        t++;
        m++;
    }
    *n = t;
    return MARK_WHOLE;
}

mark_match frit_mark_match_exactly(frit_str mark, frit_str text)
{
    size_t n = mark.len < text.len ? mark.len : text.len;
    if (mark.len == 0 || memcmp(mark.ptr, text.ptr, n) != 0) return MARK_NONE;
    return n == mark.len ? MARK_WHOLE : MARK_PARTIAL;
}

// ------------------------------------------------------------------------------------- text

// The first word of a mark, which recognises it in text.
static frit_str first_word(frit_str mark)
{
    size_t n = 0;
    while (n < mark.len && !is_space(mark.ptr[n])) n++;
    return (frit_str){mark.ptr, n};
}

typedef struct begin {
    frit_str mark;
    split_state state;
} begin;

enum { MOST_BEGINS = 5 };

// Lists the marks that may begin within text.
static int list_begins(const frit_parts *s, begin begins[MOST_BEGINS])
{
    const answer_format *f = s->format;
    int n = 0;
    if (s->fresh && f->think_open.len > 0) begins[n++] = (begin){f->think_open, SPLIT_REASONING};
    if (!s->tools) return n;
    if (s->fresh && f->reply_open.len > 0) {
        begins[n++] = (begin){f->reply_open, SPLIT_REPLY_OPEN};
        begins[n++] = (begin){f->raw_open, SPLIT_RAW};
    }
    if (f->section_open.len > 0) begins[n++] = (begin){first_word(f->section_open), SPLIT_SECTION};
    // Models may omit the mark before all calls.
    frit_str open = first_word(f->call_open);
    if (open.len > 0 && (f->section_open.len == 0 || (open.len > 3 && open.ptr[0] == '<')))
        begins[n++] = (begin){open, SPLIT_OPEN};
    return n;
}

static split_step begin_something(frit_parts *s, const begin *what)
{
    s->state = what->state;
    if (what->state == SPLIT_REASONING || what->state == SPLIT_REPLY_OPEN || what->state == SPLIT_RAW) {
        s->at += what->mark.len;
        s->after_marks = true;
        frit_buf_clear(&s->space);
    } else {
        s->call_at = s->at;
        s->n_mark = what->mark.len;
        s->is_bare = what->state == SPLIT_PAYLOAD;
        s->scanning = false;
    }
    return STEP_ON;
}

static bool begins_bare_call(const frit_parts *s, char c)
{
    if (!s->fresh || !s->tools || !s->format->bare) return false;
    return c == '[' || (c == '{' && s->format->style == CALL_JSON);
}

static void keep_space(frit_parts *s, frit_part_kind kind)
{
    while (s->at < s->held.len && is_space(s->held.data[s->at])) {
        frit_buf_char(&s->space, s->held.data[s->at++]);
        if (s->space.len >= MAX_SPACE) {
            s->after_marks = false;
            frit_parts_put_space(s, kind);
        }
    }
}

// The number of bytes up to the next white space or possible mark; at least one.
static size_t plain_length(frit_str text, const begin *begins, int n)
{
    size_t end = 1;
    for (; end < text.len && !is_space(text.ptr[end]); end++)
        for (int i = 0; i < n; i++)
            if (text.ptr[end] == begins[i].mark.ptr[0]) return end;
    return end;
}

static split_step text_step(frit_parts *s)
{
    keep_space(s, FRIT_PART_TEXT);
    frit_str rest = frit_parts_rest(s);
    if (rest.len == 0) return STEP_WAIT;
    begin begins[MOST_BEGINS];
    int n = list_begins(s, begins);
    for (int i = 0; i < n; i++) {
        mark_match match = frit_mark_match_exactly(begins[i].mark, rest);
        if (match == MARK_WHOLE) return begin_something(s, &begins[i]);
        if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
        // An answer that ended within the mark of its reply has no text.
        if (match == MARK_PARTIAL && (begins[i].state == SPLIT_REPLY_OPEN || begins[i].state == SPLIT_RAW)) {
            s->at = s->held.len;
            return STEP_WAIT;
        }
    }
    if (begins_bare_call(s, rest.ptr[0])) {
        const begin bare = {{"", 0}, SPLIT_PAYLOAD};
        return begin_something(s, &bare);
    }
    frit_parts_put_space(s, FRIT_PART_TEXT);
    s->fresh = false;
    size_t plain = plain_length(rest, begins, n);
    frit_parts_put(s, FRIT_PART_TEXT, (frit_str){rest.ptr, plain});
    s->at += plain;
    return STEP_ON;
}

static split_step reasoning_step(frit_parts *s)
{
    keep_space(s, FRIT_PART_REASONING);
    frit_str rest = frit_parts_rest(s), close = s->format->think_close;
    if (rest.len == 0) return STEP_WAIT;
    mark_match match = frit_mark_match_exactly(close, rest);
    if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
    if (match == MARK_WHOLE) {
        s->at += close.len;
        frit_buf_clear(&s->space);
        s->state = SPLIT_TEXT;
        s->fresh = s->after_marks = true;
        return STEP_ON;
    }
    frit_parts_put_space(s, FRIT_PART_REASONING);
    const begin end = {close, SPLIT_TEXT};
    size_t plain = plain_length(rest, &end, 1);
    frit_parts_put(s, FRIT_PART_REASONING, (frit_str){rest.ptr, plain});
    s->at += plain;
    return STEP_ON;
}

split_step frit_parts_give_up(frit_parts *s)
{
    if (s->at < s->call_at + s->n_mark) s->at = s->call_at + s->n_mark;
    if (s->at == s->call_at) s->at++;
    if (s->at > s->held.len) s->at = s->held.len;
    frit_parts_put_space(s, FRIT_PART_TEXT);
    frit_parts_put(s, FRIT_PART_TEXT, (frit_str){s->held.data + s->call_at, s->at - s->call_at});
    s->state = SPLIT_TEXT;
    s->fresh = false;
    return STEP_ON;
}

// ------------------------------------------------------------------------------------- the loop

static split_step step(frit_parts *s)
{
    switch (s->state) {
    case SPLIT_TEXT:
        return text_step(s);
    case SPLIT_REASONING:
        return reasoning_step(s);
    case SPLIT_REPLY_OPEN:
    case SPLIT_REPLY:
    case SPLIT_REPLY_CLOSE:
    case SPLIT_RAW:
        return frit_parts_reply_step(s);
    case SPLIT_HEADER:
    case SPLIT_BODY:
    case SPLIT_CALL_BODY:
        return frit_parts_channel_step(s);
    default:
        return frit_parts_call_step(s);
    }
}

static bool reads_call(const frit_parts *s)
{
    return s->state > SPLIT_RAW && s->state != SPLIT_BODY;
}

static void run(frit_parts *s)
{
    while (!s->failed && step(s) == STEP_ON) {
    }
    size_t keep = reads_call(s) ? s->call_at : s->at;
    if (s->held.len - keep > FRIT_PARTS_MAX_CALL && reads_call(s)) {
        s->at = s->held.len;
        frit_parts_give_up(s);
        keep = s->at;
    }
    if (keep == 0 || !s->held.data) return;
    // Adjusts positions after bytes are dropped.
    size_t *const positions[] = {&s->at,    &s->call_at,  &s->name_from, &s->name_to,    &s->id_from,
                                 &s->id_to, &s->key_from, &s->key_to,    &s->value_from, &s->scan.at};
    for (size_t i = 0; i < FRIT_COUNT(positions); i++) *positions[i] -= *positions[i] < keep ? *positions[i] : keep;
    memmove(s->held.data, s->held.data + keep, s->held.len - keep + 1);
    s->held.len -= keep;
}

static void clear_given(frit_parts *s)
{
    if (s->n_given < s->n_parts) return;
    s->n_parts = s->n_given = 0;
    frit_buf_clear(&s->out);
}

void frit_parts_push(frit_parts *s, frit_str bytes)
{
    clear_given(s);
    frit_buf_append(&s->held, bytes.ptr, bytes.len);
    run(s);
}

void frit_parts_end(frit_parts *s)
{
    clear_given(s);
    s->last = true;
    run(s);
    while (reads_call(s) && s->call_at < s->held.len && !s->failed) {   // an incomplete call is text
        s->at = s->held.len;
        frit_parts_give_up(s);
        run(s);
    }
    if (s->state == SPLIT_TEXT) frit_parts_put_space(s, FRIT_PART_TEXT);
    frit_buf_clear(&s->space);
}

bool frit_parts_next(frit_parts *s, frit_part *part)
{
    if (s->n_given >= s->n_parts || frit_parts_failed(s)) return false;
    const split_part *given = &s->parts[s->n_given++];
    const char *out = s->out.data;
    bool is_call = given->kind == FRIT_PART_CALL;
    *part = (frit_part){.kind = given->kind,
                        .text = out + given->text,
                        .n_bytes = given->n,
                        .name = is_call ? out + given->name : NULL,
                        .id = is_call ? out + given->id : NULL};
    return true;
}

bool frit_parts_failed(const frit_parts *s)
{
    return s->failed || s->held.failed || s->out.failed || s->space.failed || s->args.failed;
}

// ------------------------------------------------------------------------------------- opening

static size_t find_last(frit_str text, frit_str part)
{
    for (size_t i = text.len + 1; part.len > 0 && i-- > 0;)
        if (text.len - i >= part.len && memcmp(text.ptr + i, part.ptr, part.len) == 0) return i;
    return SIZE_MAX;
}

bool frit_answer_is_thinking(const answer_format *format, frit_str prompt, bool continues)
{
    size_t open = find_last(prompt, format->think_open), close = find_last(prompt, format->think_close);
    if (open == SIZE_MAX || (close != SIZE_MAX && close > open)) return false;
    for (size_t i = open + format->think_open.len; i < prompt.len && !continues; i++)
        if (!is_space(prompt.ptr[i])) return false;
    return true;
}

bool frit_answer_may_think(const answer_format *format, frit_str prompt, bool continues)
{
    const frit_str close = format->think_close;
    if (format->think_open.len == 0 || close.len == 0 || continues) return false;
    while (prompt.len > 0 && is_space(prompt.ptr[prompt.len - 1])) prompt.len--;
    return prompt.len < close.len || memcmp(prompt.ptr + prompt.len - close.len, close.ptr, close.len) != 0;
}

// Parses the beginning of the answer, which is part of the prompt, like the model's output.
static void read_prompt(frit_parts *s, const frit_parts_options *options)
{
    frit_str prompt = options->prompt;
    if (s->format->style == CALL_CHANNELS) {
        size_t open = find_last(prompt, s->format->message_open);
        size_t from = open == SIZE_MAX ? prompt.len : open + s->format->message_open.len;
        s->state = SPLIT_HEADER;
        s->n_prompt = prompt.len - from;
        if (s->n_prompt > 0) frit_parts_push(s, (frit_str){prompt.ptr + from, s->n_prompt});
    } else {
        if (frit_answer_is_thinking(s->format, prompt, options->continues)) s->state = SPLIT_REASONING;
    }
    s->n_given = s->n_parts;
    s->after_marks = !options->continues && s->state == SPLIT_REASONING;
}

frit_status frit_parts_new(frit_parts **out, const frit_parts_options *options)
{
    *out = NULL;
    frit_parts *s = calloc(1, sizeof *s);
    if (!s) return frit_fail_memory(sizeof *s, "an answer's parts");
    s->format = options->format;
    s->tools = s->format->style == CALL_NONE ? NULL : options->tools;
    s->fresh = !options->continues;
    s->id_seed = 1469598103934665603u;
    for (size_t i = 0; i < options->prompt.len; i++)
        s->id_seed = (s->id_seed ^ (unsigned char)options->prompt.ptr[i]) * 1099511628211u;
    read_prompt(s, options);
    if (frit_parts_failed(s)) {
        frit_parts_free(s);
        return frit_fail_memory(options->prompt.len, "an answer's parts");
    }
    *out = s;
    return FRIT_OK;
}

void frit_parts_free(frit_parts *s)
{
    if (!s) return;
    frit_buf_free(&s->held);
    frit_buf_free(&s->space);
    frit_buf_free(&s->args);
    frit_buf_free(&s->out);
    free(s->parts);
    free(s);
}

bool frit_answer_has_mark(const answer_format *f, bool calls, frit_str token)
{
    const frit_str marks[] = {f->think_open,  f->think_close,   f->section_open,   f->call_open,
                              f->call_close,  f->section_close, f->id_open,        f->args_open,
                              f->name_close,  f->arg_open,      f->key_close_text, f->key_close_other,
                              f->value_close, f->quote,         f->message_open,   f->header_close};
    size_t n = calls || f->style == CALL_CHANNELS ? FRIT_COUNT(marks) : 2;
    for (size_t i = 0; i < n && token.len > 0; i++)
        if (find_last(marks[i], token) != SIZE_MAX) return true;
    bool has_channels = f->style == CALL_CHANNELS && !f->recipient_only;
    if (has_channels && (frit_str_is(token, "<|channel|>") || frit_str_is(token, "<|constrain|>"))) return true;
    for (size_t i = 0; i < FRIT_COUNT(f->body_ends); i++)
        if (f->body_ends[i] && frit_str_is(token, f->body_ends[i])) return true;
    return false;
}
