// SPDX-License-Identifier: MIT
// Compiling a grammar on a thread of its own.
#include "base/background.h"
#include "engine/grammar.h"
#include "engine/model.h"

#include <stdlib.h>
#include <string.h>

struct frit_grammar_job {
    frit_background *background;
    frit_model *model;
    char *text;
    size_t n_bytes;
    frit_grammar_options options;
    bool is_done;            // the thread's own
    frit_grammar *grammar;   // the result
    frit_status status;
    char failure[FRIT_ERROR_BYTES];
};

// Threads of background.h call this again when they are woken and freed.
static void work(void *ctx)
{
    frit_grammar_job *job = ctx;
    if (job->is_done) return;
    job->is_done = true;
    job->status = frit_grammar_new(&job->grammar, job->model, job->text, job->n_bytes, &job->options);
    if (job->status != FRIT_OK) strncpy(job->failure, frit_error(), sizeof job->failure - 1);
}

static void free_job(frit_grammar_job *job)
{
    frit_model_free(job->model);
    free(job->text);
    free(job);
}

frit_status frit_grammar_begin(frit_grammar_job **out, const frit_model *model, const char *text, size_t n_bytes,
                               const frit_grammar_options *options)
{
    FRIT_REQUIRE(out);
    *out = NULL;
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(text);
    FRIT_REQUIRE_UNUSED(options);
    frit_grammar_job *job = calloc(1, sizeof *job);
    if (job) job->text = malloc(n_bytes + 1);
    if (!job || !job->text) {
        free(job);
        return frit_fail_memory(n_bytes, "a grammar");
    }
    memcpy(job->text, text, n_bytes);
    job->text[n_bytes] = 0;
    job->n_bytes = n_bytes;
    if (options) job->options = *options;
    job->model = (frit_model *)(uintptr_t)model;   // counting is the only change
    frit_model_retain(job->model);
    const frit_status status = frit_background_new(&job->background, work, job);
    if (status != FRIT_OK) {
        free_job(job);
        return status;
    }
    *out = job;
    return FRIT_OK;
}

frit_status frit_grammar_finish(frit_grammar_job *job, frit_grammar **out)
{
    if (out) *out = NULL;
    FRIT_REQUIRE(job);
    frit_background_free(job->background);   // when it is done
    const frit_status status = job->status;
    if (status != FRIT_OK) frit_fail_say("%s", job->failure);
    if (out)
        *out = job->grammar;
    else
        frit_grammar_free(job->grammar);
    free_job(job);
    return status;
}
