// SPDX-License-Identifier: MIT
// Interleaves the blocks of sixteen rows for the kernels of tmpl/packed_tmpl.h.
#include "backend/cpu/pack/pack.h"
#include "quant/recode.h"

#include <string.h>

#define ROW(name, NAME, words_at, n_words, rest_at, rest_bytes, recode, n_from, n_to, ...) \
    [FRIT_DTYPE_##NAME] = {#name, FRIT_DTYPE_##NAME, words_at, n_words, rest_at, rest_bytes, recode, n_from, n_to},
#define PACKED_32      ROW
#define PACKED_256     ROW
#define TRANSPOSED_256 ROW
static const frit_interleave rows[FRIT_DTYPE_COUNT] = {
#include "backend/cpu/pack/packed.def"
};
static const frit_interleave indexed_rows[FRIT_DTYPE_COUNT] = {
#include "backend/cpu/pack/packed_indexed.def"
};

enum { MAX_RECODED = 144 };   // bytes

// A step along a row: the blocks that are recoded together, or one block.
typedef struct stride {
    size_t from_bytes, to_bytes;   // in the file, packed
    int n_to;                      // blocks of words and a rest
    int elems;
} stride;

static stride stride_of(const frit_interleave *split)
{
    const frit_dtype_info *type = frit_dtype_get(split->dtype);
    const size_t block_bytes = (size_t)type->block_bytes;
    if (!split->recode) return (stride){block_bytes, block_bytes, 1, type->block_elems};
    return (stride){block_bytes * split->n_from, ((size_t)split->n_words * 4 + split->rest_bytes) * split->n_to,
                    split->n_to, type->block_elems * split->n_from};
}

const frit_interleave *frit_interleave_get(frit_dtype dtype)
{
    return rows[dtype].n_words ? &rows[dtype] : NULL;
}

const frit_interleave *frit_interleave_indexed(frit_dtype dtype)
{
    return indexed_rows[dtype].n_words ? &indexed_rows[dtype] : NULL;
}

bool frit_pack_fits(const frit_interleave *layout, int64_t n)
{
    return n % stride_of(layout).elems == 0;
}

size_t frit_pack_row_bytes(const frit_interleave *layout, int64_t n)
{
    const stride step = stride_of(layout);
    return (size_t)(n / step.elems) * step.to_bytes;
}

// Writes one block of row r of a panel.
static void put_block(const frit_interleave *split, const uint8_t *block, int r, uint8_t *words)
{
    uint8_t *rest = words + (size_t)split->n_words * 4 * FRIT_PANEL_ROWS;
    for (int w = 0; w < split->n_words; w++)
        memcpy(words + 4 * (w * FRIT_PANEL_ROWS + r), block + split->words_at + 4 * w, 4);
    for (int i = 0; i < split->rest_bytes; i++) rest[r * split->rest_bytes + i] = block[split->rest_at + i];
}

void frit_pack_panel(const frit_interleave *split, const uint8_t *first, int n_rows, int64_t n, uint8_t *panel)
{
    static const uint8_t zeros[256];   // larger than a block of any type
    const stride step = stride_of(split);
    const size_t row_bytes = (size_t)frit_dtype_row_bytes(split->dtype, n),
                 to_bytes = step.to_bytes / (size_t)step.n_to;
    uint8_t recoded[MAX_RECODED];
    for (size_t at = 0; at < row_bytes; at += step.from_bytes, panel += step.to_bytes * FRIT_PANEL_ROWS) {
        for (int r = 0; r < FRIT_PANEL_ROWS; r++) {
            const uint8_t *blocks = r < n_rows ? first + (size_t)r * row_bytes + at : zeros;
            if (split->recode && r < n_rows) {
                split->recode(blocks, recoded);
                blocks = recoded;
            }
            for (int i = 0; i < step.n_to; i++)
                put_block(split, blocks + (size_t)i * to_bytes, r, panel + (size_t)i * to_bytes * FRIT_PANEL_ROWS);
        }
    }
}
