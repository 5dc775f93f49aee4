// SPDX-License-Identifier: MIT
// Any bytes as a SentencePiece model; an accepted model must encode and decode.
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

// Pieces <unk>, <s>, </s>, "a" with a score, the symbol "ab"; Unigram with byte fallback; a charsmap of one unit.
static const char start[] =
    "\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>\x18\x03\x0a\x08\x0a\x04</s>\x18\x03"
    "\x0a\x08\x0a\x01"
    "a\x15\x00\x00\x80\xbf\x0a\x06\x0a\x02"
    "ab\x18\x04\x12\x05\x18\x01\x98\x02\x01\x1a\x0e\x12\x08\x04\x00\x00\x00\x00\x04\x00\x00\x18\x01\x20\x00";

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    (void)seed;
    if (n_bytes < 8 && sizeof start <= max_bytes) memcpy(bytes, start, n_bytes = sizeof start - 1);
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

static void use(const frit_vocab *vocab)
{
    static const char text[] = "  ab a\xcc\x81 \xef\xac\x81\xff aaab  <s>\n ";
    frit_tokenizer *tokenizer;
    if (frit_tokenizer_new(&tokenizer, vocab, NULL) != FRIT_OK) return;
    frit_ids ids = {0};
    frit_buf back = {0};
    if (frit_tokenizer_encode(tokenizer, (frit_str){text, sizeof text - 1}, FRIT_TEXT_PARSE_SPECIAL, &ids) == FRIT_OK)
        frit_tokenizer_decode(tokenizer, ids.items, ids.n, FRIT_TEXT_SPECIAL, &back);
    frit_buf_free(&back);
    frit_ids_free(&ids);
    frit_tokenizer_free(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    frit_arena arena = {0};
    frit_vocab vocab;
    frit_vocab_start(&vocab);
    char *text = malloc(n_bytes + 1);
    if (!text) return 0;
    if (n_bytes > 0) memcpy(text, bytes, n_bytes);
    text[n_bytes] = 0;
    vocab.text = text;
    if (frit_vocab_spm.read(&vocab, (frit_str){text, n_bytes}, "fuzz", &arena, NULL) == FRIT_OK &&
        frit_vocab_finish(&vocab, &arena) == FRIT_OK)
        use(&vocab);
    frit_vocab_deinit(&vocab);
    frit_arena_free(&arena);
    return 0;
}
