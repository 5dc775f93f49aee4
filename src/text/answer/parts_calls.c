// SPDX-License-Identifier: MIT
// Tool calls between marks, as a state machine. A step consumes input, waits for more, or fails. After a failure
// everything since the call's first mark is text.
#include "text/answer/parts_state.h"

enum { MAX_NAME = 256, MAX_KEY = 1024, MAX_GAP = 64 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == ':' || c == '/';
}

static frit_str held_text(const frit_parts *s, size_t from, size_t to)
{
    return (frit_str){s->held.data + from, to - from};
}

static frit_str str_of(const frit_buf *buf)
{
    return (frit_str){buf->data ? buf->data : "", buf->len};
}

// Skips the mark. `wait`: the input may still complete it.
static bool pass(frit_parts *s, frit_str mark, bool *wait)
{
    size_t n = 0;
    mark_match match = frit_mark_match(mark, frit_parts_rest(s), &n);
    *wait = match == MARK_PARTIAL && !s->last;
    if (match != MARK_WHOLE) return false;
    s->at += n;
    return true;
}

// ------------------------------------------------------------------------------------- what was read

static frit_str strip_index(frit_str name)
{
    size_t n = name.len;
    while (n > 0 && name.ptr[n - 1] >= '0' && name.ptr[n - 1] <= '9') n--;
    return n > 1 && n < name.len && name.ptr[n - 1] == ':' ? (frit_str){name.ptr, n - 1} : name;
}

static frit_str call_name(const frit_parts *s)
{
    return strip_index(held_text(s, s->name_from, s->name_to));
}

// Outputs the call that ends at `at`.
static split_step give_call(frit_parts *s, frit_str args)
{
    frit_parts_put_call(s, call_name(s), held_text(s, s->id_from, s->id_to), args);
    s->state = SPLIT_AFTER;
    s->call_at = s->at;
    s->n_mark = 0;
    return STEP_ON;
}

typedef struct json_call {
    frit_str name, args, id;   // as JSON; args may be missing
} json_call;

static bool find_member(frit_str object, frit_str first, const char *const others[3], frit_str *value)
{
    if (frit_json_member(object, first, value)) return true;
    for (int i = 0; i < 3; i++)
        if (others[i] && frit_json_member(object, frit_str_of(others[i]), value)) return true;
    *value = (frit_str){0};   // a failed search may have set it
    return false;
}

// Reads the members of an object that is a call.
static bool read_json_call(const answer_format *f, frit_str object, json_call *call)
{
    static const char *const names[3] = {"name", "tool_name", NULL}, *const args[3] = {"arguments", "parameters",
                                                                                       "args"};
    static const char *const ids[3] = {"id", NULL, NULL};
    frit_str inner;
    *call = (json_call){0};
    if (!frit_json_is_object(object)) return false;
    if (frit_json_member(object, frit_str_of("function"), &inner) && frit_json_is_object(inner)) {
        if (!read_json_call(f, inner, call)) return false;
        find_member(object, f->id_key, ids, &call->id);
        return true;
    }
    if (find_member(object, f->name_key, names, &call->name) && call->name.ptr[0] == '"') {
        find_member(object, f->args_key, args, &call->args);
        find_member(object, f->id_key, ids, &call->id);
        return call->name.len > 2;
    }
    if (f->name_key.len > 0) return false;
    json_walk walk = frit_json_enter(object);   // {"NAME": {...}}
    return frit_json_next(&walk, true, &call->name, &call->args) && frit_json_is_object(call->args);
}

// Converts arguments to the text of an object: from an object, from its text, or from nothing.
static bool read_json_args(frit_str args, frit_buf *out)
{
    frit_buf_clear(out);
    if (args.len == 0 || frit_str_is(args, "null"))
        frit_buf_text(out, "{}");
    else if (frit_json_is_object(args))
        frit_buf_append(out, args.ptr, args.len);
    else if (!frit_json_string(args, out))
        return false;
    if (out->len == 0) frit_buf_text(out, "{}");
    return frit_json_check_object(str_of(out));
}

