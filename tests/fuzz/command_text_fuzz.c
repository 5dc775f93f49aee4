// SPDX-License-Identifier: MIT
// Any bytes as input of commands: text to tokenize, ids, messages, lines typed into a chat, texts to embed, files of
// log-probabilities. Commands run completely, but the model is already open.
//
//     input: which loop, its flags, then the bytes that it reads
#include "base/utf8.h"
#include "engine/model/model.h"
#include "frit/chat/chat.h"
#include "frit/eval/kl.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static frit_model *model;
static char path[64];   // of a file with the bytes, rewritten for each input

static void require(bool good)
{
    if (!good) abort();
}

// Replaces the function in apps/frit: every command gets the same model.
int cli_open_model(frit_model **out, const cli_common *common, const frit_model_options *options,
                   const char *positional)
{
    (void)common, (void)options, (void)positional;
    frit_model_ref(model);
    *out = model;
    return CLI_DONE;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    const frit_model_options options = {.vocab_only = true};
    require(frit_model_open(&model, FRIT_SOURCE_DIR "/models/fable.gguf", &options) == FRIT_OK);
    snprintf(path, sizeof path, "/tmp/frit-fuzz-%d", (int)getpid());
    stderr = fopen("/dev/null", "w");   // the fuzzer has a copy of stderr
    require(stderr != NULL);
    return 0;
}

typedef struct printed {
    char *text;
    size_t n;
} printed;

// Runs a command with these bytes as stdin; its output is malloc'd.
static int run(const char *const *arguments, const char *bytes, size_t n_bytes, printed *out)
{
    FILE *in = n_bytes > 0 ? fmemopen((void *)bytes, n_bytes, "rb") : fopen("/dev/null", "rb");
    FILE *const before_in = stdin, *const before_out = stdout;
    int argc = 0;
    char *argv[16] = {0};
    for (; arguments[argc]; argc++) argv[argc] = (char *)arguments[argc];
    *out = (printed){0};
    FILE *made = open_memstream(&out->text, &out->n);
    require(in && made);
    stdin = in;
    stdout = made;
    const int code = cli_main(argc, argv);
    stdin = before_in;
    stdout = before_out;
    fclose(in);
    require(fclose(made) == 0 && out->text);
    return code;
}

static void write_path(const char *bytes, size_t n_bytes)
{
    FILE *file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, n_bytes, file) == n_bytes && fclose(file) == 0);
}

// ---------------------------------------------------------------------------------------- loops

// Checks that every token has a line, with ascending positions.
static void check_lines(const printed *out)
{
    unsigned long long last = 0;
    for (const char *at = out->text; *at; at = strchr(at, '\n') + 1) {
        char *end;
        const unsigned long long place = strtoull(at, &end, 10);
        require(end > at && place >= last && strchr(at, '\n'));
        last = place;
    }
}

static void tokenize(unsigned flags, const char *bytes, size_t n_bytes)
{
    const char *arguments[16] = {"frit", "tokenize", "-q"};
    int n = 3;
    if (flags & 1) arguments[n++] = "--special";
    if (flags & 2) arguments[n++] = "--parse-special";
    if (flags & 4) arguments[n++] = "--ids";
    printed out;
    require(run(arguments, bytes, n_bytes, &out) == CLI_DONE);
    if (flags & 4)
        require(out.n > 0 && out.text[out.n - 1] == '\n');
    else
        check_lines(&out);
    free(out.text);
}

// Checks that the ids give the text.
static void round_trip(unsigned flags, const char *bytes, size_t n_bytes)
{
    static const char *const tokenizes[] = {"frit", "tokenize", "-q", "--ids", NULL};
    static const char *const detokenizes[] = {"frit", "detokenize", NULL};
    printed ids, text;
    (void)flags;
    require(run(tokenizes, bytes, n_bytes, &ids) == CLI_DONE);
    require(run(detokenizes, ids.text, ids.n, &text) == CLI_DONE);
    if (frit_utf8_valid_prefix(bytes, n_bytes) == n_bytes)
        require(text.n == n_bytes && memcmp(text.text, bytes, n_bytes) == 0);
    free(ids.text);
    free(text.text);
}

