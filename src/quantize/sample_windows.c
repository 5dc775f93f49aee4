// SPDX-License-Identifier: MIT
// The calibration text if none is given. Every second window is from frit_sample_text, as long as it lasts. The model
// writes the others at temperature 1, many at a time. If it has a chat template, every second one of its own windows is
// a conversation in which it also writes the user's messages. A window whose text ends continues with another text.
//
// Draws are functions of the window's number and the position, and logits do not depend on other rows of a step, so the
// text is the same for any number of threads and any number of windows at a time. All steps run by prefill kernels,
// which are faster with AMX. Inputs of matrices can be summed meanwhile, of all tokens but the last of each window,
// which no step runs.
#include "quantize/type_choice.h"

#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 128, MOST_MARKS = 256 };

// Tokens that the template writes before and after a user's message.
typedef struct marks {
    frit_token before[MOST_MARKS], after[MOST_MARKS];
    size_t n_before, n_after;
} marks;

typedef struct writer {
    frit_session *session;
    frit_sampler *sampler;
    const marks *chat;   // NULL: no conversation
    bool is_user;        // the next text is the user's
} writer;

typedef struct writing {
    frit_type_choice *a;
    frit_engine *engine;
    frit_importance *sums;   // of inputs of matrices; NULL: not wanted
    frit_token start;        // first token of a text; -1: none
    marks chat;
    bool has_chat;
    frit_token *text;   // frit_sample_text in windows; NULL: the model has no tokenizer
    size_t n_text_windows;
    writer writers[AT_ONCE];
    size_t n_writers;
} writing;

// ------------------------------------------------------------------------------------- marks

static bool read_chat(const frit_model *model, const char *content, frit_token *tokens, size_t *n)
{
    const frit_message message = {.role = "user", .content = content};
    return frit_chat_tokenize(model, &message, 1, NULL, tokens, MOST_MARKS, n) == FRIT_OK && *n <= MOST_MARKS;
}

// Finds the text that two prompts with different messages share at both ends.
static void find_marks(writing *w)
{
    frit_token one[MOST_MARKS], other[MOST_MARKS];
    size_t n_one, n_other, n = 0, m = 0;
    const frit_model *model = w->a->model;
    if (model->chats->n == 0 || !model->chat) return;   // another model's template is unknown to this model
    if (!read_chat(model, "Q", one, &n_one) || !read_chat(model, "7", other, &n_other)) return;
    while (n < n_one && n < n_other && one[n] == other[n]) n++;
    while (m < n_one - n && m < n_other - n && one[n_one - 1 - m] == other[n_other - 1 - m]) m++;
    w->chat.n_before = n;
    w->chat.n_after = m;
    memcpy(w->chat.before, one, n * sizeof *one);
    memcpy(w->chat.after, one + n_one - m, m * sizeof *one);
    w->has_chat = n > 0 && m > 0;
}

static void find_start(writing *w)
{
    const frit_vocab *vocab = &w->a->model->vocab;
    w->start = vocab->bos >= 0 ? vocab->bos : vocab->eos;
    if (!w->a->model->tokenizer && w->start < 0) w->start = 0;   // tokens without texts: any token will do
}

// ------------------------------------------------------------------------------------- the text

static frit_status read_text(writing *w)
{
    const frit_model *model = w->a->model;
    size_t n_tokens, n_bos = 0;
    frit_token bos;
    if (!model->tokenizer) return FRIT_OK;
    const size_t most = frit_sample_text_bytes + 2;   // every token has at least a byte
    w->text = calloc(most, sizeof *w->text);
    if (!w->text) return frit_fail_memory(most * sizeof *w->text, "the tokens of a text");
    const frit_status status =
        frit_tokenize(model, frit_sample_text, frit_sample_text_bytes, FRIT_TEXT_SPECIAL, w->text, most, &n_tokens);
    if (status == FRIT_E_MEMORY) return status;
    // The vocabulary lacks characters of the text: the model writes all windows.
    if (status != FRIT_OK) return FRIT_OK;
    w->n_text_windows = n_tokens / w->a->n_ctx;
    const bool has_bos = frit_tokenize(model, "", 0, FRIT_TEXT_SPECIAL, &bos, 1, &n_bos) == FRIT_OK && n_bos == 1;
    for (size_t i = 0; i < w->n_text_windows && has_bos; i++) w->text[i * w->a->n_ctx] = bos;
    return FRIT_OK;
}

// Returns the tokens of window `number`; NULL: the model writes it.
static const frit_token *text_window(const writing *w, size_t number)
{
    return number % 2 == 0 && number / 2 < w->n_text_windows ? w->text + number / 2 * w->a->n_ctx : NULL;
}

// Returns the index of window `number` among those that the model writes.
static size_t own_number(const writing *w, size_t number)
{
    return number / 2 < w->n_text_windows ? number / 2 : number - w->n_text_windows;
}

