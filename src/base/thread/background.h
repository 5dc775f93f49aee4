// SPDX-License-Identifier: MIT
// base/thread/background.h: a thread for work that its caller does not wait for, such as writing files.
//
//     frit_background_new(&background, work, ctx);
//     ...                                      // put work where `work` finds it
//     frit_background_wake(background);        // the thread calls work(ctx), once for several wake-ups
//
//     uint32_t seen = frit_background_news(background);       // waiting until the work is done
//     while (!is_done(ctx)) {
//         frit_background_wait(background, seen);
//         seen = frit_background_news(background);
//     }
#pragma once
#include "base/status.h"

typedef struct frit_background frit_background;
frit_status frit_background_new(frit_background **out, void (*work)(void *ctx), void *ctx);
void frit_background_wake(frit_background *background);
void frit_background_free(frit_background *background);   // after all remaining work; NULL is fine
void frit_background_tell(frit_background *background);   // called by `work`: wakes all waiting threads
uint32_t frit_background_news(frit_background *background);
void frit_background_wait(frit_background *background, uint32_t seen);   // returns after a frit_background_tell since
                                                                         // `seen`; may return early
