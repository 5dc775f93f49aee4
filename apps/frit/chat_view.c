// SPDX-License-Identifier: MIT
// An answer as it streams in: Markdown becomes weight and colour, reasoning is dimmed, calls stand on their own lines.
// What may still become a mark is held back until the next byte decides; nothing else waits.
//
// Only what a terminal can show is looked at: headings, lists, quotes, rules, fences, `code`, **bold**, *italic*. Marks
// that turn out to be none are shown as they are. Without colours text is shown to the byte, reasoning between <think>
// and </think>, a call as JSON.
#include "chat.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_BYTES = 64 };

typedef struct style {
    bool bold, italic, code, dim;
} style;

struct chat_view {
    FILE *out;
    bool fancy;
    bool reasons;   // within reasoning
    bool begun;     // something has been shown

    style want, shown;
    char held[HELD_BYTES];   // marks whose meaning is open
    size_t n_held;
    bool line_start, line_empty;
    bool heading, fence, fence_line;   // fence_line: the rest of a line that opens or closes one
    bool drops_space;                  // behind the mark of a heading
    int n_code_ticks;                  // of the `code` that is open
    char before;                       // the last byte shown
};

chat_view *chat_view_new(FILE *out, bool fancy)
{
    chat_view *view = calloc(1, sizeof *view);
    if (!view) return NULL;
    view->out = out;
    view->fancy = fancy;
    view->line_start = view->line_empty = true;
    view->before = '\n';
    return view;
}

void chat_view_free(chat_view *view)
{
    free(view);
}

// ---------------------------------------------------------------------------------------- bytes and styles

static void put_style(chat_view *view)
{
    style want = view->want;
    want.dim |= view->reasons;
    want.bold |= view->heading;
    if (memcmp(&want, &view->shown, sizeof want) == 0) return;
    view->shown = want;
    fputs("\033[0", view->out);
    if (want.bold) fputs(";1", view->out);
    if (want.dim) fputs(";2", view->out);
    if (want.italic) fputs(";3", view->out);
    if (want.code) fputs(";36", view->out);
    fputs("m", view->out);
}

// A model must not steer the terminal: of control characters only tabs and newlines come through.
static void put_byte(chat_view *view, char c)
{
    put_style(view);
    if ((unsigned char)c < 32 && c != '\n' && c != '\t')
        fputs("\xef\xbf\xbd", view->out);
    else if ((unsigned char)view->before == 0xc2 && (unsigned char)c < 0xa0)
        putc(0xa0, view->out);   // U+0080 to U+009F steer too: a space instead
    else if (c != 127)
        putc(c, view->out);
    view->before = c;
}

static void put_text(chat_view *view, const char *text)
{
    put_style(view);
    fputs(text, view->out);
}

static void put_held(chat_view *view)
{
    for (size_t i = 0; i < view->n_held; i++) put_byte(view, view->held[i]);
    view->n_held = 0;
}

// ---------------------------------------------------------------------------------------- marks

static bool held_is(const chat_view *view, char c)
{
    for (size_t i = 0; i < view->n_held; i++)
        if (view->held[i] != c) return false;
    return view->n_held > 0;
}

static void open_or_close_fence(chat_view *view)
{
    view->fence = !view->fence;
    view->want = (style){.code = view->fence};
    view->fence_line = true;
    view->n_held = 0;
}

// A run of stars or underscores has ended and `next` follows it (0: the end).
static void end_emphasis(chat_view *view, char next)
{
    size_t n = view->n_held;
    bool word = view->held[0] == '_' || n == 1;   // within a word an underscore is a letter, and a star a product
    bool opens = next && !isspace((unsigned char)next) && !(word && isalnum((unsigned char)view->before));
    bool closes = !isspace((unsigned char)view->before) && !(word && next && isalnum((unsigned char)next));
    bool bold = n >= 2, italic = n == 1 || n == 3;
    bool fits =
        n <= 3 && (!bold || (view->want.bold ? closes : opens)) && (!italic || (view->want.italic ? closes : opens));
    if (!fits) {
        put_held(view);
        return;
    }
    if (bold) view->want.bold = !view->want.bold;
    if (italic) view->want.italic = !view->want.italic;
    view->n_held = 0;
}

static void end_ticks(chat_view *view)
{
    int n = (int)view->n_held;
    if (!view->want.code) {
        view->want.code = true;
        view->n_code_ticks = n;
    } else if (n == view->n_code_ticks) {
        view->want.code = false;
    } else {
        put_held(view);
    }
    view->n_held = 0;
}

