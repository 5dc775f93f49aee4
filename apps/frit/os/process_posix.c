// SPDX-License-Identifier: MIT
// The initial state of a process on POSIX systems: descriptors 0 to 2, and signal handlers. A signal asks for a stop
// between two steps; where no work would be left half done, it ends the process immediately.
//
// A thread that waits for a file runs no signal handler before the disk answers. While the main thread waits, another
// thread handles signals.
#include "frit/cli/cli.h"

#include "frit/os/screen.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LISTENER_STACK = 256 << 10 };

_Atomic int cli_interrupted;
_Atomic int cli_signal;
static _Atomic bool exits_on_signal;

static struct {
    pthread_t main, thread;
    int pipe[2];   // the thread ends when it can read from the pipe
    sigset_t before;
    bool hears, exits_before;
} listener;

static void leave(int code)
{
    cli_release_keys();   // restores the terminal for the shell
    _exit(code);
}

static void on_signal(int number)
{
    cli_signal = number;
    // The first signal asks for a stop between two steps. The third one ends the process.
    if (exits_on_signal || ++cli_interrupted >= 3) leave(CLI_SIGNALLED + number);
}

// A page of a mapped file is gone, or its disk failed (EIO). The process cannot continue without it.
static void on_bus_error(int number)
{
    (void)number;
    static const char sentence[] =
        "frit: a file of the model cannot be read any more: it was truncated or replaced while "
        "it was in use, or its disk failed\n";
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    leave(CLI_FAILED);   // a service restarts; it then refuses a truncated file
}

// Opens missing descriptors. Otherwise the next opened file would get the number: the model would be read as stdin, or
// overwritten by messages. Reading from the null device ends at once. Writing to a descriptor that is open for reading
// fails, so that an answer that cannot be written is a failure.
static void open_missing(void)
{
    static const int modes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", modes[fd]) != fd) _exit(CLI_FAILED);
    }
}

static void catch (int number)
{
    struct sigaction before, action = {.sa_handler = on_signal};
    // If the parent ignores a signal (nohup, a shell's background), this process ignores it too.
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(number, &action, NULL);
}

void cli_begin_process(void)
{
    const struct sigaction bus = {.sa_handler = on_bus_error};
    listener.main = pthread_self();
    open_missing();
    catch (SIGINT);
    catch (SIGTERM);
    catch (SIGHUP);
    sigaction(SIGBUS, &bus, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);   // writing beyond the shell's file size limit then fails, as on a full disk
}

bool cli_exit_on_signal(bool yes)
{
    const bool before = exits_on_signal;
    exits_on_signal = yes;
    if (yes && cli_interrupted && cli_signal) leave(CLI_SIGNALLED + cli_signal);
    return before;
}

static void *hear(void *ctx)
{
    (void)ctx;
    char byte;
    while (read(listener.pipe[0], &byte, 1) < 0 && errno == EINTR) {
    }
    return NULL;
}

static bool start_listener(void)
{
    pthread_attr_t small;
    if (pthread_attr_init(&small) != 0) return false;
    pthread_attr_setstacksize(&small, LISTENER_STACK);   // the default size matters where address space is limited
    const bool good = pthread_create(&listener.thread, &small, hear, NULL) == 0;
    pthread_attr_destroy(&small);
    return good;
}

// The thread is started before signals are blocked, because it would inherit the blocked signals. Without the thread,
// signals are handled after the wait.
void cli_begin_wait(void)
{
    sigset_t signals;
    if (!pthread_equal(pthread_self(), listener.main) || pipe(listener.pipe) != 0) return;
    for (int i = 0; i < 2; i++) fcntl(listener.pipe[i], F_SETFD, FD_CLOEXEC);
    listener.hears = start_listener();
    if (!listener.hears) {
        for (int i = 0; i < 2; i++) close(listener.pipe[i]);
        return;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, &listener.before);
    listener.exits_before = cli_exit_on_signal(true);
}

void cli_end_wait(void)
{
    if (!pthread_equal(pthread_self(), listener.main) || !listener.hears) return;
    cli_exit_on_signal(listener.exits_before);
    pthread_sigmask(SIG_SETMASK, &listener.before, NULL);
    close(listener.pipe[1]);
    pthread_join(listener.thread, NULL);
    close(listener.pipe[0]);
    listener.hears = false;
}

bool cli_was_told_to_end(void)
{
    return cli_signal != 0 && cli_signal != SIGINT;
}

bool cli_is_piped(void)
{
    struct stat st;
    return fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode));
}

bool cli_input_is_late(int seconds)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&input, 1, 1000 * seconds) == 0;
}

char *cli_real_path(const char *path)
{
    return realpath(path, NULL);
}

cli_path cli_path_kind(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return CLI_PATH_NONE;
    return S_ISREG(st.st_mode) ? CLI_PATH_FILE : S_ISDIR(st.st_mode) ? CLI_PATH_FOLDER : CLI_PATH_SPECIAL;
}

int cli_process_id(void)
{
    return (int)getpid();
}

// On Linux /proc has the path; elsewhere the dynamic linker knows the path by which it loaded the program.
char *cli_program_folder(void)
{
    char *path = realpath("/proc/self/exe", NULL);
    Dl_info info;
    if (!path && dladdr((const void *)&cli_signal, &info) && info.dli_fname && strchr(info.dli_fname, '/'))
        path = realpath(info.dli_fname, NULL);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash) *slash = '\0';
    return path;
}
