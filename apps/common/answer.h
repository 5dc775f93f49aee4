// SPDX-License-Identifier: MIT
// common/answer.h: the text of an answer as its tokens come: whole characters only, and nothing that is, or may still
// become, a stop string. Shared by the commands and the server.
//
//     app_answer answer;
//     app_answer_init(&answer, model, stop);
//     app_answer_push(&answer, token, &shown);    // show `shown`; ends the answer if answer.stopped
//     app_answer_end(&answer, &shown);            // what was held back until now
//     app_answer_free(&answer);
#pragma once
#include "frit.h"

typedef struct app_text {   // borrowed bytes
    const char *ptr;
    size_t n;
} app_text;

typedef struct app_answer {
    const frit_model *model;
    const frit_turn *turn;   // whose marks are shown, or NULL
    frit_text_stream *stream;
    frit_option_list stop;   // borrowed; empty strings never match
    char *text;              // the answer so far, zero-terminated; ends before the stop string if one was found
    size_t n, capacity;
    size_t n_shown;           // bytes that have been given out
    size_t n_skip;            // bytes at the start that are no part of it: a prompt's end that is spelled again
    bool stopped;             // a stop string was found
    const char *stopped_by;   // that one: an item of `stop`
} app_answer;

// FRIT_E_MEMORY, or what frit_text_stream_new fails with.
frit_status app_answer_init(app_answer *answer, const frit_model *model, frit_option_list stop);
// Special tokens that mark reasoning and calls in this turn's answers are a part of the text from now on; the turn must
// outlive the answer.
frit_status app_answer_show_marks(app_answer *answer, const frit_turn *turn);
// The answer goes on where these tokens end: a first word keeps the space before it. Without it an answer is a text of
// its own. The text of the last n_healed of them it spells again before it goes on, which is not shown. FRIT_E_MEMORY.
frit_status app_answer_follow(app_answer *answer, const frit_token *tokens, size_t n_tokens, size_t n_healed);
// *shown: the text that may be shown now, possibly "". Valid until the next call.
frit_status app_answer_push(app_answer *answer, frit_token token, app_text *shown);
frit_status app_answer_end(app_answer *answer, app_text *shown);
void app_answer_free(app_answer *answer);
