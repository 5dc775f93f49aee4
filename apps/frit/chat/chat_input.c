// SPDX-License-Identifier: MIT
// Reads input: lines with editing and history on a terminal, plain lines elsewhere. A paste of any number of lines is
// one message (bracketed paste), and so is the text between """ and """.
#include "frit/chat/chat.h"

#include "frit/os/screen.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#ifdef FRIT_HAVE_EDIT
#include <histedit.h>
#include <poll.h>
#endif

enum { N_HISTORY = 2000 };
static const char quotes[] = "\"\"\"";

struct chat_input {
    bool edits, prompts;
    const char *prompt;
    bool interrupted, was_empty;
#ifdef FRIT_HAVE_EDIT
    EditLine *editor;
    History *history;
    char *history_path;
#endif
};

// ---------------------------------------------------------------------------------------- the editor
#ifdef FRIT_HAVE_EDIT

static chat_input *input_of(EditLine *editor)
{
    void *input = NULL;
    el_get(editor, EL_CLIENTDATA, &input);
    return input;
}

static const char *prompt_of(EditLine *editor)
{
    return input_of(editor)->prompt;
}

// Moves to the beginning of the prompt and clears the rest. After a resize libedit draws the line as if the screen were
// empty, while the terminal has broken the line at its new edge.
static void erase_line(EditLine *editor)
{
    const LineInfoW *line = el_wline(editor);
    const int edge = cli_columns(stdout);
    int column = (int)strlen(input_of(editor)->prompt), n_rows = 0;
    for (const wchar_t *c = line->buffer; c < line->cursor && edge > 0; c++) {
        const int columns = wcwidth(*c);
        if (*c == L'\n') n_rows += column / edge + 1, column = 0;
        if (columns > 0) column += columns;
    }
    if (edge > 0) n_rows += column / edge;
    if (n_rows > 0) printf("\033[%dA", n_rows);
    printf("\r\033[J");
    fflush(stdout);
}

// Reads one byte of the terminal. Returns 0 at its end, -1 for an interrupt. A signal ends the wait; a signal that
// comes just before poll() is noticed LOOK_MS later at most.
static int read_byte(EditLine *editor, unsigned char *byte)
{
    enum { LOOK_MS = 250 };
    for (;;) {
        struct pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN};
        const int ready = poll(&typed, 1, LOOK_MS);
        const bool fails = ready < 0 && errno != EINTR;
        if (cli_was_resized()) {
            erase_line(editor);
            el_resize(editor);
            el_set(editor, EL_REFRESH);
        }
        ssize_t n = ready > 0 ? read(STDIN_FILENO, byte, 1) : -1;
        if (n >= 0) return (int)n;
        if (fails || cli_interrupted || (ready > 0 && errno != EINTR)) return -1;
    }
}

// Reads a character. libedit would swallow an interrupt, and reads UTF-8 only in UTF-8 locales.
static int read_character(EditLine *editor, wchar_t *out)
{
    chat_input *input = input_of(editor);
    unsigned char byte;
    int n = read_byte(editor, &byte);
    if (n < 0) {
        const LineInfo *line = el_line(editor);
        input->interrupted = true;
        input->was_empty = line->lastchar == line->buffer;
        return -1;
    }
    if (n == 0) return 0;
    int n_more = byte < 0xc2 ? 0 : byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : byte < 0xf5 ? 3 : 0;
    uint32_t c = n_more == 0 ? byte : byte & (0x3fu >> n_more);
    for (; n_more > 0 && read_byte(editor, &byte) == 1; n_more--) c = c << 6 | (byte & 0x3f);
    *out = (wchar_t)(c >= 0x80 && c < 0xa0 ? 0xfffd : c);
    return 1;
}

