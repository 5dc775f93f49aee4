// SPDX-License-Identifier: MIT
// base/thread/background.h: a thread for work that its caller does not wait for, such as writing files.
//
//     frit_background_new(&background, work, ctx);
//     ...                                      // leave something to do where `work` finds it
//     frit_background_wake(background);        // the thread calls work(ctx), once for several of these
//
//     uint32_t seen = frit_background_news(background);       // waiting for it all the same
//     while (!is_done(ctx)) {
//         frit_background_wait(background, seen);
//         seen = frit_background_news(background);
//     }
#pragma once
#include "base/status.h"

typedef struct frit_background frit_background;
frit_status frit_background_new(frit_background **out, void (*work)(void *ctx), void *ctx);
void frit_background_wake(frit_background *background);
void frit_background_free(frit_background *background);   // after all that was left to do; NULL is fine
void frit_background_tell(frit_background *background);   // by `work`: there is news
uint32_t frit_background_news(frit_background *background);
void frit_background_wait(frit_background *background, uint32_t seen);   // for later news; may return early