// Reads one object of a payload. With `give` false it only checks that the object is a call.
static bool take_json_call(frit_parts *s, frit_str object, bool give)
{
    json_call call;
    frit_buf name = {0}, id = {0}, args = {0};
    bool good = read_json_call(s->format, object, &call) && frit_json_string(call.name, &name) &&
                read_json_args(call.args, &args) && frit_parts_is_name(str_of(&name));
    if (good && s->is_bare) good = frit_value_tool_is_known(s->tools, str_of(&name));
    if (good && give) {
        frit_json_string(call.id, &id);
        frit_parts_put_call(s, str_of(&name), str_of(&id), str_of(&args));
    }
    frit_buf_free(&name);
    frit_buf_free(&id);
    frit_buf_free(&args);
    return good;
}

static bool take_json(frit_parts *s, frit_str payload)
{
    frit_buf checked = {0};   // an object around the value, because the check needs one
    frit_buf_text(&checked, "{\"a\":");
    frit_buf_append(&checked, payload.ptr, payload.len);
    frit_buf_char(&checked, '}');
    bool good = !checked.failed && frit_json_check_object(str_of(&checked));
    frit_buf_free(&checked);
    if (!good) return false;
    if (payload.ptr[0] == '{') return take_json_call(s, payload, true);
    int n = 0;
    for (int pass_n = 0; pass_n < 2 && good; pass_n++) {   // all objects are calls, or none
        json_walk walk = frit_json_enter(payload);
        frit_str key, value;
        for (n = 0; good && frit_json_next(&walk, false, &key, &value); n++)
            good = take_json_call(s, value, pass_n == 1);
    }
    return good && n > 0;
}

static size_t skip_between(frit_str text, size_t at)
{
    while (at < text.len && (is_space(text.ptr[at]) || text.ptr[at] == ',')) at++;
    return at;
}

static bool take_python(frit_parts *s, frit_str payload)
{
    bool in_list = payload.ptr[0] == '[';
    frit_str inner = in_list ? (frit_str){payload.ptr + 1, payload.len - 2} : payload;
    bool good = true;
    int n = 0;
    for (int pass_n = 0; pass_n < 2 && good; pass_n++) {
        n = 0;
        for (size_t at = skip_between(inner, 0); at < inner.len && good; at = skip_between(inner, at), n++) {
            frit_str name;
            frit_buf args = {0};
            good = frit_value_read_call(inner, &at, &name, &args) && frit_json_check_object(str_of(&args)) &&
                   (!s->is_bare || frit_value_tool_is_known(s->tools, name));
            if (good && pass_n == 1) frit_parts_put_call(s, name, (frit_str){"", 0}, str_of(&args));
            frit_buf_free(&args);
        }
    }
    return good && n > 0;
}

// ------------------------------------------------------------------------------------- marks before

static split_step section_step(frit_parts *s)
{
    bool wait;
    s->at = s->call_at;
    if (pass(s, s->format->section_open, &wait)) {
        s->state = SPLIT_OPEN;
        return STEP_ON;
    }
    return wait ? STEP_WAIT : frit_parts_give_up(s);
}

static split_step open_step(frit_parts *s)
{
    bool wait;
    frit_parts_skip_space(s);
    if (!pass(s, s->format->call_open, &wait)) return wait ? STEP_WAIT : frit_parts_give_up(s);
    call_style style = s->format->style;
    s->state = style == CALL_JSON || style == CALL_PYTHON ? SPLIT_PAYLOAD : SPLIT_NAME;
    s->scanning = s->is_bare = false;
    s->name_from = s->name_to = s->id_from = s->id_to = 0;
    frit_buf_clear(&s->args);
    return STEP_ON;
}

// ------------------------------------------------------------------------------------- JSON and Python

// Scans the value that begins at `at`. DONE: it ends at scan.at.
static scan_result scan_value(frit_parts *s, value_spelling spelling)
{
    if (!s->scanning) s->scan = (value_scan){.at = s->at};
    s->scanning = true;
    return frit_value_scan(&s->scan, str_of(&s->held), spelling, s->format->quote, s->last);
}

static split_step stop_scan(frit_parts *s, scan_result result)
{
    if (result == SCAN_MORE && !s->last) return STEP_WAIT;
    s->at = s->scan.at;
    s->scanning = false;
    return frit_parts_give_up(s);
}

// Matches the beginning of a payload in Python's syntax: a list, or a name and a bracket.
static mark_match match_python_start(frit_str text)
{
    size_t n = 0;
    if (text.ptr[0] == '[') return MARK_WHOLE;
    while (n < text.len && n < MAX_NAME && is_name_byte(text.ptr[n])) n++;
    if (n == text.len) return MARK_PARTIAL;
    return n > 0 && text.ptr[n] == '(' ? MARK_WHOLE : MARK_NONE;
}

