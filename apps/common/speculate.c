// SPDX-License-Identifier: MIT
// Speculation in a session.
#include "common/speculate.h"

#include <string.h>

frit_status app_speculate(frit_session *session, const frit_speculate_options *options)
{
    const bool is_wish = options->draft || (options->kind && strcmp(options->kind, "auto") != 0);
    const frit_status status = frit_session_speculate(session, options);
    return status == FRIT_E_UNSUPPORTED && !is_wish ? FRIT_OK : status;
}
