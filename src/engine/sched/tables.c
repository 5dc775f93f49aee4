// SPDX-License-Identifier: MIT
// Page tables and scales of a step's sequences, as the batch has them: arrays that hold no pointers.
//
// The arrays grow when sessions and adapters are made, so that a step allocates nothing. Rows of a step's page tables
// are as long as the longest row of its sequences.
#include "engine/engine.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

static frit_status reserve_arrays(frit_step_tables *t, size_t n_pages, size_t n_scales)
{
    FRIT_TRY(FRIT_GROW(t->pages, t->pages_capacity, n_pages, "the page tables of a step"));
    return FRIT_GROW(t->scales, t->scales_capacity, n_scales, "the adapters of a step");
}

frit_status frit_step_reserve_tables(frit_engine *engine, size_t n_sessions, size_t n_adapters)
{
    const size_t n_pages = n_sessions * (size_t)engine->kv.n_groups * (size_t)frit_kv_pages_of(engine->n_ctx);
    for (int i = 0; i < FRIT_MAX_FLIGHTS; i++)
        FRIT_TRY(reserve_arrays(&engine->flights.ring[i].step.tables, n_pages, n_sessions * n_adapters));
    return FRIT_OK;
}

frit_status frit_step_reserve_picks(frit_engine *engine)
{
    frit_step *step = engine->step;
    frit_pick_room room = {0};
    for (const frit_session *s = engine->sessions; s; s = s->next)
        for (int32_t k = 0; k < s->pick.n; k++) {
            const frit_pick_lists *lists = &s->pick.requests[k].lists;
            room.n_biases += lists->n_biases;
            room.n_counts += lists->n_counts;
            room.n_masks += lists->n_masks;
            room.n_tops += lists->n_tops;
        }
    frit_pick_lists_clear(&step->lists);
    step->lists.n_vocab = engine->hp.n_vocab;
    return frit_pick_lists_reserve(&step->lists, &room);
}

void frit_step_free_tables(frit_step_tables *tables)
{
    free(tables->pages);
    free(tables->scales);
    *tables = (frit_step_tables){0};
}

static void fill_row(int32_t *row, int32_t stride, const frit_kv_table *table)
{
    for (int32_t i = 0; i < table->begin; i++) row[i] = -1;
    memcpy(row + table->begin, table->pages + table->begin, (size_t)(table->end - table->begin) * sizeof *row);
    for (int32_t i = table->end; i < stride; i++) row[i] = -1;
}

static void fill_pages(frit_engine *engine)
{
    frit_step *step = engine->step;
    int32_t stride = 0;
    for (int32_t r = 0; r < step->n_seqs; r++)
        for (int32_t group = 0; group < engine->kv.n_groups; group++) {
            const int32_t n = step->owners[r]->map.tables[group].end;
            if (n > stride) stride = n;
        }
    int32_t *row = step->tables.pages;
    for (int32_t group = 0; group < engine->kv.n_groups; group++)
        for (int32_t r = 0; r < step->n_seqs; r++, row += stride)
            fill_row(row, stride, &step->owners[r]->map.tables[group]);
    step->tables.page_stride = stride;
}

void frit_step_fill_tables(frit_engine *engine)
{
    frit_step *step = engine->step;
    const size_t n = (size_t)engine->adapters.n;
    fill_pages(engine);
    const bool adapted = step->adapted.ranks > 0 || step->adapted.steers;
    for (int32_t r = 0; adapted && r < step->n_seqs; r++) {
        const float *scales = step->owners[r]->adapters.scales;
        float *row = step->tables.scales + (size_t)r * n;
        for (size_t i = 0; i < n; i++) row[i] = scales ? scales[i] : 0;
    }
}
