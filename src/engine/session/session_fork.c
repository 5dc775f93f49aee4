// SPDX-License-Identifier: MIT
// Forks: a second session with the same tokens, pages and settings.
#include "engine/engine.h"
#include "engine/spec/speculate.h"

#include <stdlib.h>
#include <string.h>

// Shares all pages. The first session that writes into a shared page gets a copy of it.
static frit_status share_cache(frit_session *to, const frit_session *from)
{
    const bool is_encoded = from->source.n > 0 && !from->source.waits;
    if (from->source.n > 0) {
        FRIT_TRY(frit_session_set_source(to, from->source.tokens, from->source.n));
        to->source.waits = from->source.waits;
    }
    return frit_kv_share(&from->engine->kv, &to->map, &from->map, (int32_t)from->n_done, is_encoded);
}

static frit_status copy_scales(frit_session *to, const frit_session *from)
{
    const size_t n = (size_t)from->engine->adapters.n;
    if (!from->adapters.scales) return FRIT_OK;
    to->adapters.plan_class = from->adapters.plan_class;
    to->adapters.scales = calloc(n + 1, sizeof *to->adapters.scales);
    if (!to->adapters.scales) return frit_fail_memory(n * sizeof *to->adapters.scales, "a session's adapters");
    memcpy(to->adapters.scales, from->adapters.scales, n * sizeof *to->adapters.scales);
    return FRIT_OK;
}

static frit_status copy_session(frit_session *to, const frit_session *from)
{
    FRIT_TRY(copy_scales(to, from));
    if (from->note.text) FRIT_TRY(frit_session_set_note(to, from->note.text, from->note.n_bytes));
    FRIT_TRY(frit_speculation_fork(to, from));
    FRIT_TRY(frit_session_soft_copy(to, from));
    FRIT_TRY(share_cache(to, from));
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    memcpy(to->results.logits, from->results.logits, (size_t)from->engine->hp.n_vocab * sizeof *to->results.logits);
    if (from->prefix.root) {
        frit_kv_root_ref(from->prefix.root);
        frit_prefix_leave(to);
        to->prefix.root = from->prefix.root;
    }
    to->prefix.is_foreign = from->prefix.is_foreign;
    to->shift = from->shift;
    to->prompt = (frit_session_prompt){.weight = from->prompt.weight, .priority = from->prompt.priority};
    to->prefix.n_cached = from->prefix.n_cached;
    to->n_tokens = from->n_tokens;
    to->n_done = from->n_done;
    to->results.n_delivered = from->results.n_delivered;
    to->results.logits_at = from->results.logits_at;
    to->results.needs_logits = from->results.needs_logits;
    to->snapshot_at = from->snapshot_at;
    return FRIT_OK;
}

frit_status frit_session_fork(frit_session **out, const frit_session *session)
{
    frit_session *copy;
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(session);
    FRIT_TRY(frit_session_settle_all(session));
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
