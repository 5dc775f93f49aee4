// SPDX-License-Identifier: MIT
// The initial state of a process on Windows. An interrupt asks for a stop between two steps. Windows locks mapped
// files, so they cannot shrink, and its C library opens descriptors 0 to 2.
#include "frit/cli/cli.h"

#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define WIN32_LEAN_AND_MEAN
#include <text_windows.h>

_Atomic int cli_interrupted;
_Atomic int cli_signal;
static _Atomic bool exits_on_signal, exited_on_signal;

// Windows restores the default handler after each signal.
static void on_signal(int number)
{
    cli_signal = number;
    if (exits_on_signal || ++cli_interrupted >= 3) _exit(CLI_SIGNALLED + number);
    signal(number, on_signal);
}

// Makes streams binary: texts are UTF-8, "\n" stays one byte, and ^Z does not end a file. Typed input keeps the C
// library's line ends.
static void use_bytes(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fd > 0 || !_isatty(fd)) _setmode(fd, _O_BINARY);
    SetConsoleOutputCP(CP_UTF8);
    SetConsoleCP(CP_UTF8);
}

void cli_begin_process(void)
{
    use_bytes();
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
}

bool cli_exit_on_signal(bool yes)
{
    const bool before = exits_on_signal;
    exits_on_signal = yes;
    if (yes && cli_interrupted && cli_signal) _exit(CLI_SIGNALLED + cli_signal);
    return before;
}

// Windows runs handlers in a thread of their own.
void cli_begin_wait(void)
{
    exited_on_signal = cli_exit_on_signal(true);
}

void cli_end_wait(void)
{
    cli_exit_on_signal(exited_on_signal);
}

bool cli_was_told_to_end(void)
{
    return cli_signal != 0 && cli_signal != SIGINT;
}

bool cli_is_piped(void)
{
    struct _stat64 st;
    return _fstat64(0, &st) == 0 && ((st.st_mode & _S_IFMT) == _S_IFIFO || (st.st_mode & _S_IFMT) == _S_IFREG);
}

bool cli_input_is_late(int seconds)
{
    (void)seconds;
    return false;   // Windows cannot wait for pipes
}

char *cli_real_path(const char *path)
{
    return strdup(path);
}

cli_path cli_path_kind(const char *path)
{
    struct _stat64 st;
    if (_stat64(path, &st) != 0) return CLI_PATH_NONE;
    const int kind = st.st_mode & _S_IFMT;
    return kind == _S_IFREG ? CLI_PATH_FILE : kind == _S_IFDIR ? CLI_PATH_FOLDER : CLI_PATH_SPECIAL;
}

int cli_process_id(void)
{
    return _getpid();
}

char *cli_program_folder(void)
{
    wchar_t wide[MAX_PATH];
    const DWORD n = GetModuleFileNameW(NULL, wide, MAX_PATH);
    char *path = n > 0 && n < MAX_PATH ? malloc(4 * MAX_PATH) : NULL;
    if (path) WideCharToMultiByte(CP_UTF8, 0, wide, -1, path, 4 * MAX_PATH, NULL, NULL);
    char *slash = path ? strrchr(path, '\\') : NULL;
    if (slash) *slash = '\0';
    return path;
}