static split_step payload_step(frit_parts *s)
{
    bool is_json = s->format->style == CALL_JSON;
    if (!s->scanning) {
        frit_parts_skip_space(s);
        frit_str rest = frit_parts_rest(s);
        if (rest.len == 0) return STEP_WAIT;
        mark_match start = !is_json                                   ? match_python_start(rest)
                           : rest.ptr[0] == '{' || rest.ptr[0] == '[' ? MARK_WHOLE
                                                                      : MARK_NONE;
        if (start == MARK_PARTIAL && !s->last) return STEP_WAIT;
        if (start != MARK_WHOLE) return frit_parts_give_up(s);
    }
    scan_result result = scan_value(s, is_json ? VALUE_JSON : VALUE_PYTHON);
    if (result != SCAN_DONE) return stop_scan(s, result);
    frit_str payload = held_text(s, s->at, s->scan.at);
    bool good = is_json ? take_json(s, payload) : take_python(s, payload);
    s->at = s->scan.at;
    s->scanning = false;
    if (!good) return frit_parts_give_up(s);
    s->state = SPLIT_AFTER;
    s->call_at = s->at;
    s->n_mark = 0;
    return STEP_ON;
}

// ------------------------------------------------------------------------------------- a name, then arguments

// Reads the bytes of a name from `at` on. Returns false if more may follow, or with *wrong if it is no name.
static bool read_name(frit_parts *s, size_t from, size_t *to, bool *wrong)
{
    size_t end = from;
    while (end < s->held.len && end - from <= MAX_NAME && is_name_byte(s->held.data[end])) end++;
    bool open = end == s->held.len && !s->last;
    *wrong = !open && (end == from || end == s->held.len || end - from > MAX_NAME);
    *to = end;
    return !open && !*wrong;
}

static split_step name_step(frit_parts *s)
{
    bool wrong;
    frit_parts_skip_space(s);
    s->name_from = s->at;
    if (!read_name(s, s->at, &s->name_to, &wrong)) return wrong ? frit_parts_give_up(s) : STEP_WAIT;
    s->at = s->name_to;
    s->state = s->format->id_open.len > 0 ? SPLIT_ID : SPLIT_ARGS_OPEN;
    return STEP_ON;
}

static split_step id_step(frit_parts *s)
{
    size_t n = 0, end;
    bool wrong;
    mark_match match = frit_mark_match(s->format->id_open, frit_parts_rest(s), &n);
    if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
    if (match == MARK_WHOLE) {
        if (!read_name(s, s->at + n, &end, &wrong)) return wrong ? frit_parts_give_up(s) : STEP_WAIT;
        s->id_from = s->at + n;
        s->id_to = s->at = end;
    }
    s->state = SPLIT_ARGS_OPEN;
    return STEP_ON;
}

static split_step args_open_step(frit_parts *s)
{
    bool wait, is_tagged = s->format->style == CALL_TAGGED;
    frit_parts_skip_space(s);
    if (!pass(s, is_tagged ? s->format->name_close : s->format->args_open, &wait))
        return wait ? STEP_WAIT : frit_parts_give_up(s);
    s->state = is_tagged ? SPLIT_ARG : SPLIT_ARGS;
    return STEP_ON;
}

static split_step args_step(frit_parts *s)
{
    bool is_loose = s->format->style == CALL_LOOSE;
    if (!s->scanning) {
        frit_parts_skip_space(s);
        frit_str rest = frit_parts_rest(s);
        if (rest.len == 0) return STEP_WAIT;
        if (rest.ptr[0] != '{') return frit_parts_give_up(s);
    }
    scan_result result = scan_value(s, is_loose ? VALUE_LOOSE : VALUE_JSON);
    if (result != SCAN_DONE) return stop_scan(s, result);
    frit_str text = held_text(s, s->at, s->scan.at);
    size_t at = 0;
    bool good = true;
    if (is_loose) {
        good = frit_value_to_json(text, &at, VALUE_LOOSE, s->format->quote, &s->args);
        text = str_of(&s->args);
    }
    good = good && frit_json_check_object(text);
    s->at = s->scan.at;
    s->scanning = false;
    return good ? give_call(s, text) : frit_parts_give_up(s);
}