// The bytes up to the first zero are a text, the others are ids to compare with.
static void compare(unsigned flags, const char *bytes, size_t n_bytes)
{
    const char *arguments[] = {"frit", "tokenize", "-q", "--compare", path, flags & 1 ? "--special" : NULL, NULL};
    const char *zero = memchr(bytes, 0, n_bytes);
    const size_t n_text = zero ? (size_t)(zero - bytes) : n_bytes / 2;
    write_path(bytes + n_text, n_bytes - n_text);
    printed out;
    const int code = run(arguments, bytes, n_text, &out);
    require(code == CLI_DONE || code == CLI_FAILED || code == CLI_USAGE);
    free(out.text);
}

static void detokenize(unsigned flags, const char *bytes, size_t n_bytes)
{
    const char *arguments[16] = {"frit", "detokenize"};
    int n = 2;
    if (flags & 1) arguments[n++] = "--special";
    if (flags & 2) arguments[n++] = "--bytes";
    printed out;
    const int code = run(arguments, bytes, n_bytes, &out);
    require(code == CLI_DONE || code == CLI_USAGE);
    if (!(flags & 2)) require(frit_utf8_valid_prefix(out.text, out.n) == out.n);
    free(out.text);
}

static void render(unsigned flags, const char *bytes, size_t n_bytes)
{
    const char *arguments[] = {"frit", "template", "--messages", "-", flags & 1 ? "--no-generation-prompt" : NULL,
                               NULL};
    printed out;
    const int code = run(arguments, bytes, n_bytes, &out);
    require(code == CLI_DONE || (code == CLI_FAILED && out.n == 0));
    free(out.text);
}

// Input of a chat from a pipe: lines, and texts of several lines.
static void chat_lines(unsigned flags, const char *bytes, size_t n_bytes)
{
    FILE *const before = stdin;
    chat_input *input = chat_input_new(false, false);
    (void)flags;
    stdin = n_bytes > 0 ? fmemopen((void *)bytes, n_bytes, "rb") : fopen("/dev/null", "rb");
    require(input && stdin);
    chat_key key;
    do {
        char *text = NULL;
        bool was_empty;
        key = chat_input_read(input, NULL, &text, &was_empty);
        require(key != CHAT_KEY_INTERRUPT && (key == CHAT_KEY_TEXT) == (text != NULL));
        if (text) require(strlen(text) <= 3 * n_bytes);   // zeros become U+FFFD
        free(text);
    } while (key == CHAT_KEY_TEXT);
    fclose(stdin);
    stdin = before;
    chat_input_free(input);
}

static void cut(unsigned flags, const char *bytes, size_t n_bytes)
{
    cli_text text = {0};
    size_t n_items;
    cli_text_add(&text, bytes, n_bytes);
    frit_embed_item *items = cli_cut_texts(&text, flags & 1, &n_items);
    require(items != NULL && n_items <= n_bytes);
    const char *last = text.data;
    for (size_t i = 0; i < n_items; i++) {
        require(items[i].n_bytes > 0 && items[i].text >= last &&
                items[i].text + items[i].n_bytes <= text.data + text.n);
        require((flags & 1) || !memchr(items[i].text, '\n', items[i].n_bytes));
        last = items[i].text + items[i].n_bytes;
    }
    free(items);
    free(text.data);
}

static void read_predictions(unsigned flags, const char *bytes, size_t n_bytes)
{
    static const char magic[] = "_logits_";
    char *whole = malloc(n_bytes + 8);
    kl_file kl;
    require(whole != NULL);
    memcpy(whole, magic, 8);
    memcpy(whole + 8, bytes, n_bytes);
    write_path(flags & 1 ? bytes : whole, flags & 1 ? n_bytes : n_bytes + 8);
    if (kl_open(&kl, path) == CLI_DONE) {
        float *row = malloc((size_t)kl.n_vocab * sizeof *row);
        for (int i = 0; row && i < 100 && kl_read_row(&kl, row); i++) {
        }
        free(row);
        require(kl_close(&kl, CLI_DONE) == CLI_DONE);
    }
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static void (*const loops[])(unsigned flags, const char *bytes, size_t n_bytes) = {
        tokenize, round_trip, compare, detokenize, render, chat_lines, cut, read_predictions};
    if (n_bytes < 2 || n_bytes > 1 << 14) return 0;
    cli_exit_on_signal(false);
    loops[bytes[0] % (sizeof loops / sizeof loops[0])](bytes[1], (const char *)bytes + 2, n_bytes - 2);
    return 0;
}
