// SPDX-License-Identifier: MIT
// frit.h: the public interface of libfrit, an engine that runs large language models. Programs include this header; its
// declarations are in parts by topic, in frit/. frit_tools.h has declarations for frit's own command and similar tools.
//
// Three objects matter. A *model* is an opened file: weights, vocabulary, chat template; it never changes
// and any thread may use it. An *engine* is a model placed on this machine, with room for keys and values;
// it belongs to one thread at a time. A *session* is one timeline of tokens on an engine.
//
//     frit_model *model;  frit_engine *engine;  frit_session *session;  frit_sampler *sampler;
//     frit_model_open(&model, "model.gguf", NULL);
//     frit_engine_new(&engine, model, NULL);
//     frit_session_new(&session, engine);
//     frit_sampler_new(&sampler, model, NULL);
//     frit_session_push(session, prompt, n_prompt, NULL);       // queue the prompt
//     while (frit_session_next(session, sampler, &token) == FRIT_OK && !frit_token_is_end(model, token))
//         ...                                                   // show frit_token_piece(model, token, &n)
//
// Rules for all functions:
// - A function that can fail returns a frit_status: FRIT_OK or a negative code. frit_error() then gives one
//   sentence about the last failure of the calling thread: the object, what was found, what was expected. A program
//   decides by the status, frit_error_code() and frit_error_field(), as sentences may change.
// - Results go through the first parameter, which is NULL (or untouched, for values) after a failure.
// - An options struct of all zeros, or a NULL pointer to one, means the defaults.
// - Structs of options, information and items end in `reserved` words, which callers leave zero: a later version puts
//   new fields in their place, so that sizes and offsets stay and programs need not be compiled again (docs/abi.md).
//   FRIT_E_INVALID for options whose reserved words are not zero. Enums that the library returns may grow.
// - `const T *` is borrowed for the call. Returned pointers say how long they live.
// - A pointer must not be NULL unless its text says so. Otherwise functions return FRIT_E_INVALID with a sentence that
//   names the argument, or NULL, 0 or false if they return no status. An array of no items may be NULL, and so may the
//   ctx of a callback. Every *_free accepts NULL.
// - The library never prints, exits or reads the environment.
// - Shapes are written outermost first: [n_tokens, n_vocab] is n_tokens rows of n_vocab values.
//
// Threads:
// - Models and adapters never change: any number of threads may use one at once.
// - An engine and its sessions belong to one thread at a time: no two calls with the same engine, or with sessions of
//   it, may overlap. Different engines are independent, also of one model.
// - A sampler, a text stream and a turn belong to one thread at a time too. It need not be the engine's thread, and
//   different objects are independent. frit_session_next uses the engine and the sampler.
// - frit_error is about the calling thread. Row functions, sampler stages and progress functions are called by the
//   thread that called the library; the log function by any thread that uses the model or its engines.
#ifndef FRIT_H
#define FRIT_H

#include "frit/status.h"
#include "frit/model.h"
#include "frit/text.h"
#include "frit/turn.h"
#include "frit/engine.h"
#include "frit/session.h"
#include "frit/media.h"
#include "frit/adapter.h"
#include "frit/embed.h"
#include "frit/beam.h"
#include "frit/sampler.h"
#include "frit/grammar.h"

#define FRIT_VERSION_MAJOR 0
#define FRIT_VERSION_MINOR 2
#define FRIT_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

// The version, "0.2.0". Lives for ever.
FRIT_API const char *frit_version(void);

#ifdef __cplusplus
}
#endif
#endif
