// SPDX-License-Identifier: MIT
// Python's str methods, apart from their table: case, strip, replace, lines, padding, format, %.
#include "text/template/node.h"

#include "base/number.h"
#include "base/utf8.h"

#include <stdio.h>

#include <utf8proc.h>

// ------------------------------------------------------------------------------------- characters

// Characters whose upper case consists of several characters; for Greek only characters of modern words.
static const struct {
    uint32_t c;
    const char *upper;
} expanding[] = {{0xdf, "SS"},
                 {0x149, "\xca\xbcN"},
                 {0x1f0, "J\xcc\x8c"},
                 {0x390, "\xce\x99\xcc\x88\xcc\x81"},
                 {0x3b0, "\xce\xa5\xcc\x88\xcc\x81"},
                 {0x587, "\xd4\xb5\xd5\x92"},
                 {0x1e96, "H\xcc\xb1"},
                 {0x1e97, "T\xcc\x88"},
                 {0x1e98, "W\xcc\x8a"},
                 {0x1e99, "Y\xcc\x8a"},
                 {0x1e9a, "A\xca\xbe"},
                 {0xfb00, "FF"},
                 {0xfb01, "FI"},
                 {0xfb02, "FL"},
                 {0xfb03, "FFI"},
                 {0xfb04, "FFL"},
                 {0xfb05, "ST"},
                 {0xfb06, "ST"},
                 {0xfb13, "\xd5\x84\xd5\x86"},
                 {0xfb14, "\xd5\x84\xd4\xb5"},
                 {0xfb15, "\xd5\x84\xd4\xbb"},
                 {0xfb16, "\xd5\x8e\xd5\x86"},
                 {0xfb17, "\xd5\x84\xd4\xbd"}};

