// SPDX-License-Identifier: MIT
// server/http/key_file.h: the file of a test's keys, and the model of its servers.
#pragma once
#include "support/served_posix.h"
#include "support/tiny_model.h"

#include <string.h>

// The SHA-256 of "abc" (an example of FIPS 180-4).
#define ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static inline const char *model(void)
{
    const tiny_options options = {.n_ctx = 12000};
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", tiny_model("keys.gguf", &options));
    return path;
}

static inline const char *key_path(void)
{
    static char path[1024];
    if (!path[0]) snprintf(path, sizeof path, "%s", temp_path("key-file"));
    return path;
}

static inline void write_keys(const char *text)
{
    write_file(key_path(), text, strlen(text));
}
