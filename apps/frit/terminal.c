// SPDX-License-Identifier: MIT
// What a person sees besides the answer: failures, notes, a progress bar.
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void say(const char *format, va_list args)
{
    fflush(stdout);
    fputs("frit: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return CLI_FAILED;
}

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
    return CLI_USAGE;
}

void cli_note(const cli_common *common, const char *format, ...)
{
    if (common->quiet) return;
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_exit_code(frit_status status)
{
    switch (status) {
    case FRIT_OK:
        return CLI_DONE;
    case FRIT_E_MEMORY:
        return CLI_NO_MEMORY;
    case FRIT_E_FORMAT:
        return CLI_BAD_MODEL;
    case FRIT_E_CANCELLED:
        return CLI_INTERRUPTED;
    default:
        return CLI_FAILED;
    }
}

int cli_report(frit_status status)
{
    cli_fail("%s", frit_error()[0] ? frit_error() : frit_status_text(status));
    return cli_exit_code(status);
}

bool cli_color(const cli_common *common, FILE *stream)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (common->no_color || (no_color && *no_color)) return false;
    return isatty(fileno(stream)) && term && strcmp(term, "dumb") != 0;
}

uint64_t cli_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void cli_progress_start(cli_progress *progress, const cli_common *common, const char *what)
{
    *progress = (cli_progress){.what = what, .on = !common->quiet && isatty(STDERR_FILENO), .start_ns = cli_now_ns()};
}

// Quick work shows nothing: the bar appears after 0.3 s and moves ten times a second.
bool cli_progress_step(void *ctx, double done)
{
    cli_progress *progress = ctx;
    uint64_t now = cli_now_ns();
    if (progress->on && now - progress->start_ns > 300000000u && now - progress->last_ns > 100000000u) {
        enum { WIDTH = 30 };
        char bar[WIDTH + 1];
        for (int i = 0; i < WIDTH; i++) bar[i] = i < (int)(done * WIDTH) ? '#' : '.';
        bar[WIDTH] = 0;
        fprintf(stderr, "\r%s [%s] %3.0f%%", progress->what, bar, 100 * done);
        fflush(stderr);
        progress->last_ns = now;
        progress->shown = true;
    }
    return cli_interrupted == 0;
}

void cli_progress_end(cli_progress *progress)
{
    if (progress->shown) fprintf(stderr, "\r%*s\r", 60, "");
    progress->on = false;
}

void cli_size_text(uint64_t n_bytes, char out[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double n = (double)n_bytes;
    size_t unit = 0;
    for (; n >= 1024 && unit + 1 < CLI_COUNT(units); unit++) n /= 1024;
    snprintf(out, 32, unit == 0 ? "%.0f %s" : "%.1f %s", n, units[unit]);
}

void cli_count_text(int64_t n, char out[32])
{
    if (n >= 1000000000) {
        snprintf(out, 32, "%.2f B", (double)n * 1e-9);
    } else if (n >= 1000000) {
        snprintf(out, 32, "%.1f M", (double)n * 1e-6);
    } else {
        snprintf(out, 32, "%lld", (long long)n);
    }
}