static bool is_letter(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

typedef enum letter_case { LETTER_LOWER, LETTER_UPPER, LETTER_TITLE } letter_case;

static letter_case case_of(uint32_t c, int how, bool first)
{
    if (how == CASE_UPPER) return LETTER_UPPER;
    if (how == CASE_SWAP)
        return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_LL ? LETTER_UPPER : LETTER_LOWER;
    if (!first || how == CASE_LOWER) return LETTER_LOWER;
    return how == CASE_WORDS ? LETTER_UPPER : LETTER_TITLE;   // Jinja's title writes capitals, Python's writes title
                                                              // case
}

// True if a sigma ends a word: a letter is before it, none after it.
static bool closes_word(frit_str text, size_t at, bool behind_letter)
{
    uint32_t next;
    int n = frit_utf8_decode(text.ptr + at, text.len - at, &next);
    return behind_letter && (n < 1 || !is_letter(next));
}

static void put_case(writer *out, uint32_t c, letter_case to)
{
    char utf8[4];
    const char *upper = NULL;
    for (size_t i = 0; i < FRIT_COUNT(expanding) && to != LETTER_LOWER; i++)
        if (expanding[i].c == c) upper = expanding[i].upper;
    if (upper) {
        uint32_t letter;
        int n = frit_utf8_decode(upper, strlen(upper), &letter);
        frit_write_made(out, upper, (size_t)n);
        for (upper += n; *upper; upper += n) {   // a title has one capital, unless the first character has no case
                                                 // (U+02BC)
            n = frit_utf8_decode(upper, strlen(upper), &letter);
            put_case(out, letter, to == LETTER_TITLE && c != 0x149 ? LETTER_LOWER : LETTER_UPPER);
        }
        return;
    }
    utf8proc_int32_t p = (utf8proc_int32_t)c;
    utf8proc_int32_t changed = to == LETTER_UPPER   ? utf8proc_toupper(p)
                               : to == LETTER_TITLE ? utf8proc_totitle(p)
                                                    : utf8proc_tolower(p);
    frit_write_made(out, utf8, (size_t)frit_utf8_encode((uint32_t)changed, utf8));
    if (c == 0x130 && to == LETTER_LOWER) frit_write_text(out, "\xcc\x87");   // the dot stays
}

frit_status frit_text_case(run *r, frit_str text, int how, value *out)
{
    FRIT_TRY(frit_run_step(r, text.len / 16));
    writer changed = {.r = r};
    bool first = true, behind_letter = false;   // first: start of a word, or of the text
    for (size_t i = 0; i < text.len;) {
        uint32_t c;
        int n = frit_utf8_decode(text.ptr + i, text.len - i, &c);
        if (n < 1) {
            frit_write(&changed, text.ptr + i++, 1);
            continue;
        }
        letter_case to = case_of(c, how, first);
        changed.taints = frit_origin_is_untrusted(r, text.ptr + i);
        if (c == 0x3a3 && to == LETTER_LOWER && closes_word(text, i + (size_t)n, behind_letter))
            frit_write_text(&changed, "\xcf\x82");
        else
            put_case(&changed, c, to);
        size_t len;
        bool opens = c < 0x80 && strchr("-({[<", (int)c);   // Jinja's title starts words at these characters, Python's
                                                            // at letters
        behind_letter = is_letter(c);
        first = how == CASE_TITLE ? !behind_letter : how == CASE_WORDS && (opens || frit_is_space_at(text, i, &len));
        i += (size_t)n;
    }
    return frit_writer_take(&changed, out);
}

// True if the character at `at` is one of `characters`. *len is its length in bytes.
static bool is_among(frit_str text, size_t at, value characters, size_t *len)
{
    if (characters.type != VALUE_TEXT) return frit_is_space_at(text, at, len);
    uint32_t c;
    int n = frit_utf8_decode(text.ptr + at, text.len - at, &c);
    if (n < 1) return false;
    *len = (size_t)n;
    return frit_text_find(characters.text, (frit_str){text.ptr + at, (size_t)n}, 0) <= characters.text.len;
}

frit_status frit_text_strip(run *r, value v, value characters, bool left, bool right, value *out)
{
    if (characters.type != VALUE_TEXT && characters.type != VALUE_NONE)
        return frit_run_fail(r, "strip arg must be None or str");
    frit_str text = v.text;
    size_t begin = 0, len = 0;
    while (left && begin < text.len && is_among(text, begin, characters, &len)) begin += len;
    size_t end = text.len;
    while (right && end > begin) {
        size_t last = end - 1;
        while (last > begin && ((unsigned char)text.ptr[last] & 0xc0) == 0x80) last--;
        if (!is_among(text, last, characters, &len) || last + len != end) break;
        end = last;
    }
    *out = frit_var_text((frit_str){text.ptr + begin, end - begin});
    out->safe = v.safe;
    return frit_run_step(r, (text.len - (end - begin)) / 16);
}

size_t frit_text_find(frit_str text, frit_str part, size_t from)
{
    if (part.len == 0) return from <= text.len ? from : text.len + 1;
    for (size_t i = from; i + part.len <= text.len; i++) {
        const char *at = memchr(text.ptr + i, part.ptr[0], text.len - part.len - i + 1);
        if (!at) break;
        i = (size_t)(at - text.ptr);
        if (memcmp(at, part.ptr, part.len) == 0) return i;
    }
    return text.len + 1;
}

// Replaces an empty `from`, which matches before every character and at the end.
static frit_status replace_empty(run *r, frit_str text, frit_str to, int64_t most, value *out)
{
    writer replaced = {.r = r};
    size_t i = 0;
    for (;;) {
        if (most != 0) frit_write(&replaced, to.ptr, to.len);
        if (most > 0) most--;
        if (i >= text.len) break;
        size_t n = frit_text_offset((frit_str){text.ptr + i, text.len - i}, 1);
        frit_write(&replaced, text.ptr + i, n);
        i += n;
        if (replaced.buf.len > MAX_OUTPUT) break;
    }
    return frit_writer_take(&replaced, out);
}

frit_status frit_text_replace(run *r, frit_str text, frit_str from, frit_str to, int64_t most, value *out)
{
    FRIT_TRY(frit_run_step(r, (text.len / 16) * (from.len / 16 + 1)));
    if (from.len == 0) return replace_empty(r, text, to, most, out);
    writer replaced = {.r = r};
    size_t done = 0;
    for (; most != 0 && replaced.buf.len <= MAX_OUTPUT; most--) {
        size_t at = frit_text_find(text, from, done);
        if (at > text.len) break;
        frit_write(&replaced, text.ptr + done, at - done);
        frit_write(&replaced, to.ptr, to.len);
        done = at + from.len;
    }
    frit_write(&replaced, text.ptr + done, text.len - done);
    return frit_writer_take(&replaced, out);
}

// The length of the line end at `at`, 0 for other text.
static size_t line_end(frit_str text, size_t at)
{
    unsigned char c = (unsigned char)text.ptr[at];
    if (c == '\r') return at + 1 < text.len && text.ptr[at + 1] == '\n' ? 2 : 1;
    if ((c >= 0x0a && c <= 0x0c) || (c >= 0x1c && c <= 0x1e)) return 1;
    if (text.len - at >= 2 && memcmp(text.ptr + at, "\xc2\x85", 2) == 0) return 2;
    if (text.len - at >= 3 && memcmp(text.ptr + at, "\xe2\x80", 2) == 0 &&
        ((unsigned char)text.ptr[at + 2] & 0xfe) == 0xa8)
        return 3;
    return 0;
}

frit_status frit_text_lines(run *r, frit_str text, bool keep_ends, value *out)
{
    FRIT_TRY(frit_run_step(r, text.len / 16));
    FRIT_TRY(frit_var_new_list(r, VALUE_LIST, out));
    size_t begin = 0;
    for (size_t i = 0; i < text.len;) {
        size_t n = line_end(text, i);
        if (n > 0) {
            FRIT_TRY(frit_list_push(r, out->list,
                                    frit_var_text((frit_str){text.ptr + begin, i - begin + (keep_ends ? n : 0)})));
            begin = i + n;
        }
        i += n > 0 ? n : 1;
    }
    if (begin == text.len) return FRIT_OK;
    return frit_list_push(r, out->list, frit_var_text((frit_str){text.ptr + begin, text.len - begin}));
}

frit_status frit_text_join(run *r, frit_str glue, const list *items, bool only_text, value *out)
{
    writer joined = {.r = r};
    frit_status status = FRIT_OK;
    for (size_t i = 0; i < items->n && status == FRIT_OK; i++) {
        if (i > 0) frit_write(&joined, glue.ptr, glue.len);
        if (only_text && items->items[i].type != VALUE_TEXT)
            status = frit_run_fail(r, "sequence item %zu: expected str instance, %s found", i,
                                   frit_var_type_name(items->items[i]));
        else
            status = frit_var_print(r, items->items[i], &joined);
    }
    if (status == FRIT_OK) return frit_writer_take(&joined, out);
    frit_writer_free(&joined);
    return status;
}

frit_status frit_text_pad(run *r, frit_str text, int64_t width, char how, frit_str fill, value *out)
{
    FRIT_TRY(frit_run_step(r, text.len / 64));
    int64_t missing = width - (int64_t)frit_text_length(text);
    if (missing <= 0) {
        *out = frit_var_text(text);
        return FRIT_OK;
    }
    if (missing > MAX_OUTPUT) return frit_run_memory(r);
    // Python's str.center puts the extra space to the left if the width is odd too; format puts it to the right.
    int64_t left = how == '<'   ? 0
                   : how == '>' ? missing
                   : how == 'c' ? missing / 2 + (missing & width & 1)
                                : missing / 2;
    writer padded = {.r = r};
    for (int64_t i = 0; i < left; i++) frit_write(&padded, fill.ptr, fill.len);
    frit_write(&padded, text.ptr, text.len);
    for (int64_t i = left; i < missing; i++) frit_write(&padded, fill.ptr, fill.len);
    return frit_writer_take(&padded, out);
}

// ------------------------------------------------------------------------------------- number formats

// Writes a number in a format of C. `type` is one of d f F e E g G x X o; precision < 0: the default.
static frit_status print_number(run *r, value v, char type, int precision, bool plus, writer *out)
{
    char text[400], format[16];
    bool integer = strchr("dxXo", type) != NULL;
    if (integer && !frit_var_is_integral(v) && !(type == 'd' && v.type == VALUE_FLOAT))
        return frit_run_fail(r, "format '%c' needs an integer, not %s", type, frit_var_type_name(v));
    if (precision > 60) return frit_run_fail(r, "a precision of %d is too large", precision);
    if (integer) {
        int64_t i = v.type == VALUE_FLOAT ? (int64_t)v.f : frit_var_as_int(v);
        bool negative = i < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)i : (uint64_t)i;
        snprintf(format, sizeof format, "%%ll%c", type == 'd' ? 'u' : type);
        frit_format(text, sizeof text, format, (unsigned long long)magnitude);
        frit_write_text(out, negative ? "-" : plus ? "+" : "");
    } else {
        snprintf(format, sizeof format, plus ? "%%+.%d%c" : "%%.%d%c", precision < 0 ? 6 : precision, type);
        frit_format(text, sizeof text, format, frit_var_as_float(v));
    }
    frit_write_text(out, text);
    return FRIT_OK;
}

