// SPDX-License-Identifier: MIT
// Drafts by a smaller model: gives its sessions the texts, and makes drafts while they are expected to save time.
#include "engine/spec/drafter.h"
#include "base/time.h"
#include "engine/engine.h"
#include "engine/sched/step_cost.h"

#include <math.h>
#include <string.h>

// ------------------------------------------------------------------------------- making

static bool has_piece(const frit_vocab *vocab, int32_t i, const frit_vocab_entry *entry)
{
    const frit_str piece = vocab->entries[i].piece;
    return piece.len == entry->piece.len && memcmp(piece.ptr, entry->piece.ptr, piece.len) == 0;
}

static frit_status check_vocab(const frit_model *model, const frit_model *draft)
{
    const frit_vocab *a = &model->vocab, *b = &draft->vocab;
    if (model->info.n_vocab != draft->info.n_vocab)
        return frit_fail_file(FRIT_E_INVALID, "%s: a draft model for %s needs the same vocabulary: %d tokens, found %d",
                              draft->info.path, model->info.path, model->info.n_vocab, draft->info.n_vocab);
    for (int32_t i = 0; a->entries && b->entries && i < a->n && i < b->n; i++)
        if (!has_piece(b, i, &a->entries[i]))
            return frit_fail_file(
                FRIT_E_INVALID,
                "%s: a draft model for %s needs the same vocabulary: token %d is '%.*s', expected '%.*s'",
                draft->info.path, model->info.path, i, (int)b->entries[i].piece.len, b->entries[i].piece.ptr,
                (int)a->entries[i].piece.len, a->entries[i].piece.ptr);
    return FRIT_OK;
}

// Runs steps with the numbers of rows that drafting needs, so that their plans are not made while sessions wait.
static frit_status run_first_steps(frit_session *session)
{
    enum { MOST = 32 };
    static const size_t rows[] = {MOST, MOST, 8,
                                  1,    1,    1};   // the first step of a kind touches new memory, and is not measured
    frit_token tokens[MOST];
    const size_t n_ctx = (size_t)session->engine->n_ctx;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        // Tokens that differ from those before, which the prefix cache has.
        for (int k = 0; k < MOST; k++) tokens[k] = (frit_token)(i % (size_t)session->engine->hp.n_vocab);
        FRIT_TRY(frit_session_push(session, tokens, rows[i] < n_ctx ? rows[i] : n_ctx - 1, NULL));
        while (frit_session_pending(session) > 0) {
            int32_t n_rows;
            FRIT_TRY(frit_engine_step(session->engine, &n_rows));
            if (n_rows == 0) return frit_fail(FRIT_E_INTERNAL, "a draft model's first tokens find no room in a step");
        }
        FRIT_TRY(frit_session_status(session));
        FRIT_TRY(frit_session_truncate(session, 0));
        if (i == 0) session->engine->cost.prompt_row_ns = 0;
    }
    return FRIT_OK;
}

// Makes the plans of steps that verify drafts, so that the first drafts do not wait for them.
static frit_status make_plans(frit_session *session, bool keeps_hidden)
{
    static const int32_t rows[] = {2, FRIT_COST_ROWS};
    frit_engine *engine = session->engine;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const frit_plan_key key = {.n_rows = rows[i] < engine->n_batch ? rows[i] : engine->n_batch,
                                   .kind = keeps_hidden ? FRIT_PLAN_NEXT : FRIT_PLAN_LOGITS};
        frit_shape_class *c;
        FRIT_TRY(frit_plans_get(engine, key, &c));
    }
    return FRIT_OK;
}

static frit_status run_rows(frit_session *session, size_t n, double *ns)
{
    static const frit_token tokens[2];
    FRIT_TRY(frit_session_push(session, tokens, n, NULL));
    const uint64_t start = frit_time_ns();
    while (frit_session_pending(session) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(session->engine, &n_rows));
        if (n_rows == 0) return frit_fail(FRIT_E_LIMIT, "an engine has no room for two tokens more");
    }
    *ns = (double)(frit_time_ns() - start);
    FRIT_TRY(frit_session_status(session));
    return frit_session_truncate(session, 0);
}

