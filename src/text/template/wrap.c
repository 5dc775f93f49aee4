// SPDX-License-Identifier: MIT
// The filter wordwrap: lines of at most some width, broken at the positions where Python's textwrap breaks them.
#include "text/tokenizer/regex.h"
#include "text/template/filters.h"

// Lines break after white space, after a hyphen between letters, and before and after a dash of two or more hyphens.
// Each match is a piece that stays together (textwrap.TextWrapper.wordsep_re).
#define SPACE "\\t\\n\\x0b\\x0c\\r "
static const char with_hyphens[] =
    "[" SPACE "]+"
    "|(?<=[\\w!\"'&.,?])-{2,}(?=\\w)"
    "|[^" SPACE "]+?(?:-(?:(?<=[^\\d\\W]{2}-)|(?<=[^\\d\\W]-[^\\d\\W]-))(?=[^\\d\\W]-?[^\\d\\W])"
    "|(?=[" SPACE "]|\\z)|(?<=[\\w!\"'&.,?])(?=-{2,}\\w))";
static const char without_hyphens[] = "[" SPACE "]+|[^" SPACE "]+";

typedef struct wrapper {
    run *r;
    frit_regex *regex;
    frit_matcher matcher;
    size_t width;
    bool break_long, break_hyphens;
    frit_str glue;
    list *pieces;   // pieces of the paragraph; pieces before `next` are finished
    size_t next;
    writer text;
    size_t n_lines;   // of this paragraph
} wrapper;

static bool is_blank(frit_str text)
{
    size_t n;
    for (size_t i = 0; i < text.len; i += n)
        if (!frit_is_space_at(text, i, &n)) return false;
    return true;
}

// The number of characters of a text, at most `most` + 1. The limit matters because a long piece is counted for every
// line.
static size_t length_up_to(frit_str text, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len && n <= most; i++) n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

static frit_status cut(wrapper *w, frit_str line)
{
    value pieces;
    FRIT_TRY(frit_var_new_list(w->r, VALUE_LIST, &pieces));
    w->pieces = pieces.list;
    w->next = 0;
    for (size_t at = 0; at < line.len;) {
        size_t start, end;
        bool found;
        FRIT_TRY(frit_matcher_next(&w->matcher, w->regex, line, at, &start, &end, &found));
        if (!found) start = end = line.len;
        if (start > at) FRIT_TRY(frit_list_push(w->r, w->pieces, frit_var_text((frit_str){line.ptr + at, start - at})));
        if (end > start)
            FRIT_TRY(frit_list_push(w->r, w->pieces, frit_var_text((frit_str){line.ptr + start, end - start})));
        at = end;
    }
    return frit_run_step(w->r, line.len);
}

// The number of characters of a piece longer than a line that fit into this line.
static size_t split_at(const wrapper *w, frit_str piece, size_t room)
{
    size_t hyphen = 0, n_before = 0;
    if (!w->break_hyphens) return room;
    bool others = false;   // there is a character other than a hyphen before
    for (size_t i = 0, n = 0; i < piece.len && n < room; i++) {
        if (((unsigned char)piece.ptr[i] & 0xc0) == 0x80) continue;
        if (piece.ptr[i] == '-' && others) hyphen = n, n_before = n + 1;
        others |= piece.ptr[i] != '-';
        n++;
    }
    return hyphen > 0 ? n_before : room;
}

// Makes one line from the remaining pieces.
static void wrap_line(wrapper *w)
{
    list *pieces = w->pieces;
    size_t begin = w->next, length = 0;
    while (w->next < pieces->n) {
        size_t n = length_up_to(pieces->items[w->next].text, w->width);
        if (length + n > w->width) break;
        length += n;
        w->next++;
    }
    size_t end = w->next;
    frit_str part = {"", 0};   // part of a piece that is too long; may be empty
    bool broke = false;
    if (w->next < pieces->n && length_up_to(pieces->items[w->next].text, w->width) > w->width) {
        frit_str *piece = &pieces->items[w->next].text;
        if (w->break_long) {
            size_t n = frit_text_offset(*piece, split_at(w, *piece, w->width - length));
            broke = true;
            part = (frit_str){piece->ptr, n};
            *piece = (frit_str){piece->ptr + n, piece->len - n};
        } else if (end == begin) {
            end = ++w->next;
        }
    }
    if (broke)
        part.len = is_blank(part) ? 0 : part.len;
    else if (end > begin && is_blank(pieces->items[end - 1].text))
        end--;
    if (end == begin && part.len == 0) return;
    if (w->n_lines++ > 0) frit_write(&w->text, w->glue.ptr, w->glue.len);
    for (size_t i = begin; i < end; i++) frit_write(&w->text, pieces->items[i].text.ptr, pieces->items[i].text.len);
    frit_write(&w->text, part.ptr, part.len);
}

static frit_status wrap_lines(wrapper *w, const list *lines)
{
    for (size_t i = 0; i < lines->n; i++) {
        if (i > 0) frit_write(&w->text, w->glue.ptr, w->glue.len);
        FRIT_TRY(cut(w, lines->items[i].text));
        w->n_lines = 0;
        while (w->next < w->pieces->n) {
            if (w->n_lines > 0 && is_blank(w->pieces->items[w->next].text) && ++w->next == w->pieces->n) break;
            wrap_line(w);
            FRIT_TRY(frit_run_step(w->r, 1 + w->width / 16));
        }
    }
    return FRIT_OK;
}

static frit_status wrap(wrapper *w, value text, value *out)
{
    value lines;
    FRIT_TRY(frit_text_lines(w->r, text.text, false, &lines));
    FRIT_TRY(frit_matcher_init(&w->matcher));
    const char *source = w->break_hyphens ? with_hyphens : without_hyphens;
    frit_status status = frit_regex_new(&w->regex, frit_str_of(source), FRIT_DIALECT_PLAIN);
    if (status == FRIT_OK) status = wrap_lines(w, lines.list);
    frit_regex_free(w->regex);
    frit_matcher_deinit(&w->matcher);
    if (status == FRIT_OK) return frit_writer_take(&w->text, out);
    frit_writer_free(&w->text);
    return status;
}

frit_status frit_filter_wordwrap(run *r, value v, const call *c, value *out)
{
    int64_t width;
    value glue = frit_filter_option(c, 2, "wrapstring", frit_var_none());
    FRIT_TRY(frit_filter_int(r, c, 0, "width", 79, &width));
    FRIT_TRY(frit_var_to_text(r, v, &v));
    if (width < 1) return frit_run_fail(r, "invalid width %lld (must be > 0)", (long long)width);
    if (glue.type == VALUE_NONE) glue = frit_var_text(frit_str_of("\n"));
    if (glue.type != VALUE_TEXT) return frit_run_fail(r, "wordwrap: wrapstring must be a string");
    wrapper w = {.r = r, .text = {.r = r}, .width = width > INT32_MAX ? INT32_MAX : (size_t)width, .glue = glue.text};
    w.break_long = frit_var_is_true(frit_filter_option(c, 1, "break_long_words", frit_var_bool(true)));
    w.break_hyphens = frit_var_is_true(frit_filter_option(c, 3, "break_on_hyphens", frit_var_bool(true)));
    return wrap(&w, v, out);
}
