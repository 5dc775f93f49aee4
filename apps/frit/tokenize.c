// SPDX-License-Identifier: MIT
// frit tokenize: the tokens of the text on stdin, taken to the byte.
#include "cli.h"

#include <stdlib.h>

typedef struct tokenize_options {
    const char *file;
    bool ids, special, parse_special;
} tokenize_options;

typedef struct tokenize_args {
    cli_common common;
    tokenize_options tokenize;
    frit_model_options model;
} tokenize_args;

static const frit_option *tokenize_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "file",
         .letter = 'f',
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(tokenize_options, file),
         .metavar = "FILE",
         .help = "read the text from a file instead of stdin"},
        {.name = "ids",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, ids),
         .help = "print only the ids, on one line"},
        {.name = "special",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, special),
         .help = "add BOS and EOS as the file says"},
        {.name = "parse-special",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, parse_special),
         .help = "the text of special tokens becomes these tokens"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// Bytes as a C string literal, so that spaces, control characters and broken UTF-8 can be seen.
static void print_piece(const char *piece, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)piece[i];
        if (c == '"' || c == '\\') {
            printf("\\%c", c);
        } else if (c == '\n') {
            printf("\\n");
        } else if (c < 32 || c == 127) {
            printf("\\x%02x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static int print_tokens(const frit_model *model, const frit_token *tokens, size_t n, bool ids_only)
{
    for (size_t i = 0; i < n; i++) {
        if (ids_only) {
            printf(i ? " %d" : "%d", tokens[i]);
            continue;
        }
        char piece[1024];
        size_t n_bytes = 0;
        frit_status status = frit_detokenize(model, &tokens[i], 1, FRIT_TEXT_SPECIAL, piece, sizeof piece, &n_bytes);
        if (status != FRIT_OK && status != FRIT_E_LIMIT) return cli_report(status);
        printf("%8d  ", tokens[i]);
        print_piece(piece, n_bytes < sizeof piece ? n_bytes : sizeof piece);
        putchar('\n');
    }
    if (ids_only) putchar('\n');
    return CLI_DONE;
}

static int run(void *ctx)
{
    const tokenize_args *args = ctx;
    frit_model *model = NULL;
    cli_text text = {0};
    frit_token *tokens = NULL;
    size_t n = 0;
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    frit_model_options with = args->model;
    with.vocab_only = true;
    int code = cli_open_model(&model, &args->common, &with, path);
    if (code == CLI_DONE) code = cli_read_file(args->tokenize.file ? args->tokenize.file : "-", &text);
    if (code == CLI_DONE) {
        unsigned flags = (args->tokenize.special ? FRIT_TEXT_SPECIAL : 0u) |
                         (args->tokenize.parse_special ? FRIT_TEXT_PARSE_SPECIAL : 0u);
        tokens = cli_tokens(model, text.data, text.n, flags, &n);
        code = tokens ? print_tokens(model, tokens, n, args->tokenize.ids) : CLI_FAILED;
    }
    free(tokens);
    free(text.data);
    frit_model_free(model);
    return code;
}

static const cli_group groups[] = {
    {"Text", tokenize_rows, offsetof(tokenize_args, tokenize)},
    {"Model", frit_model_option_rows, offsetof(tokenize_args, model)},
    {"General", cli_common_rows, offsetof(tokenize_args, common)},
};

const cli_command cli_command_tokenize = {
    .name = "tokenize",
    .usage = "[MODEL] [options] < TEXT",
    .summary = "show the tokens of a text",
    .details = "Reads stdin to the byte: a final newline counts.\n"
               "\n"
               "  printf 'Once upon a time' | frit tokenize\n"
               "  frit tokenize model.gguf --ids --special < text.txt",
    .max_positional = 1,
    .args_bytes = sizeof(tokenize_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