// The marks that a line begins with are complete: "# ", "- ", "> ", "```".
static void end_line_mark(chat_view *view, char next)
{
    char first = view->held[0];
    view->line_start = false;
    if (held_is(view, '#') && view->n_held <= 6 && next == ' ') {
        view->heading = view->drops_space = true;
        view->n_held = 0;
    } else if (view->n_held == 1 && next == ' ' && strchr("-*+", first)) {
        view->n_held = 0;
        put_text(view, "\xe2\x80\xa2");   // a bullet
    } else if (view->n_held == 1 && first == '>') {
        view->n_held = 0;
        put_text(view, "\xe2\x94\x82");   // a line down the side
    } else if (view->n_held >= 3 && (first == '-' || first == '*' || first == '_') && held_is(view, first) &&
               next == '\n') {
        view->n_held = 0;
        for (int i = 0; i < 24; i++) put_text(view, "\xe2\x94\x80");
    } else if (view->n_held >= 3 && held_is(view, '`')) {
        open_or_close_fence(view);
    } else if (first == '`') {
        end_ticks(view);
    } else if (first == '*' || first == '_') {
        end_emphasis(view, next);
    } else {
        put_held(view);
    }
}

// What is held back has met a byte that does not go on with it.
static void end_marks(chat_view *view, char next)
{
    if (view->n_held == 0) return;
    if (view->fence) {
        if (view->line_start && view->n_held >= 3 && held_is(view, '`'))
            open_or_close_fence(view);
        else
            put_held(view);
        view->line_start = false;
    } else if (view->line_start) {
        end_line_mark(view, next);
    } else if (view->held[0] == '`') {
        end_ticks(view);
    } else {
        end_emphasis(view, next);
    }
}

static void end_line(chat_view *view)
{
    if (!view->fence) {
        if (view->line_empty) view->want = (style){0};   // no emphasis goes beyond a paragraph
        view->heading = false;
    }
    put_byte(view, '\n');
    view->line_start = view->line_empty = true;
    view->fence_line = false;
}

static bool is_mark(const chat_view *view, char c)
{
    if (view->fence) return view->line_start && c == '`';
    if (view->want.code) return c == '`';
    return c == '`' || c == '*' || c == '_' || (view->line_start && strchr("#->+", c));
}

static void show_byte(chat_view *view, char c)
{
    if (view->n_held > 0 && (c != view->held[0] || view->n_held == HELD_BYTES || (view->line_start && c == '>')))
        end_marks(view, c);
    bool dropped = view->drops_space && c == ' ';
    view->drops_space = false;
    if (dropped) return;
    if (c == '\n') {
        end_line(view);
    } else if (view->fence_line) {
        put_byte(view, c);
    } else if (c && is_mark(view, c)) {
        view->held[view->n_held++] = c;
        view->line_empty = false;
    } else {
        if (c != ' ' && c != '\t') view->line_start = view->line_empty = false;
        put_byte(view, c);
    }
}

// ---------------------------------------------------------------------------------------- parts

// What was open ends, and a new paragraph begins.
static void end_part(chat_view *view, const char *between)
{
    if (view->fancy) end_marks(view, 0);
    view->heading = view->fence = view->fence_line = view->drops_space = false;
    view->want = (style){0};
    view->reasons = false;
    if (view->fancy)
        put_text(view, between);
    else
        fputs(between, view->out);
    view->line_start = view->line_empty = true;
    view->before = '\n';
}

static void set_reasons(chat_view *view, bool reasons)
{
    if (reasons == view->reasons) return;
    if (view->begun) end_part(view, view->fancy || reasons ? "\n\n" : "\n</think>\n\n");
    if (reasons && !view->fancy) fputs("<think>\n", view->out);
    view->reasons = reasons;
}

void chat_view_add(chat_view *view, bool reasons, const char *text, size_t n)
{
    if (n == 0) return;
    set_reasons(view, reasons);
    view->begun = true;
    for (size_t i = 0; i < n && view->fancy; i++) show_byte(view, text[i]);
    if (!view->fancy) fwrite(text, 1, n, view->out);
    fflush(view->out);
}

void chat_view_call(chat_view *view, const char *name, const char *arguments)
{
    set_reasons(view, false);
    if (view->begun) end_part(view, "\n");
    view->begun = true;
    if (view->fancy) {
        view->want = (style){.code = true};
        put_text(view, "\xe2\x86\x92 ");   // an arrow
        for (const char *at = name; *at; at++) put_byte(view, *at);
        put_byte(view, ' ');
        for (const char *at = arguments; *at; at++) put_byte(view, *at);
        view->want = (style){0};
        put_style(view);
    } else {
        json_t *quoted = json_string(name);
        char *text = quoted ? json_dumps(quoted, JSON_ENCODE_ANY) : NULL;
        fprintf(view->out, "{\"name\": %s, \"arguments\": %s}", text ? text : "\"\"", arguments);
        free(text);
        json_decref(quoted);
    }
    fflush(view->out);
}

void chat_view_end(chat_view *view)
{
    if (!view->fancy) {
        if (view->reasons) fputs("\n</think>", view->out);
        view->reasons = false;
        return;
    }
    end_marks(view, 0);
    view->reasons = view->heading = view->fence = false;
    view->want = (style){0};
    put_style(view);
    fflush(view->out);
}
