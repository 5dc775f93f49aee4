// SPDX-License-Identifier: MIT
// The terminal on Windows: its size. Windows echoes keys when they are read, so they need not be hidden.
#include "frit/os/screen.h"

#include <io.h>
#include <text_windows.h>

static bool get_info(FILE *stream, CONSOLE_SCREEN_BUFFER_INFO *info)
{
    return GetConsoleScreenBufferInfo((HANDLE)_get_osfhandle(_fileno(stream)), info) != 0;
}

int cli_columns(FILE *stream)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    return get_info(stream, &info) ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

int cli_rows(FILE *stream)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    return get_info(stream, &info) ? info.srWindow.Bottom - info.srWindow.Top + 1 : 0;
}

const char *cli_end_key(void)
{
    return "Ctrl-Z on a line of its own, and Enter,";
}

static int last_columns;

void cli_watch_size(void)
{
    last_columns = cli_columns(stdout);
}

bool cli_was_resized(void)
{
    const int columns = cli_columns(stdout);
    const bool was = columns != last_columns;
    last_columns = columns;
    return was;
}

void cli_hold_keys(bool by_line)
{
    (void)by_line;
}

void cli_release_keys(void)
{
}
