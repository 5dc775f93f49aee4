// SPDX-License-Identifier: MIT
// Reads and writes files of log-probabilities.
#include "frit/eval/kl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char magic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};

static int reserve_row(kl_file *kl)
{
    kl->row_items = 4 + (size_t)(kl->n_vocab + 1) / 2 * 2;
    kl->row = calloc(kl->row_items, sizeof *kl->row);
    return kl->row ? CLI_DONE : cli_no_memory();
}

// Memory grows with the data in the file, not with the count in its header.
static int read_tokens(kl_file *kl, size_t n_tokens)
{
    enum { AT_ONCE = 1 << 16 };
    for (size_t i = 0, n; i < n_tokens; i += n) {
        n = n_tokens - i < AT_ONCE ? n_tokens - i : AT_ONCE;
        int32_t *tokens = realloc(kl->tokens, (i + n) * sizeof *tokens);
        if (!tokens) return cli_no_memory();
        kl->tokens = tokens;
        if (fread(tokens + i, sizeof *tokens, n, kl->file) != n)
            return cli_fail("%s: ends within its %zu tokens", kl->path, n_tokens);
    }
    for (size_t i = 0; i < n_tokens; i++)
        if (kl->tokens[i] < 0 || kl->tokens[i] >= kl->n_vocab)
            return cli_fail("%s: token %zu is %d, its ids are 0 to %d", kl->path, i, kl->tokens[i], kl->n_vocab - 1);
    return CLI_DONE;
}

static int read_head(kl_file *kl)
{
    char begin[8];
    int32_t head[3];
    if (fread(begin, sizeof begin, 1, kl->file) != 1 || memcmp(begin, magic, sizeof magic) != 0 ||
        fread(head, sizeof head, 1, kl->file) != 1)
        return cli_fail("%s: is not a file of log-probabilities: it does not begin with _logits_", kl->path);
    kl->n_ctx = head[0], kl->n_vocab = head[1], kl->n_windows = head[2];
    if (kl->n_ctx < 4 || kl->n_ctx > 1 << 24 || kl->n_vocab < 1 || kl->n_vocab > 1 << 24 || kl->n_windows < 1 ||
        kl->n_windows > (1 << 30) / kl->n_ctx)
        return cli_fail(
            "%s: has %d windows of %d tokens with a vocabulary of %d, which is impossible: the file is damaged",
            kl->path, kl->n_windows, kl->n_ctx, kl->n_vocab);
    int code = read_tokens(kl, (size_t)kl->n_windows * (size_t)kl->n_ctx);
    return code == CLI_DONE ? reserve_row(kl) : code;
}

int kl_open(kl_file *kl, const char *path)
{
    *kl = (kl_file){.path = path, .file = fopen(path, "rb")};
    if (!kl->file) return cli_fail("%s: cannot be opened", path);
    int code = read_head(kl);
    return code == CLI_DONE ? CLI_DONE : kl_close(kl, code);
}

int kl_create(kl_file *kl, const char *path, const frit_token *tokens, int32_t n_ctx, int32_t n_windows,
              int32_t n_vocab)
{
    *kl = (kl_file){.path = path, .n_ctx = n_ctx, .n_vocab = n_vocab, .n_windows = n_windows};
    int code = cli_file_open(&kl->made, path);
    if (code != CLI_DONE) return code;
    const int32_t head[3] = {n_ctx, n_vocab, n_windows};
    const size_t n_tokens = (size_t)n_windows * (size_t)n_ctx;
    cli_file_write(&kl->made, magic, sizeof magic);
    cli_file_write(&kl->made, head, sizeof head);
    cli_file_write(&kl->made, tokens, n_tokens * sizeof *tokens);
    code = reserve_row(kl);
    return code == CLI_DONE ? CLI_DONE : kl_close(kl, code);
}

int kl_close(kl_file *kl, int code)
{
    if (kl->file) fclose(kl->file);
    if (kl->made.file) code = cli_file_close(&kl->made, code);
    free(kl->tokens);
    free(kl->row);
    *kl = (kl_file){0};
    return code;
}

void kl_write_row(kl_file *kl, const float *logits)
{
    float most = logits[0], least = logits[0];
    for (int32_t v = 1; v < kl->n_vocab; v++) {
        if (logits[v] > most) most = logits[v];
        if (logits[v] < least) least = logits[v];
    }
    if (least < most - KL_DEEPEST) least = most - KL_DEEPEST;
    double sum = 0;
    for (int32_t v = 0; v < kl->n_vocab; v++) sum += exp((double)logits[v] - most);
    const float head[2] = {(most - least) / 65535, least - most - (float)log(sum)};
    memcpy(kl->row, head, sizeof head);
    for (int32_t v = 0; v < kl->n_vocab; v++) {
        float above = logits[v] - least;
        kl->row[4 + v] = above > 0 && head[0] > 0 ? (uint16_t)lrintf(fminf(above / head[0], 65535)) : 0;
    }
    cli_file_write(&kl->made, kl->row, kl->row_items * sizeof *kl->row);
}

bool kl_read_row(kl_file *kl, float *log_probs)
{
    float head[2];
    if (fread(kl->row, sizeof *kl->row, kl->row_items, kl->file) != kl->row_items) return false;
    memcpy(head, kl->row, sizeof head);
    for (int32_t v = 0; v < kl->n_vocab; v++) log_probs[v] = head[1] + head[0] * (float)kl->row[4 + v];
    return true;
}
