// SPDX-License-Identifier: MIT
// Tokens as JSON.
#include "common/token_json.h"

#include <math.h>
#include <stdio.h>

enum { MAX_SPECIAL = 256 };   // the most bytes of a special token's text

const char *app_token_text(const frit_model *model, frit_token token, char *room, size_t size, size_t *n_bytes)
{
    const char *piece = frit_token_piece(model, token, n_bytes);
    if (*n_bytes > 0) return piece;
    if (frit_detokenize(model, &token, 1, FRIT_TEXT_SPECIAL, room, size, n_bytes) != FRIT_OK) *n_bytes = 0;
    return room;
}

json_t *app_token_json(const frit_model *model, frit_token token, json_t **bytes)
{
    char room[MAX_SPECIAL], escaped[6 + 4 * MAX_SPECIAL + 1] = "bytes:";
    size_t n;
    const char *piece = app_token_text(model, token, room, sizeof room, &n);
    if (bytes) *bytes = json_array();
    for (size_t i = 0; bytes && i < n; i++) json_array_append_new(*bytes, json_integer((unsigned char)piece[i]));
    json_t *text = json_stringn(piece, n);
    if (text) return text;
    for (size_t i = 0, at = 6; i < n && at + 5 < sizeof escaped; i++, at += 4)
        snprintf(escaped + at, 5, "\\x%02x", (unsigned char)piece[i]);
    return json_string(escaped);
}

json_t *app_logprob_json(const frit_model *model, frit_logprob found)
{
    json_t *bytes, *token = app_token_json(model, found.token, &bytes);
    json_t *logprob = isnan(found.logprob) ? json_null() : json_real((double)found.logprob);
    return json_pack("{s:o, s:o, s:o}", "token", token, "logprob", logprob, "bytes", bytes);
}
