// SPDX-License-Identifier: MIT
// Any bytes as a tokenizer.json, tekken.json or list of ranks; an accepted file must encode and decode.
#include "text/tokenizer/tokenizer.h"
#include "text/vocab/vocab_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n_bytes, size_t max_bytes);

static const char *const starts[] = {
    "{\"added_tokens\":[{\"id\":3,\"content\":\"<s>\",\"special\":true,\"lstrip\":true,\"normalized\":true}],"
    "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"Replace\",\"pattern\":"
    "{\"Regex\":\"a{1,2}+[b-z&&[^c]]\"},\"content\":\"b\"}]},"
    "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w+\"}"
    ","
    "\"behavior\":\"MergedWithNext\",\"invert\":false},{\"type\":\"ByteLevel\",\"use_regex\":true}]},"
    "\"decoder\":{\"type\":\"ByteLevel\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"b\",1],\"cls\":["
    "\"a\",0]},"
    "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}",
    "{\"normalizer\":{\"type\":\"BertNormalizer\"},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
    "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\"},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\","
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":9,\"vocab\":{\"?\":0,\"a\":1,\"##b\":2}}}",
    "{\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"first\"},"
    "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},"
    "\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,"
    "\"stop\":0}]},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"a\",-1],[\"ab\",-1.5]]}}",
    "{\"config\":{\"pattern\":\"a+|.\",\"default_vocab_size\":5,\"default_num_special_tokens\":3},"
    "\"vocab\":[{\"rank\":0,\"token_bytes\":\"YQ==\"},{\"rank\":1,\"token_bytes\":\"YWE=\"}]}",
    "IQ== 0\nIg== 1\n",
};

// An empty corpus is enough.
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n_bytes, size_t max_bytes, unsigned seed)
{
    const char *start = starts[seed % (sizeof starts / sizeof *starts)];
    if (n_bytes < 8 && strlen(start) <= max_bytes) memcpy(bytes, start, n_bytes = strlen(start));
    return LLVMFuzzerMutate(bytes, n_bytes, max_bytes);
}

static void use(const frit_vocab *vocab)
{
    static const char text[] = "ab <s> a\xcc\x81\xc3\x84 \xe6\x97\xa5\xff aaab  12.b <0x41>\n";
    frit_tokenizer *tokenizer;
    if (frit_tokenizer_new(&tokenizer, vocab, NULL) != FRIT_OK) return;
    frit_ids ids = {0};
    frit_buf back = {0};
    unsigned flags = FRIT_TEXT_SPECIAL | FRIT_TEXT_PARSE_SPECIAL;
    if (frit_tokenizer_encode(tokenizer, (frit_str){text, sizeof text - 1}, flags, &ids) == FRIT_OK)
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
    const frit_vocab_source *source =
        frit_vocab_tiktoken.recognises((frit_str){text, n_bytes}) ? &frit_vocab_tiktoken : &frit_vocab_json;
    if (source->read(&vocab, (frit_str){text, n_bytes}, "fuzz", &arena, NULL) == FRIT_OK &&
        frit_vocab_finish(&vocab, &arena) == FRIT_OK)
        use(&vocab);
    frit_vocab_deinit(&vocab);
    frit_arena_free(&arena);
    return 0;
}
