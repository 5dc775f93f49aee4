// SPDX-License-Identifier: MIT
// The terminal, on POSIX systems: its size, and keys that are typed while no line is read.
#include "frit/os/screen.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct winsize size_of(FILE *stream)
{
    struct winsize size = {0};
    const int fd = fileno(stream);
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) size = (struct winsize){0};
    return size;
}

int cli_columns(FILE *stream)
{
    return size_of(stream).ws_col;
}

int cli_rows(FILE *stream)
{
    return size_of(stream).ws_row;
}

const char *cli_end_key(void)
{
    return "Ctrl-D on a line of its own";
}

// ---------------------------------------------------------------------------------------- resizing

static volatile sig_atomic_t is_resized;

static void on_resize(int number)
{
    (void)number;
    is_resized = 1;
}

void cli_watch_size(void)
{
    const struct sigaction action = {.sa_handler = on_resize, .sa_flags = SA_RESTART};   // writes are not interrupted
    sigaction(SIGWINCH, &action, NULL);
}

bool cli_was_resized(void)
{
    const bool was = is_resized;
    is_resized = 0;
    return was;
}

// ---------------------------------------------------------------------------------------- keys

static struct termios shown;
static volatile sig_atomic_t is_held;

void cli_hold_keys(bool by_line)
{
    if (is_held || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &shown) != 0) return;
    struct termios held = shown;
    held.c_lflag &= ~(tcflag_t)(by_line ? ECHO : ECHO | ICANON);
    static bool is_registered;
    if (!is_registered) atexit(cli_release_keys);
    is_registered = true;
    is_held = tcsetattr(STDIN_FILENO, TCSANOW, &held) == 0;
}

// May be called in signal handlers.
void cli_release_keys(void)
{
    if (is_held) tcsetattr(STDIN_FILENO, TCSANOW, &shown);
    is_held = 0;
}
