// SPDX-License-Identifier: MIT
// frit chat on a pseudo-terminal.
#include "support/chat_process.h"
#include "support/support.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

static const char *const quiet[] = {"-q", "-n", "6", NULL};

static void a_terminal_edits_lines_and_keeps_history(void **state)
{
    (void)state;
    terminal t = terminal_open("xterm", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "/tokens Onc\xc3\xa9x\x7f\x7f"
                      "e upon a time\r");   // deletes an accent and a letter
    terminal_await(&t, "4 tokens");
    terminal_type(&t, "/exit\r");
    assert_int_equal(terminal_close(&t), 0);

    char path[700];
    struct stat about;
    snprintf(path, sizeof path, "%s/frit/history", getenv("XDG_STATE_HOME"));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);

    t = terminal_open("xterm", quiet);   // in a second run, the arrow key finds earlier input
    terminal_await(&t, "> ");
    terminal_type(&t, "\033[A\033[A\r");
    terminal_await(&t, "4 tokens");
    terminal_type(&t, "\x04");
    assert_int_equal(terminal_close(&t), 0);
}

static void a_paste_is_one_message(void **state)
{
    (void)state;
    terminal t = terminal_open("xterm", quiet);
    terminal_await(&t, "\033[?2004h");
    terminal_type(&t, "\033[200~first line\rsecond \xf0\x9f\x90\xb8 line\r/exit\r\033[201~");
    terminal_type(&t, "\r");
    terminal_await(&t, "\033[?2004h");
    terminal_type(&t, "/show messages\r");
    terminal_await(&t, "user: first line");
    terminal_await(&t, "second \xf0\x9f\x90\xb8 line");
    terminal_await(&t, "/exit");
    terminal_await(&t, "assistant: ");
    terminal_type(&t, "\"\"\"\rtyped\r");
    terminal_await(&t, ". ");
    terminal_type(&t, "more\"\"\"\r");
    terminal_await(&t, "\033[?2004h");
    terminal_type(&t, "/show messages\r");
    terminal_await(&t, "user: typed\r\nmore");
    terminal_type(&t, "/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void one_interrupt_stops_the_answer_and_a_second_one_leaves(void **state)
{
    (void)state;
    const char *const arguments[] = {"--logit-bias", "1=-inf", NULL};
    terminal t = terminal_open("xterm", arguments);
    terminal_await(&t, "> ");
    terminal_type(&t, "Tell me the tale of Rapunzel.\r");
    terminal_await(&t, "There were");
    terminal_type(&t, "\x03");
    const size_t answer = t.at;
    terminal_await(&t, "> ");
    char *after = strchr(t.seen + answer, '\033');   // of the answer: nothing follows it
    assert_non_null(after);
    assert_memory_equal(after, "\033[0m\r\n\033[?2004h", 14);
    assert_null(strstr(t.seen, "^C"));
    terminal_type(&t, "\x03");
    assert_int_equal(terminal_close(&t), 0);

    t = terminal_open("xterm", quiet);   // at the prompt: deletes the line, then warns, then ends the chat
    terminal_await(&t, "> ");
    terminal_type(&t, "half a li");
    terminal_await(&t, "half a li");
    terminal_type(&t, "\x03");
    terminal_await(&t, "> ");
    terminal_type(&t, "\x03");
    terminal_await(&t, "Ctrl-C once more leaves");
    terminal_type(&t, "\x03");
    assert_int_equal(terminal_close(&t), 0);
}

static void an_editor_changes_the_question(void **state)
{
    (void)state;
    setenv("VISUAL", "sed -i s/Hello/Goodbye/", 1);
    terminal t = terminal_open("dumb", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "Hello\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/edit\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/show messages\n");
    terminal_await(&t, "user: Goodbye");
    terminal_type(&t, "/edit Hello you\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/show messages\n");
    terminal_await(&t, "user: Goodbye you");
    terminal_type(&t, "/exit\n");
    assert_int_equal(terminal_close(&t), 0);
    setenv("VISUAL", "false", 1);
    t = terminal_open("dumb", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "Hello\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/edit\n");
    terminal_await(&t, "the editor 'false' ended with 1");
    terminal_type(&t, "/show messages\n");
    terminal_await(&t, "user: Hello");
    terminal_type(&t, "/exit\n");
    assert_int_equal(terminal_close(&t), 0);
    unsetenv("VISUAL");
}

static void the_command_of_an_editor_may_be_long(void **state)
{
    (void)state;
    char editor[1100];
    snprintf(editor, sizeof editor, ": %01020d; sed -i s/Hello/Goodbye/", 0);
    setenv("VISUAL", editor, 1);
    terminal t = terminal_open("dumb", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "/edit Hello you\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/show messages\n");
    terminal_await(&t, "user: Goodbye you");
    terminal_type(&t, "/exit\n");
    assert_int_equal(terminal_close(&t), 0);
    unsetenv("VISUAL");
}

// Returns the columns of a line of ASCII.
static size_t width_of(const char *line, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\033')
            i += strcspn(line + i, "mhlJK");
        else
            width += line[i] >= ' ';
    }
    return width;
}

static void lines_break_between_words_at_every_width(void **state)
{
    (void)state;
    static const char *const long_answer[] = {"-n", "60", NULL};
    static const unsigned short widths[] = {40, 80, 200};
    static const char question[] = "Tell me the tale of Rapunzel.\r";
    for (size_t w = 0; w < FRIT_COUNT(widths); w++) {
        terminal t = terminal_open_sized("xterm", long_answer, widths[w]);
        terminal_await(&t, "> ");
        assert_non_null(strstr(t.seen, "fable.gguf (llama, "));
        assert_non_null(strstr(t.seen, "context"));
        assert_non_null(strstr(t.seen, "greedy"));
        terminal_type(&t, question);
        terminal_await(&t, "Rapunzel.");
        terminal_await(&t, "\n");
        const size_t answer = t.at;
        terminal_await(&t, "> ");
        terminal_type(&t, "/show\r");
        terminal_await(&t, "/show");
        terminal_await(&t, "enable_thinking");
        terminal_await(&t, "> ");
        terminal_type(&t, "/exit\r");
        size_t n_lines = 0, widest = 0;
        for (const char *line = t.seen + answer; line < t.seen + t.at;) {
            const size_t n = strcspn(line, "\n"), width = width_of(line, n);
            if (width > widths[w]) fail_msg("at %d columns a line has %zu: %.*s", widths[w], width, (int)n, line);
            n_lines++;
            widest = width > widest ? width : widest;
            line += n + 1;
        }
        assert_true(widest + 16 > widths[w] || widths[w] == 200);
        assert_true(n_lines > 8);
        assert_int_equal(terminal_close(&t), 0);
    }
}

static void what_is_typed_during_an_answer_waits_for_the_next_line(void **state)
{
    (void)state;
    static const char *const long_answer[] = {"-q", "-n", "150", NULL};
    terminal t = terminal_open("xterm", long_answer);
    terminal_await(&t, "> ");
    terminal_type(&t, "Tell me the tale of Rapunzel.\r");
    terminal_await(&t, "There were");
    terminal_type(&t, "/tokens Once upon a time\r");
    terminal_await(&t, "\033[?2004h> ");
    const size_t prompt = t.at;
    terminal_await(&t, "4 tokens");
    char *typed = strstr(t.seen, "/tokens");
    assert_true(typed && (size_t)(typed - t.seen) >= prompt);
    terminal_type(&t, "/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void an_answer_is_drawn_again_when_the_terminal_is_resized(void **state)
{
    (void)state;
    static const char *const long_answer[] = {"-q", "-n", "100", NULL};
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    terminal t = terminal_open("xterm", long_answer);
    terminal_await(&t, "> ");
    terminal_type(&t, "Tell me the tale of Rapunzel.\r");
    terminal_await(&t, "There were once a man");
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
    terminal_await(&t, "\033[J");
    terminal_await(&t, "There were once a man and a\r\nwoman who");
    terminal_await(&t, "> ");
    terminal_type(&t, "/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void a_line_is_drawn_once_when_the_terminal_is_resized(void **state)
{
    (void)state;
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    terminal t = terminal_open("xterm", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "a line of forty-two columns, with its end");
    terminal_await(&t, "its end");
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
    terminal_await(&t, "\033[1A\r\033[J");   // moves to the row of the prompt and clears everything
    terminal_await(&t, "> a line of");
    terminal_await(&t, "end");
    terminal_type(&t, "\x15/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void tab_completes_commands(void **state)
{
    (void)state;
    terminal t = terminal_open("xterm", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "/tok\tOnce upon a time\r");
    terminal_await(&t, "4 tokens");
    terminal_await(&t, "> ");
    terminal_type(&t, "/to\t");
    terminal_await(&t, "/tokens  /tools");
    terminal_type(&t, "\x15/sh\tmo\t\r");
    terminal_await(&t, "fable.gguf");
    terminal_type(&t, "/set top\t\t");
    terminal_await(&t, "top-k  top-p");
    terminal_type(&t, "\x15/exit\r");
    assert_int_equal(terminal_close(&t), 0);
}

static void a_dumb_terminal_is_enough(void **state)
{
    (void)state;
    terminal t = terminal_open("dumb", quiet);
    terminal_await(&t, "> ");
    terminal_type(&t, "/system Be **kind**.\n");
    terminal_await(&t, "system message set");
    terminal_type(&t, "Hello\n");
    terminal_await(&t, "> ");
    terminal_type(&t, "/exit\n");
    assert_null(strchr(t.seen, '\033'));
    assert_int_equal(terminal_close(&t), 0);
}

int main(void)
{
    chat_keep_state();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_edits_lines_and_keeps_history),
        cmocka_unit_test(a_paste_is_one_message),
        cmocka_unit_test(one_interrupt_stops_the_answer_and_a_second_one_leaves),
        cmocka_unit_test(an_editor_changes_the_question),
        cmocka_unit_test(the_command_of_an_editor_may_be_long),
        cmocka_unit_test(lines_break_between_words_at_every_width),
        cmocka_unit_test(what_is_typed_during_an_answer_waits_for_the_next_line),
        cmocka_unit_test(an_answer_is_drawn_again_when_the_terminal_is_resized),
        cmocka_unit_test(a_line_is_drawn_once_when_the_terminal_is_resized),
        cmocka_unit_test(tab_completes_commands),
        cmocka_unit_test(a_dumb_terminal_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
