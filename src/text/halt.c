// SPDX-License-Identifier: MIT
// Checks of the token limit and of cancellation.
#include "text/halt.h"

enum { CHECKS_PER_QUESTION = 256 };

frit_status frit_halt_check(frit_halt *halt, size_t n_tokens)
{
    if (halt->max_tokens > 0 && n_tokens > halt->max_tokens)
        return frit_fail(FRIT_E_LIMIT, "the text has more than %zu tokens", halt->max_tokens);
    if (!halt->cancelled || ++halt->n_checks % CHECKS_PER_QUESTION != 0 || !halt->cancelled(halt->ctx)) return FRIT_OK;
    return frit_fail(FRIT_E_CANCELLED, "the tokens of the text are no longer wanted");
}
