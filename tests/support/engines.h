// SPDX-License-Identifier: MIT
// support/engines.h: models, engines and sessions. A call that fails ends the test.
//
//     frit_engine *engine = tiny_engine(&(tiny_options){.n_layer = 3}, (frit_engine_options){.n_sessions = 2});
//     frit_session *session = make_session(engine);
//     ...
//     frit_engine_free(engine);
#pragma once
#include "frit.h"
#include "support/tiny_model.h"

frit_model *load_model(const char *path);
frit_model *load_tiny(const tiny_options *tiny);   // from a file of its own
frit_engine *make_engine(frit_model *model, frit_engine_options options);
// The engine keeps the model alone.
frit_engine *load_engine(const char *path, frit_engine_options options);
frit_engine *tiny_engine(const tiny_options *tiny, frit_engine_options options);
frit_session *make_session(frit_engine *engine);
// A session of n waiting tokens, which follow from the first one.
frit_session *begin_session(frit_engine *engine, frit_token first, size_t n);

void make_tokens(uint64_t seed, frit_token *tokens, size_t n, int32_t n_vocab);   // random ones
void run_all(frit_engine *engine);                                                // until no token waits
