// SPDX-License-Identifier: MIT
// engine/spec/draft_budget.h: limits by measured times what draft models may cost beyond what they save: a small part
// of the time of all steps, and what earlier drafts saved. All sessions of an engine share one budget, so that none of
// them tries again what did not pay for others.
#pragma once
#include "frit.h"

enum { FRIT_DRAFT_CLASSES = 5 };   // of drafts, by the draft model's own probability
// How often drafts are right. Older drafts count less.
typedef struct frit_acceptance {
    double n_right, n_tried;
} frit_acceptance;

typedef struct frit_draft_rates {
    frit_acceptance of[FRIT_DRAFT_CLASSES];
} frit_draft_rates;

typedef struct frit_draft_round {   // drafts for one step, and the step that verifies them
    double without_ns;              // expected time of the step without drafts
    int32_t n_seqs;                 // tokens that the step gives without drafts
    int32_t n_drafts, n_right;
    double draft_ns;      // making the drafts
    double follow_ns;     // running texts in draft models
    double step_ns;       // the step with the drafts
    double expected_ns;   // expected time beyond without_ns, but for texts; 0: not expected
} frit_draft_round;

typedef struct frit_draft_budget {
    bool is_open;              // the first step was measured
    double round_ns, all_ns;   // what may be lost: by rounds alone, and by rounds and texts together
    frit_draft_rates rates;    // of all sessions
    frit_draft_round round;    // the last one
    bool awaits_step;          // the step of `round` has not run
    bool has_verified;         // some step has verified drafts
    int32_t n_rounds;
} frit_draft_budget;

void frit_draft_budget_count(frit_draft_budget *budget, const frit_draft_round *round);
// True if a round may lose `loss_ns` after texts that take `follow_ns`.
bool frit_draft_budget_allows(const frit_draft_budget *budget, double loss_ns, double follow_ns);
// The part of drafts that are right; `expected` counts as `weight` drafts beside those that were counted.
double frit_acceptance_rate(const frit_acceptance *acceptance, double expected, double weight);
void frit_acceptance_count(frit_acceptance *acceptance, bool is_right);
// How often drafts of class c are right, from the rates of the session and of all sessions. Both may be empty.
double frit_draft_rate(const frit_draft_rates *own, const frit_draft_rates *all, int c);
void frit_draft_rates_count(frit_draft_rates *rates, int c, bool right);
