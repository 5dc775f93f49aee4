// SPDX-License-Identifier: MIT
// Activations that a thread makes for itself.
#include "backend/cpu/feed.h"

static frit_own *own_of(const frit_task_env *env, int thread)
{
    return (frit_own *)(void *)(env->workspaces + env->workspace_bytes * (size_t)thread + env->own_offset);
}

float *frit_own_row(const frit_task_env *env, int thread)
{
    return (float *)(void *)(own_of(env, thread) + 1);
}

bool frit_feed_is_own(const frit_feed *feed)
{
    return feed->own && frit_node_height(feed->source) <= FRIT_OWN_ROWS;
}

void frit_norm_row(const frit_kernels *kernels, const frit_node *norm, float *y, const float *x, const float *w,
                   const float *b)
{
    const int64_t n = frit_node_width(norm);
    if (norm->op == FRIT_OP_LAYER_NORM)
        kernels->layer_norm(y, x, w, b, n, norm->eps);
    else
        kernels->rms_norm(y, x, w, n, norm->eps);
}

void frit_norm_add_row(const frit_kernels *kernels, const frit_node *sum, float *y, const float *x, const float *w,
                       const float *r)
{
    const int64_t n = frit_node_width(sum);
    kernels->rms_norm(y, x, w, n, sum->eps);
    kernels->add(y, r, y, n);
}

static void make_sum(const frit_feed *feed, int64_t t, float *y)
{
    const int64_t n = frit_node_width(feed->sum);
    frit_norm_add_row(feed->env->kernels, feed->sum, y, feed->sum_of[0] + t * n, feed->sum_of[1],
                      feed->sum_of[2] + t * n);
}

void frit_feed_keep(const frit_feed *feed)
{
    const int64_t n = frit_node_width(feed->sum), height = frit_node_height(feed->sum);
    for (int64_t t = 0; frit_feed_is_own(feed) && t < height; t++) make_sum(feed, t, feed->kept + t * n);
}

static void make(const frit_feed *feed, int thread, uint8_t *rows)
{
    const frit_kernels *k = feed->env->kernels;
    const int64_t n = frit_node_width(feed->source), height = frit_node_height(feed->source);
    for (int64_t t = 0; t < height; t++) {
        const float *x = feed->x + t * n;
        uint8_t *row = frit_form_row(feed->form, rows, t, n);
        float *y = feed->form == FRIT_FORM_F32 ? (float *)(void *)row : frit_own_row(feed->env, thread);
        if (feed->sum) {
            float *sum = feed->norm ? frit_own_row(feed->env, thread) + n : y;
            make_sum(feed, t, sum);
            x = sum;
        }
        if (feed->norm) {
            frit_norm_row(k, feed->norm, y, x, feed->w[0], feed->w[1]);
            x = y;
        }
        if (feed->form != FRIT_FORM_F32) k->convert[feed->form](x, row, n);
    }
}

const uint8_t *frit_feed_rows(const frit_feed *feed, int thread)
{
    if (!frit_feed_is_own(feed)) return feed->rows;
    frit_own *own = own_of(feed->env, thread);
    uint8_t *rows = (uint8_t *)own + feed->own_offset;
    const uint64_t wanted = (uint64_t)feed->env->run << 32 | feed->id;
    if (own->holds[feed->form] == wanted) return rows;
    make(feed, thread, rows);
    own->holds[feed->form] = wanted;
    return rows;
}
