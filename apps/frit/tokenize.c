// SPDX-License-Identifier: MIT
// frit tokenize: the tokens of the text on stdin, exact to the byte.
#include "frit/cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct tokenize_options {
    const char *file, *compare;
    bool ids, special, parse_special, timings;
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
        {.name = "compare",
         .type = FRIT_OPTION_TEXT,
         .offset = offsetof(tokenize_options, compare),
         .metavar = "FILE",
         .help = "find the first difference from the ids in a file; exit code 1 if there is one"},
        {.name = "special",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, special),
         .help = "add BOS and EOS as the file says"},
        {.name = "parse-special",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, parse_special),
         .help = "the text of special tokens becomes these tokens"},
        {.name = "timings",
         .type = FRIT_OPTION_FLAG,
         .offset = offsetof(tokenize_options, timings),
         .help = "print only how long opening and encoding take: processor time, medians of 5"},
    };
    *n_rows = CLI_COUNT(rows);
    return rows;
}

// The length of the character at the start of the bytes; 0: invalid.
static size_t character(const unsigned char *bytes, size_t n)
{
    size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xc2 ? 0 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    if (bytes[0] > 0xf4 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80) return 0;
    return length;
}

// Prints bytes as a C string literal, so that spaces, control characters and parts of characters are visible.
static void print_piece(const char *piece, size_t n)
{
    putchar('"');
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)piece[i];
        size_t length = character((const unsigned char *)piece + i, n - i);
        if (c == '"' || c == '\\')
            printf("\\%c", c);
        else if (c == '\n')
            printf("\\n");
        else if (c < 32 || c == 127 || length == 0)
            printf("\\x%02x", c);
        else
            cli_put_text(stdout, piece + i, (size_t)length);
        i += length > 0 ? length : 1;
    }
    putchar('"');
}

static void print_ids(const frit_token *tokens, size_t n)
{
    for (size_t i = 0; i < n && !cli_should_stop(); i++) printf(i ? " %d" : "%d", tokens[i]);
    putchar('\n');
}

typedef struct walker {   // iterates over tokens and their text
    const frit_model *model;
    frit_text_stream *stream;
    const cli_text *text;
    size_t at;        // bytes of the text so far
    bool spells_it;   // the tokens so far spell the text
} walker;

// The bytes of the next token. Tokens that were added around the text have none.
static frit_status walk(walker *w, frit_token token, bool added, const char **piece, size_t *n)
{
    frit_status status = frit_text_stream_push(w->stream, token, piece, n);
    if (status != FRIT_OK || added) return status;
    // The tokens' text may be longer than the input: U+FFFD replaces single bytes.
    const size_t n_left = w->at < w->text->n ? w->text->n - w->at : 0;
    w->spells_it &= *n <= n_left && (*n == 0 || memcmp(w->text->data + w->at, *piece, *n) == 0);
    w->at += *n;
    return FRIT_OK;
}

// Prints one line for each token: position in the text, id, bytes. Tokens before `first` and from `end` on were added.
static frit_status print_tokens(walker *w, const frit_token *tokens, size_t n, size_t first, size_t end)
{
    for (size_t i = 0; i < n && !cli_should_stop(); i++) {
        const char *piece;
        size_t n_bytes, at = w->at;
        frit_status status = walk(w, tokens[i], i < first || i >= end, &piece, &n_bytes);
        if (status != FRIT_OK) return status;
        printf("%8zu %8d  ", at, tokens[i]);
        print_piece(piece, n_bytes);
        putchar('\n');
    }
    return FRIT_OK;
}

// The number of added tokens before the text; `plain` are the tokens without them.
static size_t find_plain(const frit_token *tokens, size_t n, const frit_token *plain, size_t n_plain)
{
    for (size_t i = 0; i + n_plain <= n; i++)
        if (memcmp(tokens + i, plain, n_plain * sizeof *plain) == 0) return i;
    return 0;
}

