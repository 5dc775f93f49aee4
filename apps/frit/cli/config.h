// SPDX-License-Identifier: MIT
// frit/cli/config.h: a file of options.
//
//     # a comment, alone or after a value
//     port = 8080
//     access-log = "/var/log/with # in its name"
//     [small]
//     path = models/small.gguf
//
// A line is a section's name in brackets, or a key and a value; a value in double quotes is what stands between them.
// What keys mean is for others to say.
#pragma once
#include <stdbool.h>
#include <stddef.h>

typedef struct cli_config_entry {
    const char *section;   // NULL: before the first one
    const char *key;       // NULL: the section begins
    const char *value;
    int line;
} cli_config_entry;

typedef struct cli_config {
    char *text;   // what entries point into
    cli_config_entry *items;
    size_t n;
} cli_config;

enum { CLI_CONFIG_BYTES = 1 << 20 };   // of a file at most

// Takes `text` over, malloc'd and with a zero after its n bytes. False with a sentence and its line (0: of none).
bool cli_config_parse(cli_config *out, char *text, size_t n, int *line, char sentence[256]);
// An exit code, having said why.
int cli_config_read(cli_config *out, const char *path);
void cli_config_free(cli_config *config);
