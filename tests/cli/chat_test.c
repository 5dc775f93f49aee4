// SPDX-License-Identifier: MIT
// frit chat in a pipe, and on a pseudo-terminal.
#include "support/scripted_model.h"
#include "support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- in a pipe

static char state_folder[512];

static char *run_piped(const char *arguments, const char *input, int *code, char **err)
{
    char out_path[512], err_path[512], in_path[512], command[4096];
    snprintf(out_path, sizeof out_path, "%s", temp_path("out"));
    snprintf(err_path, sizeof err_path, "%s", temp_path("err"));
    snprintf(in_path, sizeof in_path, "%s", temp_path("in"));
    write_file(in_path, input, strlen(input));
    snprintf(command, sizeof command, "'%s/frit' chat --temp 0 %s >'%s' 2>'%s' <'%s'", FRIT_BUILD_DIR, arguments,
             out_path, err_path, in_path);
    int status = system(command);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    *err = read_file(err_path, NULL);
    return read_file(out_path, NULL);
}

// Checks that stderr contains every part.
static void expect_said(const char *arguments, const char *input, const char *const *parts, size_t n_parts)
{
    int code;
    char *err, *out = run_piped(arguments, input, &code, &err);
    for (size_t i = 0; i < n_parts; i++)
        if (!strstr(err, parts[i])) fail_msg("'%s' is not said after\n%s\nbut\n%s", parts[i], input, err);
    assert_int_equal(code, 0);
    free(err);
    free(out);
}
#define EXPECT_SAID(arguments, input, ...)                                         \
    do {                                                                           \
        const char *parts_[] = {__VA_ARGS__};                                      \
        expect_said((arguments), (input), parts_, sizeof parts_ / sizeof *parts_); \
    } while (0)

static void every_command_says_what_it_does(void **state)
{
    (void)state;
    EXPECT_SAID("-q -n 4", "/help\n", "/regen", "/stats", "Three quotes", "/exit");
    EXPECT_SAID("-q -n 4", "/system\n/system Be kind.\n/system\n/system -\n/system\n", "no system message; /system",
                "system message set", "Be kind.");
    EXPECT_SAID("-q -n 4 --system 'Be brief.'", "/show system\n/clear\n/show messages\n", "Be brief.", "begins anew",
                "system: Be brief.");
    EXPECT_SAID("-q -n 4", "/set top-k 7\n/set n-predict 9\n/show\n", "top-k              7", "n-predict          9");
    EXPECT_SAID("-q -n 4", "/set tpo-k 7\n/set top-p 1.5\n/set temp\n/set logit-bias 1=2\n", "did you mean 'top-k'?",
                "top-p", "/set NAME VALUE", "command line only");
    EXPECT_SAID("-q -n 4", "/set vars {\"a\": 1}\n/set vars 7\n/show\n", "{\"a\":1}", "vars: not a JSON object");
    EXPECT_SAID("-q -n 4", "/show prompt\n/show model\n/show nothing\n", "fable.gguf", "/show settings, messages");
    EXPECT_SAID("-q -n 4", "/tokens Once upon a time\n/tokens\n", "4 tokens", "of the context of");
    EXPECT_SAID("-q -n 4", "/stats\nHello\n/stats\n", "nothing has been answered yet", "tokens were run in",
                "  context ");
    EXPECT_SAID("-n 4 --verbose", "Hello\n", "tokens were run in");
    EXPECT_SAID("-q -n 4", "/undo\n/regen\nHello\n/undo\n/show messages\n", "nothing to take back",
                "nothing to answer yet", "taken back: Hello", "no messages yet");
    EXPECT_SAID("-q -n 4", "/rgen\n/frobnicate\n", "did you mean /regen?", "/help lists them");
    EXPECT_SAID("-q -n 4", "/read\n/read /nonexistent\n/save\n/load\n/load /nonexistent\n/tools /nonexistent\n",
                "/read FILE [QUESTION]", "/nonexistent: No such file", "/save FILE", "/load FILE",
                "/nonexistent: No such file", "/nonexistent: No such file");
    EXPECT_SAID("-q -n 4", "//etc is a folder\n/show messages\n", "user: /etc is a folder");
    EXPECT_SAID("-q -n 4", "\"\"\"one\ntwo\n\nthree\"\"\"\n\"\"\"\nfour\n\"\"\"\n/show messages\n",
                "user: one\ntwo\n\nthree\n", "user: four\n");
    EXPECT_SAID("-q -n 4", "/exit\nnever asked\n", "");
}

