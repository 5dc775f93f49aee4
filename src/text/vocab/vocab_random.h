// SPDX-License-Identifier: MIT
// text/vocab/vocab_random.h: a vocabulary for models of random weights, so that servers and chats can run them.
#pragma once
#include "format/checkpoint.h"

// Adds a byte-level vocabulary of n_vocab tokens without merges: the 256 bytes, as many invented words as are needed,
// and the token that ends a text.
frit_status frit_random_add_vocabulary(frit_checkpoint *ckpt, int64_t n_vocab);
