// SPDX-License-Identifier: MIT
// frit/eval/text_windows.h: a text in windows of n_ctx tokens, each run in an empty session. A window begins with BOS
// if the model has one: BOS replaces the first token, as in llama.cpp's tools.
#pragma once
#include "frit/cli/cli.h"

typedef struct cli_windows {
    frit_token *tokens;   // [n][n_ctx], malloc'd; more tokens may follow
    size_t n, n_ctx;
} cli_windows;

// Cuts a text into at most `limit` windows, 0: all. Returns an exit code after printing any error, with the command's
// name.
int cli_windows_cut(cli_windows *windows, const char *command, const frit_model *model, const cli_text *text,
                    size_t n_ctx, size_t limit);
void cli_windows_begin_with_bos(cli_windows *windows, const frit_model *model);
void cli_windows_free(cli_windows *windows);
// Empties the session and runs one window of n tokens.
frit_status cli_run_window(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n,
                           const frit_push_options *push);
