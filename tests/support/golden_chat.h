// SPDX-License-Identifier: MIT
// support/golden_chat.h: chat templates of the reference data, opened.
#pragma once
#include "support/support.h"

#include "text/chat/chat.h"

#include <jansson.h>

static const frit_chat_tokens golden_tokens = {.bos = {"<BOS>", 5},
                                               .eos = {"<EOS>", 5}};   // what the reference renders with

// The template NAME.jinja.
frit_chat *open_golden(const char *name);
frit_chat *open_chat(const char *source);
json_t *parse(const char *text);   // fails the test where it is no JSON
