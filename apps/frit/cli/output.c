// SPDX-License-Identifier: MIT
// Writes the output of commands: stdout, and files of results. Commands print with stdio and need not check each call.
// If the output cannot be written, they are asked to stop, as by a signal, and the exit code at the end reports the
// failure.
#include "frit/cli/cli.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---------------------------------------------------------------------------------------- stdout

static int output_error;   // errno of the first write that failed
static bool is_closed;

bool cli_flush(void)
{
    if (is_closed) return output_error == 0;
    const bool flushed = fflush(stdout) == 0;
    if (flushed && !ferror(stdout)) return true;
    // If stdio wrote by itself, errno is lost. Writing one more byte to the broken output fails in the same way.
    if (output_error == 0 && (!flushed || write(STDOUT_FILENO, "\n", 1) < 0)) output_error = errno;
    if (output_error == 0) output_error = EIO;
    cli_interrupted = 1;
    return false;
}

bool cli_should_stop(void)
{
    return cli_interrupted || ferror(stdout);
}

int cli_end_output(int code)
{
    bool good = cli_flush();
    is_closed = true;
    if (fclose(stdout) != 0 && good) {
        output_error = errno;
        good = false;
    }
    if (code == CLI_INTERRUPTED && cli_signal) return CLI_SIGNALLED + cli_signal;
    if (good || (code != CLI_DONE && code != CLI_INTERRUPTED)) return code;
    if (output_error == EPIPE) return CLI_PIPE_CLOSED;
    return cli_fail("the output cannot be written: %s", strerror(output_error));
}

int cli_print_json(json_t *value, size_t flags)
{
    if (!value) return cli_no_memory();
    bool printed;
    if (isatty(STDOUT_FILENO)) {
        char *text = json_dumps(value, flags);
        printed = text != NULL;
        if (text) cli_put_text(stdout, text, strlen(text));
        free(text);
    } else {
        printed = json_dumpf(value, stdout, flags) == 0;
    }
    putchar('\n');
    json_decref(value);
    return printed || ferror(stdout) ? CLI_DONE : cli_no_memory();   // a failed write is reported at the end of the
                                                                     // command
}

// ---------------------------------------------------------------------------------------- files

// A temporary name beside the target, which is replaced only by a complete file.
static char *partial_name(const char *target)
{
    const size_t n = strlen(target) + 32;
    char *name = malloc(n);
    if (name) snprintf(name, n, "%s.%d.part", target, cli_process_id());
    return name;
}

int cli_file_open(cli_file *out, const char *path)
{
    *out = (cli_file){.path = path};
    if (strcmp(path, "-") == 0) {
        out->path = "the output";
        out->file = stdout;
        return CLI_DONE;
    }
    const cli_path kind = cli_path_kind(path);
    if (kind == CLI_PATH_FOLDER) return cli_fail("%s: is a folder, a file is expected", path);
    if (kind != CLI_PATH_SPECIAL) {   // a device or a pipe is never replaced
        out->target = cli_real_path(path);
        if (!out->target) out->target = strdup(path);
        out->partial = out->target ? partial_name(out->target) : NULL;
        if (!out->partial) {
            cli_file_close(out, CLI_NO_MEMORY);
            return cli_no_memory();
        }
    }
    out->file = fopen(out->partial ? out->partial : path, "wb");
    if (out->file) return CLI_DONE;
    const int code = cli_fail("%s: cannot be written: %s", path, strerror(errno));
    cli_file_close(out, code);
    return code;
}

bool cli_file_write(cli_file *out, const void *bytes, size_t n)
{
    if (out->error == 0 && fwrite(bytes, 1, n, out->file) != n) out->error = errno ? errno : EIO;
    return out->error == 0;
}

int cli_file_close(cli_file *out, int code)
{
    if (out->file == stdout) {
        *out = (cli_file){0};
        return cli_flush() || code != CLI_DONE ? code : CLI_INTERRUPTED;   // cli_end_output prints the error
    }
    const bool was_open = out->file != NULL;
    if (was_open && ferror(out->file) && out->error == 0) out->error = EIO;
    if (was_open && fclose(out->file) != 0 && out->error == 0) out->error = errno;
    if (code == CLI_DONE && out->error == 0 && out->partial && rename(out->partial, out->target) != 0)
        out->error = errno;
    if (out->error != 0 && code == CLI_DONE)
        code = cli_fail("%s: cannot be written: %s", out->path, strerror(out->error));
    if (was_open && out->partial && code != CLI_DONE) remove(out->partial);
    free(out->partial);
    free(out->target);
    *out = (cli_file){0};
    return code;
}

// The library writes a temporary file beside the target and renames it, so creating such a file is tried.
int cli_check_writable(const char *path)
{
    cli_file trial;
    if (strcmp(path, "-") == 0) return cli_usage("'-' is the output, the name of a file is expected");
    if (cli_path_kind(path) == CLI_PATH_SPECIAL) return cli_fail("%s: is a device or a pipe, a file is expected", path);
    const int code = cli_file_open(&trial, path);
    if (code == CLI_DONE) cli_file_close(&trial, CLI_FAILED);   // removes the file
    return code;
}
