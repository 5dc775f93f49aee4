// SPDX-License-Identifier: MIT
// Derives the format of answers from a template, by comparing conversations that it renders.
//
//     a call of xfrit_probe    ...assistant\n<tool_call>\n{"name": "xfrit_probe", "arg...}\n</tool_call><|im_end|>
//     a call with another name ...assistant\n<tool_call>\n{"name": "zxfrit_p...      -> where the name is
//     a text instead           ...assistant\nZfrit says.<|im_end|>                   -> head and tail
//     two calls                ...}\n</tool_call>\n<tool_call>\n{"name": "yfrit...   -> the repeated part
#include "text/answer/format.h"
#include "text/chat/chat.h"

#include "base/arena.h"

#include <jansson.h>

enum { MOST_CALL = 1 << 14 };   // bound of the bytes of a call, because each position is examined

typedef struct derivation {
    const frit_chat *chat;
    const chat_shape *shape;
    frit_arena *arena;
    answer_format *format;
    frit_buf one, other, two, said;   // renders of the four conversations above
    frit_str call, next;              // of `one` and `two`: from the head to the end of the conversation's turn
    size_t name_at;                   // in both
} derivation;

// ------------------------------------------------------------------------------------- texts

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

static frit_str slice(frit_str s, size_t from, size_t to)
{
    if (from > s.len) from = s.len;
    if (to > s.len) to = s.len;
    return (frit_str){s.ptr + from, to > from ? to - from : 0};
}

static const size_t NOWHERE = SIZE_MAX;

static size_t find(frit_str s, const char *part, size_t from)
{
    size_t n = strlen(part);
    for (size_t i = from; i + n <= s.len; i++)
        if (memcmp(s.ptr + i, part, n) == 0) return i;
    return NOWHERE;
}

static size_t common_prefix(frit_str a, frit_str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) n++;
    return n;
}

static size_t common_suffix(frit_str a, frit_str b)
{
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n]) n++;
    return n;
}

// True if "[" begins a mark such as [TOOL_CALLS], not a list.
static bool opens_mark(frit_str s, size_t i)
{
    if (s.ptr[i] == '<') return true;
    if (s.ptr[i] != '[') return false;
    if (i + 1 < s.len && s.ptr[i + 1] == '/') i++;
    return i + 1 < s.len && s.ptr[i + 1] >= 'A' && s.ptr[i + 1] <= 'Z';
}

// The start of the mark around position `at`; `at` itself outside of marks.
static size_t mark_start(frit_str s, size_t at)
{
    for (size_t i = at; i-- > 0;) {
        if (s.ptr[i] == '>' || s.ptr[i] == ']') return at;
        if (opens_mark(s, i)) return i;
    }
    return at;
}

// The end of the mark around position `at`.
static size_t mark_end(frit_str s, size_t at)
{
    if (mark_start(s, at) == at) return at;
    while (at < s.len && s.ptr[at] != '>' && s.ptr[at] != ']') at++;
    return at < s.len ? at + 1 : at;
}

// The length of the common suffix of two texts that does not begin inside a mark in either text.
static size_t shared_end(frit_str a, frit_str b)
{
    size_t n = common_suffix(a, b);
    n = a.len - mark_end(a, a.len - n);
    return b.len - mark_end(b, b.len - n);
}

static frit_str keep(const derivation *d, frit_str text)
{
    const char *copy = frit_arena_text(d->arena, text.len ? text.ptr : "", text.len);
    return copy ? (frit_str){copy, text.len} : (frit_str){"", 0};
}

static frit_str keep_trimmed(const derivation *d, frit_str text)
{
    return keep(d, trim(text));
}

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->data ? buf->data : "", buf->len};
}

// ------------------------------------------------------------------------------------- reasoning

static bool is_mark_end(char c)
{
    return c == '>' || c == ']';
}

// Finds the mark before the reasoning (only the last mark, because marks open turns too) and the mark after it.
static void find_think(derivation *d, frit_str text)
{
    size_t from = find(text, PROBE_REASONING, 0), to = from == NOWHERE ? NOWHERE : find(text, PROBE_TEXT, from);
    if (to == NOWHERE) return;
    frit_str before = trim(slice(text, 0, from)), after = trim(slice(text, from + strlen(PROBE_REASONING), to));
    size_t end = before.ptr + before.len - text.ptr, word = end;   // "<|channel>thought": a word may follow the mark
    while (word > 0 && !is_mark_end(text.ptr[word - 1]) && text.ptr[word - 1] != '\n') word--;
    if (word == 0 || !is_mark_end(text.ptr[word - 1]) || after.len == 0) return;
    frit_str open = slice(text, mark_start(text, word - 1), end), close = slice(after, 0, mark_end(after, 1));
    enum { LONGEST = 64 };
    if (open.len < 2 || open.len > LONGEST || close.len < 2 || close.len > LONGEST) return;
    d->format->think_open = keep(d, open);
    d->format->think_close = keep(d, close);
}