// Groups digits by threes.
static void group_digits(writer *number, char separator)
{
    size_t start = 0, end;
    const frit_buf *text = &number->buf;
    while (start < text->len && (text->data[start] < '0' || text->data[start] > '9')) start++;
    for (end = start; end < text->len && text->data[end] >= '0' && text->data[end] <= '9';) end++;
    writer grouped = {.r = number->r, .taints = number->untrusted.n > 0};
    frit_write_made(&grouped, text->data, start);
    for (size_t i = start; i < end; i++) {
        if (i > start && (end - i) % 3 == 0) frit_write_char(&grouped, separator);
        frit_write_char(&grouped, text->data[i]);
    }
    frit_write_made(&grouped, text->data + end, text->len - end);
    frit_writer_free(number);
    *number = grouped;
}

// ------------------------------------------------------------------------------------- str.format

typedef struct spec {   // [[fill]align][sign][0][width][,][.precision][type]
    frit_str fill;
    char align, type, separator;
    bool plus;
    int64_t width;
    int precision;
} spec;

static int64_t read_digits(frit_str text, size_t *i)
{
    int64_t n = 0;
    for (; *i < text.len && text.ptr[*i] >= '0' && text.ptr[*i] <= '9'; ++*i)
        if (n < 1000000000) n = n * 10 + (text.ptr[*i] - '0');
    return n;
}