// Measures steps of one row and of two before the first token: with times that are only estimated, drafts would not be
// tried.
static void measure_verifying(frit_engine *engine)
{
    enum { TIMES = 4 };
    frit_session *session;
    for (const frit_session *s = engine->sessions; s; s = s->next)
        if (frit_session_pending(s) > 0) return;
    if (engine->cost.decode_rows_ns[2] > 0 || engine->n_batch < 2 || frit_session_new(&session, engine) != FRIT_OK)
        return;
    for (size_t n = 1; n <= 2; n++) {
        double least = INFINITY, ns = 0;
        for (int i = 0; i < TIMES && run_rows(session, n, &ns) == FRIT_OK; i++) least = ns < least ? ns : least;
        if (least < INFINITY) engine->cost.decode_rows_ns[n] = least;
    }
    frit_session_free(session);
}

// Lets the draft session, of the model's layer for multi-token prediction, read the session's hidden states.
static frit_status read_hidden(frit_session *draft, frit_session *session)
{
    FRIT_TRY(frit_hidden_acquire(draft));
    FRIT_TRY(frit_hidden_acquire(session));
    draft->mtp.of = session;
    return FRIT_OK;
}

frit_status frit_drafter_init(frit_drafter *drafter, frit_session *session, frit_engine *engine, float min_p)
{
    *drafter = (frit_drafter){.min_p = min_p};
    const char *path = engine->model->info.path;
    if (engine == session->engine)
        return frit_fail_file(FRIT_E_INVALID, "%s: a draft model needs an engine of its own", path);
    if (engine->model->arch->is_encoder || engine->model->arch->is_encoder_decoder || engine->hp.is_bidirectional)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: a draft model continues texts token by token", path);
    if (engine->model->of && engine->model->of != session->engine->model)
        return frit_fail_file(FRIT_E_INVALID, "%s: its layer for multi-token prediction guesses for that model alone",
                              path);
    FRIT_TRY(check_vocab(session->engine->model, engine->model));
    FRIT_TRY(frit_session_new(&drafter->session, engine));
    if (engine->flights.n_submitted == 0) FRIT_TRY(run_first_steps(drafter->session));
    FRIT_TRY(make_plans(session, engine->model->of != NULL));
    measure_verifying(session->engine);
    return engine->model->of ? read_hidden(drafter->session, session) : FRIT_OK;
}

void frit_drafter_deinit(frit_drafter *drafter)
{
    if (drafter->session && drafter->session->mtp.of) frit_hidden_release(drafter->session->mtp.of);
    frit_session_free(drafter->session);
    *drafter = (frit_drafter){0};
}

// ------------------------------------------------------------------------------- how many drafts

// Classes of drafts by the draft model's probability: the higher it is, the more often drafts are right.
static int8_t probability_class_of(float logprob)
{
    static const double least[FRIT_DRAFT_CLASSES] = {0, 0.3, 0.5, 0.7, 0.9};
    const double p = exp((double)logprob);
    int8_t c = FRIT_DRAFT_CLASSES - 1;
    while (c > 0 && p < least[c]) c--;
    return c;
}

// The budget of all sessions that share steps with the drafter's session.
static frit_draft_budget *budget_of(const frit_drafter *d)
{
    return &d->job.session->engine->drafts.budget;
}

static double rate_of(const frit_drafter *d, int c)
{
    return frit_draft_rate(&d->rates, &budget_of(d)->rates, c);
}

// The expected rate of the next draft, whose class is not known yet.
static double rate_of_next(const frit_drafter *d)
{
    double n_right = 0, n = 0;
    for (int c = 0; c < FRIT_DRAFT_CLASSES; c++) {
        n_right += (d->rates.of[c].n_tried + 1) * rate_of(d, c);
        n += d->rates.of[c].n_tried + 1;
    }
    return n_right / n;
}

void frit_drafter_count_right(frit_drafter *d, int32_t n_right)
{
    for (int32_t i = 0; i < d->n && i <= n_right; i++) {
        frit_draft_rates_count(&d->rates, d->classes[i], i < n_right);
        frit_draft_rates_count(&budget_of(d)->rates, d->classes[i], i < n_right);
    }
    if (d->n > 0) budget_of(d)->round.n_right += n_right;
    if (d->n > 0) budget_of(d)->has_verified = true;
    d->n = 0;
}

// Sessions that draft together, and the step that verifies their drafts.
typedef struct group {
    frit_drafter *first;
    const frit_engine *engine, *draft;
    int32_t n_rows;                // of the step without these drafts
    double n_tokens, without_ns;   // tokens and time of the step without these drafts
    double spent_ns;               // expected time of the rounds of drafts so far
    double follow_ns;              // expected time of texts that draft models run
    frit_draft_budget *budget;
} group;

