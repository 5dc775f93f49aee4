// SPDX-License-Identifier: MIT
// text/vocab/vocab_write.h: a vocabulary as the keys of a GGUF file.
//
// GGUF can express less than the files that models are published with. So the written keys are read back and compared
// with the original on texts that show differences between tokenizers. If no way of writing gives the same tokens, the
// nearest one is written for other engines, and the caller may add the published file under FRIT_KEY_TOKENIZER_JSON,
// which frit prefers.
#pragma once
#include "text/vocab/vocab.h"

#define FRIT_KEY_TOKENIZER_JSON "tokenizer.huggingface.json"

// Adds tokenizer.ggml.* to `meta`, in its arena; texts may be borrowed from the vocabulary. *is_exact: the keys cut
// text as the vocabulary does. FRIT_E_UNSUPPORTED for kinds that GGUF has no model for; `meta` then gets no new keys.
frit_status frit_vocab_write(const frit_vocab *vocab, frit_meta *meta, bool *is_exact);