static frit_status read_spec(run *r, frit_str text, spec *out)
{
    *out = (spec){.fill = {" ", 1}, .precision = -1};
    size_t i = 0, first = text.len > 0 ? frit_text_offset(text, 1) : 0;
    if (first < text.len && strchr("<>^=", text.ptr[first])) {
        out->fill = (frit_str){text.ptr, first};
        out->align = text.ptr[first];
        i = first + 1;
    } else if (text.len > 0 && strchr("<>^=", text.ptr[0])) {
        out->align = text.ptr[i++];
    }
    if (i < text.len && strchr("+- ", text.ptr[i])) out->plus = text.ptr[i++] == '+';
    if (i < text.len && text.ptr[i] == '0') {
        if (!out->align) out->align = '=', out->fill = (frit_str){"0", 1};
        i++;
    }
    out->width = read_digits(text, &i);
    if (i < text.len && (text.ptr[i] == ',' || text.ptr[i] == '_')) out->separator = text.ptr[i++];
    if (i < text.len && text.ptr[i] == '.') {
        i++;
        out->precision = (int)read_digits(text, &i);
    }
    if (i < text.len) out->type = text.ptr[i++];
    return i == text.len ? FRIT_OK : frit_run_fail(r, "invalid format specifier '%.*s'", (int)text.len, text.ptr);
}