static int32_t count_active(const group *g)
{
    int32_t n = 0;
    for (const frit_drafter *d = g->first; d; d = d->next) n += d->is_active;
    return n;
}

// True if one more draft of each active session is expected to give `times` as many tokens for the time.
static bool gains_time(const group *g, double times)
{
    const int32_t n_active = count_active(g);
    const double round = frit_step_cost_decode(g->draft, n_active);
    double n_tokens = g->n_tokens, n_more = 0;
    int32_t n_drafts = 0;
    if (g->without_ns <= 0) return false;
    if (round <= 0) return true;
    for (const frit_drafter *d = g->first; d; d = d->next) {
        n_drafts += d->n;
        n_tokens += d->n_tokens;
        n_more += d->is_active ? d->reached * rate_of_next(d) : 0;
    }
    const double now = frit_step_cost_decode(g->engine, g->n_rows + n_drafts) + g->spent_ns;
    const double next = frit_step_cost_decode(g->engine, g->n_rows + n_drafts + n_active) + g->spent_ns + round;
    return (n_tokens + n_more) * now > times * n_tokens * next;
}

typedef struct draft_text {   // the text that the draft session should have
    const frit_token *tokens;
    size_t n;
} draft_text;

static draft_text text_of(const frit_drafter *d)
{
    const frit_session *session = d->job.session;
    const size_t n_skipped = d->session->mtp.of ? d->session->mtp.base + 1 : d->n_skipped;
    if (n_skipped >= session->n_tokens) return (draft_text){session->tokens, 0};
    return (draft_text){session->tokens + n_skipped, session->n_tokens - n_skipped};
}

static size_t n_common(const frit_drafter *d)
{
    const frit_mtp_text *next = &d->session->mtp;
    const draft_text text = text_of(d);
    const frit_token *own = frit_session_tokens(d->session), *tokens = text.tokens;
    const size_t n = text.n, n_all = frit_session_length(d->session);
    const size_t n_own = next->of && next->n_true < n_all ? next->n_true : n_all;
    size_t n_same = 0;
    if (n == 0) return 0;
    while (n_same < n && n_same < n_own && own[n_same] == tokens[n_same]) n_same++;
    return n_same < n ? n_same : n - 1;   // the last token has not run
}

// True if the draft session has to run much of the text first. Drafts must save the time for that too.
static bool is_behind(const frit_drafter *d)
{
    enum { MUCH = 16 };   // tokens
    return text_of(d).n - n_common(d) > MUCH;
}

// Expected time of running what the draft session lacks of the text, but for one token.
static double follow_ns(const group *g, const frit_drafter *d)
{
    return (double)(text_of(d).n - n_common(d) - 1) * g->draft->cost.prompt_row_ns;
}

// Expected loss of n_more further drafts if all drafts are wrong.
static double loss_of_more(const group *g, int32_t n_more)
{
    int32_t n = g->n_rows + n_more;
    for (const frit_drafter *d = g->first; d; d = d->next) n += d->n;
    return g->spent_ns + frit_step_cost_decode(g->draft, n_more) + frit_step_cost_decode(g->engine, n) - g->without_ns;
}

static bool budget_allows(const group *g, int32_t n_more)
{
    return frit_draft_budget_allows(g->budget, loss_of_more(g, n_more), g->follow_ns);
}

// True if the drafter makes drafts for the next step. If drafts are expected to save time, the budget must allow that
// they do not. Otherwise some are made now and then, to see if the text has become easier to draft.
static bool may_begin(const group *g, const frit_drafter *d, bool pays)
{
    // For drafts that are not expected to save time, once a step has verified drafts.
    const double reserve = g->budget->has_verified ? 2 : 1;
    if (d->job.always) return true;
    if (d->follows) return pays;
    if (g->without_ns <= 0) return false;
    return frit_draft_budget_allows(g->budget, (pays ? 1 : reserve) * loss_of_more(g, 1), follow_ns(g, d));
}

// If the budget does not allow a text of this length, the draft session first gets its end only: enough to see if
// drafts are right. Time that they save pays for the whole text.
static void skip_beginning(const group *g, frit_drafter *d)
{
    enum { LEAST = 8 };
    const size_t n = d->job.session->n_tokens;
    const double row = g->draft->cost.prompt_row_ns, left = g->budget->all_ns - loss_of_more(g, 1);
    if (d->session->mtp.of || d->follows) return;
    const double most = row > 0 && !d->job.always ? left / row : INFINITY;
    if (d->n_skipped > 0 && (d->n_skipped + 1 >= n || most >= (double)n || n_common(d) == 0)) d->n_skipped = 0;
    if (d->n_skipped == 0 && is_behind(d) && most >= LEAST && most < (double)(text_of(d).n - n_common(d)))
        d->n_skipped = n - (size_t)most + 1;
}

