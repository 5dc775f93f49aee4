// SPDX-License-Identifier: MIT
// Parts of JSON, and values in Python's syntax.
#include "text/answer/values.h"

#include "base/utf8.h"

#include <jansson.h>
#include <string.h>

enum { MAX_DEPTH = 128, MAX_LOOK_AHEAD = 64 };

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t skip_space(frit_str s, size_t at)
{
    while (at < s.len && is_space(s.ptr[at])) at++;
    return at;
}

static bool starts(frit_str s, size_t at, frit_str part)
{
    return part.len > 0 && s.len - at >= part.len && memcmp(s.ptr + at, part.ptr, part.len) == 0;
}

// ------------------------------------------------------------------------------------- checked JSON

static size_t skip_string(frit_str s, size_t at)
{
    for (at++; at < s.len && s.ptr[at] != '"'; at++)
        if (s.ptr[at] == '\\') at++;
    return at < s.len ? at + 1 : s.len;
}

static size_t skip_value(frit_str s, size_t at)
{
    int depth = 0;
    while (at < s.len) {
        char c = s.ptr[at];
        if (c == '"') {
            at = skip_string(s, at);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0) return at;
            depth--;
            at++;
        } else if (depth == 0 && (c == ',' || c == ':' || is_space(c))) {
            return at;
        } else {
            at++;
            if (depth == 0) continue;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']')) return at;
    }
    return at;
}

json_walk frit_json_enter(frit_str container)
{
    return (json_walk){container, skip_space(container, 0) + 1};
}

bool frit_json_next(json_walk *walk, bool is_object, frit_str *key, frit_str *value)
{
    frit_str s = walk->text;
    size_t at = skip_space(s, walk->at);
    if (at < s.len && s.ptr[at] == ',') at = skip_space(s, at + 1);
    if (at >= s.len || s.ptr[at] == '}' || s.ptr[at] == ']') return false;
    *key = (frit_str){"", 0};
    if (is_object) {
        size_t end = skip_value(s, at);
        *key = (frit_str){s.ptr + at, end - at};
        at = skip_space(s, end);
        if (at >= s.len || s.ptr[at] != ':') return false;
        at = skip_space(s, at + 1);
    }
    size_t end = skip_value(s, at);
    *value = (frit_str){s.ptr + at, end - at};
    walk->at = end;
    return end > at;
}

bool frit_json_member(frit_str object, frit_str key, frit_str *value)
{
    json_walk walk = frit_json_enter(object);
    frit_str name;
    while (key.len > 0 && frit_json_next(&walk, true, &name, value))
        if (name.len == key.len + 2 && memcmp(name.ptr + 1, key.ptr, key.len) == 0) return true;
    return false;
}

bool frit_json_is_object(frit_str value)
{
    return value.len > 0 && value.ptr[0] == '{';
}

bool frit_json_string(frit_str value, frit_buf *out)
{
    if (value.len == 0 || value.ptr[0] != '"') return false;
    json_t *json = json_loadb(value.ptr, value.len, JSON_DECODE_ANY, NULL);
    if (json) frit_buf_append(out, json_string_value(json), json_string_length(json));
    json_decref(json);
    return json != NULL;
}

bool frit_json_check_object(frit_str text)
{
    json_t *json = json_loadb(text.ptr, text.len, 0, NULL);
    bool good = json_is_object(json);
    json_decref(json);
    return good;
}

void frit_json_quote(frit_str text, frit_buf *out)
{
    frit_buf_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        unsigned char c = (unsigned char)text.ptr[i];
        uint32_t code;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &code);
        if (n <= 0) {
            frit_buf_text(out, "\xef\xbf\xbd");
            i += n < 0 ? (size_t)-n : text.len - i;
            continue;
        }
        if (c == '"' || c == '\\')
            frit_buf_printf(out, "\\%c", c);
        else if (c == '\n')
            frit_buf_text(out, "\\n");
        else if (c < 32)
            frit_buf_printf(out, "\\u%04x", c);
        else
            frit_buf_append(out, text.ptr + i, (size_t)n);
        i += (size_t)n;
    }
    frit_buf_char(out, '"');
}

// ------------------------------------------------------------------------------------- where a value ends

typedef enum quote_end { QUOTE_ENDS, QUOTE_IS_TEXT, QUOTE_UNKNOWN } quote_end;

