// SPDX-License-Identifier: MIT
// frit/cli/config.h: a file of options.
//
//     # a comment, alone or after a value
//     port = 8080
//     access-log = "/var/log/with # in its name"
//     [small]
//     path = models/small.gguf
//
// A line is a section's name in brackets, or a key and a value. A value may be in double quotes. The callers define the
// meaning of keys.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct cli_config_entry {
    const char *section;   // NULL: before the first one
    const char *key;       // NULL: start of a section
    const char *value;
    int line;
} cli_config_entry;

typedef struct cli_config {
    char *text;   // storage of the entries
    cli_config_entry *items;
    size_t n;
} cli_config;

enum { CLI_CONFIG_BYTES = 1 << 20 };   // maximum size of a file

// Parses `text`, malloc'd and with a zero after its n bytes, and takes ownership of it. Returns false with an error and
// its line (0: no line).
bool cli_config_parse(cli_config *out, char *text, size_t n, int *line, char sentence[256]);
// Reads a file. Returns an exit code after printing any error.
int cli_config_read(cli_config *out, const char *path);
void cli_config_free(cli_config *config);