// Reads the ids in a file: numbers with other characters between them.
static int read_ids(const char *path, frit_token **out, size_t *n)
{
    cli_text text = {0};
    int code = cli_read_file(path, &text);
    if (code == CLI_DONE) code = cli_parse_ids(path, text.data, text.n, out, n);
    free(text.data);
    return code;
}

// Prints the first difference of two lists. Returns CLI_FAILED if they differ.
static int compare(const tokenize_args *args, walker *w, const frit_token *tokens, size_t n, size_t first, size_t end)
{
    frit_token *others = NULL;
    size_t n_others = 0, i = 0;
    int code = read_ids(args->tokenize.compare, &others, &n_others);
    const char *piece;
    size_t n_bytes;
    frit_status status = FRIT_OK;
    if (code != CLI_DONE) return code;
    for (; status == FRIT_OK && i < n && i < n_others && tokens[i] == others[i]; i++)
        status = walk(w, tokens[i], i < first || i >= end, &piece, &n_bytes);
    if (status != FRIT_OK) {
        code = cli_report(status);
    } else if (i == n && i == n_others) {
        printf("equal: %zu tokens\n", n);
    } else {
        printf("token %zu differs, at byte %zu:\n", i, w->at);
        const struct {
            const char *who;
            const frit_token *ids;
            size_t n;
        } sides[] = {{"here", tokens, n}, {args->tokenize.compare, others, n_others}};
        for (size_t s = 0; s < CLI_COUNT(sides); s++) {
            printf("  %s:", sides[s].who);
            if (i >= sides[s].n) printf(" the end, after %zu tokens", sides[s].n);
            for (size_t k = i; k < sides[s].n && k < i + 5; k++) {
                char bytes[256];
                bool known = frit_detokenize(w->model, &sides[s].ids[k], 1, FRIT_TEXT_SPECIAL, bytes, sizeof bytes,
                                             &n_bytes) == FRIT_OK;
                printf(" %d ", sides[s].ids[k]);
                if (known) print_piece(bytes, n_bytes);
            }
            putchar('\n');
        }
        code = CLI_FAILED;
    }
    free(others);
    return code;
}

static int show_tokens(const tokenize_args *args, const frit_model *model, const cli_text *text)
{
    const tokenize_options *o = &args->tokenize;
    unsigned parse = o->parse_special ? FRIT_TEXT_PARSE_SPECIAL : 0u;
    size_t n = 0, n_plain = 0;
    frit_token *tokens = cli_tokens(model, text->data, text->n, parse | (o->special ? FRIT_TEXT_SPECIAL : 0u), &n);
    frit_token *plain = tokens ? cli_tokens(model, text->data, text->n, parse, &n_plain) : NULL;
    walker w = {.model = model, .text = text, .spells_it = true};
    int code = plain ? CLI_DONE : CLI_FAILED;
    frit_status status = plain ? frit_text_stream_new(&w.stream, model, FRIT_TEXT_BYTES | FRIT_TEXT_SPECIAL) : FRIT_OK;
    if (plain && status == FRIT_OK) {
        size_t first = find_plain(tokens, n, plain, n_plain), end = first + n_plain;
        if (o->compare)
            code = compare(args, &w, tokens, n, first, end);
        else if (o->ids)
            print_ids(tokens, n);
        else
            status = print_tokens(&w, tokens, n, first, end);
        if (!w.spells_it)
            cli_note(&args->common, "the tokens do not spell the text as it was given; places are in what they spell");
    }
    if (status != FRIT_OK) code = cli_report(status);
    frit_text_stream_free(w.stream);
    free(plain);
    free(tokens);
    return code;
}

// ------------------------------------------------------------------------------------- timings

enum { ROUNDS = 5 };

typedef struct sample {   // seconds of processor time
    double open, encode;
} sample;

static double processor_s(clock_t since)
{
    return (double)(clock() - since) / CLOCKS_PER_SEC;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const sample *samples, size_t offset)
{
    double sorted[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) memcpy(&sorted[i], (const char *)&samples[i] + offset, sizeof sorted[i]);
    qsort(sorted, ROUNDS, sizeof *sorted, compare_doubles);
    return sorted[ROUNDS / 2];
}

