// SPDX-License-Identifier: MIT
// Makes the vocabulary's part of a grammar (trie, lists, first masks) on a background thread.
#include "base/thread/background.h"
#include "engine/chat/model_grammar.h"
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

struct frit_grammar_job {
    frit_background *background;
    frit_model *model;
    frit_automaton *automaton;   // until the thread has taken it
    bool is_done;                // used by the background thread only
    frit_grammar *grammar;       // the result
    frit_status status;
    frit_failure failure;
};

// Called again when the background thread is woken and freed.
static void make_grammar(void *ctx)
{
    frit_grammar_job *job = ctx;
    if (job->is_done) return;
    job->is_done = true;
    job->status = frit_grammar_of(&job->grammar, job->model, job->automaton, NULL);
    job->automaton = NULL;
    if (job->status != FRIT_OK) frit_failure_get(&job->failure);
}

static void free_job(frit_grammar_job *job)
{
    frit_automaton_free(job->automaton);
    frit_model_free(job->model);
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
    frit_automaton *automaton;
    FRIT_TRY(frit_grammar_compile(&automaton, model, (frit_str){text, n_bytes}, options));
    frit_grammar_job *job = calloc(1, sizeof *job);
    if (!job) {
        frit_automaton_free(automaton);
        return frit_fail_memory(sizeof *job, "a grammar");
    }
    job->automaton = automaton;
    job->model = (frit_model *)(uintptr_t)model;   // only the reference count changes
    frit_model_ref(job->model);
    const frit_status status = frit_background_new(&job->background, make_grammar, job);
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
    frit_background_free(job->background);   // waits until it is done
    const frit_status status = job->status;
    if (status != FRIT_OK) frit_failure_set(&job->failure);
    if (out)
        *out = job->grammar;
    else
        frit_grammar_free(job->grammar);
    free_job(job);
    return status;
}
