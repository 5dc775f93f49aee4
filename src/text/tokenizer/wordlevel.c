// SPDX-License-Identifier: MIT
// WordLevel: a word is a token or unknown.
#include "text/tokenizer/scratch.h"

static frit_status encode(const frit_tokenizer *tokenizer, frit_str word, frit_scratch *scratch, frit_ids *out)
{
    (void)scratch;
    frit_token id = frit_vocab_find_text(tokenizer->vocab, word);
    if (id < 0) id = tokenizer->vocab->unk;
    if (id >= 0) frit_ids_push(out, id);
    return FRIT_OK;
}

const frit_tokenizer_kind frit_tokenizer_wordlevel = {"wordlevel", "words", NULL, NULL, encode};
