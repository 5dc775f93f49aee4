// SPDX-License-Identifier: MIT
// Any config file: entries lie within the text, and reading them a second time gives the same entries.
#include "frit/cli/config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

static bool parse(cli_config *config, const uint8_t *bytes, size_t n)
{
    int line = 0;
    char sentence[256] = "", *text = malloc(n + 1);
    require(text != NULL);
    memcpy(text, bytes, n);
    text[n] = 0;
    const bool good = cli_config_parse(config, text, n, &line, sentence);
    require(good || (line > 0 && sentence[0]));
    return good;
}

static bool is_within(const cli_config *config, const char *text, size_t n)
{
    return !text || (text >= config->text && text + strlen(text) <= config->text + n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    cli_config config, again;
    if (parse(&config, bytes, n_bytes)) {
        char *written = NULL;
        size_t n = 0;
        FILE *file = open_memstream(&written, &n);
        require(file != NULL);
        fputs("#\n", file);   // a key may look like a byte order mark
        for (size_t i = 0; i < config.n; i++) {
            const cli_config_entry *e = &config.items[i];
            require(is_within(&config, e->section, n_bytes) && is_within(&config, e->key, n_bytes));
            require(is_within(&config, e->value, n_bytes) && !e->key == !e->value && (e->key || e->section));
            if (e->key && strchr(e->value, '"'))
                fprintf(file, "%s = %s\n", e->key, e->value);
            else if (e->key)
                fprintf(file, "%s = \"%s\"\n", e->key, e->value);
            else
                fprintf(file, "[%s]\n", e->section);
        }
        fclose(file);
        require(parse(&again, (const uint8_t *)written, n) && again.n == config.n);
        for (size_t i = 0; i < config.n; i++)
            require(!config.items[i].key || (strcmp(config.items[i].key, again.items[i].key) == 0 &&
                                             strcmp(config.items[i].value, again.items[i].value) == 0));
        cli_config_free(&again);
        free(written);
    }
    cli_config_free(&config);
    return 0;
}
