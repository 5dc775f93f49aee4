// SPDX-License-Identifier: MIT
// A second session that goes on where another one is.
#include "engine/engine.h"
#include "engine/spec/speculate.h"

#include <stdlib.h>
#include <string.h>

// Pages are shared, and copied by the session that writes into one first.
static frit_status share_cache(frit_session *to, const frit_session *from)
{
    const bool is_encoded = from->n_source > 0 && !from->source_waits;
    if (from->n_source > 0) {
        FRIT_TRY(frit_session_set_source(to, from->source, from->n_source));
        to->source_waits = from->source_waits;
    }
    return frit_kv_share(&from->engine->kv, &to->map, &from->map, (int32_t)from->n_done, is_encoded);
}

static frit_status copy_scales(frit_session *to, const frit_session *from)
{
    const size_t n = (size_t)from->engine->adapters.n;
    if (!from->scales) return FRIT_OK;
    to->adapted = from->adapted;
    to->scales = calloc(n + 1, sizeof *to->scales);
    if (!to->scales) return frit_fail_memory(n * sizeof *to->scales, "a session's adapters");
    memcpy(to->scales, from->scales, n * sizeof *to->scales);
    return FRIT_OK;
}

static frit_status copy_session(frit_session *to, const frit_session *from)
{
    FRIT_TRY(copy_scales(to, from));
    if (from->note) FRIT_TRY(frit_session_set_note(to, from->note, from->n_note_bytes));
    FRIT_TRY(frit_speculation_fork(to, from));
    FRIT_TRY(share_cache(to, from));
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    memcpy(to->logits, from->logits, (size_t)from->engine->hp.n_vocab * sizeof *to->logits);
    if (from->root) {
        frit_kv_root_ref(from->root);
        frit_prefix_leave(to);
        to->root = from->root;
    }
    to->is_foreign = from->is_foreign;
    to->shift = from->shift;
    to->share = (frit_share){.weight = from->share.weight, .priority = from->share.priority};
    to->n_cached = from->n_cached;
    to->n_tokens = from->n_tokens;
    to->n_done = from->n_done;
    to->n_handed = from->n_handed;
    to->logits_at = from->logits_at;
    to->wants_logits = from->wants_logits;
    to->snapshot_at = from->snapshot_at;
    return FRIT_OK;
}

frit_status frit_session_fork(frit_session **out, const frit_session *session)
{
    frit_session *copy;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(session);
    FRIT_TRY(frit_session_settle(session));
    FRIT_TRY(frit_session_status(session));
    FRIT_TRY(frit_session_check_known(session));
    FRIT_TRY(frit_session_new(&copy, session->engine));
    frit_status status = copy_session(copy, session);
    if (status != FRIT_OK) {
        frit_session_free(copy);
        return status;
    }
    *out = copy;
    return FRIT_OK;
}
