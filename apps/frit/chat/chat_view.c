// SPDX-License-Identifier: MIT
// Shows an answer while it streams in: Markdown becomes weight and colour, reasoning is dimmed, calls are on separate
// lines. Characters that may be part of a mark are held back until the next byte decides; other text is shown at once.
//
// Only Markdown that a terminal can show is parsed: headings, lists, quotes, rules, fences, `code`, **bold**, *italic*.
// Other characters are shown unchanged. Without colours marks stay, reasoning is between <think> and </think>, and a
// call is JSON. With a width, lines break between words; without one, the text is shown byte for byte.
#include "frit/chat/chat.h"

#include "frit/cli/wrap.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELD_BYTES = 64 };

typedef struct style {
    bool bold, italic, code, dim;
} style;

typedef enum event_kind { EVENT_TEXT, EVENT_REASONING, EVENT_CALL, EVENT_ARGUMENTS } event_kind;

typedef struct event {   // text that was shown, to redraw it on a terminal of another width
    event_kind kind;
    size_t end;   // in the view's log
} event;

typedef struct state {
    bool is_reasoning;   // the text is reasoning
    bool begun;          // something has been shown

    style want, shown;
    char held[HELD_BYTES];   // characters that may be part of a mark
    size_t n_held;
    bool line_start, line_empty;
    bool heading, fence, fence_line;   // fence_line: the rest of a line that opens or closes one
    bool drops_space;                  // after the mark of a heading
    int n_code_ticks;                  // number of ticks that opened the current `code`
    enum { NUMBER_POSSIBLE, NUMBER_DIGITS, NUMBER_POINT, NUMBER_OVER } number;   // of a list, at the start of a line
    char before;                                                                 // the last byte shown
} state;

struct chat_view {
    FILE *out;
    bool fancy, is_terminal;
    cli_wrap wrap;
    state s;
    char *log;
    size_t n_log;
    event *events;
    size_t n_events;
};

static void begin(chat_view *view, int columns)
{
    cli_wrap_init(&view->wrap, view->out, columns);
    view->s = (state){.line_start = true, .line_empty = true, .before = '\n'};
}

chat_view *chat_view_new(FILE *out, bool fancy, int columns)
{
    chat_view *view = calloc(1, sizeof *view);
    if (!view) return NULL;
    view->out = out;
    view->fancy = fancy;
    view->is_terminal = isatty(fileno(out));
    begin(view, columns);
    return view;
}

void chat_view_free(chat_view *view)
{
    if (!view) return;
    cli_wrap_deinit(&view->wrap);
    free(view->log);
    free(view->events);
    free(view);
}

// ---------------------------------------------------------------------------------------- bytes and styles

static void put_style(chat_view *view)
{
    char sequence[32] = "\033[0";
    style want = view->s.want;
    want.dim |= view->s.is_reasoning;
    want.bold |= view->s.heading;
    if (!view->fancy || memcmp(&want, &view->s.shown, sizeof want) == 0) return;
    view->s.shown = want;
    if (want.bold) strcat(sequence, ";1");
    if (want.dim) strcat(sequence, ";2");
    if (want.italic) strcat(sequence, ";3");
    if (want.code) strcat(sequence, ";36");
    strcat(sequence, "m");
    cli_wrap_escape(&view->wrap, sequence);
}

static void put_bytes(chat_view *view, const char *bytes, size_t n)
{
    put_style(view);
    view->wrap.raw = view->s.fence || view->s.fence_line;
    if (view->fancy || view->wrap.columns > 0 || view->is_terminal)
        cli_wrap_text(&view->wrap, bytes, n);
    else
        fwrite(bytes, 1, n, view->out);
}

static void put_byte(chat_view *view, char c)
{
    put_bytes(view, &c, 1);
    view->s.before = c;
}

static void put_text(chat_view *view, const char *text)
{
    put_bytes(view, text, strlen(text));
}

