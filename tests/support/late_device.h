// SPDX-License-Identifier: MIT
// support/late_device.h: engines on the CPU, which has run a step when it is submitted, and on a device that runs a
// step when a caller waits or has polled twice.
//
//     for (size_t d = 0; d < LATE_DEVICES; d++) {
//         frit_engine *engine = late_engine(d, (frit_engine_options){0}, NULL);
//         ...
//     }
//     return cmocka_run_group_tests(tests, NULL, late_close);
#pragma once
#include "frit.h"
#include "support/tiny_model.h"

// Devices: the reference, the CPU, and the late device with and without picks of its own.
enum { LATE_DEVICES = 4, LATE_SESSIONS = 4, LATE_TOKENS = 24 };

// An engine on device d, for LATE_SESSIONS sessions. `tiny` may be NULL.
frit_engine *late_engine(size_t d, frit_engine_options options, const tiny_options *tiny);
void late_fail_in(int n);   // 1: the next step that the late device runs fails; 0: none
int late_close(void **state);

frit_sampler *late_sampler(int s);   // of session s: each has other stages
// Samples n tokens for session s with the sampler chain, from the logits.
void late_sample(frit_engine *engine, int s, frit_token *tokens, size_t n);
