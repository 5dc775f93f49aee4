// SPDX-License-Identifier: MIT
// Signals: an interrupt stops between two steps, a model file that shrinks under us ends with a sentence.
#include "cli.h"

#include <signal.h>
#include <unistd.h>

volatile sig_atomic_t cli_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    // The first asks for a stop between two steps; someone who asks again and again means it.
    if (++cli_interrupted >= 3) _exit(CLI_INTERRUPTED);
}

// A mapped model file was cut short by someone else and its bytes are gone. Nothing can go on.
static void on_bus_error(int signal_number)
{
    (void)signal_number;
    static const char sentence[] =
        "frit: the model file became shorter while it was in use (its pages are gone); was it replaced or truncated?\n";
    if (write(STDERR_FILENO, sentence, sizeof sentence - 1) < 0) _exit(CLI_FAILED);
    _exit(CLI_BAD_MODEL);
}

void cli_catch_signals(void)
{
    struct sigaction interrupt = {.sa_handler = on_interrupt}, bus = {.sa_handler = on_bus_error};
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
    sigaction(SIGBUS, &bus, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);   // a file beyond the limit of the shell fails to be written, as on a full disk
}
