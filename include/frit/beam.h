// SPDX-License-Identifier: MIT
// frit/beam.h: beam search.
#ifndef FRIT_BEAM_H
#define FRIT_BEAM_H

#include "session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct frit_beam_options {
    int32_t n_beams;     // 0: 4
    int32_t n_predict;   // tokens of a beam at most; 0: as many as the context holds
    uint64_t reserved[8];
} frit_beam_options;

typedef struct frit_beam {
    const frit_token *tokens;   // the one that ends the answer too
    size_t n_tokens;
    double logprob;   // the sum of its tokens' log-probabilities
    bool ended;       // by a token that ends answers; false: by its length
    uint64_t reserved[8];
} frit_beam;

// Searches the likeliest continuations of a session: at each step the n_beams likeliest of all extensions by one token
// live on. Draws nothing: the same session gives the same beams. The session runs what is pending and stays as it is;
// beams are forks of it, so the engine needs n_sessions of n_beams + 1. FRIT_E_LIMIT where the cache has no room,
// FRIT_E_INVALID where the session has no logits; fails as frit_session_next otherwise.
typedef struct frit_beams frit_beams;
FRIT_API frit_status frit_beam_search(frit_beams **out, frit_session *session, const frit_beam_options *options);
// Beam i, likeliest first; false past the end. Its tokens live as long as the beams.
FRIT_API bool frit_beams_get(const frit_beams *beams, size_t i, frit_beam *beam);
FRIT_API void frit_beams_free(frit_beams *beams);

#ifdef __cplusplus
}
#endif
#endif
