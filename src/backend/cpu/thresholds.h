// SPDX-License-Identifier: MIT
// backend/cpu/thresholds.h: the numbers of rows at which the CPU computes in another way.
//
// A step of few rows (decode) waits for memory: every weight is read for the sake of a few multiplications, and a
// barrier costs more than what it saves. One of many rows (prefill) is bound by arithmetic: it pays to convert rows and
// to unpack weights once for all of them. FRIT_PREFILL_* choose kernels, which round otherwise with AMX; the others
// change which thread computes, and the results are the same to the bit.
#pragma once

enum {
    // Each thread computes norms and conversions of up to so many rows for itself, instead of waiting at a barrier
    // until all threads have computed a part (act_input.h): the barrier costs more.
    FRIT_PER_THREAD_ROWS = 2,

    // Up to so many rows, products wait for memory, and a thread that waits at a barrier prefetches the weights that it
    // reads next (exec.c).
    FRIT_PREFETCH_ROWS = 4,

    // Up to so many rows, the positions that sparse attention scores are cut into items, because there are fewer rows
    // than threads (fast_choose.c). There is memory for the scores of so many rows.
    FRIT_SPLIT_SCORES_ROWS = 16,

    // From so many rows on a piece of a product takes long: a thread takes them one by one at the end of a phase, so
    // that others do not wait for a slow thread that has taken several (exec.c).
    FRIT_LONG_PIECE_ROWS = 8,

    // From so many rows on, products are bound by arithmetic, also those of small matrices: the threads for prompts run
    // the step (-tb, exec.c).
    FRIT_COMPUTE_BOUND_ROWS = 32,

    // Plans for fewer rows than this touch a little of each thread's workspace, which therefore gets no huge pages
    // (lower_memory.c).
    FRIT_SPARSE_MEMORY_ROWS = 32,

    // From so many rows of a sequence on, or where more than FRIT_DECODE_GROUP heads share a head of the cache,
    // attention decodes keys and values once for all queries that look at them. With fewer, decoding costs more than
    // reading the cache as it lies (attend_plan.c).
    FRIT_PREFILL_ATTEND_ROWS = 32,
    FRIT_DECODE_GROUP = 4,

    // From so many rows of a node on, kernels that unpack weights into tiles are faster than those that multiply while
    // they unpack: AMX (isa.def). A session whose prompt has half as many rows runs by them, whatever the rows of other
    // sessions in the step run by, so that its kernels do not depend on these (engine/sched/schedule.c).
    FRIT_PREFILL_ROWS = 64,

    // A decode step with more sequences than this multiplies their rows by prefill kernels: unpacking weights into
    // tiles pays, though each sequence has one row (docs/log/amx.md). Up to here a session's results do not depend on
    // how many others there are.
    FRIT_JOINS_ABOVE = 24,

    // From so many queued rows of a session on attention multiplies bfloat16 where vectors do (avx512bf16 in isa.def):
    // as many as fill a panel of queries with one head for each of the cache.
    FRIT_LONG_PREFILL_ROWS = 32,

    // The same for the rows of one sequence that one expert multiplies: as many as a tile has (FRIT_TILE_ROWS). Fewer
    // leave parts of a tile empty (dispatch.h).
    FRIT_PREFILL_ASSIGNMENTS = 16,
};
