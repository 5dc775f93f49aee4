// SPDX-License-Identifier: MIT
// Messages to people: failures, notes, a progress bar.
#include "frit/cli/cli.h"

#include "frit/os/screen.h"
#include "frit/cli/wrap.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void cli_put_text(FILE *stream, const char *text, size_t n)
{
    if (!isatty(fileno(stream))) {
        fwrite(text, 1, n, stream);
        return;
    }
    cli_wrap wrap;
    cli_wrap_init(&wrap, stream, 0);
    cli_wrap_text(&wrap, text, n);
    cli_wrap_flush(&wrap);
    cli_wrap_deinit(&wrap);
}

void cli_print(const char *format, ...)
{
    cli_text text = {0};
    va_list args;
    va_start(args, format);
    cli_text_vprint(&text, format, args);
    va_end(args);
    cli_put_text(stdout, text.data, text.n);
    free(text.data);
}

// True if the cursor is on the bar's line. Threads of a server that load models or render chats write notes too.
static atomic_bool bar_is_shown;

static void clear_bar(void)
{
    if (atomic_exchange(&bar_is_shown, false)) fprintf(stderr, "\r%*s\r", 78, "");
}

void cli_say(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, format, args);
    char *text = n < 0 ? NULL : malloc((size_t)n + 2);
    cli_flush();
    clear_bar();
    if (text) {
        vsnprintf(text, (size_t)n + 1, format, again);
        memcpy(text + n, "\n", 2);
        cli_wrap_print(stderr, cli_columns(stderr), text);
    }
    va_end(again);
    free(text);
}

static void say(const char *format, va_list args)
{
    char with_name[1200];
    snprintf(with_name, sizeof with_name, "frit: %s", format);
    cli_say(with_name, args);
}

static _Thread_local char last_failure[640];

static void say_failure(const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    vsnprintf(last_failure, sizeof last_failure, format, again);
    va_end(again);
    say(format, args);
}

void cli_announce(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_failure(format, args);
    va_end(args);
    return CLI_FAILED;
}

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    say_failure(format, args);
    va_end(args);
    return CLI_USAGE;
}

const char *cli_last_failure(void)
{
    return last_failure;
}

void cli_note(const cli_common *common, const char *format, ...)
{
    if (common->quiet) return;
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

static bool is_quiet;

void cli_keep_quiet(bool yes)
{
    is_quiet = yes;
}

void cli_hint(const char *format, ...)
{
    if (is_quiet) return;
    va_list args;
    va_start(args, format);
    say(format, args);
    va_end(args);
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

// Writes " 2:05 left", if the time can be estimated.
static void time_left(const cli_progress *progress, uint64_t now, double done, char out[32])
{
    const double seconds = (double)(now - progress->start_ns) * 1e-9, left = seconds * (1 - done) / done;
    out[0] = 0;
    if (seconds > 5 && done > 0.02 && left < 360000) snprintf(out, 32, " %d:%02d left", (int)left / 60, (int)left % 60);
}

// Short work shows nothing: the bar appears after 0.3 s and moves ten times a second.
bool cli_progress_step(void *ctx, double done)
{
    cli_progress *progress = ctx;
    uint64_t now = cli_now_ns();
    if (progress->on && now - progress->start_ns > 300000000u && now - progress->last_ns > 100000000u) {
        enum { WIDTH = 30 };
        char bar[WIDTH + 1];
        for (int i = 0; i < WIDTH; i++) bar[i] = i < (int)(done * WIDTH) ? '#' : '.';
        bar[WIDTH] = 0;
        char left[32];
        time_left(progress, now, done, left);
        fprintf(stderr, "\r%s [%s] %3.0f%%%-14s", progress->what, bar, 100 * done, left);
        fflush(stderr);
        progress->last_ns = now;
        atomic_store(&bar_is_shown, true);
    }
    return cli_interrupted == 0;
}

void cli_progress_end(cli_progress *progress)
{
    clear_bar();
    progress->on = false;
}

int cli_probe(const cli_common *common, frit_machine *machine, int32_t n_threads)
{
    cli_progress progress;
    cli_progress_start(&progress, common, "measuring memory and arithmetic of this machine");
    cli_flush();
    if (progress.on) fprintf(stderr, "\r%s ...", progress.what), fflush(stderr);
    atomic_store(&bar_is_shown, progress.on);
    const bool before = cli_exit_on_signal(true);
    const frit_status status = frit_machine_probe(machine, n_threads);
    cli_exit_on_signal(before);
    cli_progress_end(&progress);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
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