// ------------------------------------------------------------------------------------- parameters between marks

static frit_str first_word(frit_str mark)
{
    size_t n = 0;
    while (n < mark.len && !is_space(mark.ptr[n])) n++;
    return (frit_str){mark.ptr, n};
}

static split_step arg_step(frit_parts *s)
{
    const answer_format *f = s->format;
    bool wait_arg, wait_close;
    frit_parts_skip_space(s);
    if (pass(s, f->arg_open, &wait_arg)) {
        s->state = SPLIT_KEY;
        s->key_from = s->at;
        return STEP_ON;
    }
    // An answer may end within the closing marks of a call.
    frit_str close = s->last ? first_word(f->call_close) : f->call_close;
    if (close.len > 0 && pass(s, close, &wait_close)) {
        frit_buf_text(&s->args, s->args.len > 0 ? "}" : "{}");
        if (frit_json_check_object(str_of(&s->args))) return give_call(s, str_of(&s->args));
        return frit_parts_give_up(s);
    }
    bool waits = !s->last && (wait_arg || (close.len > 0 && wait_close));
    return waits ? STEP_WAIT : frit_parts_give_up(s);
}

static split_step key_step(frit_parts *s)
{
    const answer_format *f = s->format;
    for (; s->at < s->held.len && s->at - s->key_from <= MAX_KEY; s->at++) {
        size_t n_text = 0, n_other = 0;
        mark_match text = frit_mark_match(f->key_close_text, frit_parts_rest(s), &n_text);
        mark_match other = frit_mark_match(f->key_close_other, frit_parts_rest(s), &n_other);
        if (text == MARK_WHOLE || other == MARK_WHOLE) {
            s->key_to = s->at;
            s->key_is_text = text == MARK_WHOLE;
            s->at += text == MARK_WHOLE ? n_text : n_other;
            s->value_from = s->at;
            s->state = f->value_on_lines ? SPLIT_VALUE_LINE : SPLIT_VALUE;
            return STEP_ON;
        }
        if ((text == MARK_PARTIAL || other == MARK_PARTIAL) && !s->last) return STEP_WAIT;
    }
    return s->at - s->key_from > MAX_KEY || s->last ? frit_parts_give_up(s) : STEP_WAIT;
}

// Matches the text that may follow a value. A value may contain the closing mark, so the text after the mark matters
// too.
static mark_match match_after_value(const frit_parts *s, frit_str text)
{
    const answer_format *f = s->format;
    size_t n = 0;
    while (n < text.len && n < MAX_GAP && is_space(text.ptr[n])) n++;
    if (n == text.len) return s->last ? MARK_WHOLE : MARK_PARTIAL;
    frit_str rest = {text.ptr + n, text.len - n}, close = first_word(f->call_close);
    mark_match arg = frit_mark_match(f->arg_open, rest, &n);
    mark_match end = close.len > 0 ? frit_mark_match(close, rest, &n) : MARK_NONE;
    if (arg == MARK_WHOLE || end == MARK_WHOLE) return MARK_WHOLE;
    return (arg == MARK_PARTIAL || end == MARK_PARTIAL) && !s->last ? MARK_PARTIAL : MARK_NONE;
}

static void add_parameter(frit_parts *s, size_t value_to)
{
    const answer_format *f = s->format;
    frit_str key = held_text(s, s->key_from, s->key_to), value;
    if (f->value_on_lines && value_to > s->value_from && s->held.data[value_to - 1] == '\n') value_to--;
    value = held_text(s, s->value_from, value_to);
    frit_buf_text(&s->args, s->args.len > 0 ? ", " : "{");
    frit_json_quote(key, &s->args);
    frit_buf_text(&s->args, ": ");
    bool says_type = f->key_close_text.len != f->key_close_other.len;
    if (says_type && s->key_is_text)
        frit_json_quote(value, &s->args);
    else
        frit_value_typed(says_type ? NULL : s->tools, call_name(s), key, value, &s->args);
}

// The newline before a value belongs to the mark.
static split_step value_line_step(frit_parts *s)
{
    if (s->at == s->held.len) return s->last ? frit_parts_give_up(s) : STEP_WAIT;
    if (s->held.data[s->at] == '\n') s->at++;
    s->value_from = s->at;
    s->state = SPLIT_VALUE;
    return STEP_ON;
}