// An upper bound of the number of tokens: an invalid byte may become the three bytes of U+FFFD, and some tokens are
// added.
static size_t most_tokens(const cli_text *text)
{
    return 3 * text->n + 1024;
}

// Opens the model and encodes the text once, into `tokens`, which has room for most_tokens.
static int take_sample(const tokenize_args *args, const frit_model_options *with, const char *path,
                       const cli_text *text, frit_token *tokens, size_t *n, sample *out)
{
    frit_model *model = NULL;
    clock_t start = clock();
    int code = cli_open_model(&model, &args->common, with, path);
    if (code != CLI_DONE) return code;
    out->open = processor_s(start);
    start = clock();
    unsigned flags = (args->tokenize.parse_special ? FRIT_TEXT_PARSE_SPECIAL : 0u) |
                     (args->tokenize.special ? FRIT_TEXT_SPECIAL : 0u);
    frit_status status = frit_tokenize(model, text->data, text->n, flags, tokens, most_tokens(text), n);
    out->encode = processor_s(start);
    frit_model_free(model);
    return status == FRIT_OK ? CLI_DONE : cli_report(status);
}

static int show_timings(const tokenize_args *args, const frit_model_options *with, const char *path,
                        const cli_text *text)
{
    sample samples[ROUNDS];
    size_t n = 0;
    int code = CLI_DONE;
    frit_token *tokens = malloc(most_tokens(text) * sizeof *tokens);
    if (!tokens) return cli_no_memory();
    for (int i = 0; i < ROUNDS && code == CLI_DONE; i++)
        code = take_sample(args, with, path, text, tokens, &n, &samples[i]);
    free(tokens);
    if (code != CLI_DONE) return code;
    double open = median(samples, offsetof(sample, open)), encode = median(samples, offsetof(sample, encode));
    printf("open    %8.1f ms\n", open * 1e3);
    printf("encode  %8.1f ms  %zu bytes, %zu tokens", encode * 1e3, text->n, n);
    if (encode > 0 && text->n > 0) printf(", %.1f MB/s", (double)text->n / encode * 1e-6);
    putchar('\n');
    return CLI_DONE;
}

static int run(void *ctx)
{
    const tokenize_args *args = ctx;
    frit_model *model = NULL;
    cli_text text = {0};
    const char *path = args->common.n_positional > 0 ? args->common.positional[0] : NULL;
    frit_model_options with = args->model;
    with.vocab_only = true;
    cli_exit_on_signal(true);   // the command writes no file
    int code = cli_open_model(&model, &args->common, &with, path);
    if (code == CLI_DONE) code = cli_read_file(args->tokenize.file ? args->tokenize.file : "-", &text);
    if (code == CLI_DONE && args->tokenize.timings) {
        frit_model_free(model);
        model = NULL;
        code = show_timings(args, &with, path, &text);
    } else if (code == CLI_DONE) {
        code = show_tokens(args, model, &text);
    }
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
    .usual = "file ids compare special parse-special timings model hf-repo quiet",
    .details =
        "Reads stdin to the byte: a final newline counts, a byte order mark at the beginning does not. A line for\n"
        "each token: the byte at which it begins, its id, its bytes. The model may be a GGUF file, a Hugging Face "
        "folder or a bare tokenizer file\n"
        "(tokenizer.json, tekken.json, a SentencePiece .model, tiktoken ranks).\n"
        "\n"
        "  printf 'Once upon a time' | frit tokenize\n"
        "  frit tokenize tokenizer.json --compare ids.txt < text.txt\n"
        "  frit tokenize model.gguf --ids --special < text.txt\n"
        "  frit tokenize model.gguf --timings < text.txt",
    .max_positional = 1,
    .args_bytes = sizeof(tokenize_args),
    .groups = groups,
    .n_groups = CLI_COUNT(groups),
    .run = run,
};
