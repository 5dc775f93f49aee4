// SPDX-License-Identifier: MIT
// common/shift.h: the context shift, from options. Shared by the commands and the server.
#pragma once
#include "frit.h"

typedef struct app_shift_options {
    bool on;
    int32_t n_keep;   // -1: the whole prompt, but at most half of the context
} app_shift_options;

// frit_session_set_shift; does nothing without the option.
frit_status app_shift(frit_session *session, const app_shift_options *options, size_t n_prompt, int32_t n_ctx);
