// SPDX-License-Identifier: MIT
// arch/golden.h: the list of reference models with the logits that others computed for them.
#pragma once
#include "support/support.h"

typedef struct golden {
    char *path;   // of the model
    int32_t *tokens;
    float *logits;   // [n_tokens, n_vocab]
    size_t n_tokens, n_vocab;
} golden;

// Hugging Face folders with golden.json and golden.f32, and GGUF files with .logits.
static const char *const golden_folders[] = {
    "llama",   "llama-rope3", "llama-linear-rope", "llama-yarn", "llama-bias-tied",
    "mistral", "qwen2",       "qwen2-tied",        "qwen3",      "gemma"};
static const char *const golden_files[] = {"llama-dense", "qwen2-dense", "qwen3-dense", "gemma-dense"};
enum { N_GOLDEN_FOLDERS = FRIT_COUNT(golden_folders), N_GOLDENS = N_GOLDEN_FOLDERS + FRIT_COUNT(golden_files) };

static inline const char *golden_name(size_t i)
{
    return i < N_GOLDEN_FOLDERS ? golden_folders[i] : golden_files[i - N_GOLDEN_FOLDERS];
}

// The numbers of "ids": [407, 86, ...].
static inline void golden_read_ids(golden *g, const char *json)
{
    const char *p = strstr(json, "\"ids\": [");
    assert_non_null(p);
    for (p += 8; *p != ']'; p += *p == ',' ? 2 : 0) {
        char *end;
        long id = strtol(p, &end, 10);
        if (end == p) fail_msg("golden.json: expected a number at '%.20s'", p);
        g->tokens[g->n_tokens++] = (int32_t)id;
        p = end;
    }
}

static inline void golden_load_folder(golden *g, const char *name)
{
    g->path = strdup(shared_path("goldens/hf/%s", name));
    size_t n_bytes;
    char *json = read_file(shared_path("goldens/hf/%s/golden.json", name), &n_bytes);
    g->tokens = calloc(n_bytes, sizeof *g->tokens);
    golden_read_ids(g, json);
    free(json);
    g->logits = (float *)(void *)read_file(shared_path("goldens/hf/%s/golden.f32", name), &n_bytes);
    g->n_vocab = n_bytes / sizeof(float) / g->n_tokens;
}

static inline void golden_load_file(golden *g, const char *name)
{
    g->path = strdup(shared_path("goldens/arch/%s.gguf", name));
    size_t n_bytes;
    char *bytes = read_file(shared_path("goldens/arch/%s.logits", name), &n_bytes);
    int32_t head[2];
    memcpy(head, bytes, sizeof head);
    g->n_tokens = (size_t)head[0];
    g->n_vocab = (size_t)head[1];
    size_t n_ids = g->n_tokens * sizeof *g->tokens, n_logits = g->n_tokens * g->n_vocab * sizeof *g->logits;
    assert_int_equal(n_bytes, sizeof head + n_ids + n_logits);
    g->tokens = malloc(n_ids);
    g->logits = malloc(n_logits);
    memcpy(g->tokens, bytes + sizeof head, n_ids);
    memcpy(g->logits, bytes + sizeof head + n_ids, n_logits);
    free(bytes);
}

// Skips the running test where the reference data is absent.
static inline golden golden_load(size_t i)
{
    golden g = {0};
    if (i < N_GOLDEN_FOLDERS)
        golden_load_folder(&g, golden_name(i));
    else
        golden_load_file(&g, golden_name(i));
    assert_true(g.n_tokens > 0 && g.n_vocab > 0);
    return g;
}

static inline void golden_free(golden *g)
{
    free(g->path);
    free(g->tokens);
    free(g->logits);
}
