// SPDX-License-Identifier: MIT
// Drafts by a smaller model: keeping its sessions in step, and going on as long as drafts pay.
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

// Steps of the numbers of rows that drafts will need: what the engine makes for them is not made while others wait.
static frit_status run_first_steps(frit_session *session)
{
    enum { MOST = 32 };
    static const size_t rows[] = {MOST, MOST, 8, 1, 1, 1};   // the first of a kind touches new memory, and says nothing
    frit_token tokens[MOST];
    const size_t n_ctx = (size_t)session->engine->n_ctx;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        // Others than before, which the prefix cache has.
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

// The plans of steps that verify drafts, which the first draft would wait for otherwise.
static frit_status make_plans(frit_session *session, bool keeps_hidden)
{
    static const int32_t rows[] = {2, FRIT_COST_ROWS};
    frit_engine *engine = session->engine;
    for (size_t i = 0; i < FRIT_COUNT(rows); i++) {
        const frit_plan_key key = {.n_rows = rows[i] < engine->n_batch ? rows[i] : engine->n_batch,
                                   .kind = keeps_hidden ? FRIT_PLAN_NEXT : FRIT_PLAN_LOGITS};
        frit_plan_class *c;
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

// What a step takes with one row and with two, before the first token: guessed, it keeps drafts from being tried.
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

// The draft session is of the layer for multi-token prediction of the session's model.
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

void frit_drafter_free(frit_drafter *drafter)
{
    if (drafter->session && drafter->session->mtp.of) frit_hidden_release(drafter->session->mtp.of);
    frit_session_free(drafter->session);
    *drafter = (frit_drafter){0};
}

// ------------------------------------------------------------------------------- what drafts are worth

// The surer the draft model is, the more often it is right.
static int8_t class_of(float logprob)
{
    static const double least[FRIT_DRAFT_CLASSES] = {0, 0.3, 0.5, 0.7, 0.9};
    const double p = exp((double)logprob);
    int8_t c = FRIT_DRAFT_CLASSES - 1;
    while (c > 0 && p < least[c]) c--;
    return c;
}

// What is counted of all sessions that the drafter's session shares steps with.
static frit_draft_budget *budget_of(const frit_drafter *d)
{
    return &d->job.session->engine->drafts.budget;
}

static double right_of(const frit_drafter *d, int c)
{
    return frit_draft_rate(&d->rates, &budget_of(d)->rates, c);
}

// Of a draft that is not known yet.
static double right_of_next(const frit_drafter *d)
{
    double n_right = 0, n = 0;
    for (int c = 0; c < FRIT_DRAFT_CLASSES; c++) {
        n_right += (d->rates.n_tried[c] + 1) * right_of(d, c);
        n += d->rates.n_tried[c] + 1;
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
    double n_tokens, without_ns;   // that it gives, and takes
    double spent_ns;               // by the rounds of drafts so far, as expected
    double follow_ns;              // by texts that draft models run, as expected
    frit_draft_budget *budget;
} group;

static int32_t count_going(const group *g)
{
    int32_t n = 0;
    for (const frit_drafter *d = g->first; d; d = d->next) n += d->goes_on;
    return n;
}

// Whether one draft more of each session that goes on is expected to give so many times as many tokens for the time.
static bool pays(const group *g, double times)
{
    const int32_t n_going = count_going(g);
    const double round = frit_step_cost_decode(g->draft, n_going);
    double n_tokens = g->n_tokens, n_more = 0;
    int32_t n_drafts = 0;
    if (g->without_ns <= 0) return false;
    if (round <= 0) return true;
    for (const frit_drafter *d = g->first; d; d = d->next) {
        n_drafts += d->n;
        n_tokens += d->n_tokens;
        n_more += d->goes_on ? d->reached * right_of_next(d) : 0;
    }
    const double now = frit_step_cost_decode(g->engine, g->n_rows + n_drafts) + g->spent_ns;
    const double next = frit_step_cost_decode(g->engine, g->n_rows + n_drafts + n_going) + g->spent_ns + round;
    return (n_tokens + n_more) * now > times * n_tokens * next;
}

typedef struct draft_text {   // that the draft model's session is to have
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
    return n_same < n ? n_same : n - 1;   // the last one has not run
}

// What the draft model's session lacks of the text runs there first: drafts must be worth that too.
static bool is_behind(const frit_drafter *d)
{
    enum { FEW = 16 };
    return text_of(d).n - n_common(d) > FEW;
}

// Of all that the draft model's session lacks, but for one token.
static double follow_ns(const group *g, const frit_drafter *d)
{
    return (double)(text_of(d).n - n_common(d) - 1) * g->draft->cost.prompt_row_ns;
}

// What one draft more of each session that goes on costs if all drafts are wrong.
static double loss_of_more(const group *g, int32_t n_more)
{
    int32_t n = g->n_rows + n_more;
    for (const frit_drafter *d = g->first; d; d = d->next) n += d->n;
    return g->spent_ns + frit_step_cost_decode(g->draft, n_more) + frit_step_cost_decode(g->engine, n) - g->without_ns;
}

static bool affords(const group *g, int32_t n_more)
{
    return frit_draft_budget_allows(g->budget, loss_of_more(g, n_more), g->follow_ns);
}

// Whether it drafts for the next step: where drafts are expected to pay, as soon as the budget bears that they do not.
// Where they are not, some are made all the same now and then, to see whether the text has become easier.
static bool may_begin(const group *g, const frit_drafter *d, bool pays)
{
    // For what is not expected to pay, once a step has verified drafts.
    const double reserve = g->budget->has_verified ? 2 : 1;
    if (d->job.always) return true;
    if (d->follows) return pays;
    if (g->without_ns <= 0) return false;
    return frit_draft_budget_allows(g->budget, (pays ? 1 : reserve) * loss_of_more(g, 1), follow_ns(g, d));
}

// Of a text that is longer than the budget bears, the draft model gets the end at first: enough to see whether its
// drafts are right. What they save pays for all of it.
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

// Rows of prompts that the draft model may run before a step of the other one: as many as take as long as that.
static size_t prompt_room(const group *g)
{
    enum { FIRST = 64, LEAST = 32 };
    const double row = g->draft->cost.prompt_row_ns, n = row > 0 ? g->without_ns / row : FIRST;
    return n < LEAST ? LEAST : n < g->draft->n_batch ? (size_t)n : (size_t)g->draft->n_batch;
}

// Where the draft model is a layer for multi-token prediction: whether the hidden states are there that it reads next.
// Its text begins anew with those that are there, where it does not go on in them.
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

// The draft model's session gets the tokens that it does not have, or some of them: it drafts when it has all.
static frit_status follow(frit_drafter *d, size_t *room)
{
    const draft_text text = text_of(d);
    const size_t n_same = n_common(d), n_missing = text.n - n_same;
    FRIT_TRY(frit_session_truncate(d->session, n_same));
    // The same draws, which follow from a token's place in the whole text: this session may have a part of it.
    const size_t n_skipped = (size_t)(text.tokens - d->job.session->tokens);
    d->session->shift.n_dropped = d->job.session->shift.n_dropped + n_skipped;
    const size_t n = n_missing - 1 <= *room ? n_missing : *room;
    d->follows = n < n_missing;
    if (d->follows) d->goes_on = false;
    *room -= n < *room ? n : *room;
    d->session->mtp.n_true = n_same + n;
    return frit_session_push(d->session, text.tokens + n_same, n, NULL);
}

static void stop(frit_drafter *d, frit_status status)
{
    d->goes_on = false;
    if (d->status == FRIT_OK) d->status = status;
}

static void run(const group *g)
{
    bool waits = true;
    while (waits) {
        waits = false;
        for (frit_drafter *d = g->first; d; d = d->next) {
            if (d->status != FRIT_OK) continue;
            const frit_status status = frit_session_status(d->session);
            if (status != FRIT_OK) stop(d, status);
            waits = waits || (status == FRIT_OK && frit_session_pending(d->session) > 0);
        }
        int32_t n_rows;
        if (!waits) return;
        frit_status status = frit_engine_step(g->first->session->engine, &n_rows);
        if (status == FRIT_OK && n_rows == 0)
            status = frit_fail(FRIT_E_INTERNAL, "the drafts' tokens find no room in a step");
        for (frit_drafter *d = g->first; d && status != FRIT_OK; d = d->next) stop(d, status);
    }
}

// Takes the token that was picked as a draft, unless the drafts end here.
static frit_status take(frit_drafter *d)
{
    frit_picked picked;
    FRIT_TRY(frit_session_picked(d->session, &picked));
    d->goes_on = (double)picked.logprob >= log((double)d->min_p + 1e-9) &&
                 !frit_token_is_end(d->job.session->engine->model, picked.token) &&
                 frit_sampler_try(d->job.sampler, picked.token, &d->marks[d->n]);
    if (!d->goes_on) return FRIT_OK;
    d->classes[d->n] = class_of(picked.logprob);
    d->reached *= right_of(d, d->classes[d->n]);
    d->n_tokens += d->reached;
    d->job.tokens[d->n++] = picked.token;
    d->goes_on = d->n < d->job.most;
    return FRIT_OK;
}

static frit_status request_pick(frit_drafter *d)
{
    if (d->n > 0) FRIT_TRY(frit_session_push(d->session, &d->job.tokens[d->n - 1], 1, NULL));
    return frit_session_pick(d->session, d->job.sampler, &(frit_pick_options){.logprobs = true});
}

// A draft more of each session that goes on.
static void run_round(group *g)
{
    g->spent_ns += frit_step_cost_decode(g->draft, count_going(g));
    for (frit_drafter *d = g->first; d; d = d->next) {
        const frit_status status = d->goes_on ? request_pick(d) : FRIT_OK;
        if (status != FRIT_OK) stop(d, status);
    }
    run(g);
    for (frit_drafter *d = g->first; d; d = d->next) {
        const frit_status status = d->goes_on ? take(d) : FRIT_OK;
        if (status != FRIT_OK) stop(d, status);
    }
}

static void begin(group *g)
{
    for (frit_drafter *d = g->first; d; d = d->next) {
        const size_t n = d->job.session->n_tokens + (size_t)d->job.most + 1;
        d->position = d->job.sampler->position;
        d->n_tokens = 0;
        d->reached = 1;
        d->n = 0;
        d->status = FRIT_OK;
        d->goes_on = d->job.most > 0 && n <= (size_t)g->draft->n_ctx && has_hidden(d);
    }
    enum { SELDOM = 64 };       // a step without drafts says what they save
    const double worth = 1.1;   // times of steps are known only roughly
    const bool all = pays(g, worth);
    const bool measures = ++g->budget->n_rounds % SELDOM == 0;
    for (frit_drafter *d = g->first; d; d = d->next) {
        if (d->goes_on) skip_beginning(g, d);
        d->goes_on = d->goes_on && (d->job.always || !measures) && may_begin(g, d, all);
    }
    size_t room = prompt_room(g);
    for (frit_drafter *d = g->first; d; d = d->next) {
        const size_t before = room;
        const frit_status status = d->goes_on ? follow(d, &room) : FRIT_OK;
        if (before - room > 1) g->follow_ns += (double)(before - room - 1) * g->draft->cost.prompt_row_ns;
        if (status != FRIT_OK) stop(d, status);
    }
}

// The samplers are as before, and the budget knows what the drafts cost.
static void end(const group *g, double ns)
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
    begin(&g);
    bool goes_on = count_going(&g) > 0;
    if (!goes_on) run(&g);   // prompts
    while (goes_on) {
        run_round(&g);
        const int32_t n_going = count_going(&g);
        const bool all = n_going > 0 && pays(&g, 1) && affords(&g, n_going);
        for (frit_drafter *d = g.first; d; d = d->next) d->goes_on = d->goes_on && (all || d->job.always);
        goes_on = count_going(&g) > 0;
    }
    end(&g, (double)(frit_time_ns() - start));
}