static void put_held(chat_view *view)
{
    for (size_t i = 0; i < view->s.n_held; i++) put_byte(view, view->s.held[i]);
    view->s.n_held = 0;
}

// Lines that continue this one are indented to where its text begins: one blank after the mark that was just shown.
static void hang(chat_view *view, const char *mark)
{
    char prefix[CLI_WRAP_PREFIX];
    const int columns = cli_wrap_column(&view->wrap) + 1, n_mark = *mark ? 2 : 0;
    snprintf(prefix, sizeof prefix, "%*s%s", columns - n_mark, "", mark);
    cli_wrap_hang(&view->wrap, prefix, columns);
}

// ---------------------------------------------------------------------------------------- marks

static bool held_is(const chat_view *view, char c)
{
    for (size_t i = 0; i < view->s.n_held; i++)
        if (view->s.held[i] != c) return false;
    return view->s.n_held > 0;
}

static void open_or_close_fence(chat_view *view)
{
    view->s.fence = !view->s.fence;
    view->s.want = (style){.code = view->s.fence};
    view->s.fence_line = true;
    view->s.n_held = 0;
}

// A sequence of stars or underscores has ended and `next` follows it (0: the end).
static void end_emphasis(chat_view *view, char next)
{
    size_t n = view->s.n_held;
    bool word = view->s.held[0] == '_' || n == 1;   // within a word an underscore is a letter, and a star a
                                                    // multiplication sign
    bool opens = next && !isspace((unsigned char)next) && !(word && isalnum((unsigned char)view->s.before));
    bool closes = !isspace((unsigned char)view->s.before) && !(word && next && isalnum((unsigned char)next));
    bool bold = n >= 2, italic = n == 1 || n == 3;
    bool fits = n <= 3 && (!bold || (view->s.want.bold ? closes : opens)) &&
                (!italic || (view->s.want.italic ? closes : opens));
    if (!fits) {
        put_held(view);
        return;
    }
    if (bold) view->s.want.bold = !view->s.want.bold;
    if (italic) view->s.want.italic = !view->s.want.italic;
    view->s.n_held = 0;
}

static void end_ticks(chat_view *view)
{
    int n = (int)view->s.n_held;
    if (!view->s.want.code) {
        view->s.want.code = true;
        view->s.n_code_ticks = n;
    } else if (n == view->s.n_code_ticks) {
        view->s.want.code = false;
    } else {
        put_held(view);
    }
    view->s.n_held = 0;
}

// The marks at the beginning of a line are complete: "# ", "- ", "> ", "```".
static void end_line_mark(chat_view *view, char next)
{
    char first = view->s.held[0];
    view->s.line_start = false;
    if (held_is(view, '#') && view->s.n_held <= 6 && next == ' ') {
        view->s.heading = view->s.drops_space = true;
        view->s.n_held = 0;
    } else if (view->s.n_held == 1 && next == ' ' && strchr("-*+", first)) {
        view->s.n_held = 0;
        put_text(view, "\xe2\x80\xa2");   // a bullet
        hang(view, "");
    } else if (view->s.n_held == 1 && first == '>') {
        view->s.n_held = 0;
        put_text(view, "\xe2\x94\x82");   // a line down the side
        hang(view, "\xe2\x94\x82 ");
    } else if (view->s.n_held >= 3 && (first == '-' || first == '*' || first == '_') && held_is(view, first) &&
               next == '\n') {
        view->s.n_held = 0;
        for (int i = 0; i < 24; i++) put_text(view, "\xe2\x94\x80");
    } else if (view->s.n_held >= 3 && held_is(view, '`')) {
        open_or_close_fence(view);
    } else if (first == '`') {
        end_ticks(view);
    } else if (first == '*' || first == '_') {
        end_emphasis(view, next);
    } else {
        put_held(view);
    }
}

