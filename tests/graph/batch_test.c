// SPDX-License-Identifier: MIT
// A step's input as one block: a device's copy stays valid at any address and after the original arrays are freed.
#include "support/support.h"

#include "graph/batch.h"

#include <stdlib.h>

static int32_t tokens[] = {5, ~1, 7}, positions[] = {3, 4, 0}, out_rows[] = {1, 2}, pages[] = {4, 9, -1, 2};
static frit_seq seqs[] = {{.first_row = 0, .n_rows = 2, .n_past = 3}, {.first_row = 2, .n_rows = 1}};
static float scales[] = {1, 2, 3, 4, 5, 6};
static frit_pick picks[] = {{.row = 0, .mask = 1, .n_biases = 1}, {.row = 1, .mask = -1, .n_counts = 2}};
static frit_candidate biases[] = {{3, 1.5f}};
static frit_pick_count counts[] = {{7, 1}, {8, 2}};
static uint32_t masks[] = {1, 2, 3, 4, 5, 6};
static float saved[3];

static frit_batch make_batch(void)
{
    return (frit_batch){.n_rows = 3,
                        .n_outs = 2,
                        .n_seqs = 2,
                        .tokens = tokens,
                        .positions = positions,
                        .out_rows = out_rows,
                        .seqs = seqs,
                        .pages = pages,
                        .n_groups = 1,
                        .page_stride = 2,
                        .scales = scales,
                        .n_adapters = 3,
                        .picks = picks,
                        .n_picks = 2,
                        .lists = {.n_vocab = 90,
                                  .biases = biases,
                                  .counts = counts,
                                  .masks = masks,
                                  .saved = saved,
                                  .n_biases = 1,
                                  .n_counts = 2,
                                  .n_masks = 2,
                                  .n_tops = 4}};
}

static void assert_same(const frit_batch *a, const frit_batch *b)
{
    assert_int_equal(a->n_rows, b->n_rows);
    assert_int_equal(a->n_outs, b->n_outs);
    assert_int_equal(a->n_picks, b->n_picks);
    assert_int_equal(a->lists.n_vocab, b->lists.n_vocab);
    assert_int_equal(a->lists.n_tops, b->lists.n_tops);
    assert_memory_equal(a->tokens, b->tokens, sizeof tokens);
    assert_memory_equal(a->positions, b->positions, sizeof positions);
    assert_memory_equal(a->out_rows, b->out_rows, sizeof out_rows);
    assert_memory_equal(a->seqs, b->seqs, sizeof seqs);
    assert_memory_equal(a->pages, b->pages, sizeof pages);
    assert_memory_equal(a->picks, b->picks, sizeof picks);
    assert_memory_equal(a->lists.biases, b->lists.biases, sizeof biases);
    assert_memory_equal(a->lists.counts, b->lists.counts, sizeof counts);
    assert_memory_equal(a->lists.masks, b->lists.masks, sizeof masks);
}

static bool is_inside(const void *at, const uint8_t *block, size_t n_bytes)
{
    return (const uint8_t *)at >= block && (const uint8_t *)at < block + n_bytes;
}

static void a_batch_is_the_same_from_a_block_that_was_moved(void **state)
{
    (void)state;
    const frit_batch batch = make_batch();
    const size_t n_bytes = (size_t)frit_batch_bytes(&batch);
    uint8_t *block = malloc(n_bytes), *moved = malloc(n_bytes);
    frit_batch_pack(block, &batch);
    memcpy(moved, block, n_bytes);
    memset(block, 0xff, n_bytes);
    free(block);
    const frit_batch view = frit_batch_view(moved);
    assert_same(&view, &batch);
    assert_memory_equal(view.scales, scales, sizeof scales);
    assert_true(is_inside(view.tokens, moved, n_bytes));
    assert_true(is_inside(view.lists.masks, moved, n_bytes));
    for (int i = 0; i < 3; i++) view.lists.saved[i] = 1;   // has its own memory
    assert_same(&view, &batch);
    assert_true(view.lists.saved[0] > saved[0]);
    free(moved);
}

static void a_batch_without_scales_or_picks_has_none_afterwards(void **state)
{
    (void)state;
    frit_batch batch = make_batch();
    batch.scales = NULL;
    batch.n_picks = 0;
    batch.lists = (frit_pick_lists){.n_vocab = 90};
    const size_t n_bytes = (size_t)frit_batch_bytes(&batch);
    uint8_t *block = malloc(n_bytes);
    frit_batch_pack(block, &batch);
    const frit_batch view = frit_batch_view(block);
    assert_null(view.scales);
    assert_int_equal(view.n_picks, 0);
    assert_memory_equal(view.pages, pages, sizeof pages);
    free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_the_same_from_a_block_that_was_moved),
        cmocka_unit_test(a_batch_without_scales_or_picks_has_none_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