static void print_binary(int64_t number, bool plus, writer *out)
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    int bit = 63;
    while (bit > 0 && !(rest >> bit)) bit--;
    if (number < 0 || plus) frit_write_char(out, number < 0 ? '-' : '+');
    for (; bit >= 0; bit--) frit_write_char(out, (rest >> bit) & 1 ? '1' : '0');
}

static frit_status format_plain(run *r, value v, const spec *s, writer *out)
{
    bool number = frit_var_is_number(v) && v.type != VALUE_BOOL;
    if (s->type == 's' || (s->type == 0 && !number)) {
        if (s->type == 's' && number)
            return frit_run_fail(r, "unknown format code 's' for object of type '%s'", frit_var_type_name(v));
        value text;
        FRIT_TRY(frit_var_to_text(r, v, &text));
        size_t n = s->precision >= 0 ? frit_text_offset(text.text, (size_t)s->precision) : text.text.len;
        frit_write(out, text.text.ptr, n);
        return FRIT_OK;
    }
    if (!frit_var_is_number(v))
        return frit_run_fail(r, "unknown format code '%c' for object of type '%s'", s->type, frit_var_type_name(v));
    if (s->type == 0 && s->precision < 0) {
        if (s->plus && frit_var_as_float(v) >= 0) frit_write_char(out, '+');
        return frit_var_print(r, v, out);
    }
    if (s->type == 'd' && v.type == VALUE_FLOAT)
        return frit_run_fail(r, "unknown format code 'd' for object of type 'float'");
    if (s->type == '%') {
        FRIT_TRY(print_number(r, frit_var_float(frit_var_as_float(v) * 100), 'f', s->precision, s->plus, out));
        frit_write_char(out, '%');
        return FRIT_OK;
    }
    if (s->type == 'b' && frit_var_is_integral(v)) {
        print_binary(frit_var_as_int(v), s->plus, out);
        return FRIT_OK;
    }
    if (s->type != 0 && !strchr("dfFeEgGxXo", s->type)) return frit_run_fail(r, "unknown format code '%c'", s->type);
    return print_number(r, v, s->type ? s->type : 'g', s->precision, s->plus, out);
}

static frit_status format_value(run *r, value v, frit_str spec_text, writer *out)
{
    spec s;
    FRIT_TRY(read_spec(r, spec_text, &s));
    writer plain = {.r = r};
    frit_status status = format_plain(r, v, &s, &plain);
    if (status != FRIT_OK) {
        frit_writer_free(&plain);
        return status;
    }
    if (s.separator) group_digits(&plain, s.separator);
    value text, padded;
    FRIT_TRY(frit_writer_take(&plain, &text));
    char align = s.align == '=' ? '>' : s.align ? s.align : frit_var_is_number(v) && v.type != VALUE_BOOL ? '>' : '<';
    size_t sign = s.align == '=' && text.text.len > 0 && strchr("+-", text.text.ptr[0]) != NULL;
    frit_write(out, text.text.ptr, sign);
    const frit_str rest = {text.text.ptr + sign, text.text.len - sign};
    FRIT_TRY(frit_text_pad(r, rest, s.width - (int64_t)sign, align, s.fill, &padded));
    frit_write(out, padded.text.ptr, padded.text.len);
    return FRIT_OK;
}

