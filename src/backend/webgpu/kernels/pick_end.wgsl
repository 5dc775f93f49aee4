// SPDX-License-Identifier: MIT
// The last stage of pick_run.wgsl: a group of threads chooses the token.
var<workgroup> items: array<vec2<u32>, MOST_LISTED>;   // key, token
var<workgroup> n_items: atomic<u32>;
var<workgroup> tie_bins: array<atomic<u32>, 1024>;
var<workgroup> first: atomic<u32>;     // the least index that threads have found
var<workgroup> chosen: atomic<u32>;    // the token
var<workgroup> uniform_word: u32;
var<workgroup> block: vec3<u32>;       // a group of stage 3, and what is left of the drawn number in it

// The same number for all threads, for those that decide about barriers.
fn all_threads(thread: u32, word: u32) -> u32 {
    workgroupBarrier();
    if (thread == 0u) {
        uniform_word = word;
    }
    return workgroupUniformLoad(&uniform_word);
}

// ------------------------------------------------------------------------------- lists

fn put_item(key: u32, token: u32) {
    let at = atomicAdd(&n_items, 1u);
    if (at < MOST_LISTEDu) {
        items[at] = vec2<u32>(key, token);
    }
}

// For more tokens with the upper 22 bits of the least key than the list holds: lists the tokens above the exact least
// key, then the first tokens with this key.
fn list_exactly(pick: u32, thread: u32) {
    let wanted = pick_word(pick, OF_TOP_K);
    let prefix = find_prefix(pick, thread);
    for (var i = thread; i < 1024u; i += THREADSu) {
        atomicStore(&tie_bins[i], 0u);
    }
    workgroupBarrier();
    for (var i = thread; i < P_N_VOCAB; i += THREADSu) {
        let key = key_at(pick, i);
        if ((key > KEY_OF_MINUS_INFINITY) && (key >> 10u == prefix.x)) {
            atomicAdd(&tie_bins[key & 1023u], 1u);
        }
    }
    workgroupBarrier();
    if (thread == 0u) {
        var above = prefix.y;
        var bin = 1023u;
        for (; bin > 0u; bin--) {
            let n = atomicLoad(&tie_bins[bin]);
            if (above + n >= wanted) {
                break;
            }
            above += n;
        }
        found_bin = vec2<u32>((prefix.x << 10u) | bin, wanted - above);
    }
    workgroupBarrier();
    let least = found_bin.x;
    let n_ties = found_bin.y;
    let each = (P_N_VOCAB + THREADSu - 1u) / THREADSu;
    let begin = thread * each;
    let end = min(begin + each, P_N_VOCAB);
    var own = 0u;
    for (var i = begin; i < end; i++) {
        let key = key_at(pick, i);
        if (key > least) {
            put_item(key, i);
        }
        own += select(0u, 1u, key == least);
    }
    sum_up(thread, vec2<u32>(own, 0u));
    var before = sums[thread].x - own;
    for (var i = begin; i < end; i++) {
        if (key_at(pick, i) == least) {
            if (before < n_ties) {
                put_item(least, i);
            }
            before += 1u;
        }
    }
    workgroupBarrier();
}

fn is_after(a: vec2<u32>, b: vec2<u32>) -> bool {
    return (a.x < b.x) || ((a.x == b.x) && (a.y > b.y));
}

fn sort_items(thread: u32, n: u32) {
    var room = 2u;
    for (; room < n; room *= 2u) {
    }
    for (var i = n + thread; i < room; i += THREADSu) {
        items[i] = vec2<u32>(0u, 0xffffffffu);
    }
    workgroupBarrier();
    for (var size = 2u; size <= room; size *= 2u) {
        for (var distance = size / 2u; distance > 0u; distance /= 2u) {
            for (var i = thread; i < room; i += THREADSu) {
                let other = i ^ distance;
                if (other > i) {
                    let a = items[i];
                    let b = items[other];
                    if (is_after(a, b) == ((i & size) == 0u)) {
                        items[i] = b;
                        items[other] = a;
                    }
                }
            }
            workgroupBarrier();
        }
    }
}

// The first index at which a thread has `is_end`, or n.
fn first_end(thread: u32, n: u32, is_end: bool) -> u32 {
    workgroupBarrier();
    if (thread == 0u) {
        atomicStore(&first, n);
    }
    workgroupBarrier();
    if ((thread < n) && is_end) {
        atomicMin(&first, thread);
    }
    workgroupBarrier();
    return atomicLoad(&first);
}

// Number of the first n items that stay. n is at most THREADS.
fn cut_list(pick: u32, thread: u32, n_listed: u32, most: f32) -> u32 {
    var n = n_listed;
    let share = pick_float(pick, OF_TOP_P);
    let item = items[thread];
    if (share > 0.0) {
        sum_up(thread, vec2<u32>(select(0u, weight_of(kept(logit_of(item.x) - most)), thread < n), 0u));
        let wanted = share_of(sums[THREADSu - 1u], share);
        n = min(n, first_end(thread, n, !is_less_64(sums[thread], wanted)) + 1u);
    }
    if (pick_word(pick, OF_MIN_P) != 0u) {
        let least = kept(most + pick_float(pick, OF_MIN_P + 1u));
        n = max(1u, first_end(thread, n, !(logit_of(item.x) >= least)));
    }
    return n;
}