// Decides about the held characters: the next byte does not continue them.
static void end_marks(chat_view *view, char next)
{
    if (view->s.n_held == 0) return;
    if (view->s.fence) {
        if (view->s.line_start && view->s.n_held >= 3 && held_is(view, '`'))
            open_or_close_fence(view);
        else
            put_held(view);
        view->s.line_start = false;
    } else if (view->s.line_start) {
        end_line_mark(view, next);
    } else if (view->s.held[0] == '`') {
        end_ticks(view);
    } else {
        end_emphasis(view, next);
    }
}

static void end_line(chat_view *view)
{
    if (!view->s.fence) {
        if (view->s.line_empty) view->s.want = (style){0};   // emphasis ends with its paragraph
        view->s.heading = false;
    }
    put_byte(view, '\n');
    view->s.line_start = view->s.line_empty = true;
    view->s.fence_line = false;
    view->s.number = NUMBER_POSSIBLE;
}

static bool is_mark(const chat_view *view, char c)
{
    if (view->s.fence) return view->s.line_start && c == '`';
    if (view->s.want.code) return c == '`';
    return c == '`' || c == '*' || c == '_' || (view->s.line_start && strchr("#->+", c));
}

// Tracks numbers at the start of a line: "12. " begins a list item.
static void note_number(chat_view *view, char c)
{
    state *s = &view->s;
    if (s->number == NUMBER_OVER) return;
    if (s->number == NUMBER_POINT && c == ' ') hang(view, "");
    if (isdigit((unsigned char)c) && s->number <= NUMBER_DIGITS)
        s->number = NUMBER_DIGITS;
    else if (s->number == NUMBER_DIGITS && (c == '.' || c == ')'))
        s->number = NUMBER_POINT;
    else if (s->number != NUMBER_POSSIBLE || c != ' ')
        s->number = NUMBER_OVER;
}

static void show_byte(chat_view *view, char c)
{
    if (view->s.n_held > 0 &&
        (c != view->s.held[0] || view->s.n_held == HELD_BYTES || (view->s.line_start && c == '>')))
        end_marks(view, c);
    bool dropped = view->s.drops_space && c == ' ';
    view->s.drops_space = false;
    if (dropped) return;
    if (c == '\n') {
        end_line(view);
    } else if (view->s.fence_line) {
        put_byte(view, c);
    } else if (c && is_mark(view, c)) {
        view->s.held[view->s.n_held++] = c;
        view->s.line_empty = false;
    } else {
        note_number(view, c);
        if (c != ' ' && c != '\t') view->s.line_start = view->s.line_empty = false;
        put_byte(view, c);
    }
}

// ---------------------------------------------------------------------------------------- parts

// Ends open styles, and begins a new paragraph.
static void end_part(chat_view *view, const char *between)
{
    if (view->fancy) end_marks(view, 0);
    view->s.heading = view->s.fence = view->s.fence_line = view->s.drops_space = false;
    view->s.want = (style){0};
    view->s.is_reasoning = false;
    put_text(view, between);
    view->s.line_start = view->s.line_empty = true;
    view->s.number = NUMBER_POSSIBLE;
    view->s.before = '\n';
}

static void set_reasoning(chat_view *view, bool is_reasoning)
{
    if (is_reasoning == view->s.is_reasoning) return;
    if (view->s.begun) end_part(view, view->fancy || is_reasoning ? "\n\n" : "\n</think>\n\n");
    if (is_reasoning && !view->fancy) put_text(view, "<think>\n");
    view->s.is_reasoning = is_reasoning;
}

static void show_text(chat_view *view, bool is_reasoning, const char *text, size_t n)
{
    set_reasoning(view, is_reasoning);
    view->s.begun = true;
    for (size_t i = 0; i < n && view->fancy; i++) show_byte(view, text[i]);
    if (!view->fancy) put_bytes(view, text, n);
}

