// SPDX-License-Identifier: MIT
// Cuts texts into windows.
#include "frit/eval/text_windows.h"

#include <stdlib.h>

// Finds BOS: an empty text with special tokens becomes BOS if the model has one.
static bool find_bos(const frit_model *model, frit_token *bos)
{
    size_t n = 0;
    return frit_tokenize(model, "", 0, FRIT_TEXT_SPECIAL, bos, 1, &n) == FRIT_OK && n == 1;
}

void cli_windows_begin_with_bos(cli_windows *windows, const frit_model *model)
{
    frit_token bos;
    if (!find_bos(model, &bos)) return;
    for (size_t w = 0; w < windows->n; w++) windows->tokens[w * windows->n_ctx] = bos;
}

int cli_windows_cut(cli_windows *windows, const char *command, const frit_model *model, const cli_text *text,
                    size_t n_ctx, size_t limit)
{
    size_t n_tokens = 0;
    cli_exit_on_signal(true);   // a long text takes long
    frit_token *tokens = cli_tokens(model, text->data, text->n, FRIT_TEXT_SPECIAL, &n_tokens);
    cli_exit_on_signal(false);
    if (!tokens) return CLI_FAILED;
    *windows = (cli_windows){tokens, n_tokens / n_ctx, n_ctx};
    if (limit > 0 && windows->n > limit) windows->n = limit;
    cli_windows_begin_with_bos(windows, model);
    if (windows->n > 0) return CLI_DONE;
    cli_windows_free(windows);
    return cli_fail("%s: the text has %zu tokens, one window needs %zu; choose a smaller -c", command, n_tokens, n_ctx);
}

void cli_windows_free(cli_windows *windows)
{
    free(windows->tokens);
    *windows = (cli_windows){0};
}

frit_status cli_run_window(frit_engine *engine, frit_session *session, const frit_token *tokens, size_t n,
                           const frit_push_options *push)
{
    frit_status status = frit_session_truncate(session, 0);
    if (status == FRIT_OK) status = frit_session_push(session, tokens, n, push);
    while (status == FRIT_OK && frit_session_pending(session) > 0) {
        int32_t n_rows;
        status = cli_interrupted ? FRIT_E_CANCELLED : frit_engine_step(engine, &n_rows);
    }
    return status == FRIT_OK ? frit_session_status(session) : status;
}
