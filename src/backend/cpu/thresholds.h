// SPDX-License-Identifier: MIT
// backend/cpu/thresholds.h: the numbers of rows at which the CPU changes how it computes.
//
// Decode waits for memory: every weight is read for a few multiplications, and a barrier costs more than it saves.
// Prefill is bound by arithmetic: it pays to convert rows and to unpack weights once for all rows. FRIT_PREFILL_*
// choose kernels, which round differently with AMX. FRIT_JOINS_ABOVE and FRIT_LONG_PREFILL_ROWS change kernels too, as
// their comments say. The other thresholds change which thread computes; results have the same bits.
#pragma once

enum {
    // Up to this many rows, each thread computes norms and conversions for itself (act_input.h), because a barrier
    // after which each thread has computed a part costs more.
    FRIT_PER_THREAD_ROWS = 2,

    // Up to this many rows, products wait for memory, and a thread that waits at a barrier prefetches the weights that
    // it reads next (exec.c).
    FRIT_PREFETCH_ROWS = 4,

    // Up to this many rows, sparse attention cuts the positions that it scores into items, because there are fewer rows
    // than threads (fast_choose.c). Memory for scores is allocated for this many rows.
    FRIT_SPLIT_SCORES_ROWS = 16,

    // From this many rows on, a piece of a product takes long, and threads claim single pieces, so that no thread waits
    // for another that has claimed several (exec.c).
    FRIT_LONG_PIECE_ROWS = 8,

    // From this many rows on, products are bound by arithmetic, even with small matrices, and the threads for prefill
    // run the step (-tb, exec.c).
    FRIT_COMPUTE_BOUND_ROWS = 32,

    // Plans for fewer rows than this touch little of each thread's workspace, which therefore gets no huge pages
    // (lower_memory.c).
    FRIT_SPARSE_MEMORY_ROWS = 32,

    // From this many rows of a sequence on, or if more than FRIT_DECODE_GROUP heads share a head of the cache,
    // attention decodes keys and values once for all queries. With fewer rows, decoding costs more than reading the
    // cache directly (attend_plan.c).
    FRIT_PREFILL_ATTEND_ROWS = 32,
    FRIT_DECODE_GROUP = 4,

    // From this many rows of a node on, AMX kernels, which unpack weights into tiles, are faster than kernels that
    // multiply while they unpack (isa.def). A session whose prompt has at least half as many rows uses them whatever
    // the other sessions of the step use, so that its results do not depend on them (engine/sched/schedule.c).
    FRIT_PREFILL_ROWS = 64,

    // A decode step with more sequences than this multiplies their rows by prefill kernels: unpacking weights into
    // tiles pays although each sequence has one row (docs/log/amx.md). Up to this many sequences, a session's results
    // do not depend on the number of sessions.
    FRIT_JOINS_ABOVE = 24,

    // From this many queued rows of a session on, attention multiplies bf16 with vectors (avx512bf16 in isa.def): the
    // rows fill a panel of queries even if each head has its own head of the cache.
    FRIT_LONG_PREFILL_ROWS = 32,

    // From this many rows of one sequence and one expert on, prefill kernels multiply them (dispatch.h): a tile has
    // FRIT_TILE_ROWS rows, and fewer would leave parts of it empty.
    FRIT_PREFILL_ASSIGNMENTS = 16,
};