// ------------------------------------------------------------------------------- drafting

// Prompt rows that the draft model may run before a step of the model: as many as take the time of that step.
static size_t prompt_room(const group *g)
{
    enum { FIRST = 64, LEAST = 32 };
    const double row = g->draft->cost.prompt_row_ns, n = row > 0 ? g->without_ns / row : FIRST;
    return n < LEAST ? LEAST : n < g->draft->n_batch ? (size_t)n : (size_t)g->draft->n_batch;
}

// For layers of multi-token prediction: true if the hidden states that the layer reads next are stored. If its text
// does not continue in stored states, it begins anew where they begin.
static bool has_hidden(const frit_drafter *d)
{
    frit_mtp_text *next = &d->session->mtp;
    const frit_session *session = d->job.session;
    const frit_hidden *hidden = session->hidden;
    if (!next->of) return true;
    if (session->n_tokens < 2 || !frit_hidden_row(hidden, session->n_tokens - 2)) return false;
    if (text_of(d).n > 0 && next->n_true > 0 && next->base + n_common(d) >= hidden->first) return true;
    if (frit_session_truncate(d->session, 0) != FRIT_OK) return false;
    next->base = hidden->first;
    next->n_true = 0;
    return true;
}

// Pushes tokens that the draft session does not have, at most `room`. It makes drafts when it has all tokens.
static frit_status follow_text(frit_drafter *d, size_t *room)
{
    const draft_text text = text_of(d);
    const size_t n_same = n_common(d), n_missing = text.n - n_same;
    FRIT_TRY(frit_session_truncate(d->session, n_same));
    // Draws depend on the position in the whole text, of which the draft session may have a part.
    const size_t n_skipped = (size_t)(text.tokens - d->job.session->tokens);
    d->session->shift.n_dropped = d->job.session->shift.n_dropped + n_skipped;
    const size_t n = n_missing - 1 <= *room ? n_missing : *room;
    d->follows = n < n_missing;
    if (d->follows) d->is_active = false;
    *room -= n < *room ? n : *room;
    d->session->mtp.n_true = n_same + n;
    return frit_session_push(d->session, text.tokens + n_same, n, NULL);
}

static void stop_drafter(frit_drafter *d, frit_status status)
{
    d->is_active = false;
    if (d->status == FRIT_OK) d->status = status;
}

// Runs steps of the draft engine until no draft session has tokens to run.
static void run_steps(const group *g)
{
    bool waits = true;
    while (waits) {
        waits = false;
        for (frit_drafter *d = g->first; d; d = d->next) {
            if (d->status != FRIT_OK) continue;
            const frit_status status = frit_session_status(d->session);
            if (status != FRIT_OK) stop_drafter(d, status);
            waits = waits || (status == FRIT_OK && frit_session_pending(d->session) > 0);
        }
        int32_t n_rows;
        if (!waits) return;
        frit_status status = frit_engine_step(g->first->session->engine, &n_rows);
        if (status == FRIT_OK && n_rows == 0)
            status = frit_fail(FRIT_E_INTERNAL, "the drafts' tokens find no room in a step");
        for (frit_drafter *d = g->first; d && status != FRIT_OK; d = d->next) stop_drafter(d, status);
    }
}

// Adds the picked token to the drafts, unless the drafts end before it.
static frit_status add_draft(frit_drafter *d)
{
    frit_picked picked;
    FRIT_TRY(frit_session_picked(d->session, &picked));
    d->is_active = (double)picked.logprob >= log((double)d->min_p + 1e-9) &&
                   !frit_token_is_end(d->job.session->engine->model, picked.token) &&
                   frit_sampler_try(d->job.sampler, picked.token, &d->marks[d->n]);
    if (!d->is_active) return FRIT_OK;
    d->classes[d->n] = probability_class_of(picked.logprob);
    d->reached *= rate_of(d, d->classes[d->n]);
    d->n_tokens += d->reached;
    d->job.tokens[d->n++] = picked.token;
    d->is_active = d->n < d->job.most;
    return FRIT_OK;
}

