// SPDX-License-Identifier: MIT
// text/tokenizer/decode.h: the text of each token of a vocabulary, computed once.
#pragma once
#include "text/vocab/vocab.h"

// *pieces is [vocab->n], in the arena. In vocabularies that put spaces between pieces, each piece begins with its
// space.
frit_status frit_decode_pieces(const frit_vocab *vocab, frit_arena *arena, frit_str **pieces);
