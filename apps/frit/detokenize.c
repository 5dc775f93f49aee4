// SPDX-License-Identifier: MIT
// frit detokenize: the text of token ids, given as arguments or on stdin.
#include "common/text_file.h"
#include "frit/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct detokenize_options {
    bool special, bytes;
} detokenize_options;

typedef struct detokenize_args {
    cli_common common;
    detokenize_options detokenize;
    frit_model_options model;
} detokenize_args;

static const frit_option *detokenize_rows(size_t *n_rows)
{
    static const frit_option rows[] = {
        {.name = "special",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(detokenize_options, special),
         .help = "show special tokens"},
        {.name = "bytes",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(detokenize_options, bytes),
         .help = "give bytes as they are, where they are not UTF-8 too"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

static int show(frit_text_stream *stream, const frit_token *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *text;
        size_t n_bytes;
        frit_status status = frit_text_stream_push(stream, ids[i], &text, &n_bytes);
        if (status != FRIT_OK) return cli_report(status);
        cli_put_text(stdout, text, n_bytes);
    }
    return cli_flush() ? CLI_DONE : CLI_INTERRUPTED;
}

static int show_text(frit_text_stream *stream, const char *where, const char *text, size_t n_bytes)
{
    frit_token *ids;
    size_t n;
    int code = cli_parse_ids(where, text, n_bytes, &ids, &n);
    if (code == CLI_DONE) code = show(stream, ids, n);
    free(ids);
    return code;
}

// Reads ids from stdin and prints the text of each when the word has ended.
static int show_stdin(frit_text_stream *stream)
{
    char word[64];
    size_t n = 0;
    bool is_first = true;
    int code = CLI_DONE, c;
    do {
        c = getchar();
        const bool in_word = c != EOF && !cli_is_id_separator(c) && n < sizeof word;
        if (in_word) {
            word[n++] = (char)c;
        } else if (n > 0) {   // a word that fills the buffer is no id
            const size_t n_mark = is_first ? app_mark_bytes(word, n) : 0;
            if (n > n_mark) code = show_text(stream, "stdin", word + n_mark, n - n_mark);
            is_first = false;
            n = 0;
        }
    } while (c != EOF && code == CLI_DONE);
    return code == CLI_DONE && ferror(stdin) ? cli_fail("stdin: %s", strerror(errno)) : code;
}

static int show_all(const detokenize_args *args, const frit_model *model, const char *const *ids, int n)
{
    frit_text_stream *stream = NULL;
    const char *rest;
    size_t n_rest;
    unsigned flags =
        (args->detokenize.special ? FRIT_TEXT_SPECIAL : 0u) | (args->detokenize.bytes ? FRIT_TEXT_BYTES : 0u);
    frit_status status = frit_text_stream_new(&stream, model, flags);
    if (status != FRIT_OK) return cli_report(status);
    int code = n == 0 ? show_stdin(stream) : CLI_DONE;
    for (int i = 0; i < n && code == CLI_DONE; i++) code = show_text(stream, "detokenize", ids[i], strlen(ids[i]));
    status = frit_text_stream_flush(stream, &rest, &n_rest);
    if (status == FRIT_OK) cli_put_text(stdout, rest, n_rest);
    frit_text_stream_free(stream);
    return code;
}

static int run(void *ctx)
{
    const detokenize_args *args = ctx;
    const cli_common *common = &args->common;
    frit_model *model = NULL;
    // A first argument that is not a list of ids is the model.
    bool named = common->n_positional > 0 && !common->model &&
                 common->positional[0][strspn(common->positional[0], "0123456789, []")] != 0;
    frit_model_options with = args->model;
    with.vocab_only = true;
    cli_exit_on_signal(true);   // the command writes no file
    int code = cli_open_model(&model, common, &with, named ? common->positional[0] : NULL);
    if (code == CLI_DONE) code = show_all(args, model, common->positional + named, common->n_positional - named);
    frit_model_free(model);
    return code;
}

static const cli_group groups[] = {
    {"Text", detokenize_rows, offsetof(detokenize_args, detokenize)},
    {"Model", frit_model_option_rows, offsetof(detokenize_args, model)},
    {"General", cli_common_rows, offsetof(detokenize_args, common)},
};

const cli_command cli_command_detokenize = {
    .name = "detokenize",
    .usage = "[MODEL] [ID ...] [options]",
    .summary = "show the text of tokens",
    .usual = "special bytes model hf-repo quiet",
    .details =
        "Without ids reads them from stdin, and shows their text as they come. Half a character is held back until\n"
        "its last byte; what never becomes one is shown as U+FFFD.\n"
        "\n"
        "  frit detokenize 7599 1044 221\n"
        "  frit tokenize model.gguf --ids < text.txt | frit detokenize model.gguf",
    .max_positional = CLI_MAX_POSITIONAL,
    .args_bytes = sizeof(detokenize_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