static void show_call(chat_view *view, const char *name, const char *arguments)
{
    set_reasoning(view, false);
    if (view->s.begun) end_part(view, "\n");
    view->s.begun = true;
    if (view->fancy) {
        view->s.want = (style){.code = true};
        put_text(view, "\xe2\x86\x92 ");   // an arrow
        put_text(view, name);
        put_text(view, " ");
        put_text(view, arguments);
        view->s.want = (style){0};
        put_style(view);
        return;
    }
    json_t *quoted = json_string(name);
    char *text = quoted ? json_dumps(quoted, JSON_ENCODE_ANY) : NULL;
    put_text(view, "{\"name\": ");
    put_text(view, text ? text : "\"\"");
    put_text(view, ", \"arguments\": ");
    put_text(view, arguments);
    put_text(view, "}");
    free(text);
    json_decref(quoted);
}

// Shows text immediately if there is no width; otherwise the end of a word is awaited.
static void show_now(chat_view *view)
{
    if (view->wrap.columns == 0) cli_wrap_flush(&view->wrap);
    fflush(view->out);
}

// ---------------------------------------------------------------------------------------- events

// Notes an event. If memory is short, a resized terminal is not redrawn.
static void note_event(chat_view *view, event_kind kind, const char *text, size_t n)
{
    if (view->wrap.columns == 0 || !view->fancy) return;   // never redrawn
    char *log = realloc(view->log, view->n_log + n);
    event *events = realloc(view->events, (view->n_events + 1) * sizeof *events);
    if (log) view->log = log;
    if (events) view->events = events;
    if (!log || !events) return;
    memcpy(log + view->n_log, text, n);
    view->n_log += n;
    if (view->n_events > 0 && kind <= EVENT_REASONING && events[view->n_events - 1].kind == kind) view->n_events--;
    events[view->n_events++] = (event){kind, view->n_log};
}

void chat_view_add(chat_view *view, bool is_reasoning, const char *text, size_t n)
{
    if (n == 0) return;
    note_event(view, is_reasoning ? EVENT_REASONING : EVENT_TEXT, text, n);
    show_text(view, is_reasoning, text, n);
    show_now(view);
}

void chat_view_call(chat_view *view, const char *name, const char *arguments)
{
    note_event(view, EVENT_CALL, name, strlen(name) + 1);
    note_event(view, EVENT_ARGUMENTS, arguments, strlen(arguments) + 1);
    show_call(view, name, arguments);
    show_now(view);
}

void chat_view_resize(chat_view *view, int columns, int rows)
{
    if (columns == 0 || view->wrap.columns == 0 || columns == view->wrap.columns) return;
    const size_t n_rows = cli_wrap_rows(&view->wrap, columns);
    if (!view->fancy || rows <= 0 || n_rows > (size_t)rows) {
        view->wrap.columns = columns;   // lines that have scrolled off the screen stay unchanged
        return;
    }
    fputs("\033[0m\r", view->out);
    if (n_rows > 1) fprintf(view->out, "\033[%zuA", n_rows - 1);
    fputs("\033[J", view->out);
    cli_wrap_deinit(&view->wrap);
    begin(view, columns);
    const char *at = view->log, *name = "";
    for (size_t i = 0; i < view->n_events; i++) {
        const event *e = &view->events[i];
        if (e->kind == EVENT_CALL)
            name = at;
        else if (e->kind == EVENT_ARGUMENTS)
            show_call(view, name, at);
        else
            show_text(view, e->kind == EVENT_REASONING, at, e->end - (size_t)(at - view->log));
        at = view->log + e->end;
    }
    fflush(view->out);
}

void chat_view_end(chat_view *view)
{
    if (view->fancy) end_marks(view, 0);
    if (view->s.is_reasoning && !view->fancy) put_text(view, "\n</think>");
    view->s.is_reasoning = view->s.heading = view->s.fence = false;
    view->s.want = (style){0};
    put_style(view);
    cli_wrap_flush(&view->wrap);
    fflush(view->out);
}

void chat_view_stop(chat_view *view)
{
    cli_wrap_clear(&view->wrap);
    view->s.n_held = 0;
    view->s.is_reasoning = view->s.heading = view->s.fence = false;
    view->s.want = (style){0};
    if (view->fancy) fputs("\033[0m", view->out);
    fflush(view->out);
}
