// SPDX-License-Identifier: MIT
// The context shift of a session.
#include "common/shift.h"

frit_status app_shift(frit_session *session, const app_shift_options *options, size_t n_prompt, int32_t n_ctx)
{
    const size_t most = (size_t)n_ctx / 2;
    const int32_t of_prompt = (int32_t)(n_prompt < most ? n_prompt : most);
    const frit_shift_options shift = {.n_keep = options->n_keep < 0 ? of_prompt : options->n_keep};
    return options->on ? frit_session_set_shift(session, &shift) : FRIT_OK;
}
