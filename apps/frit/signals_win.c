// SPDX-License-Identifier: MIT
// Signals on Windows: an interrupt stops between two steps. Windows locks mapped files, so they cannot shrink.
#include "cli.h"

#include <signal.h>
#include <stdlib.h>

volatile sig_atomic_t cli_interrupted;

// Windows falls back to the default after each signal.
static void on_interrupt(int signal_number)
{
    if (++cli_interrupted >= 3) _exit(CLI_INTERRUPTED);
    signal(signal_number, on_interrupt);
}

void cli_catch_signals(void)
{
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
}