// ------------------------------------------------------------------------------------- windows

// Pushes a prefix of the tokens that fits.
static frit_status push_fitting(const writing *w, writer *x, const frit_token *tokens, size_t n)
{
    const size_t room = w->a->n_ctx - frit_session_length(x->session);
    return frit_session_push(x->session, tokens, n < room ? n : room, NULL);
}

static frit_status begin_text(const writing *w, writer *x)
{
    x->is_user = true;
    if (x->chat) return push_fitting(w, x, x->chat->before, x->chat->n_before);
    return push_fitting(w, x, &w->start, 1);
}

// Continues after a token that ends a text or a message. The marks may begin with that token.
static frit_status continue_text(const writing *w, writer *x, frit_token end)
{
    if (!x->chat || !x->is_user) return begin_text(w, x);
    const bool has_end = x->chat->after[0] == end;
    x->is_user = false;
    return push_fitting(w, x, x->chat->after + has_end, x->chat->n_after - has_end);
}

static frit_status begin_window(const writing *w, writer *x, size_t number)
{
    const frit_sampler_options options = {.temp = 1, .samplers = "temp", .seed = 1 + own_number(w, number)};
    const frit_token *text = text_window(w, number);
    frit_sampler_free(x->sampler);
    x->sampler = NULL;
    FRIT_TRY(frit_session_truncate(x->session, 0));
    if (text) return frit_session_push(x->session, text, w->a->n_ctx, NULL);
    x->chat = w->has_chat && own_number(w, number) % 2 == 1 ? &w->chat : NULL;
    FRIT_TRY(frit_sampler_new(&x->sampler, w->a->model, &options));
    return begin_text(w, x);
}

static bool is_full(const writing *w, const writer *x)
{
    return frit_session_length(x->session) >= w->a->n_ctx;
}

static frit_status run_queued(const writing *w, const writer *x)
{
    while (frit_session_pending(x->session) > 0) {
        int32_t n_rows;
        FRIT_TRY(frit_engine_step(w->engine, &n_rows));
        if (n_rows == 0) return frit_fail(FRIT_E_INTERNAL, "the tokens of a window do not fit in a step");
    }
    return frit_session_status(x->session);
}

static frit_status accept_token(const writing *w, writer *x)
{
    frit_picked picked;
    FRIT_TRY(frit_session_picked(x->session, &picked));
    FRIT_TRY(frit_session_push(x->session, &picked.token, 1, NULL));
    FRIT_TRY(frit_sampler_accept(x->sampler, picked.token));
    return frit_token_is_end(w->a->model, picked.token) ? continue_text(w, x, picked.token) : FRIT_OK;
}

// Writes one token of every window. The step that runs queued tokens also picks.
static frit_status write_tokens(const writing *w, writer *writers, size_t n, bool *more)
{
    bool asked[AT_ONCE];
    *more = false;
    for (size_t i = 0; i < n; i++) {
        asked[i] = !is_full(w, &writers[i]);
        if (asked[i]) FRIT_TRY(frit_session_pick(writers[i].session, writers[i].sampler, NULL));
        *more = *more || asked[i];
    }
    for (size_t i = 0; i < n; i++) FRIT_TRY(run_queued(w, &writers[i]));   // long marks take several steps
    for (size_t i = 0; i < n; i++)
        if (asked[i]) FRIT_TRY(accept_token(w, &writers[i]));
    return FRIT_OK;
}

static frit_status write_windows(writing *w, size_t first, size_t n)
{
    frit_type_choice *a = w->a;
    bool more = true;
    for (size_t i = 0; i < n; i++) FRIT_TRY(begin_window(w, &w->writers[i], first + i));
    while (more) {
        FRIT_TRY(write_tokens(w, w->writers, n, &more));
        const double share = (double)frit_session_length(w->writers[n - 1].session) / (double)a->n_ctx;
        FRIT_TRY(frit_type_choice_report(a, ((double)first + share * (double)n) / (double)a->n_windows));
    }
    for (size_t i = 0; i < n; i++)
        memcpy(a->tokens + (first + i) * a->n_ctx, frit_session_tokens(w->writers[i].session),
               a->n_ctx * sizeof *a->tokens);
    return FRIT_OK;
}

// ------------------------------------------------------------------------------------- engine

