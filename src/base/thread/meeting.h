// SPDX-License-Identifier: MIT
// base/thread/meeting.h: a barrier of threads that show each other an address, such as the members of a group of
// devices.
//
//     bool all_came = frit_meeting_join(meeting, member, mine, all);   // on each member's thread
//     ...                                                              // reads all[0] to all[n - 1]
//     all_came = frit_meeting_join(meeting, member, other, all);       // all have read what was at `mine`
//
// A member that cannot come breaks the meeting, so that no other waits for it. A member that does not come for
// FRIT_MEETING_MS has broken it too.
#pragma once
#include "base/status.h"

#include <stdint.h>

enum {
    FRIT_MEETING_MAX = 8,     // members
    FRIT_MEETING_MS = 8000,   // as long as kernels of a GPU wait for another one
};

typedef struct frit_meeting frit_meeting;

typedef struct frit_rank {   // a member's place
    frit_meeting *meeting;
    int32_t rank, n;
} frit_rank;

// With `spins`, members wait for a few microseconds before they sleep: there is a core for each.
frit_status frit_meeting_new(frit_meeting **out, int n, bool spins);
void frit_meeting_free(frit_meeting *meeting);   // NULL is fine
// Returns when all n members have called it the same number of times. False if the meeting is broken: all[] is then not
// set.
bool frit_meeting_join(frit_meeting *meeting, int member, const void *mine, const void **all);
void frit_meeting_break(frit_meeting *meeting, int member);
int frit_meeting_breaker(const frit_meeting *meeting);    // the first member that broke it; -1: none
bool frit_meeting_is_late(const frit_meeting *meeting);   // that member did not come
void frit_meeting_reset(frit_meeting *meeting);           // while no member is in a call
