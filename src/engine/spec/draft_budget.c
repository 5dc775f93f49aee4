// SPDX-License-Identifier: MIT
// Limits what draft models may cost. The drafter predicts from measured times of steps whether drafts save time; the
// budget counts what rounds of drafts took in fact. If they took more than they saved, rounds wait until steps without
// drafts have taken so long that the loss is a small part of their time.
#include "engine/spec/draft_budget.h"

enum { MEMORY = 50 };   // drafts of a class that an average remembers

static const double gain_per_step = 0.005;   // of a step's time
// First and largest budgets, in times of a step without drafts. The loss of all drafts is at most first_of_all and
// gain_per_step: 1.2 steps of 60 (docs/log/speculation.md). Rounds alone have a smaller budget, so that they end soon
// if drafts become useless. Time that drafts saved may pay for one long text in the draft model.
static const double first = 0.5, first_of_all = 0.9, most = 20, most_of_all = 200;
static const double longest =
    3;   // times the expected time; longer rounds count less: other processes had the processor

static double smaller_of(double a, double b)
{
    return a < b ? a : b;
}

void frit_draft_budget_count(frit_draft_budget *budget, const frit_draft_round *round)
{
    const double step = round->without_ns;
    if (step <= 0) return;
    if (!budget->is_open) budget->round_ns = first * step, budget->all_ns = first_of_all * step;
    budget->is_open = true;
    const double saved = round->n_seqs > 0 ? step * round->n_right / round->n_seqs : 0;
    const double longer = round->n_drafts > 0 && round->step_ns > 0 ? round->step_ns - step : 0;
    const double expected = round->expected_ns > 0 ? round->expected_ns : step;
    const double spent = smaller_of(round->draft_ns + longer, longest * expected);
    const double gained = gain_per_step * step + saved - spent;
    budget->round_ns = smaller_of(budget->round_ns + gained, most * step);
    budget->all_ns = smaller_of(budget->all_ns + gained - round->follow_ns, most_of_all * step);
}

bool frit_draft_budget_allows(const frit_draft_budget *budget, double loss_ns, double follow_ns)
{
    return budget->round_ns > loss_ns && budget->all_ns > loss_ns + follow_ns;
}

double frit_acceptance_rate(const frit_acceptance *acceptance, double expected, double weight)
{
    return (acceptance->n_right + weight * expected) / (acceptance->n_tried + weight);
}

void frit_acceptance_count(frit_acceptance *acceptance, bool is_right)
{
    acceptance->n_tried += 1 - acceptance->n_tried / MEMORY;
    acceptance->n_right += (is_right ? 1 : 0) - acceptance->n_right / MEMORY;
}

double frit_draft_rate(const frit_draft_rates *own, const frit_draft_rates *all, int c)
{
    static const double expected[FRIT_DRAFT_CLASSES] = {0.3, 0.45, 0.6, 0.75, 0.9};   // before anything is known
    enum { WEIGHT = 2, WEIGHT_OF_ALL = 6 };
    return frit_acceptance_rate(&own->of[c], frit_acceptance_rate(&all->of[c], expected[c], WEIGHT), WEIGHT_OF_ALL);
}

void frit_draft_rates_count(frit_draft_rates *rates, int c, bool right)
{
    frit_acceptance_count(&rates->of[c], right);
}
