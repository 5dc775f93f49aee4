// SPDX-License-Identifier: MIT
// Lists of ranks, one token a line: its bytes in base64, a space, its rank. The pair with the token of lowest rank
// merges first.
//
//     IQ== 0
//     Ig== 1
//
// The files contain neither the regex nor the special tokens. Both are derived from the number of ranks; a folder may
// name further special tokens (json_config.c).
#include "text/vocab/vocab_file.h"

#include "text/tokenizer/pretok.h"

#include <stdlib.h>

typedef struct known {
    int32_t n_ranks;
    const char *pre;
    const char *specials;   // separated by spaces, from id `first` on; "-": an unused id
    int32_t first;
    const char *bos, *eos;
} known;

// clang-format off
static const known files[] = {
    {50256,  "gpt-2",     "<|endoftext|>", 50256, "", "<|endoftext|>"},
    {50280,  "gpt-2",     "", 50280, "", "<|endoftext|>"},
    {100256, "llama-bpe", "<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|>", 100257, "", "<|endoftext|>"},
    {128000, "llama-bpe", "<|begin_of_text|> <|end_of_text|> - - - - <|start_header_id|> <|end_header_id|> - <|eot_id|>",
     128000, "<|begin_of_text|>", "<|end_of_text|>"},
    {151643, "qwen2",     "<|endoftext|> <|im_start|> <|im_end|>", 151643, "", "<|endoftext|>"},
    {163584, "kimi-k2",   "[BOS] [EOS] <|im_end|> <|im_user|> <|im_assistant|>", 163584, "[BOS]", "[EOS]"},
    {199998, "gpt-4o",    "<|startoftext|> <|endoftext|>", 199998, "", "<|endoftext|>"},
};
// clang-format on

// ------------------------------------------------------------------------------------- base64

