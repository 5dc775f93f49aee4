// SPDX-License-Identifier: MIT
// Sorts documents by how well they answer a query, by a model with a head for that, as bge-reranker has. Where the
// model has none, documents are compared by their vectors.
//
//     cc rerank.c -lfrit -lm -o rerank && ./rerank model.gguf "who spins straw?" "A miller's daughter." "It rained."
#include <frit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXTS = 16 };

typedef struct vectors {
    float *numbers;   // [n_texts, width]
    size_t width;
} vectors;

static void keep(void *ctx, size_t item, size_t i, const float *values, size_t n)
{
    const vectors *v = ctx;
    (void)i;
    memcpy(v->numbers + item * v->width, values, n * sizeof *values);
}

static void set_items(frit_embed_item *items, const char *const *texts, size_t n_texts)
{
    for (size_t i = 0; i < n_texts; i++) {
        items[i].text = texts[i];
        items[i].n_bytes = strlen(texts[i]);
    }
}

// The cosine of the angle between each document's vector and the query's, the first text.
static frit_status compare_vectors(frit_engine *engine, const frit_model *model, const char *const *texts,
                                   size_t n_texts, float *scores)
{
    frit_embed_item items[MOST_TEXTS] = {{0}};
    vectors v = {NULL, 0};
    frit_status status = frit_embed_width(model, NULL, &v.width);
    set_items(items, texts, n_texts);
    if (status == FRIT_OK) v.numbers = calloc(n_texts * v.width, sizeof *v.numbers);
    if (status == FRIT_OK && !v.numbers) status = FRIT_E_MEMORY;
    if (status == FRIT_OK) status = frit_embed_texts(engine, items, n_texts, NULL, keep, &v);
    for (size_t i = 1; i < n_texts && status == FRIT_OK; i++) {
        double dot = 0, a = 0, b = 0;
        for (size_t k = 0; k < v.width; k++) {
            const double x = v.numbers[k], y = v.numbers[i * v.width + k];
            dot += x * y, a += x * x, b += y * y;
        }
        scores[i - 1] = (float)(dot / sqrt(a * b));
    }
    free(v.numbers);
    return status;
}

static frit_status score(frit_engine *engine, const frit_model *model, const char *const *texts, size_t n_texts,
                         float *scores)
{
    frit_embed_item documents[MOST_TEXTS] = {{0}};
    set_items(documents, texts + 1, n_texts - 1);
    const frit_status status =
        frit_rerank_texts(engine, texts[0], strlen(texts[0]), documents, n_texts - 1, NULL, scores);
    return status == FRIT_E_UNSUPPORTED ? compare_vectors(engine, model, texts, n_texts, scores) : status;
}

static void print_sorted(const char *const *texts, size_t n_texts, float *scores)
{
    for (size_t n = 1; n < n_texts; n++) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < n_texts; i++)
            if (scores[i] > scores[best]) best = i;
        printf("%.3f  %s\n", (double)scores[best], texts[best + 1]);
        scores[best] = -INFINITY;
    }
}

int main(int argc, char **argv)
{
    const char *own[] = {"The king had a daughter.", "The queen bore the king a child.", "7 + 5 = 12", "It rained."};
    const char *const *texts = argc > 3 ? (const char *const *)argv + 2 : own;
    size_t n_texts = argc > 3 ? (size_t)argc - 2 : sizeof own / sizeof *own;
    if (n_texts > MOST_TEXTS) n_texts = MOST_TEXTS;
    float scores[MOST_TEXTS];
    frit_model *model = NULL;
    frit_engine *engine = NULL;
    frit_status status = frit_model_open(&model, argc > 1 ? argv[1] : "models/fable.gguf", NULL);
    if (status == FRIT_OK) status = frit_engine_new(&engine, model, NULL);
    if (status == FRIT_OK) status = score(engine, model, texts, n_texts, scores);
    if (status == FRIT_OK) print_sorted(texts, n_texts, scores);
    if (status != FRIT_OK) fprintf(stderr, "rerank: %s\n", frit_error());
    frit_engine_free(engine);
    frit_model_free(model);
    return status != FRIT_OK;
}
