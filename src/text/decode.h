// SPDX-License-Identifier: MIT
// text/decode.h: what the tokens of a vocabulary stand for, worked out once.
#pragma once
#include "text/vocab.h"

// *pieces: [vocab->n], in the arena. In vocabularies that put spaces between pieces, each begins with its space.
frit_status frit_decode_pieces(const frit_vocab *vocab, frit_arena *arena, frit_str **pieces);
