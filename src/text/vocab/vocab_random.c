// SPDX-License-Identifier: MIT
// Invents the vocabulary of models of random weights.
#include "text/vocab/vocab_random.h"

#include <stdio.h>
#include <string.h>

enum { N_BYTES = 256, END = 1, NORMAL = 1, CONTROL = 3 };

// The character that GPT-2's vocabulary writes for a byte: the byte's own if it is printable, otherwise one of U+0100
// and later, in the order of the bytes.
static unsigned character_of(unsigned byte)
{
    unsigned n_before = 0;
    for (unsigned b = 0; b <= byte; b++) {
        const bool is_printable = (b > 32 && b < 127) || (b > 160 && b != 173);
        if (b == byte) return is_printable ? b : N_BYTES + n_before;
        n_before += !is_printable;
    }
    return 0;
}

static void write_token(char *to, size_t size, uint64_t i, uint64_t n_vocab)
{
    if (i + END == n_vocab) {
        snprintf(to, size, "<|end|>");
    } else if (i < N_BYTES) {
        const unsigned c = character_of((unsigned)i);
        if (c < 128)
            snprintf(to, size, "%c", (char)c);
        else
            snprintf(to, size, "%c%c", (char)(0xc0 | c >> 6), (char)(0x80 | (c & 63)));
    } else {
        char word[16];
        int at = sizeof word - 1;
        word[at] = 0;
        for (uint64_t rest = i - N_BYTES + 26; rest > 0; rest /= 26) word[--at] = (char)('a' + rest % 26);
        snprintf(to, size, "\xc4\xa0%s", word + at);   // U+0120 stands for the blank
    }
}

frit_status frit_random_add_vocabulary(frit_checkpoint *ckpt, int64_t n_vocab)
{
    const uint64_t n = (uint64_t)n_vocab;
    if (n_vocab < N_BYTES + END) return frit_meta_add_text(&ckpt->meta, "tokenizer.ggml.model", "none");
    frit_str *tokens = frit_arena_new(&ckpt->arena, frit_str, n);
    int32_t *types = frit_arena_new(&ckpt->arena, int32_t, n);
    if (!tokens || !types) return frit_fail_memory(n * (sizeof *tokens + sizeof *types), "a vocabulary");
    for (uint64_t i = 0; i < n; i++) {
        char text[32];
        write_token(text, sizeof text, i, n);
        const char *kept = frit_arena_text(&ckpt->arena, text, strlen(text));
        if (!kept) return frit_fail_memory(strlen(text), "a token");
        tokens[i] = frit_str_of(kept);
        types[i] = i + END == n ? CONTROL : NORMAL;
    }
    const struct {
        const char *key;
        frit_value value;
    } lists[] = {
        {"tokenizer.ggml.tokens", {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, n, tokens}}},
        {"tokenizer.ggml.token_type", {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_I32, n, types}}},
        {"tokenizer.ggml.merges", {.type = FRIT_VALUE_ARRAY, .array = {FRIT_VALUE_TEXT, 0, tokens}}},
        {"tokenizer.ggml.eos_token_id", {.type = FRIT_VALUE_U32, .u = n - END}},
    };
    FRIT_TRY(frit_meta_add_text(&ckpt->meta, "tokenizer.ggml.model", "gpt2"));
    FRIT_TRY(frit_meta_add_text(&ckpt->meta, "tokenizer.ggml.pre", "gpt-2"));
    for (size_t i = 0; i < FRIT_COUNT(lists); i++)
        FRIT_TRY(frit_meta_add(&ckpt->meta, frit_str_of(lists[i].key), lists[i].value));
    return FRIT_OK;
}