static split_step value_step(frit_parts *s)
{
    frit_str close = s->format->value_close;
    for (;;) {
        const char *found =
            s->at < s->held.len ? memchr(s->held.data + s->at, close.ptr[0], s->held.len - s->at) : NULL;
        s->at = found ? (size_t)(found - s->held.data) : s->held.len;
        frit_str rest = frit_parts_rest(s);
        if (rest.len == 0) return s->last ? frit_parts_give_up(s) : STEP_WAIT;
        mark_match match = frit_mark_match_exactly(close, rest);
        if (match == MARK_WHOLE) match = match_after_value(s, (frit_str){rest.ptr + close.len, rest.len - close.len});
        if (match == MARK_PARTIAL && !s->last) return STEP_WAIT;
        if (match == MARK_WHOLE) {
            add_parameter(s, s->at);
            s->at += close.len;
            s->state = SPLIT_ARG;
            return STEP_ON;
        }
        s->at++;
    }
}

// ------------------------------------------------------------------------------------- after a call

static split_step back_to_text(frit_parts *s)
{
    s->state = SPLIT_TEXT;
    s->fresh = false;
    return STEP_ON;
}

static bool starts_payload(const frit_parts *s, char c)
{
    const answer_format *f = s->format;
    bool repeats = f->call_open.len == 0 && (f->section_open.len > 0 || s->is_bare);
    return repeats && f->style == CALL_JSON && c == '{';
}

static split_step after_step(frit_parts *s)
{
    const answer_format *f = s->format;
    bool has_section = f->section_open.len > 0 || f->section_close.len > 0, wait[3] = {false, false, false};
    frit_parts_skip_space(s);
    s->call_at = s->at;
    frit_str rest = frit_parts_rest(s);
    if (rest.len == 0) return s->last ? back_to_text(s) : STEP_WAIT;
    if (f->call_close.len > 0 && pass(s, f->call_close, &wait[0])) return has_section ? STEP_ON : back_to_text(s);
    if (f->section_close.len > 0 && pass(s, f->section_close, &wait[1])) return back_to_text(s);
    if (has_section && f->call_open.len > 0) {
        size_t n;
        mark_match match = frit_mark_match(f->call_open, rest, &n);
        wait[2] = match == MARK_PARTIAL && !s->last;
        if (match == MARK_WHOLE) {
            s->state = SPLIT_OPEN;
            s->n_mark = n;
            return STEP_ON;
        }
    }
    if (rest.ptr[0] == ',' || (s->is_bare && rest.ptr[0] == ';')) {
        if (rest.len == 1 && !s->last) return STEP_WAIT;
        if (starts_payload(s, '{') && rest.len > 1) {
            s->at++;
            frit_parts_skip_space(s);
            s->state = SPLIT_PAYLOAD;
            return STEP_ON;
        }
    }
    if (starts_payload(s, rest.ptr[0])) {
        s->state = SPLIT_PAYLOAD;
        return STEP_ON;
    }
    if (wait[0] || wait[1] || wait[2]) return STEP_WAIT;
    size_t n;
    if (s->last && f->call_close.len > 0 && frit_mark_match(f->call_close, rest, &n) == MARK_PARTIAL)
        s->at = s->call_at = s->held.len;   // the answer ended within the mark
    else if (f->call_close.len > 0 && pass(s, first_word(f->call_close), &wait[0]))
        s->call_at = s->at;   // the rest of the mark may be missing
    return back_to_text(s);
}

split_step frit_parts_call_step(frit_parts *s)
{
    switch (s->state) {
    case SPLIT_SECTION:
        return section_step(s);
    case SPLIT_OPEN:
        return open_step(s);
    case SPLIT_PAYLOAD:
        return payload_step(s);
    case SPLIT_NAME:
        return name_step(s);
    case SPLIT_ID:
        return id_step(s);
    case SPLIT_ARGS_OPEN:
        return args_open_step(s);
    case SPLIT_ARGS:
        return args_step(s);
    case SPLIT_ARG:
        return arg_step(s);
    case SPLIT_KEY:
        return key_step(s);
    case SPLIT_VALUE_LINE:
        return value_line_step(s);
    case SPLIT_VALUE:
        return value_step(s);
    default:
        return after_step(s);
    }
}