// Finds the value of a field like "0.name[key]". *automatic numbers fields without a name.
static frit_status find_field(run *r, const call *c, frit_str field, size_t *automatic, value *out)
{
    size_t i = 0;
    while (i < field.len && field.ptr[i] != '.' && field.ptr[i] != '[') i++;
    frit_str name = {field.ptr, i};
    size_t at = 0;
    int64_t number = read_digits(name, &at);
    bool found = false;
    if (name.len == 0) number = (int64_t)(*automatic)++;
    if (at == name.len) {
        found = (uint64_t)number < c->n;
        if (found) *out = c->positional[number];
    } else {
        for (size_t k = 0; !found && k < c->n_named; k++) {
            found = c->names[k].len == name.len && memcmp(c->names[k].ptr, name.ptr, name.len) == 0;
            if (found) *out = c->named[k];
        }
    }
    if (!found) return frit_run_fail(r, "format: there is no argument '%.*s'", (int)name.len, name.ptr);
    while (i < field.len) {
        bool item = field.ptr[i++] == '[';
        size_t begin = i;
        while (i < field.len && (item ? field.ptr[i] != ']' : field.ptr[i] != '.' && field.ptr[i] != '[')) i++;
        frit_str key = {field.ptr + begin, i - begin};
        size_t digits = 0;
        number = read_digits(key, &digits);
        if (item)
            FRIT_TRY(frit_var_item(r, *out,
                                   digits == key.len && key.len > 0 ? frit_var_int(number) : frit_var_text(key), out));
        else
            FRIT_TRY(frit_var_attribute(r, *out, key, out));
        i += item;
    }
    return FRIT_OK;
}

static frit_status format_field(run *r, const call *c, frit_str field, size_t *automatic, writer *out)
{
    frit_str spec_text = {"", 0};
    size_t colon = frit_text_find(field, frit_str_of(":"), 0);
    if (colon < field.len) spec_text = (frit_str){field.ptr + colon + 1, field.len - colon - 1};
    frit_str name = {field.ptr, colon < field.len ? colon : field.len};
    char conversion = 0;
    if (name.len >= 2 && name.ptr[name.len - 2] == '!') {
        conversion = name.ptr[name.len - 1];
        name.len -= 2;
    }
    value v;
    FRIT_TRY(find_field(r, c, name, automatic, &v));
    if (conversion == 'r') {
        writer text = {.r = r};
        frit_status status = frit_var_repr(r, v, &text);
        if (status == FRIT_OK)
            return frit_writer_take(&text, &v) == FRIT_OK ? format_value(r, v, spec_text, out) : frit_run_memory(r);
        frit_writer_free(&text);
        return status;
    }
    if (conversion == 's') FRIT_TRY(frit_var_to_text(r, v, &v));
    return format_value(r, v, spec_text, out);
}

static frit_status format_all(run *r, frit_str format, const call *c, writer *out)
{
    size_t automatic = 0;
    for (size_t i = 0; i < format.len; i++) {
        char b = format.ptr[i], after = i + 1 < format.len ? format.ptr[i + 1] : 0;
        if ((b == '{' || b == '}') && after == b) {
            frit_write(out, format.ptr + i, 1);
            i++;
        } else if (b == '{') {
            size_t end = i + 1;
            while (end < format.len && format.ptr[end] != '}' && format.ptr[end] != '{') end++;
            if (end >= format.len || format.ptr[end] == '{')
                return frit_run_fail(r, "a format field is not closed, or nested");
            FRIT_TRY(format_field(r, c, (frit_str){format.ptr + i + 1, end - i - 1}, &automatic, out));
            i = end;
        } else if (b == '}') {
            return frit_run_fail(r, "single '}' encountered in format string");
        } else {
            frit_write(out, format.ptr + i, 1);
        }
        if (out->buf.len > MAX_OUTPUT) return frit_run_memory(r);
    }
    return frit_run_step(r, format.len / 16);
}

frit_status frit_text_format(run *r, frit_str format, const call *c, value *out)
{
    writer text = {.r = r};
    frit_status status = format_all(r, format, c, &text);
    if (status == FRIT_OK) return frit_writer_take(&text, out);
    frit_writer_free(&text);
    return status;
}

// ------------------------------------------------------------------------------------- str % arguments