static frit_status request_pick(frit_drafter *d)
{
    if (d->n > 0) FRIT_TRY(frit_session_push(d->session, &d->job.tokens[d->n - 1], 1, NULL));
    return frit_session_pick(d->session, d->job.sampler, &(frit_pick_options){.logprobs = true});
}

// Makes one more draft of each active session.
static void draft_one_each(group *g)
{
    g->spent_ns += frit_step_cost_decode(g->draft, count_active(g));
    for (frit_drafter *d = g->first; d; d = d->next) {
        const frit_status status = d->is_active ? request_pick(d) : FRIT_OK;
        if (status != FRIT_OK) stop_drafter(d, status);
    }
    run_steps(g);
    for (frit_drafter *d = g->first; d; d = d->next) {
        const frit_status status = d->is_active ? add_draft(d) : FRIT_OK;
        if (status != FRIT_OK) stop_drafter(d, status);
    }
}

static void begin_round(group *g)
{
    for (frit_drafter *d = g->first; d; d = d->next) {
        const size_t n = d->job.session->n_tokens + (size_t)d->job.most + 1;
        d->position = d->job.sampler->position;
        d->n_tokens = 0;
        d->reached = 1;
        d->n = 0;
        d->status = FRIT_OK;
        d->is_active = d->job.most > 0 && n <= (size_t)g->draft->n_ctx && has_hidden(d);
    }
    enum { SELDOM = 64 };            // one of so many steps runs without drafts, to measure what drafts save
    const double least_gain = 1.1;   // times of steps are known only roughly
    const bool all = gains_time(g, least_gain);
    const bool measures = ++g->budget->n_rounds % SELDOM == 0;
    for (frit_drafter *d = g->first; d; d = d->next) {
        if (d->is_active) skip_beginning(g, d);
        d->is_active = d->is_active && (d->job.always || !measures) && may_begin(g, d, all);
    }
    size_t room = prompt_room(g);
    for (frit_drafter *d = g->first; d; d = d->next) {
        const size_t before = room;
        const frit_status status = d->is_active ? follow_text(d, &room) : FRIT_OK;
        if (before - room > 1) g->follow_ns += (double)(before - room - 1) * g->draft->cost.prompt_row_ns;
        if (status != FRIT_OK) stop_drafter(d, status);
    }
}

// Restores the samplers, and stores the cost of the drafts for the budget.
static void end_round(const group *g, double ns)
{
    int32_t n_drafts = 0;
    for (frit_drafter *d = g->first; d; d = d->next) {
        for (int32_t i = d->n; i-- > 0;) frit_sampler_go_back(d->job.sampler, &d->marks[i]);
        d->job.sampler->position = d->position;
        n_drafts += d->n;
        if (d->status == FRIT_OK) continue;
        frit_session_truncate(d->session, 0);
        n_drafts -= d->n;
        d->n = 0;
    }
    const double follow = g->follow_ns < ns ? g->follow_ns : ns;
    g->budget->round = (frit_draft_round){.without_ns = g->without_ns,
                                          .n_seqs = g->n_rows,
                                          .n_drafts = n_drafts,
                                          .draft_ns = ns - follow,
                                          .expected_ns = n_drafts > 0 || g->spent_ns > 0 ? loss_of_more(g, 0) : 0,
                                          .follow_ns = follow};
    g->budget->awaits_step = true;
}

void frit_drafters_run(frit_drafter *first)
{
    frit_engine *engine = first->job.session->engine;
    group g = {.first = first, .engine = engine, .draft = first->session->engine, .budget = &engine->drafts.budget};
    frit_draft_budget_count(g.budget, &g.budget->round);
    frit_step_cost_next(engine, &g.n_rows, &g.n_tokens);
    g.without_ns = frit_step_cost_decode(engine, g.n_rows);
    const uint64_t start = frit_time_ns();
    begin_round(&g);
    bool is_active = count_active(&g) > 0;
    if (!is_active) run_steps(&g);   // prompts
    while (is_active) {
        draft_one_each(&g);
        const int32_t n_active = count_active(&g);
        const bool all = n_active > 0 && gains_time(&g, 1) && budget_allows(&g, n_active);
        for (frit_drafter *d = g.first; d; d = d->next) d->is_active = d->is_active && (all || d->job.always);
        is_active = count_active(&g) > 0;
    }
    end_round(&g, (double)(frit_time_ns() - start));
}