// Values of letters, 1 to 64; 0: not a letter of base64.
// clang-format off
static const unsigned char digits[256] = {
    ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, ['H'] = 8,
    ['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64,
};
// clang-format on

static int digit_of(char c)
{
    return digits[(unsigned char)c] - 1;
}

// Reads four letters at p as three bytes; false if there are no four letters.
static bool read_three(const char *p, char out[3])
{
    const unsigned char *letters = (const unsigned char *)p;
    uint32_t a = digits[letters[0]], b = digits[letters[1]], c = digits[letters[2]], d = digits[letters[3]];
    if (a == 0 || b == 0 || c == 0 || d == 0) return false;
    uint32_t value = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
    out[0] = (char)(value >> 16), out[1] = (char)(value >> 8), out[2] = (char)value;
    return true;
}

frit_status frit_base64_read(frit_str text, frit_arena *arena, frit_str *bytes)
{
    char *out = frit_arena_alloc(arena, text.len / 4 * 3 + 4, 1);
    if (!out) return frit_fail_memory(text.len, "decoded base64");
    size_t n = 0, i = 0;
    while (text.len - i >= 4 && read_three(text.ptr + i, out + n)) i += 4, n += 3;
    uint32_t value = 0;
    for (int n_bits = 0; i < text.len && text.ptr[i] != '='; i++) {
        int digit = digit_of(text.ptr[i]);
        if (digit < 0) return frit_fail(FRIT_E_FORMAT, "not valid base64: byte %zu", i);
        value = value << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        out[n++] = (char)(value >> n_bits);
    }
    *bytes = (frit_str){out, n};
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- the file

// Reads one line at *at: base64 and rank. False for other lines.
static bool read_line(frit_str text, size_t *at, frit_str *code, double *rank)
{
    size_t i = *at, begin = i;
    while (i < text.len && (digit_of(text.ptr[i]) >= 0 || text.ptr[i] == '=')) i++;
    *code = (frit_str){text.ptr + begin, i - begin};
    if (i == begin || i == text.len || text.ptr[i] != ' ') return false;
    size_t begin_rank = ++i;
    for (*rank = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9' && i - begin_rank < 10; i++)
        *rank = *rank * 10 + (text.ptr[i] - '0');
    if (i == begin_rank) return false;
    if (i < text.len && text.ptr[i] == '\r') i++;
    if (i < text.len && text.ptr[i++] != '\n') return false;
    *at = i;
    return true;
}

static bool recognises(frit_str start)
{
    frit_str code;
    double rank;
    size_t at = 0;
    return read_line(start, &at, &code, &rank) && at < start.len && code.len <= 64;
}

static frit_status read_ranks(frit_vocab_list *list, frit_str text, const char *path, frit_arena *arena)
{
    frit_str code, piece;
    double rank;
    int line = 1;
    for (size_t at = 0; at < text.len; line++) {
        if (text.ptr[at] == '\n' && at++ < text.len) continue;
        if (!read_line(text, &at, &code, &rank))
            return frit_fail_file(FRIT_E_FORMAT, "%s: line %d: base64 and a rank are expected", path, line);
        FRIT_TRY(frit_base64_read(code, arena, &piece));
        if (piece.len == 0) return frit_fail_file(FRIT_E_FORMAT, "%s: line %d: a token without bytes", path, line);
        FRIT_TRY(frit_vocab_list_add(list, piece, rank, -rank, FRIT_TOKEN_NORMAL));
    }
    return FRIT_OK;
}

static frit_status add_specials(frit_vocab_list *list, const known *file)
{
    int32_t id = file->first;
    for (const char *at = file->specials; *at; id++) {
        size_t n = strcspn(at, " ");
        bool hole = n == 1 && *at == '-';
        if (!hole) FRIT_TRY(frit_vocab_list_add(list, (frit_str){at, n}, id, 0, FRIT_TOKEN_CONTROL));
        at += n + (at[n] == ' ');
    }
    return FRIT_OK;
}

static frit_status build(frit_vocab *vocab, frit_vocab_list *list, const char *path, frit_arena *arena,
                         const frit_log *log)
{
    const known *file = NULL;
    for (size_t i = 0; i < FRIT_COUNT(files); i++)
        if ((size_t)files[i].n_ranks == list->n) file = &files[i];
    if (!file)
        frit_log_say(
            log, FRIT_LOG_WARNING,
            "%s: a list of %zu ranks is not known: the regex of cl100k is used, which may cut text otherwise than the "
            "model was trained with",
            path, list->n);
    if (file) FRIT_TRY(add_specials(list, file));
    FRIT_TRY(frit_vocab_list_finish(list, path, vocab, arena));
    FRIT_TRY(frit_vocab_index(vocab, log));
    vocab->model = "tiktoken";
    vocab->pre = file ? file->pre : "llama-bpe";
    vocab->by_score = vocab->whole_words = vocab->pipeline.bytes = true;
    vocab->pipeline.repair = FRIT_REPAIR_PARTS;
    if (file) vocab->bos = frit_vocab_find(vocab, frit_str_of(file->bos));
    if (file) vocab->eos = frit_vocab_find(vocab, frit_str_of(file->eos));
    vocab->add_bos = vocab->bos >= 0;
    vocab->pipeline.cuts = frit_arena_new(arena, frit_cut, FRIT_PRETOK_MAX_REGEXES);
    if (!vocab->pipeline.cuts) return frit_fail_memory(sizeof(frit_cut), "the pre-tokenizer");
    return frit_pretok_add(frit_pretok_find(vocab->pre), &vocab->pipeline);
}

static frit_status read(frit_vocab *vocab, frit_str text, const char *path, frit_arena *arena, const frit_log *log)
{
    frit_vocab_list list = {0};
    frit_status status = read_ranks(&list, text, path, arena);
    if (status == FRIT_OK) status = build(vocab, &list, path, arena, log);
    frit_vocab_list_free(&list);
    return status;
}

const frit_vocab_source frit_vocab_tiktoken = {"tiktoken ranks", recognises, read};
