// SPDX-License-Identifier: MIT
// common/answer.h: the text of an answer, token by token. Only whole characters are shown, and text that may become a
// stop string is held back. Shared by the commands and the server.
//
//     app_answer answer;
//     app_answer_init(&answer, model, stop);
//     app_answer_push(&answer, token, &shown);    // show `shown`; ends the answer if answer.stopped
//     app_answer_end(&answer, &shown);            // the text that was held back
//     app_answer_deinit(&answer);
#pragma once
#include "frit.h"

typedef struct app_text {   // borrowed bytes
    const char *ptr;
    size_t n;
} app_text;

typedef struct app_answer {
    const frit_model *model;
    const frit_turn *turn;   // its marks are shown; or NULL
    frit_text_stream *stream;
    frit_option_list stop;   // borrowed; empty strings never match
    char *text;              // the answer so far, zero-terminated; a stop string that was found is cut off
    size_t n, capacity;
    size_t n_shown;           // bytes that were passed on
    size_t n_skip;            // bytes to skip at the start: the end of a healed prompt, which the answer repeats
    bool stopped;             // a stop string was found
    const char *stopped_by;   // the stop string that was found, an item of `stop`
} app_answer;

// Fails with FRIT_E_MEMORY, or as frit_text_stream_new does.
frit_status app_answer_init(app_answer *answer, const frit_model *model, frit_option_list stop);
// Special tokens that mark reasoning and calls in the turn's answers are a part of the text from now on. The turn must
// outlive the answer.
frit_status app_answer_show_marks(app_answer *answer, const frit_turn *turn);
// Makes the answer continue the text of these tokens, so that a first word keeps the space before it; otherwise the
// answer is a text of its own. The answer repeats the text of the last n_healed tokens, which is skipped. Fails with
// FRIT_E_MEMORY.
frit_status app_answer_follow(app_answer *answer, const frit_token *tokens, size_t n_tokens, size_t n_healed);
// Sets *shown to the text that can be shown now, possibly empty. It is valid until the next call.
frit_status app_answer_push(app_answer *answer, frit_token token, app_text *shown);
frit_status app_answer_end(app_answer *answer, app_text *shown);
void app_answer_deinit(app_answer *answer);