static void only_answers_go_to_stdout(void **state)
{
    (void)state;
    int code;
    char *err, *out = run_piped("-q -n 12", "/help\nTell me a story.\n/show messages\n", &code, &err);
    assert_int_equal(code, 0);
    char *end = strchr(out, '\n');
    assert_true(end && end > out && strspn(end, "\n") == strlen(end));
    assert_null(strchr(out, '\033'));
    assert_null(strstr(out, "/help"));
    *end = 0;
    assert_non_null(strstr(err, out));   // /show messages says the same
    free(out);
    free(err);
}

static void a_turn_runs_only_what_is_new(void **state)
{
    (void)state;
    int code;
    char *err, *out = run_piped("-q -n 8", "Tell me a story.\n/stats\nTell me more.\n/stats\n", &code, &err);
    size_t kept[2], ran[2];
    char *at = err;
    for (int i = 0; i < 2; i++) {
        at = strstr(at, "  prompt");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "  prompt %zu tokens were there from the last turn %zu tokens", &kept[i], &ran[i]),
                         2);
        at++;
    }
    assert_int_equal(kept[0], 0);
    assert_true(kept[1] >= ran[0]);   // the whole first question at least
    assert_true(ran[1] < kept[1] + ran[1]);
    free(out);
    free(err);
}

// The oldest turns are removed, the system message stays, and the chat continues.
static void a_full_context_lets_the_oldest_turns_leave(void **state)
{
    (void)state;
    static const char input[] = "First question?\nSecond question?\nThird question?\nFourth question?\nFifth "
                                "question?\n/show prompt\n/show messages\n";
    int code;
    char *err, *out = run_piped("-c 128 -n 30 --system 'Be kind.'", input, &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the context was full: the model no longer sees the oldest"));
    assert_null(strstr(err, "too long"));
    char *all = strstr(err, "system: Be kind."), *prompt = strstr(err, "Be kind.");
    assert_true(prompt && all && prompt < all);
    *all = 0;
    assert_null(strstr(prompt, "First question?"));
    assert_non_null(strstr(prompt, "Fifth question?"));
    assert_non_null(strstr(all + 1, "user: First question?"));   // the conversation keeps it
    free(out);
    free(err);
    out = run_piped("-c 128 -n 30 --no-context-shift --system 'Be kind.'", input, &code, &err);
    assert_non_null(strstr(err, "the conversation has become too long"));
    assert_null(strstr(err, "no longer sees"));
    free(out);
    free(err);
}

// Within an answer: it continues as if there had been no earlier turn.
static void an_answer_goes_on_where_the_context_ends(void **state)
{
    (void)state;
    int code;
    char *err,
        *out = run_piped("-c 128 -n 60", "Tell me a story.\nTell me the tale of Rapunzel.\n/stats\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the context was full: the model no longer sees the oldest 2 messages"));
    assert_non_null(strstr(out, "from which a splendid garden could be seen"));
    assert_non_null(strstr(err, "answer       60 tokens"));
    free(out);
    free(err);
    out =
        run_piped("-c 128 -n 60 --no-context-shift", "Tell me a story.\nTell me the tale of Rapunzel.\n", &code, &err);
    assert_non_null(strstr(err, "the context is full; -c N makes it larger"));
    free(out);
    free(err);
    out =
        run_piped("-c 16", "This message alone has many more tokens than the context can ever take, so many of them.\n",
                  &code, &err);
    assert_int_equal(code, 1);
    assert_non_null(strstr(err, "the message is too long for the context"));
    free(out);
    free(err);
}