static void derive_think(derivation *d)
{
    const char *key = d->shape->reasoning_key;
    frit_buf thought = {0};
    if (key && frit_probe_render(d->chat, frit_probe_chat(d->shape, frit_probe_thought(key), false, false), &thought))
        find_think(d, str_of(&thought));
    frit_buf_free(&thought);
}

// ------------------------------------------------------------------------------------- the renders

static bool render(derivation *d, const char *content, const char *name, int n, frit_buf *out)
{
    json_t *message = frit_probe_calls(d->shape, content, name, n);
    return frit_probe_render(d->chat, frit_probe_chat(d->shape, message, !d->shape->calls_without_tools, false), out);
}

static bool render_text(derivation *d)
{
    json_t *message = json_pack("{s:s, s:s}", "role", "assistant", "content", PROBE_TEXT);
    return frit_probe_render(d->chat, frit_probe_chat(d->shape, message, !d->shape->calls_without_tools, false),
                             &d->said);
}

// Templates may write an empty reasoning, which is not part of the call.
static size_t skip_thought(const derivation *d, frit_str text, size_t head, size_t name_at)
{
    frit_str open = d->format->think_open, close = d->format->think_close, rest = trim(slice(text, head, name_at));
    if (open.len == 0 || rest.len < open.len || memcmp(rest.ptr, open.ptr, open.len) != 0) return head;
    for (size_t i = open.len; i + close.len <= rest.len; i++)
        if (memcmp(rest.ptr + i, close.ptr, close.len) == 0) return (size_t)(rest.ptr - text.ptr) + i + close.len;
    return head;
}

// Finds the head and tail of the turn, and the name between them.
static bool find_call(derivation *d)
{
    if (!render(d, NULL, PROBE_TOOL, 1, &d->one) || !render(d, NULL, "z" PROBE_TOOL, 1, &d->other) || !render_text(d))
        return false;
    frit_str one = str_of(&d->one), said = str_of(&d->said);
    size_t name_at = common_prefix(one, str_of(&d->other));
    size_t head = common_prefix(one, said), tail = common_suffix(one, said);
    if (find(one, PROBE_TOOL, name_at) != name_at || head > name_at) return false;
    head = skip_thought(d, one, mark_start(one, head), name_at);
    size_t end = one.len - tail;
    end = mark_end(one, end) == end ? end : mark_start(one, end);
    if (end < name_at || end - head > MOST_CALL) return false;
    d->call = slice(one, head, end);
    d->name_at = name_at - head;
    if (render(d, NULL, PROBE_TOOL, 2, &d->two)) d->next = slice(str_of(&d->two), head, head + 2 * MOST_CALL);
    return true;
}

// ------------------------------------------------------------------------------------- what repeats

// Splits the text before the first call, between two calls, and after the last into marks.
static void set_marks(derivation *d, frit_str before, frit_str between, frit_str after)
{
    answer_format *f = d->format;
    if (!between.ptr) {
        f->call_open = keep_trimmed(d, before);
        f->call_close = keep_trimmed(d, after);
        return;
    }
    size_t open = before.len - shared_end(before, between);
    size_t close = common_prefix(between, after);
    size_t limit = between.len - (before.len - open);   // the beginning of the next call is not part of the end of this
                                                        // one
    if (close > limit) close = limit;
    close = mark_start(between, close);
    f->section_open = keep_trimmed(d, slice(before, 0, open));
    f->call_open = keep_trimmed(d, slice(before, open, before.len));
    f->call_close = keep_trimmed(d, slice(between, 0, close));
    f->section_close = keep_trimmed(d, slice(after, close, after.len));
}

// ------------------------------------------------------------------------------------- styles

// The length of the JSON object or list at the start of the text; 0 for other text.
static size_t json_length(frit_str s)
{
    if (s.len == 0 || (s.ptr[0] != '{' && s.ptr[0] != '[')) return 0;
    json_error_t error;
    json_t *json = json_loadb(s.ptr, s.len, JSON_DISABLE_EOF_CHECK, &error);
    json_decref(json);
    return json ? (size_t)error.position : 0;
}

static frit_str key_of(const derivation *d, const json_t *object, json_type type, const char *text)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value)
    {
        bool fits = json_is_string(value) ? text && strcmp(json_string_value(value), text) == 0
                                          : json_typeof(value) == type && !text && json_object_get(value, PROBE_KEY_1);
        if (fits) return keep(d, frit_str_of(key));
    }
    return (frit_str){"", 0};
}

