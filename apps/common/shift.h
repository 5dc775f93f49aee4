// SPDX-License-Identifier: MIT
// common/shift.h: the context shift and self-extend as options ask for them. Shared by the commands and the server.
#pragma once
#include "frit.h"

typedef struct app_shift_options {
    bool on;
    int32_t n_keep;           // -1: the whole prompt, but no more than half of the context
    int32_t n_group, width;   // of self-extend; n_group 1: none
} app_shift_options;

// Of a session in which nothing has run: frit_session_set_extend; does nothing without the option.
frit_status app_extend(frit_session *session, const app_shift_options *options);
// frit_session_set_shift; does nothing without the option.
frit_status app_shift(frit_session *session, const app_shift_options *options, size_t n_prompt, int32_t n_ctx);