// Inserts everything up to the end mark of a bracketed paste into the line unchanged.
static unsigned char insert_paste(EditLine *editor, int key)
{
    (void)key;
    static const wchar_t end[] = L"\033[201~";
    enum { N_END = sizeof end / sizeof *end - 1 };
    size_t n = 0, capacity = 256;
    wchar_t *text = malloc(capacity * sizeof *text);
    bool ended = false;
    while (text && !ended && read_character(editor, &text[n]) == 1) {
        if (text[n] == L'\r') text[n] = L'\n';
        n++;
        ended = n >= N_END && wmemcmp(text + n - N_END, end, N_END) == 0;
        if (n + 1 < capacity) continue;
        wchar_t *larger = realloc(text, (capacity *= 2) * sizeof *text);
        if (!larger) break;
        text = larger;
    }
    if (ended) n -= N_END;
    while (text && n > 0 && text[n - 1] == L'\n') n--;   // only the Enter key sends a message, not a paste
    if (text) text[n] = 0;
    int done = text ? el_winsertstr(editor, text) : -1;
    free(text);
    return done == 0 ? CC_REFRESH : CC_ERROR;
}

// The possible completions at the cursor: names of commands, or words of the command before the cursor.
typedef struct choices {
    const char *command;   // NULL: completes the first word
    const char *typed;     // the word so far
    size_t n_typed;
} choices;

static const char *choice(const choices *all, size_t *i)
{
    const char *word;
    while ((word = chat_command_word(all->command, (*i)++)))
        if (strncmp(word, all->typed, all->n_typed) == 0) return word;
    return NULL;
}

// Inserts the common prefix of all choices, or shows the choices if it is empty.
static unsigned char complete_word(EditLine *editor, const choices *all)
{
    size_t i = 0, n_common = 0, n = 0;
    const char *first = choice(all, &i), *word = first;
    if (!first) return CC_ERROR;
    for (n_common = strlen(first), n = 1; (word = choice(all, &i)); n++)
        while (strncmp(word, first, n_common) != 0) n_common--;
    char text[128];
    snprintf(text, sizeof text, "%.*s%s", (int)(n_common - all->n_typed), first + all->n_typed, n == 1 ? " " : "");
    if (text[0]) return el_insertstr(editor, text) == 0 ? CC_REFRESH : CC_ERROR;
    putchar('\n');
    for (i = 0; (word = choice(all, &i));) printf("  %s%s", all->command ? "" : "/", word);
    putchar('\n');
    return CC_REDISPLAY;
}

// Completes commands, their words, and file names.
static unsigned char complete(EditLine *editor, int key)
{
    const LineInfo *line = el_line(editor);
    const size_t n = (size_t)(line->cursor - line->buffer);
    char typed[256], *word = typed + 1, *end;
    if (n == 0 || n >= sizeof typed || line->buffer[0] != '/') return CC_ERROR;
    memcpy(typed, line->buffer, n);
    typed[n] = 0;
    if (!(end = strpbrk(word, " \t"))) return complete_word(editor, &(choices){NULL, word, n - 1});
    *end++ = 0;
    if (chat_command_takes_file(word)) return _el_fn_complete(editor, key);
    end += strspn(end, " \t");
    return strpbrk(end, " \t") ? CC_ERROR : complete_word(editor, &(choices){word, end, strlen(end)});
}

static void open_history(chat_input *input)
{
    HistEvent event;
    input->history = history_init();
    input->history_path = chat_file_state("history");
    if (!input->history) return;
    history(input->history, &event, H_SETSIZE, N_HISTORY);
    history(input->history, &event, H_SETUNIQUE, 1);
    if (input->history_path) history(input->history, &event, H_LOAD, input->history_path);
    el_set(input->editor, EL_HIST, history, input->history);
}

static void remember(chat_input *input, const char *text)
{
    HistEvent event;
    if (!input->history || !text[0]) return;
    history(input->history, &event, H_ENTER, text);
    if (!input->history_path) return;
    mode_t before = umask(077);   // the history is private
    history(input->history, &event, H_SAVE, input->history_path);
    umask(before);
    chmod(input->history_path, 0600);
}

static void open_editor(chat_input *input)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    input->editor = el_init("frit", stdin, stdout, stderr);
    if (!input->editor) {
        input->edits = false;
        return;
    }
    el_set(input->editor, EL_CLIENTDATA, input);
    el_set(input->editor, EL_PROMPT, prompt_of);
    el_set(input->editor, EL_EDITOR, "emacs");
    el_set(input->editor, EL_GETCFN, read_character);
    el_set(input->editor, EL_ADDFN, "frit-paste", "Insert what is pasted", insert_paste);
    el_set(input->editor, EL_BIND, "\033[200~", "frit-paste", NULL);
    el_set(input->editor, EL_ADDFN, "frit-complete", "Complete a command", complete);
    el_set(input->editor, EL_BIND, "^I", "frit-complete", NULL);
    el_set(input->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
    open_history(input);
    el_source(input->editor, NULL);   // ~/.editrc
}