static bool derive_json(derivation *d)
{
    answer_format *f = d->format;
    size_t at = 0, n = 0;
    for (; at < d->name_at; at++) {
        n = json_length(slice(d->call, at, d->call.len));
        if (at + n > d->name_at) break;
    }
    if (at >= d->name_at) return false;
    json_t *json = json_loadb(d->call.ptr + at, n, 0, NULL);
    const json_t *object = json_is_array(json) ? json_array_get(json, 0) : json;
    if (json_is_object(json_object_get(object, "function"))) object = json_object_get(object, "function");
    f->name_key = key_of(d, object, JSON_STRING, PROBE_TOOL);
    f->args_key = key_of(d, object, JSON_OBJECT, NULL);
    f->id_key = key_of(d, object, JSON_STRING, PROBE_ID);
    bool by_name = json_object_get(object, PROBE_TOOL) != NULL;
    json_decref(json);
    if (!by_name && (f->name_key.len == 0 || f->args_key.len == 0)) return false;
    if (by_name) f->name_key = (frit_str){"", 0};
    // Two calls are in one list, or separate.
    frit_str between = {0};
    if (d->next.ptr) {
        size_t first = json_length(slice(d->next, at, d->next.len));
        size_t other = find(d->next, PROBE_OTHER, d->name_at), second = at + first;
        while (first > 0 && other != NOWHERE && second < other &&
               json_length(slice(d->next, second, d->next.len)) + second <= other)
            second++;
        if (first > 0 && other != NOWHERE && second < other) between = slice(d->next, at + first, second);
    }
    set_marks(d, slice(d->call, 0, at), between, slice(d->call, at + n, d->call.len));
    f->style = CALL_JSON;
    f->in_list = d->call.ptr[at] == '[';
    f->bare = f->section_open.len == 0 && f->call_open.len == 0;
    return true;
}

// Finds the text between two calls: from the end of the first call's arguments to the start of the second one's name.
static frit_str text_between(const derivation *d, size_t args_end)
{
    if (!d->next.ptr) return (frit_str){0};
    size_t other = find(d->next, PROBE_OTHER, d->name_at);
    return other == NOWHERE || other < args_end ? (frit_str){0} : slice(d->next, args_end, other);
}

static bool derive_named(derivation *d)
{
    answer_format *f = d->format;
    size_t name_end = d->name_at + strlen(PROBE_TOOL), at = name_end, n = 0;
    for (; at < d->call.len; at++) {
        n = json_length(slice(d->call, at, d->call.len));
        if (n > 0 && find(slice(d->call, at, at + n), PROBE_KEY_1, 0) != NOWHERE) break;
    }
    if (at >= d->call.len) return false;
    frit_str middle = slice(d->call, name_end, at);
    size_t id = find(middle, PROBE_ID, 0);
    if (id != NOWHERE) {
        f->id_open = keep_trimmed(d, slice(middle, 0, id));
        middle = slice(middle, id + strlen(PROBE_ID), middle.len);
    }
    size_t index = 0;   // "functions.NAME:0"
    while (index < middle.len && (middle.ptr[index] == ':' || (middle.ptr[index] >= '0' && middle.ptr[index] <= '9')))
        index++;
    f->args_open = keep_trimmed(d, slice(middle, index, middle.len));
    set_marks(d, slice(d->call, 0, d->name_at), text_between(d, at + n), slice(d->call, at + n, d->call.len));
    f->style = CALL_NAMED;
    return f->call_open.len > 0 || f->section_open.len > 0;
}

static bool derive_python(derivation *d)
{
    answer_format *f = d->format;
    size_t name_end = d->name_at + strlen(PROBE_TOOL);
    if (name_end >= d->call.len || d->call.ptr[name_end] != '(') return false;
    size_t open = d->name_at, close = d->call.len;
    while (open > 0 && d->call.ptr[open - 1] == '[' && !opens_mark(d->call, open - 1)) open--;
    while (close > name_end && d->call.ptr[close - 1] != ')') close--;
    if (close < d->call.len && d->call.ptr[close] == ']') close++;
    f->call_open = keep_trimmed(d, slice(d->call, 0, open));
    f->call_close = keep_trimmed(d, slice(d->call, close, d->call.len));
    f->bare = f->call_open.len == 0;
    f->style = CALL_PYTHON;
    return true;
}

