// SPDX-License-Identifier: MIT
// Which rows a product with matrices of experts multiplies. Assignment a is expert a % P_USED of row a / P_USED.
//
// ROUTED: 1 an assignment, 2 a group of assignments that share an expert (dispatch.wgsl), 3 all assignments of a row,
// whose products are added, 4 rows that share a head of the op heads, where heads are experts that all rows have.
// OWN_ROWS: assignments have rows of the input; otherwise the rows of the batch do. WEIGHED: products are multiplied by
// the weights of the route. The buffer has experts from P_FIRST on to before P_END, each of P_TILES row tiles.
#define P_ROUTE params[5].x
#define P_USED params[5].y
#define P_LISTS params[5].z
#define P_ORDER params[5].w
#define P_FIRST params[6].x
#define P_END params[6].y

struct assignments {
    expert: u32,
    first: u32,
    count: u32,
}

fn expert_of(a: u32) -> u32 {
#if ROUTED == 4
    return a % P_USED;
#else
    return u32(scratch[P_ROUTE + a / P_USED * 2u * P_USED + a % P_USED]);
#endif
}

fn weight_of(a: u32) -> f32 {
#if WEIGHED
    return scratch[P_ROUTE + (a / P_USED * 2u + 1u) * P_USED + a % P_USED];
#else
    return 1.0;
#endif
}

fn input_of(a: u32) -> u32 {
#if OWN_ROWS
    return a;
#else
    return a / P_USED;
#endif
}

// Assignments of group i of threads. None if their expert is in another buffer.
fn assignments_of(i: u32) -> assignments {
#if ROUTED == 2
    let at = P_LISTS + 3u * i;
    var g = assignments(u32(scratch[at]), u32(scratch[at + 1u]), u32(scratch[at + 2u]));
#elif ROUTED == 4
    let first = i / P_USED * NRu;
    var g = assignments(i % P_USED, first, min(NRu, row_count() - first));
#else
    var g = assignments(expert_of(i), i, 1u);
#endif
    if ((g.expert < P_FIRST) || (g.expert >= P_END)) {
        g.count = 0u;
    }
    return g;
}

// Number i of the assignments; the last one if there are fewer.
fn assignment(g: assignments, i: u32) -> u32 {
    let at = g.first + min(i, max(g.count, 1u) - 1u);
#if ROUTED == 2
    return u32(scratch[P_ORDER + at]);
#elif ROUTED == 4
    return at * P_USED + g.expert;
#else
    return at;
#endif
}

fn first_tile(expert: u32) -> u32 {   // of the buffer
    return (clamp(expert, P_FIRST, P_END - 1u) - P_FIRST) * P_TILES;
}