static char *edit_line(chat_input *input, const char *draft)
{
    int n = 0;
    if (draft) el_push(input->editor, draft);
    fputs("\033[?2004h", stdout);   // enables bracketed paste
    const char *line = el_gets(input->editor, &n);
    fputs("\033[?2004l", stdout);
    fflush(stdout);
    if (!line || n <= 0 || input->interrupted) return NULL;
    char *copy = strdup(line);
    if (copy && copy[n - 1] == '\n') copy[n - 1] = 0;
    return copy;
}

static void close_editor(chat_input *input)
{
    if (input->history) history_end(input->history);
    if (input->editor) el_end(input->editor);
    free(input->history_path);
}

#else

static void open_editor(chat_input *input)
{
    input->edits = false;
}

static char *edit_line(chat_input *input, const char *draft)
{
    (void)input, (void)draft;
    return NULL;
}

static void remember(chat_input *input, const char *text)
{
    (void)input, (void)text;
}

static void close_editor(chat_input *input)
{
    (void)input;
}

#endif
// ---------------------------------------------------------------------------------------- lines

chat_input *chat_input_new(bool edits, bool prompts)
{
    chat_input *input = calloc(1, sizeof *input);
    if (!input) return NULL;
    input->edits = edits;
    input->prompts = prompts;
    input->prompt = "> ";
    if (edits) open_editor(input);
    return input;
}

void chat_input_free(chat_input *input)
{
    if (!input) return;
    close_editor(input);
    free(input);
}

// Adds a byte of a line. A zero, which would end the text, is replaced by U+FFFD.
static void add_byte(cli_text *line, int c)
{
    const char byte = (char)c;
    cli_text_add(line, c ? &byte : "\xef\xbf\xbd", c ? 1 : 3);
}

static char *plain_line(chat_input *input)
{
    cli_text line = {0};
    if (input->prompts) fputs(input->prompt, stdout), fflush(stdout);
    int c;
    while ((c = getchar()) != EOF && c != '\n') add_byte(&line, c);
    if (c == EOF && cli_interrupted && !feof(stdin)) {
        clearerr(stdin);
        input->interrupted = true;
        input->was_empty = true;
        free(line.data);
        return NULL;
    }
    return c == EOF || line.data ? line.data : strdup("");
}

// Reads a line. Returns NULL at the end of input and after an interrupt.
static char *read_line(chat_input *input, const char *prompt, const char *draft)
{
    input->prompt = prompt;
    input->interrupted = false;
    if (!cli_was_told_to_end()) cli_interrupted = 0;
    return input->edits ? edit_line(input, draft) : plain_line(input);
}

// Reads the lines up to one that ends with three quotes.
static char *read_quoted(chat_input *input, char *first)
{
    cli_text text = {0};
    char *line = first, *from = first + strlen(quotes);
    for (;;) {
        size_t n = strlen(from);
        bool closed = n >= 3 && strcmp(from + n - 3, quotes) == 0;
        if (text.data || from[0]) {
            if (text.data && text.n > 0) cli_text_add(&text, "\n", 1);
            cli_text_add(&text, from, closed ? n - 3 : n);
        }
        free(line);
        if (closed) break;
        from = line = read_line(input, ". ", NULL);
        if (!line && (input->interrupted || !text.data)) {
            free(text.data);
            return NULL;
        }
        if (!line) break;   // the end of the input also closes the text
    }
    while (text.n > 0 && text.data[text.n - 1] == '\n') text.data[--text.n] = 0;
    return text.data ? text.data : strdup("");
}

chat_key chat_input_read(chat_input *input, const char *draft, char **text, bool *was_empty)
{
    *text = read_line(input, "> ", draft);
    bool quoted = *text && strncmp(*text, quotes, strlen(quotes)) == 0;
    if (quoted) *text = read_quoted(input, *text);
    *was_empty = input->was_empty && !quoted;
    if (input->interrupted) return CHAT_KEY_INTERRUPT;
    if (!*text) return CHAT_KEY_END;
    if (input->edits) remember(input, *text);
    return CHAT_KEY_TEXT;
}