static bool derive_loose(derivation *d)
{
    answer_format *f = d->format;
    frit_str call = d->call;
    size_t name_end = d->name_at + strlen(PROBE_TOOL), key = find(call, PROBE_KEY_1, name_end);
    size_t value = find(call, PROBE_VALUE_1, name_end), end = call.len;
    if (key != name_end + 1 || call.ptr[name_end] != '{' || value == NOWHERE) return false;
    size_t before = key + strlen(PROBE_KEY_1) + 1, after = value + strlen(PROBE_VALUE_1);
    frit_str quote = slice(call, before, value);
    while (end > after && call.ptr[end - 1] != '}') end--;
    if (call.ptr[before - 1] != ':' || quote.len == 0 || end == after ||
        memcmp(quote.ptr, call.ptr + after, quote.len) != 0)
        return false;
    f->quote = keep(d, quote);
    set_marks(d, slice(call, 0, d->name_at), text_between(d, end), slice(call, end, call.len));
    f->style = CALL_LOOSE;
    return true;
}

static bool derive_tagged(derivation *d)
{
    answer_format *f = d->format;
    frit_str call = d->call;
    size_t name_end = d->name_at + strlen(PROBE_TOOL);
    size_t key_1 = find(call, PROBE_KEY_1, name_end), value_1 = find(call, PROBE_VALUE_1, name_end);
    size_t key_2 = find(call, PROBE_KEY_2, name_end), value_2 = find(call, "90317", name_end);
    if (value_2 == NOWHERE || !(key_1 < value_1 && value_1 < key_2 && key_2 < value_2)) return false;
    size_t end_1 = value_1 + strlen(PROBE_VALUE_1), end_2 = value_2 + 5;
    frit_str first = slice(call, name_end, key_1), next = slice(call, end_1, key_2);
    frit_str close_1 = slice(call, key_1 + strlen(PROBE_KEY_1), value_1);
    frit_str close_2 = slice(call, key_2 + strlen(PROBE_KEY_2), value_2);
    size_t n_open = shared_end(first, next), open = first.len - n_open;
    frit_str value_close = slice(next, 0, next.len - n_open), after = slice(call, end_2, call.len);
    // The mark that ends a value also ends the last value.
    size_t same = mark_start(value_close, common_prefix(value_close, after));
    value_close = slice(value_close, 0, same);
    f->name_close = keep_trimmed(d, slice(first, 0, open));
    f->arg_open = keep_trimmed(d, slice(first, open, first.len));
    f->key_close_text = keep_trimmed(d, close_1);
    f->key_close_other = keep_trimmed(d, close_2);
    f->value_close = keep_trimmed(d, value_close);
    f->value_on_lines = close_1.len > 0 && close_1.ptr[close_1.len - 1] == '\n' && next.len > 0 && next.ptr[0] == '\n';
    size_t args_end = end_2 + value_close.len;
    set_marks(d, slice(call, 0, d->name_at), text_between(d, args_end), slice(call, args_end, call.len));
    f->style = CALL_TAGGED;
    return f->arg_open.len > 0 && f->key_close_text.len > 0 && f->value_close.len > 0 &&
           f->call_open.len + f->section_open.len > 0;
}

static void derive_calls(derivation *d)
{
    static bool (*const styles[])(derivation *) = {derive_json, derive_named, derive_python, derive_loose,
                                                   derive_tagged};
    answer_format *f = d->format;
    if (!d->shape->shows_calls || !find_call(d)) return;
    const answer_format before = *f;
    for (size_t i = 0; i < FRIT_COUNT(styles); i++) {
        if (styles[i](d)) break;
        *f = before;
    }
}

void frit_answer_derive(answer_format *format, const frit_chat *chat, frit_arena *arena)
{
    *format = (answer_format){.think_open = {"", 0}};
    derivation d = {.chat = chat, .shape = frit_chat_get_shape(chat), .arena = arena, .format = format};
    frit_str source = frit_chat_source(chat);
    if (!frit_answer_find_row(format, source, ROW_FIRST)) {
        derive_think(&d);
        if (format->think_open.len == 0) frit_answer_find_think(format, source);
        derive_calls(&d);
        const bool has_place = d.shape->shows_tools || d.shape->shows_calls;
        if (format->style == CALL_NONE && has_place) frit_answer_find_row(format, source, ROW_AFTER);
        if (format->style == CALL_NONE) frit_answer_find_row(format, source, ROW_PLAIN);
        // A template that renders tools in its own words does not ask for objects as answers.
        if (format->plain && has_place) format->reply_open = format->reply_close = format->raw_open = (frit_str){"", 0};
    }
    frit_buf_free(&d.one);
    frit_buf_free(&d.other);
    frit_buf_free(&d.two);
    frit_buf_free(&d.said);
}
