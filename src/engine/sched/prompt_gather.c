// SPDX-License-Identifier: MIT
// Prompts that wait for each other, on devices with a queue.
//
// A GPU that converts the weights for each step needs nearly as long for a few prompt rows as for many: with an 8B
// model on an H200 that converted them from 129 rows on, a step of 192 rows took 13.3 ms and one of 512 rows 19.3 ms.
// So while sessions generate, prompts that would not fill a step wait for further prompts, if these are expected within
// 40 ms. The rest of a prompt that has begun does not wait.
#include "engine/engine.h"
#include "engine/sched/step_cost.h"

#include <math.h>

enum { MEMORY = 8 };                  // prompts that averages remember
static const double most_ns = 40e6;   // that a prompt waits for others

void frit_prompt_arrivals_add(frit_prompt_arrivals *arrivals, double n_rows, uint64_t now_ns)
{
    frit_average_update(&arrivals->n_rows, n_rows, MEMORY);
    if (arrivals->last_ns > 0)
        frit_average_update(&arrivals->interval_ns, (double)(now_ns - arrivals->last_ns), MEMORY);
    arrivals->last_ns = now_ns;
}

bool frit_prompt_arrivals_fill(const frit_prompt_arrivals *arrivals, double n_missing, double waited_ns)
{
    if (arrivals->interval_ns <= 0 || n_missing <= 0) return false;
    return ceil(n_missing / arrivals->n_rows) * arrivals->interval_ns <= most_ns - waited_ns;
}

bool frit_prompts_gather(const frit_engine *engine, int32_t room, uint64_t now_ns)
{
    double n_rows = 0, waited_ns = 0;
    for (const frit_session *s = engine->sessions; s; s = s->next) {
        if (!s->prompt.waits) continue;
        if (s->prompt.has_begun) return false;
        n_rows += (double)s->step.n_ready;
        const double waited = (double)(now_ns - s->prompt.since_ns);
        if (waited > waited_ns) waited_ns = waited;
    }
    return n_rows > 0 && frit_prompt_arrivals_fill(&engine->schedule.arrivals, room - n_rows, waited_ns);
}