// Each thread has a token, and adds the weights of the tokens with lower ids.
fn draw_of_list(pick: u32, thread: u32, n: u32, most: f32) {
    let item = items[thread];
    var own = 0u;
    if (thread < n) {
        own = weight_at(logit_of(item.x), most, pick_float(pick, OF_TEMP));
    }
    sum_up(thread, vec2<u32>(own, 0u));
    let drawn = vec2<u32>(pick_word(pick, OF_DRAWN), pick_word(pick, OF_DRAWN + 1u));
    let at = number_below(drawn, sums[THREADSu - 1u]);
    workgroupBarrier();
    sums[thread] = vec2<u32>(own, 0u);
    if (thread == 0u) {
        atomicStore(&chosen, items[0].y);
    }
    workgroupBarrier();
    if (thread < n) {
        var before = vec2<u32>(0u);
        for (var i = 0u; i < n; i++) {
            if (items[i].y < item.y) {
                before = sum_64(before, sums[i]);
            }
        }
        if (!is_less_64(at, before) && is_less_64(at, sum_64(before, vec2<u32>(own, 0u)))) {
            atomicStore(&chosen, item.y);
        }
    }
}

fn choose_of_list(pick: u32, thread: u32, most: f32) {
    let base = pick * WORK_WORDS;
    let n_found = all_threads(thread, atomicLoad(&work[base + AT_LENGTH]));
    if (n_found > MOST_LISTEDu) {
        list_exactly(pick, thread);
    } else {
        for (var i = thread; i < n_found; i += THREADSu) {
            put_item(atomicLoad(&work[base + AT_LIST + 2u * i]), atomicLoad(&work[base + AT_LIST + 2u * i + 1u]));
        }
    }
    workgroupBarrier();
    let n = all_threads(thread, min(atomicLoad(&n_items), MOST_LISTEDu));
    sort_items(thread, n);
    let n_stay = cut_list(pick, thread, min(n, pick_word(pick, OF_TOP_K)), most);
    draw_of_list(pick, thread, n_stay, most);
}

// ------------------------------------------------------------------------------- all tokens

fn choose_of_all(pick: u32, thread: u32, most: f32) {
    let at_sums = pick * WORK_WORDS + AT_SUMS;
    if (thread == 0u) {
        var total = vec2<u32>(0u);
        for (var i = 0u; i < GROUPSu; i++) {
            total = sum_64(total, vec2<u32>(atomicLoad(&work[at_sums + 2u * i]), atomicLoad(&work[at_sums + 2u * i + 1u])));
        }
        var at = number_below(vec2<u32>(pick_word(pick, OF_DRAWN), pick_word(pick, OF_DRAWN + 1u)), total);
        var i = 0u;
        for (; i + 1u < GROUPSu; i++) {
            let sum = vec2<u32>(atomicLoad(&work[at_sums + 2u * i]), atomicLoad(&work[at_sums + 2u * i + 1u]));
            if (is_less_64(at, sum)) {
                break;
            }
            at = difference_64(at, sum);
        }
        block = vec3<u32>(i, at);
        atomicStore(&chosen, i * each_group());
    }
    workgroupBarrier();
    let at = block.yz;
    let each = (each_group() + THREADSu - 1u) / THREADSu;
    let begin = block.x * each_group() + thread * each;
    let end = min(min(begin + each, (block.x + 1u) * each_group()), P_N_VOCAB);
    var own = vec2<u32>(0u);
    for (var i = begin; i < end; i++) {
        own = sum_64(own, vec2<u32>(weight_of_token(pick, i, most), 0u));
    }
    sum_up(thread, own);
    var before = difference_64(sums[thread], own);
    if (!is_less_64(at, before) && is_less_64(at, sums[thread])) {
        for (var i = begin; i < end; i++) {
            before = sum_64(before, vec2<u32>(weight_of_token(pick, i, most), 0u));
            if (is_less_64(at, before)) {
                atomicStore(&chosen, i);
                break;
            }
        }
    }
}

// ------------------------------------------------------------------------------- the end

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pick = group.y;
    let base = pick * WORK_WORDS;
    let kind = pick_word(pick, OF_KIND);
    find_best_of_groups(pick, thread);
    let most_key = best[0].x;
    let flags = best[0].z;   // of the changed logits
    var first_flags = flags;
    if (has_changes(pick)) {
        first_flags = atomicLoad(&work[base + AT_FLAGS]);
    }
    var own_status = select(0u, 2u, most_key <= KEY_OF_MINUS_INFINITY);
    own_status = select(own_status, 1u, ((flags | first_flags) & 2u) != 0u);
    let status = all_threads(thread, own_status);
    if (thread == 0u) {
        atomicStore(&chosen, best[0].y);
        atomicStore(&n_items, 0u);
    }
    workgroupBarrier();
    if (status == 0u && kind == LISTu) {
        choose_of_list(pick, thread, logit_of(most_key));
    }
    if (status == 0u && kind == ALLu) {
        choose_of_all(pick, thread, logit_of(most_key));
    }
    workgroupBarrier();
    for (var i = thread; i < AT_SUMS; i += THREADSu) {
        atomicStore(&work[base + i], 0u);
    }
    if (thread == 0u) {
        picked[pick * 4u] = select(0u, atomicLoad(&chosen), status == 0u);
        picked[pick * 4u + 1u] = status;
        picked[pick * 4u + 2u] = first_flags & 1u;
    }
}