static void a_model_without_a_template_gets_one_with_a_warning(void **state)
{
    (void)state;
    int code;
    char arguments[600];
    snprintf(arguments, sizeof arguments, "-n 4 %s", shared_path("models/stories260k-f32.gguf"));
    char *err, *out = run_piped(arguments, "Once upon a time\n/show model\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(err, "the model has no chat template: conversations are written as chatml"));
    assert_non_null(strstr(err, "template guessed"));
    assert_true(strlen(out) > 1);
    free(out);
    free(err);
}

static void a_conversation_is_saved_and_loaded(void **state)
{
    (void)state;
    char path[512], input[1200], load[700];
    snprintf(path, sizeof path, "%s", temp_path("talk.json"));
    snprintf(input, sizeof input, "/system Be kind.\nHello\n/save %s\n", path);
    EXPECT_SAID("-q -n 4", input, "talk.json: 3 messages");
    snprintf(load, sizeof load, "-q -n 4 --load '%s'", path);
    EXPECT_SAID(load, "/show messages\n", "system: Be kind.", "user: Hello", "assistant: ");
    snprintf(input, sizeof input, "/load %s\n/undo\n/show messages\n", path);
    EXPECT_SAID("-q -n 4", input, "3 messages", "taken back: Hello");
    // The file is also valid input of frit template.
    char command[1400];
    snprintf(command, sizeof command, "'%s/frit' template --messages '%s' | grep -q Hello", FRIT_BUILD_DIR, path);
    assert_int_equal(system(command), 0);
    write_file(path, "[{\"content\": 1}]", 16);
    snprintf(input, sizeof input, "/load %s\n", path);
    EXPECT_SAID("-q -n 4", input, "neither a list of messages");
}

static void a_file_is_read(void **state)
{
    (void)state;
    char path[512], input[1200];
    snprintf(path, sizeof path, "%s", temp_path("note.txt"));
    write_file(path, "The frog said\nnothing.\n", 23);
    snprintf(input, sizeof input, "/read %s What did it say?\n/show messages\n", path);
    EXPECT_SAID("-q -n 4", input, "user: The frog said\nnothing.\n\n\nWhat did it say?");
}

static void a_zero_byte_hides_nothing(void **state)
{
    (void)state;
    char command[1024];
    snprintf(command, sizeof command,
             "printf 'a\\0b\\n/show messages\\n' | '%s/frit' chat -q -n 1 2>&1 | grep -q 'user: a\xef\xbf\xbd"
             "b'",
             FRIT_BUILD_DIR);
    assert_int_equal(system(command), 0);
}

static void an_editor_is_refused_in_a_pipe(void **state)
{
    (void)state;
    setenv("VISUAL", "sleep 1000; echo", 1);
    EXPECT_SAID("-q -n 4", "Hello\n/edit\n/edit Hello you\n/show messages\n",
                "/edit starts an editor, which needs a terminal", "user: Hello\n");
    unsetenv("VISUAL");
}

// ---------------------------------------------------------------------------------------- on a terminal

typedef struct terminal {
    int fd;
    pid_t child;
    char *seen;   // all that was shown
    size_t n, at;
} terminal;

static terminal open_sized(const char *term, const char *const *extra, unsigned short columns)
{
    terminal t = {.fd = posix_openpt(O_RDWR | O_NOCTTY)};
    assert_true(t.fd >= 0 && grantpt(t.fd) == 0 && unlockpt(t.fd) == 0);
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    const char *name = ptsname(t.fd);
    t.child = fork();
    assert_true(t.child >= 0);
    if (t.child == 0) {
        setsid();
        int slave = open(name, O_RDWR);
        ioctl(slave, TIOCSCTTY, 0);
        ioctl(slave, TIOCSWINSZ, &size);
        for (int i = 0; i < 3; i++) dup2(slave, i);
        setenv("TERM", term, 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        unsetenv("NO_COLOR");
        char program[1024];
        const char *arguments[24] = {program, "chat", "--temp", "0"};
        snprintf(program, sizeof program, "%s/frit", FRIT_BUILD_DIR);
        for (int i = 0; extra[i] && i < 16; i++) arguments[4 + i] = extra[i];
        execv(program, (char *const *)arguments);
        _exit(127);
    }
    t.seen = calloc(1, 1);
    return t;
}

static terminal open_terminal(const char *term, const char *const *extra)
{
    return open_sized(term, extra, 80);
}

// Reads until `text` is shown after the text that was read before; fails after a while.
static void await(terminal *t, const char *text)
{
    for (int i = 0; i < 1200; i++) {
        char *found = strstr(t->seen + t->at, text);
        if (found) {
            t->at = (size_t)(found - t->seen) + strlen(text);
            return;
        }
        struct pollfd poll_fd = {.fd = t->fd, .events = POLLIN};
        if (poll(&poll_fd, 1, 100) <= 0) continue;
        char chunk[4096];
        ssize_t n = read(t->fd, chunk, sizeof chunk);
        if (n <= 0) break;
        t->seen = realloc(t->seen, t->n + (size_t)n + 1);
        for (ssize_t k = 0; k < n; k++) t->seen[t->n + (size_t)k] = chunk[k] ? chunk[k] : ' ';
        t->n += (size_t)n;
        t->seen[t->n] = 0;
    }
    fail_msg("'%s' is not shown, but\n%s", text, t->seen + t->at);
}

static void type(const terminal *t, const char *text)
{
    struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
    assert_int_equal(write(t->fd, text, strlen(text)), strlen(text));
}

static int close_terminal(terminal *t)
{
    int status = 0;
    for (int i = 0; i < 600; i++) {
        char chunk[4096];
        struct pollfd poll_fd = {.fd = t->fd, .events = POLLIN};
        struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
        if (poll(&poll_fd, 1, 50) > 0 && read(t->fd, chunk, sizeof chunk) < 0) nanosleep(&pause, NULL);   // it hung up
        if (waitpid(t->child, &status, WNOHANG) == t->child) {
            close(t->fd);
            free(t->seen);
            return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        }
    }
    kill(t->child, SIGKILL);
    fail_msg("frit chat does not leave");
    return -1;
}

static const char *const quiet[] = {"-q", "-n", "6", NULL};

static void a_terminal_edits_lines_and_keeps_history(void **state)
{
    (void)state;
    terminal t = open_terminal("xterm", quiet);
    await(&t, "> ");
    type(&t, "/tokens Onc\xc3\xa9x\x7f\x7f"
             "e upon a time\r");   // deletes an accent and a letter
    await(&t, "4 tokens");
    type(&t, "/exit\r");
    assert_int_equal(close_terminal(&t), 0);

    char path[700];
    struct stat about;
    snprintf(path, sizeof path, "%s/frit/history", state_folder);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);

    t = open_terminal("xterm", quiet);   // in a second run, the arrow key finds earlier input
    await(&t, "> ");
    type(&t, "\033[A\033[A\r");
    await(&t, "4 tokens");
    type(&t, "\x04");
    assert_int_equal(close_terminal(&t), 0);
}

static void a_paste_is_one_message(void **state)
{
    (void)state;
    terminal t = open_terminal("xterm", quiet);
    await(&t, "\033[?2004h");
    type(&t, "\033[200~first line\rsecond \xf0\x9f\x90\xb8 line\r/exit\r\033[201~");
    type(&t, "\r");
    await(&t, "\033[?2004h");
    type(&t, "/show messages\r");
    await(&t, "user: first line");
    await(&t, "second \xf0\x9f\x90\xb8 line");
    await(&t, "/exit");
    await(&t, "assistant: ");
    type(&t, "\"\"\"\rtyped\r");
    await(&t, ". ");
    type(&t, "more\"\"\"\r");
    await(&t, "\033[?2004h");
    type(&t, "/show messages\r");
    await(&t, "user: typed\r\nmore");
    type(&t, "/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void one_interrupt_stops_the_answer_and_a_second_one_leaves(void **state)
{
    (void)state;
    const char *const arguments[] = {"--logit-bias", "1=-inf", NULL};
    terminal t = open_terminal("xterm", arguments);
    await(&t, "> ");
    type(&t, "Tell me the tale of Rapunzel.\r");
    await(&t, "There were");
    type(&t, "\x03");
    const size_t answer = t.at;
    await(&t, "> ");
    char *after = strchr(t.seen + answer, '\033');   // of the answer: nothing follows it
    assert_non_null(after);
    assert_memory_equal(after, "\033[0m\r\n\033[?2004h", 14);
    assert_null(strstr(t.seen, "^C"));
    type(&t, "\x03");
    assert_int_equal(close_terminal(&t), 0);

    t = open_terminal("xterm", quiet);   // at the prompt: deletes the line, then warns, then ends the chat
    await(&t, "> ");
    type(&t, "half a li");
    await(&t, "half a li");
    type(&t, "\x03");
    await(&t, "> ");
    type(&t, "\x03");
    await(&t, "Ctrl-C once more leaves");
    type(&t, "\x03");
    assert_int_equal(close_terminal(&t), 0);
}

static void an_editor_changes_the_question(void **state)
{
    (void)state;
    setenv("VISUAL", "sed -i s/Hello/Goodbye/", 1);
    terminal t = open_terminal("dumb", quiet);
    await(&t, "> ");
    type(&t, "Hello\n");
    await(&t, "> ");
    type(&t, "/edit\n");
    await(&t, "> ");
    type(&t, "/show messages\n");
    await(&t, "user: Goodbye");
    type(&t, "/edit Hello you\n");
    await(&t, "> ");
    type(&t, "/show messages\n");
    await(&t, "user: Goodbye you");
    type(&t, "/exit\n");
    assert_int_equal(close_terminal(&t), 0);
    setenv("VISUAL", "false", 1);
    t = open_terminal("dumb", quiet);
    await(&t, "> ");
    type(&t, "Hello\n");
    await(&t, "> ");
    type(&t, "/edit\n");
    await(&t, "the editor 'false' ended with 1");
    type(&t, "/show messages\n");
    await(&t, "user: Hello");
    type(&t, "/exit\n");
    assert_int_equal(close_terminal(&t), 0);
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
        terminal t = open_sized("xterm", long_answer, widths[w]);
        await(&t, "> ");
        assert_non_null(strstr(t.seen, "fable.gguf (llama, "));
        assert_non_null(strstr(t.seen, "context"));
        assert_non_null(strstr(t.seen, "greedy"));
        type(&t, question);
        await(&t, "Rapunzel.");
        await(&t, "\n");
        const size_t answer = t.at;
        await(&t, "> ");
        type(&t, "/show\r");
        await(&t, "/show");
        await(&t, "enable_thinking");
        await(&t, "> ");
        type(&t, "/exit\r");
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
        assert_int_equal(close_terminal(&t), 0);
    }
}

static void what_is_typed_during_an_answer_waits_for_the_next_line(void **state)
{
    (void)state;
    static const char *const long_answer[] = {"-q", "-n", "150", NULL};
    terminal t = open_terminal("xterm", long_answer);
    await(&t, "> ");
    type(&t, "Tell me the tale of Rapunzel.\r");
    await(&t, "There were");
    type(&t, "/tokens Once upon a time\r");
    await(&t, "\033[?2004h> ");
    const size_t prompt = t.at;
    await(&t, "4 tokens");
    char *typed = strstr(t.seen, "/tokens");
    assert_true(typed && (size_t)(typed - t.seen) >= prompt);
    type(&t, "/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void an_answer_is_drawn_again_when_the_terminal_is_resized(void **state)
{
    (void)state;
    static const char *const long_answer[] = {"-q", "-n", "100", NULL};
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    terminal t = open_terminal("xterm", long_answer);
    await(&t, "> ");
    type(&t, "Tell me the tale of Rapunzel.\r");
    await(&t, "There were once a man");
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
    await(&t, "\033[J");
    await(&t, "There were once a man and a\r\nwoman who");
    await(&t, "> ");
    type(&t, "/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void a_line_is_drawn_once_when_the_terminal_is_resized(void **state)
{
    (void)state;
    const struct winsize narrow = {.ws_row = 24, .ws_col = 30};
    terminal t = open_terminal("xterm", quiet);
    await(&t, "> ");
    type(&t, "a line of forty-two columns, with its end");
    await(&t, "its end");
    assert_int_equal(ioctl(t.fd, TIOCSWINSZ, &narrow), 0);
    await(&t, "\033[1A\r\033[J");   // moves to the row of the prompt and clears everything
    await(&t, "> a line of");
    await(&t, "end");
    type(&t, "\x15/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void tab_completes_commands(void **state)
{
    (void)state;
    terminal t = open_terminal("xterm", quiet);
    await(&t, "> ");
    type(&t, "/tok\tOnce upon a time\r");
    await(&t, "4 tokens");
    await(&t, "> ");
    type(&t, "/to\t");
    await(&t, "/tokens  /tools");
    type(&t, "\x15/sh\tmo\t\r");
    await(&t, "fable.gguf");
    type(&t, "/set top\t\t");
    await(&t, "top-k  top-p");
    type(&t, "\x15/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void a_dumb_terminal_is_enough(void **state)
{
    (void)state;
    terminal t = open_terminal("dumb", quiet);
    await(&t, "> ");
    type(&t, "/system Be **kind**.\n");
    await(&t, "system message set");
    type(&t, "Hello\n");
    await(&t, "> ");
    type(&t, "/exit\n");
    assert_null(strchr(t.seen, '\033'));
    assert_int_equal(close_terminal(&t), 0);
}

// ---------------------------------------------------------------------------------------- tools

// The last message is the name of a script; a script of its own follows a result. Marks are unlike others.
static const char chat_template[] =
    "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content %}<hmm>{{ m.reasoning_content }}</hmm>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}\n<do>{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}</do>{% endfor %}.\n{% endfor %}{% if add_generation_prompt "
    "%}[assistant]"
    "{{ '<|after|>' if messages[-1].role == 'tool' else {'weather': '<|weather|>'}"
    ".get(messages[-1].content, messages[-1].content) }}{% endif %}";

static const script scripts[] = {
    {"<|weather|>",
     {"<hmm>", "Rain?", "</hmm>", "Let me ", "look.", "\n<do>", "{\"name\": \"get_weather\", ",
      "\"arguments\": {\"city\": ", "\"Paris\"}}", "</do>"}},
    {"<|after|>", {"It is ", "21 degrees."}},
};

static void write_scripted(char model[512], char tools[512])
{
    static const char list[] = "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\", \"description\": "
                               "\"Looks out.\", \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": "
                               "{\"type\": \"string\"}}}}}]";
    snprintf(model, 512, "%s", temp_path("scripted.gguf"));
    snprintf(tools, 512, "%s", temp_path("tools.json"));
    scripted_model(model, chat_template, scripts, sizeof scripts / sizeof *scripts);
    write_file(tools, list, sizeof list - 1);
}

static void a_terminal_shows_reasoning_dimmed_and_calls_in_colour(void **state)
{
    (void)state;
    char model[512], tools[512], command[600];
    write_scripted(model, tools);
    const char *const arguments[] = {model, "-q", NULL};
    terminal t = open_terminal("xterm", arguments);
    await(&t, "> ");
    snprintf(command, sizeof command, "/tools %s\r", tools);
    type(&t, command);
    await(&t, "get_weather          Looks out.");
    type(&t, "weather\r");
    await(&t, "\033[0;2mRain?");
    await(&t, "\033[0m\r\n\r\nLet me look.");
    await(&t, "\033[0;36m\xe2\x86\x92 get_weather {\"city\": \"Paris\"}\033[0m");
    await(&t, "what get_weather gives is the next message");
    type(&t, "{\"degrees\": 21}\r");
    await(&t, "It is 21 degrees.");
    type(&t, "/show messages\r");
    await(&t, "  calls get_weather {\"city\": \"Paris\"}");
    await(&t, "tool: {\"degrees\": 21}");
    await(&t, "assistant: It is 21 degrees.");
    type(&t, "/undo\r");
    await(&t, "taken back: weather");
    type(&t, "\x15/exit\r");
    assert_int_equal(close_terminal(&t), 0);
}

static void a_pipe_gets_reasoning_in_tags_and_calls_as_json(void **state)
{
    (void)state;
    char model[512], tools[512], input[1200], saved[512];
    write_scripted(model, tools);
    snprintf(saved, sizeof saved, "%s", temp_path("saved.json"));
    snprintf(input, sizeof input, "/tools %s\nweather\n21\n/save %s\n", tools, saved);
    int code;
    char *err, *out = run_piped(model, input, &code, &err);
    assert_int_equal(code, 0);
    assert_string_equal(out, "<think>\nRain?\n</think>\n\nLet me look.\n"
                             "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nIt is 21 degrees.\n");
    free(out);
    free(err);
    char *json = read_file(saved, NULL);
    assert_non_null(strstr(json, "\"reasoning_content\": \"Rain?\""));
    assert_non_null(strstr(json, "\"tool_call_id\""));
    free(json);
    snprintf(input, sizeof input, "--load %s -q %s", saved, model);   // continues from the file
    out = run_piped(input, "weather\n", &code, &err);
    assert_int_equal(code, 0);
    assert_non_null(strstr(out, "get_weather"));
    free(out);
    free(err);
}

static void tools_work_without_a_place_in_the_template(void **state)
{
    (void)state;
    static const char plain[] = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
                                "{{ '<|after|>' if 'tool_result' in messages[-1].content else '<|weather|>' }}";
    static const script plain_scripts[] = {
        {"<|weather|>",
         {"{\"tool_calls\": [{\"name\": ", "\"get_weather\", \"arguments\": ", "{\"city\": \"Paris\"}}]}"}},
        {"<|after|>", {"{\"response\": \"It", " is 21", " degrees.\"}"}},
    };
    char model[512], tools[512], input[1200];
    write_scripted(model, tools);
    scripted_model(model, plain, plain_scripts, sizeof plain_scripts / sizeof *plain_scripts);
    snprintf(input, sizeof input, "/tools %s\nweather\n21\n", tools);
    int code;
    char *err, *out = run_piped(model, input, &code, &err);
    assert_int_equal(code, 0);
    assert_string_equal(out, "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}\nIt is 21 degrees.\n");
    free(out);
    free(err);
}

int main(void)
{
    snprintf(state_folder, sizeof state_folder, "%s", temp_path("state"));
    setenv("XDG_STATE_HOME", state_folder, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_says_what_it_does),
        cmocka_unit_test(only_answers_go_to_stdout),
        cmocka_unit_test(a_turn_runs_only_what_is_new),
        cmocka_unit_test(a_full_context_lets_the_oldest_turns_leave),
        cmocka_unit_test(an_answer_goes_on_where_the_context_ends),
        cmocka_unit_test(a_model_without_a_template_gets_one_with_a_warning),
        cmocka_unit_test(a_conversation_is_saved_and_loaded),
        cmocka_unit_test(a_file_is_read),
        cmocka_unit_test(a_zero_byte_hides_nothing),
        cmocka_unit_test(an_editor_is_refused_in_a_pipe),
        cmocka_unit_test(a_terminal_edits_lines_and_keeps_history),
        cmocka_unit_test(a_paste_is_one_message),
        cmocka_unit_test(one_interrupt_stops_the_answer_and_a_second_one_leaves),
        cmocka_unit_test(an_editor_changes_the_question),
        cmocka_unit_test(lines_break_between_words_at_every_width),
        cmocka_unit_test(what_is_typed_during_an_answer_waits_for_the_next_line),
        cmocka_unit_test(an_answer_is_drawn_again_when_the_terminal_is_resized),
        cmocka_unit_test(a_line_is_drawn_once_when_the_terminal_is_resized),
        cmocka_unit_test(tab_completes_commands),
        cmocka_unit_test(a_dumb_terminal_is_enough),
        cmocka_unit_test(a_terminal_shows_reasoning_dimmed_and_calls_in_colour),
        cmocka_unit_test(a_pipe_gets_reasoning_in_tags_and_calls_as_json),
        cmocka_unit_test(tools_work_without_a_place_in_the_template),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
