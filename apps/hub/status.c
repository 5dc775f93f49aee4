// SPDX-License-Identifier: MIT
// Errors, and paths.
#include "hub/hub.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[2048];
static _Thread_local bool is_full;

// Replaces control characters in text from a server, which could move a terminal's cursor.
static void drop_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 32 || *text == 127) *text = '?';
}

hub_status hub_fail(hub_status status, const char *format, ...)
{
    char text[sizeof sentence];   // an argument may be the previous error
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    drop_controls(text);
    snprintf(sentence, sizeof sentence, "%s", text);
    is_full = false;
    return status;
}

hub_status hub_fail_full(const char *path, const char *what, const char *why)
{
    const hub_status status = hub_fail(HUB_E_DISK, "%s: %s: %s", path, what, why);
    is_full = true;
    return status;
}

const char *hub_error(void)
{
    return sentence;
}

bool hub_error_is_full(void)
{
    return is_full;
}

hub_status hub_path_set(hub_path *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(path->text, sizeof path->text, format, args);
    va_end(args);
    if (n >= 0 && n < HUB_PATH_BYTES) return HUB_OK;
    path->text[0] = 0;
    return hub_fail(HUB_E_NAME, "a path is longer than %d bytes", HUB_PATH_BYTES - 1);
}