// Templates write strings in Python's quotes without escapes, so a quote ends a string only where a value may end.
static quote_end ends_text(frit_str s, size_t at, bool last)
{
    size_t next = at + 1;
    while (next < s.len && next - at < MAX_LOOK_AHEAD && is_space(s.ptr[next])) next++;
    if (next == s.len) return last ? QUOTE_ENDS : QUOTE_UNKNOWN;
    return memchr(",)]}:", s.ptr[next], 5) ? QUOTE_ENDS : QUOTE_IS_TEXT;
}

static scan_result scan_in_text(value_scan *scan, frit_str s, value_spelling spelling, frit_str quote, bool last)
{
    char c = s.ptr[scan->at];
    if (spelling == VALUE_LOOSE) {
        bool ends = starts(s, scan->at, quote);
        if (!ends && !last && s.len - scan->at < quote.len) return SCAN_MORE;
        if (ends) scan->quote = 0;
        scan->at += ends ? quote.len : 1;
        return SCAN_DONE;
    }
    if (c == '\\') {
        if (scan->at + 1 == s.len) return SCAN_MORE;
        scan->at += 2;
        return SCAN_DONE;
    }
    if (spelling == VALUE_JSON && (unsigned char)c < 32) return SCAN_WRONG;
    if (c == scan->quote) {
        quote_end end = spelling == VALUE_JSON ? QUOTE_ENDS : ends_text(s, scan->at, last);
        if (end == QUOTE_UNKNOWN) return SCAN_MORE;
        if (end == QUOTE_ENDS) scan->quote = 0;
    }
    scan->at++;
    return SCAN_DONE;
}

scan_result frit_value_scan(value_scan *scan, frit_str s, value_spelling spelling, frit_str quote, bool last)
{
    while (scan->at < s.len) {
        if (scan->quote) {
            scan_result result = scan_in_text(scan, s, spelling, quote, last);
            if (result != SCAN_DONE) return result;
            continue;
        }
        char c = s.ptr[scan->at];
        if (spelling == VALUE_LOOSE && c == quote.ptr[0]) {
            if (!last && s.len - scan->at < quote.len) return SCAN_MORE;
            if (starts(s, scan->at, quote)) {
                scan->quote = c;
                scan->at += quote.len;
                continue;
            }
        }
        scan->at++;
        if (spelling != VALUE_LOOSE && (c == '"' || (c == '\'' && spelling == VALUE_PYTHON))) scan->quote = c;
        if (c == '{' || c == '[' || c == '(') scan->depth++;
        if (scan->depth > MAX_DEPTH) return SCAN_WRONG;
        if (c != '}' && c != ']' && c != ')') continue;
        if (--scan->depth < 0) return SCAN_WRONG;
        if (scan->depth == 0) return SCAN_DONE;
    }
    return SCAN_MORE;
}

// ------------------------------------------------------------------------------------- to JSON

typedef struct reader {
    frit_str s;
    size_t at;
    value_spelling spelling;
    frit_str quote;
    frit_buf *out;
    int depth;
} reader;

static bool take(reader *r, char c)
{
    r->at = skip_space(r->s, r->at);
    if (r->at >= r->s.len || r->s.ptr[r->at] != c) return false;
    r->at++;
    return true;
}

static char peek(reader *r)
{
    r->at = skip_space(r->s, r->at);
    return r->at < r->s.len ? r->s.ptr[r->at] : 0;
}

// Reads four hexadecimal digits at *at.
static uint32_t read_hex(const reader *r, size_t at)
{
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        char h = r->s.ptr[at + (size_t)i];
        uint32_t digit = h >= '0' && h <= '9'   ? (uint32_t)(h - '0')
                         : h >= 'a' && h <= 'f' ? (uint32_t)(h - 'a' + 10)
                         : h >= 'A' && h <= 'F' ? (uint32_t)(h - 'A' + 10)
                                                : 0;
        code = 16 * code + digit;
    }
    return code;
}

static void unescape(reader *r, frit_buf *text)
{
    static const char from[] = "ntrbf\\'\"/0", to[] = "\n\t\r\b\f\\'\"/";
    char c = r->s.ptr[r->at++];
    const char *known = c ? strchr(from, c) : NULL;
    if (known && known - from < (int)sizeof to - 1) {
        frit_buf_char(text, to[known - from]);
    } else if (c == 'u' && r->s.len - r->at >= 4) {
        uint32_t code = read_hex(r, r->at);
        r->at += 4;
        const bool is_pair = code >> 10 == 0xd800 >> 10 && r->s.len - r->at >= 6 && r->s.ptr[r->at] == '\\' &&
                             r->s.ptr[r->at + 1] == 'u' && read_hex(r, r->at + 2) >> 10 == 0xdc00 >> 10;
        if (is_pair) {
            code = 0x10000 + ((code & 0x3ff) << 10) + (read_hex(r, r->at + 2) & 0x3ff);
            r->at += 6;
        }
        char utf8[4];
        frit_buf_append(text, utf8, (size_t)frit_utf8_encode(code, utf8));
    } else if (c != '\n') {   // unknown escapes stay unchanged, as in Python
        frit_buf_char(text, '\\');
        frit_buf_char(text, c);
    }
}

