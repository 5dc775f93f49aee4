// SPDX-License-Identifier: MIT
// The command frit chat as a child process.
#include "support/chat_process.h"
#include "support/support.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

void chat_keep_state(void)
{
    setenv("XDG_STATE_HOME", temp_path("state"), 1);
}

char *run_piped(const char *arguments, const char *input, int *code, char **err)
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

// ---------------------------------------------------------------------------------------- terminals

terminal terminal_open_sized(const char *term, const char *const *extra, unsigned short columns)
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

terminal terminal_open(const char *term, const char *const *extra)
{
    return terminal_open_sized(term, extra, 80);
}

void terminal_await(terminal *t, const char *text)
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

void terminal_type(const terminal *t, const char *text)
{
    struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    nanosleep(&pause, NULL);
    assert_int_equal(write(t->fd, text, strlen(text)), strlen(text));
}

int terminal_close(terminal *t)
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
