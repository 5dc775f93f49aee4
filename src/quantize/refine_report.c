// SPDX-License-Identifier: MIT
// Reports of refining: progress, times and results.
#include "quantize/refine_job.h"
#include "base/time.h"

uint64_t frit_refine_count_time(uint64_t *sum, uint64_t from)
{
    const uint64_t now = frit_time_ns();
    *sum += now - from;
    return now;
}

frit_status frit_refine_report_progress(const frit_refining *r)
{
    const frit_refine_options *o = r->options;
    const double share = r->n_in_layer > 0 ? (double)r->n_left / r->n_in_layer : 1;
    const double done = ((double)r->layer + 1 - share) / (r->source->hp.n_layer + 1);
    if (!o->progress || o->progress(o->progress_ctx, done)) return FRIT_OK;
    return frit_fail_file(FRIT_E_CANCELLED, "%s: refining was cancelled", r->path);
}

void frit_refine_report_times(const frit_refining *r)
{
    const frit_refine_times *t = &r->times;
    frit_log_say(
        &r->log, FRIT_LOG_DEBUG,
        "%.40s: reading the model took %.1f s, the file %.1f s, covariance %.1f s, its factors %.1f s, rounding "
        "%.1f s",
        r->prefix, 1e-9 * (double)t->model, 1e-9 * (double)t->file, 1e-9 * (double)t->sums, 1e-9 * (double)t->factors,
        1e-9 * (double)t->rounding);
}

void frit_refine_report_result(const frit_refining *r, double before, double after)
{
    frit_log_say(&r->log, FRIT_LOG_INFO, "on held-out text the KL divergence goes from %.5f to %.5f", before, after);
    frit_log_say(&r->log, FRIT_LOG_INFO,
                 "%lld of %lld matrices are refined; %lld stay because their errors on other text did not fall, %lld "
                 "because fewer than %d tokens for each column reached them",
                 (long long)r->n_refined, (long long)r->n_matrices, (long long)r->n_worse, (long long)r->n_few,
                 (int)FRIT_REFINE_TOKENS_PER_COLUMN);
}