static bool read_text(reader *r)
{
    frit_buf text = {0};
    bool closed = false;
    if (r->spelling == VALUE_LOOSE) {
        r->at += r->quote.len;
        size_t start = r->at;
        while (r->at < r->s.len && !starts(r->s, r->at, r->quote)) r->at++;
        closed = r->at < r->s.len;
        frit_buf_append(&text, r->s.ptr + start, r->at - start);
        r->at += closed ? r->quote.len : 0;
    } else {
        char quote = r->s.ptr[r->at++];
        while (r->at < r->s.len && !closed) {
            char c = r->s.ptr[r->at++];
            if (c == '\\' && r->at < r->s.len)
                unescape(r, &text);
            else if (c == quote && ends_text(r->s, r->at - 1, true) == QUOTE_ENDS)
                closed = true;
            else
                frit_buf_char(&text, c);
        }
    }
    if (closed) frit_json_quote((frit_str){text.data ? text.data : "", text.len}, r->out);
    frit_buf_free(&text);
    return closed;
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '+';
}

static frit_str read_word(reader *r)
{
    r->at = skip_space(r->s, r->at);
    size_t start = r->at;
    while (r->at < r->s.len && is_word_byte(r->s.ptr[r->at])) r->at++;
    return (frit_str){r->s.ptr + start, r->at - start};
}

static bool is_json_scalar(frit_str word)
{
    json_t *json = word.len > 0 ? json_loadb(word.ptr, word.len, JSON_DECODE_ANY, NULL) : NULL;
    json_decref(json);
    return json != NULL;
}

static bool read_scalar(reader *r)
{
    static const char *const words[][2] = {{"True", "true"}, {"False", "false"}, {"None", "null"}};
    frit_str word = read_word(r);
    for (size_t i = 0; i < FRIT_COUNT(words); i++) {
        if (!frit_str_is(word, words[i][0])) continue;
        frit_buf_text(r->out, words[i][1]);
        return true;
    }
    if (!is_json_scalar(word)) return false;
    frit_buf_append(r->out, word.ptr, word.len);
    return true;
}

static bool at_text(reader *r)
{
    char c = peek(r);
    if (r->spelling == VALUE_LOOSE) return starts(r->s, r->at, r->quote);
    return c == '"' || c == '\'';
}

static bool read_value(reader *r);

static bool read_key(reader *r)
{
    if (at_text(r)) return read_text(r);
    frit_str word = read_word(r);
    frit_json_quote(word, r->out);
    return word.len > 0;
}

static bool read_items(reader *r, char close, char between, const char *json)
{
    frit_buf_char(r->out, json[0]);
    for (bool first = true; !take(r, close); first = false) {
        if (!first && !take(r, ',')) return false;
        if (!first && take(r, close)) break;   // a comma before the closing bracket
        if (!first) frit_buf_text(r->out, ", ");
        if (between) {
            if (!read_key(r) || !take(r, between)) return false;
            frit_buf_text(r->out, ": ");
        }
        if (!read_value(r)) return false;
    }
    frit_buf_char(r->out, json[1]);
    return true;
}

static bool read_value(reader *r)
{
    if (r->depth >= MAX_DEPTH) return false;
    bool good;
    r->depth++;
    if (at_text(r))
        good = read_text(r);
    else if (take(r, '{'))
        good = read_items(r, '}', ':', "{}");
    else if (take(r, '['))
        good = read_items(r, ']', 0, "[]");
    else if (take(r, '('))
        good = read_items(r, ')', 0, "[]");
    else
        good = read_scalar(r);
    r->depth--;
    return good;
}

bool frit_value_to_json(frit_str text, size_t *at, value_spelling spelling, frit_str quote, frit_buf *out)
{
    reader r = {text, *at, spelling, quote, out, 0};
    bool good = read_value(&r);
    *at = r.at;
    return good;
}

