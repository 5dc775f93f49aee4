// SPDX-License-Identifier: MIT
// Properties of the op attend: which positions a row sees, the scale, slopes, sinks.
#define P_Q params[0].z
#define P_Y params[0].w
#define P_CHUNKS params[3].x
#define P_WINDOW params[3].y
#define P_CHUNK params[3].z
#define P_KIND params[3].w
#define P_SCALE bitcast<f32>(params[4].x)
#define P_SOFTCAP bitcast<f32>(params[4].y)
#define P_ALIBI bitcast<f32>(params[4].z)
#define P_REACH params[4].w
#define P_TEMP_SCALE bitcast<f32>(params[5].x)
#define P_TEMP_OFFSET bitcast<f32>(params[5].y)
#define P_TEMP_LENGTH params[5].z
// Of later positions that a row sees: where the end of row 0 lies in scratch, and the numbers of a row; 0: none.
#define P_ENDS params[6].y
#define P_ENDS_WIDTH params[6].z

// P_KIND: 0 earlier positions, 1 both directions, 2 the encoded source.
fn span_of(seq: u32, own: u32) -> vec2<u32> {
    let at = STEP_SEQS + seq * 8u;
    if (P_KIND == 2u) {
        return vec2<u32>(0u, step[at + 6u]);
    }
    if (P_KIND == 1u) {
        let end = step[at + 1u] + step[at + 2u];
        let reach = select(end, P_WINDOW / 2u, P_WINDOW > 0u);
        return vec2<u32>(own - min(own, reach), min(own + reach + 1u, end));
    }
    var begin = 0u;
    if (P_WINDOW > 0u && own >= P_WINDOW) {
        begin = own - P_WINDOW + 1u;
    }
    if (P_CHUNK > 0u) {
        begin = own / P_CHUNK * P_CHUNK;
    }
    var end = own + 1u;
    if (P_ENDS_WIDTH > 0u) {
        let row = step[at] + own - step[at + 2u];
        end = max(end, u32(scratch[P_ENDS + row * P_ENDS_WIDTH]));
    }
    return vec2<u32>(begin, end);
}

fn scale_of(own: u32) -> f32 {
    if (P_TEMP_SCALE == 0.0) {
        return P_SCALE;
    }
    return P_SCALE * (1.0 + P_TEMP_SCALE * log(1.0 + floor((f32(own) + P_TEMP_OFFSET) / f32(P_TEMP_LENGTH))));
}

// ALiBi: slopes of heads are powers of two for as many heads as the largest power of two, then those between.
fn slope_of(head: u32) -> f32 {
    let n_all = P_N_KV * GROUPu;
    let n = 1u << (31u - countLeadingZeros(n_all));
    if (head < n) {
        return exp2(-P_ALIBI * f32(head + 1u) / f32(n));
    }
    return exp2(-P_ALIBI * 0.5 * f32(2u * (head - n) + 1u) / f32(n));
}

// A sink is one more score, of a value 0.
fn final_factor(head: u32, most: f32, sum: f32) -> f32 {
#if SINKS
    let sink = gains[head];
    if (sink > most) {
        let shrink = exp(most - sink);
        return shrink / (sum * shrink + 1.0);
    }
    return 1.0 / (sum + exp(sink - most));
#else
    return 1.0 / sum;
#endif
}