// Chooses how many windows are written at once. A step reads all weights once, however many windows it continues. The
// cache may take 1 GiB, or a third of the weights if that is more. All rounds have about the same number of windows.
static size_t windows_at_a_time(const frit_type_choice *a, const char *type)   // NULL: f16
{
    const uint64_t of_window = frit_model_kv_bytes(a->model, type, type) * (a->n_ctx + 32) + 1;
    uint64_t room = UINT64_C(1) << 30, of_weights = 0;
    for (size_t i = 0; i < a->model->ckpt->n_tensors; i++) of_weights += a->model->ckpt->tensors[i].n_bytes;
    if (room < of_weights / 3) room = of_weights / 3;
    const size_t most = room / of_window > AT_ONCE ? AT_ONCE : room / of_window < 4 ? 4 : (size_t)(room / of_window);
    const size_t n_rounds = (a->n_windows + most - 1) / most;
    return (a->n_windows + n_rounds - 1) / n_rounds;
}

static frit_status open_engine(writing *w, const char *type)
{
    frit_type_choice *a = w->a;
    w->n_writers = windows_at_a_time(a, type);
    const frit_engine_options options = {.n_ctx = (int32_t)a->n_ctx + 32,
                                         .n_batch = 2 * AT_ONCE,
                                         .n_sessions = (int32_t)w->n_writers,
                                         .n_threads = a->convert->n_threads,
                                         .prompt_budget = -1,
                                         .cache_type_k = type,
                                         .cache_type_v = type,
                                         .device = "cpu",
                                         .no_prefix_cache = true};
    a->model->floats_coarse = true;   // small differences do not harm a sampled text
    const frit_status status = frit_engine_new(&w->engine, a->model, &options);
    a->model->floats_coarse = false;
    return status;
}

// Uses a cache of q8_0 if more windows fit then. Not all models can use it.
static frit_status open_writers(writing *w)
{
    const bool is_small = windows_at_a_time(w->a, "q8_0") > windows_at_a_time(w->a, NULL);
    if (!is_small || open_engine(w, "q8_0") != FRIT_OK) FRIT_TRY(open_engine(w, NULL));
    frit_engine_only_prefill(w->engine);
    if (w->sums) FRIT_TRY(frit_engine_observe(w->engine, w->sums));
    for (size_t i = 0; i < w->n_writers; i++) FRIT_TRY(frit_session_new(&w->writers[i].session, w->engine));
    return FRIT_OK;
}

static frit_status write_all(writing *w)
{
    FRIT_TRY(open_writers(w));
    for (size_t first = 0, n; first < w->a->n_windows; first += n) {
        n = w->a->n_windows - first < w->n_writers ? w->a->n_windows - first : w->n_writers;
        FRIT_TRY(write_windows(w, first, n));
    }
    return FRIT_OK;
}

frit_status frit_type_choice_write_samples(frit_type_choice *a, frit_importance *sums)
{
    writing *w = calloc(1, sizeof *w);
    if (!w) return frit_fail_memory(sizeof *w, "windows of text");
    w->a = a;
    w->sums = sums;
    find_marks(w);
    find_start(w);
    frit_type_choice_begin(a, "writing samples");
    frit_status status = FRIT_OK;
    if (w->start < 0)
        status = frit_fail_file(
            FRIT_E_UNSUPPORTED,
            "%s: has no token that begins or ends a text, so it cannot write samples; expected a text to "
            "measure with",
            a->source);
    if (status == FRIT_OK) status = read_text(w);
    if (status == FRIT_OK) status = write_all(w);
    for (size_t i = 0; i < w->n_writers; i++) {
        frit_sampler_free(w->writers[i].sampler);
        frit_session_free(w->writers[i].session);
    }
    frit_engine_free(w->engine);
    free(w->text);
    free(w);
    return status;
}

frit_status frit_samples_write(frit_model *model, const frit_samples_options *options, frit_token *tokens)
{
    FRIT_REQUIRE(model);
    FRIT_REQUIRE(options);
    FRIT_REQUIRE(tokens);
    FRIT_REQUIRE_UNUSED(options);
    if (options->n_windows == 0 || options->n_ctx < 2 || options->n_ctx > INT32_MAX - 64)
        return frit_fail(FRIT_E_INVALID, "samples: %zu windows of %zu tokens, expected at least 1 window of 2 tokens",
                         options->n_windows, options->n_ctx);
    if (model->info.kind != FRIT_KIND_DECODER || model->vocab_only)
        return frit_fail_file(FRIT_E_UNSUPPORTED, "%s: writes no text", model->info.path);
    const frit_convert_options convert = {
        .n_threads = options->n_threads, .progress = options->progress, .progress_ctx = options->progress_ctx};
    const frit_allocate_options none = {0};
    frit_type_choice a = {.source = model->info.path,
                          .convert = &convert,
                          .options = &none,
                          .model = model,
                          .tokens = tokens,
                          .n_windows = options->n_windows,
                          .n_ctx = options->n_ctx};
    const bool was_in_place = model->floats_in_place;   // a copy would be as large as the model
    model->floats_in_place = true;
    const frit_status status = frit_type_choice_write_samples(&a, NULL);
    model->floats_in_place = was_in_place;
    return status;
}