static frit_status percent_value(run *r, value v, char type, int precision, bool plus, writer *out)
{
    if (type == 's' || type == 'r') {
        size_t start = out->buf.len;
        FRIT_TRY(type == 's' ? frit_var_print(r, v, out) : frit_var_repr(r, v, out));
        if (precision < 0 || out->buf.len == start) return FRIT_OK;
        frit_str text = {out->buf.data + start, out->buf.len - start};
        frit_writer_cut(out, start + frit_text_offset(text, (size_t)precision));
        return FRIT_OK;
    }
    if (type == 'i' || type == 'u') type = 'd';
    if (!strchr("dfFeEgGxXo", type)) return frit_run_fail(r, "unsupported format character '%c'", type);
    if (!frit_var_is_number(v))
        return frit_run_fail(r, "%%%c format: a number is required, not %s", type, frit_var_type_name(v));
    return print_number(r, v, type, precision, plus, out);
}

// Formats one conversion; format[*i] follows the percent sign.
static frit_status percent_one(run *r, frit_str format, size_t *i, value operands, size_t *next, writer *out)
{
    value v = operands;
    bool named = *i < format.len && format.ptr[*i] == '(', left = false, zero = false, plus = false;
    if (named) {
        size_t end = frit_text_find(format, frit_str_of(")"), *i);
        if (end >= format.len || operands.type != VALUE_DICT) return frit_run_fail(r, "format requires a mapping");
        FRIT_TRY(frit_var_item(r, operands, frit_var_text((frit_str){format.ptr + *i + 1, end - *i - 1}), &v));
        *i = end + 1;
    }
    for (; *i < format.len && strchr("-+ 0#", format.ptr[*i]); ++*i) {
        left = left || format.ptr[*i] == '-';
        zero = zero || format.ptr[*i] == '0';
        plus = plus || format.ptr[*i] == '+';
    }
    int64_t width = read_digits(format, i);
    int precision = -1;
    if (*i < format.len && format.ptr[*i] == '.') {
        ++*i;
        precision = (int)read_digits(format, i);
    }
    if (*i >= format.len) return frit_run_fail(r, "incomplete format");
    char type = format.ptr[(*i)++];
    if (type == '%') {
        frit_write_char(out, '%');
        return FRIT_OK;
    }
    if (!named && operands.type == VALUE_TUPLE) {
        if (*next >= operands.list->n) return frit_run_fail(r, "not enough arguments for format string");
        v = operands.list->items[*next];
    } else if (!named && *next > 0) {
        return frit_run_fail(r, "not enough arguments for format string");
    }
    ++*next;
    writer plain = {.r = r};
    frit_status status = percent_value(r, v, type, precision, plus, &plain);
    if (status != FRIT_OK) {
        frit_writer_free(&plain);
        return status;
    }
    value text;
    FRIT_TRY(frit_writer_take(&plain, &text));
    bool number = !strchr("sr", type);
    size_t sign = zero && number && !left && text.text.len > 0 && strchr("+-", text.text.ptr[0]);
    frit_write(out, text.text.ptr, sign);
    frit_str rest = {text.text.ptr + sign, text.text.len - sign};
    FRIT_TRY(frit_text_pad(r, rest, width - (int64_t)sign, left ? '<' : '>',
                           frit_str_of(zero && number && !left ? "0" : " "), &text));
    frit_write(out, text.text.ptr, text.text.len);
    return FRIT_OK;
}

frit_status frit_text_percent(run *r, frit_str format, value operands, value *out)
{
    writer text = {.r = r};
    frit_status status = frit_run_step(r, format.len / 16);
    size_t next = 0;
    for (size_t i = 0; i < format.len && status == FRIT_OK;) {
        if (format.ptr[i] == '%') {
            i++;
            status = percent_one(r, format, &i, operands, &next, &text);
        } else {
            frit_write(&text, format.ptr + i++, 1);
        }
        if (text.buf.len > MAX_OUTPUT) status = frit_run_memory(r);
    }
    bool left_over = operands.type == VALUE_TUPLE ? next < operands.list->n : next == 0 && operands.type != VALUE_DICT;
    if (status == FRIT_OK && left_over)
        status = frit_run_fail(r, "not all arguments converted during string formatting");
    if (status == FRIT_OK) return frit_writer_take(&text, out);
    frit_writer_free(&text);
    return status;
}
