// SPDX-License-Identifier: MIT
// Holds back text that may become a stop string:
//
//     text  [ shown ............ | may become a stop string | ]
//                        n_shown ^                          ^ n
#include "common/answer.h"

#include "common/grow.h"

#include <stdlib.h>
#include <string.h>

typedef enum match { MATCH_NONE, MATCH_PARTIAL, MATCH_WHOLE } match;

// Compares the rest of the text with the stop strings: it may begin with one, or be the start of one.
static match match_stop(const char *rest, size_t n_rest, const frit_option_list *stop, const char **found)
{
    match best = MATCH_NONE;
    for (size_t s = 0; s < stop->n; s++) {
        size_t n = strlen(stop->items[s]), n_common = n_rest < n ? n_rest : n;
        if (n == 0 || memcmp(rest, stop->items[s], n_common) != 0) continue;
        *found = stop->items[s];
        if (n_rest >= n) return MATCH_WHOLE;
        best = MATCH_PARTIAL;
    }
    return best;
}

static void show_text(app_answer *answer, bool last, app_text *shown)
{
    match found = MATCH_NONE;
    const char *stop = NULL;
    size_t end = answer->n_shown;
    for (; end < answer->n; end++) {
        found = match_stop(answer->text + end, answer->n - end, &answer->stop, &stop);
        if (found == MATCH_WHOLE || (found == MATCH_PARTIAL && !last)) break;
    }
    *shown = (app_text){answer->text + answer->n_shown, end - answer->n_shown};
    answer->n_shown = end;
    if (end == answer->n || found != MATCH_WHOLE) return;
    answer->n = end;
    answer->text[end] = 0;
    answer->stopped = true;
    answer->stopped_by = stop;
}

static frit_status append_text(app_answer *answer, const char *bytes, size_t n)
{
    size_t n_skipped = n < answer->n_skip ? n : answer->n_skip;
    answer->n_skip -= n_skipped;
    bytes += n_skipped;
    n -= n_skipped;
    if (!APP_GROW(answer->text, answer->capacity, answer->n + n + 1)) return FRIT_E_MEMORY;
    memcpy(answer->text + answer->n, bytes, n);
    answer->n += n;
    answer->text[answer->n] = 0;
    return FRIT_OK;
}

frit_status app_answer_init(app_answer *answer, const frit_model *model, frit_option_list stop)
{
    *answer = (app_answer){.model = model, .stop = stop};
    frit_status status = frit_text_stream_new(&answer->stream, model, 0);
    if (status == FRIT_OK) status = append_text(answer, "", 0);
    if (status != FRIT_OK) app_answer_deinit(answer);
    return status;
}

frit_status app_answer_show_marks(app_answer *answer, const frit_turn *turn)
{
    answer->turn = turn;
    frit_text_stream_free(answer->stream);
    return frit_text_stream_new(&answer->stream, answer->model, FRIT_TEXT_SPECIAL);
}

// True for a special token that is not shown. A stream that shows special tokens must not get it.
static bool is_hidden(const app_answer *answer, frit_token token)
{
    size_t n;
    frit_token_piece(answer->model, token, &n);
    return answer->turn && n == 0 && !frit_turn_shows(answer->turn, token);
}

// Pushes tokens into a stream. Sets *n_bytes to the length of their text.
static frit_status push_all(frit_text_stream *stream, const frit_token *tokens, size_t n_tokens, size_t *n_bytes)
{
    *n_bytes = 0;
    for (size_t i = 0; i < n_tokens; i++) {
        const char *piece;
        size_t n;
        frit_status status = frit_text_stream_push(stream, tokens[i], &piece, &n);
        if (status != FRIT_OK) return status;
        *n_bytes += n;
    }
    return FRIT_OK;
}

frit_status app_answer_follow(app_answer *answer, const frit_token *tokens, size_t n_tokens, size_t n_healed)
{
    size_t n_given, n_all;
    frit_status status = push_all(answer->stream, tokens, n_tokens - n_healed, &n_given);
    if (status != FRIT_OK || n_healed == 0) return status;
    frit_text_stream *whole;
    status = frit_text_stream_new(&whole, answer->model, 0);
    if (status == FRIT_OK) status = push_all(whole, tokens, n_tokens, &n_all);
    if (status == FRIT_OK) answer->n_skip = n_all - n_given;
    frit_text_stream_free(whole);
    return status;
}

frit_status app_answer_push(app_answer *answer, frit_token token, app_text *shown)
{
    *shown = (app_text){"", 0};
    const char *piece;
    size_t n;
    if (is_hidden(answer, token)) return FRIT_OK;
    frit_status status = frit_text_stream_push(answer->stream, token, &piece, &n);
    if (status == FRIT_OK) status = append_text(answer, piece, n);
    if (status == FRIT_OK) show_text(answer, false, shown);
    return status;
}

frit_status app_answer_end(app_answer *answer, app_text *shown)
{
    *shown = (app_text){"", 0};
    if (answer->stopped) return FRIT_OK;
    const char *rest;
    size_t n;
    frit_status status = frit_text_stream_flush(answer->stream, &rest, &n);
    if (status == FRIT_OK) status = append_text(answer, rest, n);
    if (status == FRIT_OK) show_text(answer, true, shown);
    return status;
}

void app_answer_deinit(app_answer *answer)
{
    frit_text_stream_free(answer->stream);
    free(answer->text);
    *answer = (app_answer){0};
}
