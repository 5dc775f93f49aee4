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
    int32_t n_predict;   // tokens of a beam at most; 0: until the context is full
    uint64_t reserved[8];
} frit_beam_options;

typedef struct frit_beam {
    const frit_token *tokens;   // including the token that ends the answer
    size_t n_tokens;
    double logprob;   // the sum of its tokens' log-probabilities
    bool ended;       // by a token that ends answers; false: by its length
    uint64_t reserved[8];
} frit_beam;

// Searches the likeliest continuations of a session: each step extends all beams by one token and keeps the n_beams
// likeliest extensions. There is no random choice, so equal sessions give equal beams. Pending tokens of the session
// run; otherwise the session does not change. Beams are forks of the session, so the engine needs n_sessions of n_beams
// + 1. FRIT_E_LIMIT if the cache has no room, FRIT_E_INVALID if the session has no logits; otherwise fails as
// frit_session_next.
typedef struct frit_beams frit_beams;
FRIT_API frit_status frit_beam_search(frit_beams **out, frit_session *session, const frit_beam_options *options);
// Gets beam i, likeliest first; false past the end. The tokens live as long as the beams.
FRIT_API bool frit_beams_get(const frit_beams *beams, size_t i, frit_beam *beam);
FRIT_API void frit_beams_free(frit_beams *beams);

#ifdef __cplusplus
}
#endif
#endif