bool frit_value_read_call(frit_str text, size_t *at, frit_str *name, frit_buf *args)
{
    reader r = {text, *at, VALUE_PYTHON, {"", 0}, args, 0};
    *name = read_word(&r);
    bool good = name->len > 0 && take(&r, '(') && read_items(&r, ')', '=', "{}");
    *at = r.at;
    return good;
}

// ------------------------------------------------------------------------------------- parameters

static unsigned type_of_word(const char *word)
{
    static const struct {
        const char *word;
        unsigned type;
    } rows[] = {{"string", FRIT_PARAM_TEXT},  {"number", FRIT_PARAM_NUMBER}, {"integer", FRIT_PARAM_NUMBER},
                {"boolean", FRIT_PARAM_BOOL}, {"null", FRIT_PARAM_NULL},     {"object", FRIT_PARAM_OBJECT},
                {"array", FRIT_PARAM_LIST}};
    for (size_t i = 0; word && i < FRIT_COUNT(rows); i++)
        if (strcmp(rows[i].word, word) == 0) return rows[i].type;
    return FRIT_PARAM_ANY;
}

// The types that a schema allows, from its simple keywords.
static unsigned types_of(const json_t *schema, int depth)
{
    const json_t *type = json_object_get(schema, "type"), *list = json_object_get(schema, "anyOf");
    unsigned types = 0;
    if (json_is_string(type)) return type_of_word(json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        types |= type_of_word(json_string_value(json_array_get(type, i)));
    if (!list) list = json_object_get(schema, "oneOf");
    for (size_t i = 0; i < json_array_size(list) && depth < 4; i++)
        types |= types_of(json_array_get(list, i), depth + 1);
    return types ? types : FRIT_PARAM_ANY;
}

unsigned frit_value_types(const json_t *schema)
{
    return types_of(schema, 0);
}

static const json_t *find_tool(const json_t *tools, frit_str name)
{
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *function = json_object_get(json_array_get(tools, i), "function");
        const char *its_name = json_string_value(json_object_get(function, "name"));
        if (its_name && frit_str_is(name, its_name)) return function;
    }
    return NULL;
}

bool frit_value_tool_is_known(const json_t *tools, frit_str name)
{
    return find_tool(tools, name) != NULL;
}

static unsigned type_of_json(frit_str json)
{
    switch (json.ptr[0]) {
    case '"':
        return FRIT_PARAM_TEXT;
    case '{':
        return FRIT_PARAM_OBJECT;
    case '[':
        return FRIT_PARAM_LIST;
    case 't':
    case 'f':
        return FRIT_PARAM_BOOL;
    case 'n':
        return FRIT_PARAM_NULL;
    default:
        return FRIT_PARAM_NUMBER;
    }
}

// Converts a whole text, a value in JSON or in Python's syntax, to JSON.
static bool spell(frit_str text, frit_buf *out)
{
    json_t *json = json_loadb(text.ptr, text.len, JSON_DECODE_ANY, NULL);
    if (json) frit_buf_append(out, text.ptr, text.len);
    json_decref(json);
    size_t at = 0;
    return json ||
           (frit_value_to_json(text, &at, VALUE_PYTHON, (frit_str){"", 0}, out) && skip_space(text, at) == text.len);
}

void frit_value_typed(const json_t *tools, frit_str tool, frit_str parameter, frit_str text, frit_buf *out)
{
    const json_t *function = find_tool(tools, tool);
    const json_t *properties = json_object_get(json_object_get(function, "parameters"), "properties");
    frit_buf name = {0};
    frit_buf_append(&name, parameter.ptr, parameter.len);
    unsigned types = frit_value_types(json_object_get(properties, name.data ? name.data : ""));
    frit_buf_free(&name);
    frit_str trimmed = text;
    while (trimmed.len > 0 && is_space(trimmed.ptr[0])) trimmed.ptr++, trimmed.len--;
    while (trimmed.len > 0 && is_space(trimmed.ptr[trimmed.len - 1])) trimmed.len--;
    frit_buf value = {0};
    bool spelled = types != FRIT_PARAM_TEXT && trimmed.len > 0 && spell(trimmed, &value);
    frit_str json = {value.data ? value.data : "", value.len};
    // If the type of a quoted string is unknown, the quotes are part of the text.
    if (spelled && type_of_json(json) != FRIT_PARAM_TEXT && (types & type_of_json(json)))
        frit_buf_append(out, json.ptr, json.len);
    else
        frit_json_quote(text, out);
    frit_buf_free(&value);
}
