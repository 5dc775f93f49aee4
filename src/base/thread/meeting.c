// SPDX-License-Identifier: MIT
// A meeting counts arrivals. The member that completes a round increments `round`, for which the others wait. What
// members show is stored twice, by the parity of the round: a member that is a round ahead does not overwrite what
// others still read, and none can be two rounds ahead.
#include "base/thread/meeting.h"

#include "base/os.h"
#include "base/time.h"

#include <stdlib.h>
#include <string.h>

enum { SPIN_NS = 20 * 1000, LOOKS = 64, PAD_BYTES = 128 };

typedef struct seat {
    const void *_Atomic shown[2];
    _Atomic uint32_t n_joined;   // rounds that the member has joined
    char gap[PAD_BYTES];
} seat;

struct frit_meeting {
    int n;
    bool spins;
    _Atomic int breaker;   // -1: none
    _Atomic bool is_late;
    seat seats[FRIT_MEETING_MAX];
    _Atomic uint32_t n_arrived;
    char gap[PAD_BYTES];
    frit_os_word round;   // number of complete rounds
};

frit_status frit_meeting_new(frit_meeting **out, int n, bool spins)
{
    *out = NULL;
    if (n < 1 || n > FRIT_MEETING_MAX)
        return frit_fail(FRIT_E_INVALID, "a meeting of %d members, expected 1 to %d", n, (int)FRIT_MEETING_MAX);
    frit_meeting *meeting = calloc(1, sizeof *meeting);
    if (!meeting) return frit_fail_memory(sizeof *meeting, "a meeting of threads");
    meeting->n = n;
    meeting->spins = spins;
    atomic_store(&meeting->breaker, -1);
    const frit_status status = frit_os_word_init(&meeting->round);
    if (status == FRIT_OK)
        *out = meeting;
    else
        free(meeting);
    return status;
}

void frit_meeting_free(frit_meeting *meeting)
{
    if (!meeting) return;
    frit_os_word_deinit(&meeting->round);
    free(meeting);
}

int frit_meeting_breaker(const frit_meeting *meeting)
{
    return atomic_load((_Atomic int *)(uintptr_t)&meeting->breaker);
}

static bool is_over(frit_meeting *meeting, uint32_t round)
{
    return atomic_load_explicit(&meeting->round.value, memory_order_acquire) != round ||
           frit_meeting_breaker(meeting) >= 0;
}

bool frit_meeting_is_late(const frit_meeting *meeting)
{
    return atomic_load((_Atomic bool *)(uintptr_t)&meeting->is_late);
}

// Breaks the meeting in place of the first member that has not joined the round.
static void miss_member(frit_meeting *meeting, uint32_t round)
{
    int late = 0;
    while (late + 1 < meeting->n && atomic_load(&meeting->seats[late].n_joined) > round) late++;
    if (frit_meeting_breaker(meeting) < 0) atomic_store(&meeting->is_late, true);
    frit_meeting_break(meeting, late);
}

static void wait_for_round(frit_meeting *meeting, uint32_t round)
{
    const uint64_t begin = frit_time_ns(), last = begin + FRIT_MEETING_MS * (uint64_t)1000000;
    while (meeting->spins && frit_time_ns() < begin + SPIN_NS)
        for (int i = 0; i < LOOKS; i++)
            if (is_over(meeting, round)) return;
    while (!is_over(meeting, round) && frit_time_ns() < last)
        frit_os_word_sleep_for(&meeting->round, round, FRIT_MEETING_MS);
    if (!is_over(meeting, round)) miss_member(meeting, round);
}

bool frit_meeting_join(frit_meeting *meeting, int member, const void *mine, const void **all)
{
    seat *s = &meeting->seats[member];
    const uint32_t round = atomic_fetch_add(&s->n_joined, 1);
    atomic_store_explicit(&s->shown[round % 2], mine, memory_order_relaxed);
    if (atomic_fetch_add(&meeting->n_arrived, 1) + 1 == (uint32_t)meeting->n * (round + 1)) {
        atomic_fetch_add(&meeting->round.value, 1);
        frit_os_word_wake(&meeting->round);
    } else {
        wait_for_round(meeting, round);
    }
    if (frit_meeting_breaker(meeting) >= 0) return false;
    for (int i = 0; i < meeting->n; i++)
        all[i] = atomic_load_explicit(&meeting->seats[i].shown[round % 2], memory_order_relaxed);
    return true;
}

// Sleepers look again when the word changes, so the round ends without all of its members.
void frit_meeting_break(frit_meeting *meeting, int member)
{
    int none = -1;
    atomic_compare_exchange_strong(&meeting->breaker, &none, member);
    atomic_fetch_add(&meeting->round.value, 1);
    frit_os_word_wake(&meeting->round);
}

void frit_meeting_reset(frit_meeting *meeting)
{
    for (int i = 0; i < meeting->n; i++) atomic_store(&meeting->seats[i].n_joined, 0);
    atomic_store(&meeting->n_arrived, 0);
    atomic_store(&meeting->round.value, 0);
    atomic_store(&meeting->is_late, false);
    atomic_store(&meeting->breaker, -1);
}
