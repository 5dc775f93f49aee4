// SPDX-License-Identifier: MIT
// Hyper-connections: a token has n residual streams. The weights with which a branch reads them, adds to them and mixes
// them are computed from the normed streams.
#include "arch/arch.h"

static frit_node *flat(frit_build *b, frit_node *x, int64_t n)
{
    return frit_reshape(b->g, x, 1, (int64_t[]){n});
}

static frit_node *by_stream(frit_build *b, frit_node *x, int64_t n)
{
    return frit_reshape(b->g, x, 2, (int64_t[]){n, b->hp->n_embd});
}

// Returns what op hyper computes from the streams.
static frit_node *weights_of(frit_build *b, const frit_hyper_weights *w, frit_node *streams)
{
    streams = flat(b, streams, (int64_t)b->hp->n_hyper * b->hp->n_embd);
    const frit_hparams *hp = b->hp;
    const frit_hyper hyper = {.n = hp->n_hyper, .n_iterations = hp->hyper_iterations, .eps = hp->hyper_eps};
    frit_node *x = frit_linear(b, &w->mix, frit_rms_norm(b->g, streams, NULL, hp->rms_eps));
    return frit_hyper_node(b->g, x, frit_weight_node(b->g, w->scales.w), frit_weight_node(b->g, w->biases.w), hyper);
}

// The sum of the streams with the weights [T, n].
static frit_node *sum_streams(frit_build *b, frit_node *streams, frit_node *weights)
{
    const int64_t n = b->hp->n_hyper, width = b->hp->n_embd;
    return flat(b, frit_mix_streams(b->g, streams, frit_reshape(b->g, weights, 2, (int64_t[]){1, n})), width);
}

frit_node *frit_hyper_begin(frit_build *b, frit_node *x)
{
    frit_node *streams = x;
    for (int32_t i = 1; i < b->hp->n_hyper; i++) streams = frit_concat(b->g, streams, x);
    return by_stream(b, streams, b->hp->n_hyper);
}

frit_hyper_branch frit_hyper_read(frit_build *b, const frit_hyper_weights *w, frit_node *streams)
{
    const int64_t n = b->hp->n_hyper;
    frit_node *all = weights_of(b, w, streams), *mix = frit_slice(b->g, all, n, n * (n + 1));
    return (frit_hyper_branch){.x = sum_streams(b, streams, frit_slice(b->g, all, 0, n)),
                               .weights = frit_reshape(b->g, mix, 2, (int64_t[]){n, n + 1})};
}

frit_node *frit_hyper_write(frit_build *b, frit_hyper_branch branch, frit_node *streams, frit_node *y)
{
    const int64_t n = b->hp->n_hyper, width = b->hp->n_embd;
    frit_node *all = frit_concat(b->g, flat(b, streams, n * width), y);
    return frit_mix_streams(b->g, by_stream(b, all, n + 1), branch.weights);
}

frit_node *frit_hyper_end(frit_build *b, frit_node *streams)
{
    return sum_streams(b, streams, weights_of(b, &b->weights->out_hyper, streams));
}
