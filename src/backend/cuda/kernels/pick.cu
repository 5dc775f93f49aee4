// SPDX-License-Identifier: MIT
// Picks (sample/pick.h), in the passes of sample/pick_runner.c. In each launch, every block of threads scans one of the
// CPU's blocks of the row, and the last block to finish decides the next pass. Sums are of integers, or in the CPU's
// order, so tokens equal those of the CPU. Grid: blocks of the row, picks; 256 threads.
//
// The host launches as many passes as picks of this kind usually need. In the last launch, the deciding block runs all
// further passes alone, so the result does not depend on the number of launches.
//
// Differences from the CPU: the CPU lists the best tokens; here logits are counted in bins until few enough are left to
// be sorted. And logits that biases and penalties changed stay changed.
#include "pick_scans.cuh"

// Functions that the last block of a row runs, some from several places. Inlined there they would double the time that
// the compiler takes for this program, which is longer than that of any other.
#define FUNCTION __device__ __attribute__((noinline))

// ------------------------------------------------------------------------------- ends: by one block, all its threads

// Inclusive prefix sums of the threads' numbers, in `sums`.
FUNCTION void sum_up(pick_block &b, u64 n)
{
    __syncthreads();
    b.sums[threadIdx.x] = n;
    __syncthreads();
    for (int i = 1; i < THREADS; i *= 2) {
        const u64 before = (int)threadIdx.x >= i ? b.sums[threadIdx.x - i] : 0;
        __syncthreads();
        b.sums[threadIdx.x] += before;
        __syncthreads();
    }
}

// The token's logit before biases and penalties, which store the logits that they change.
DEVICE float logit_as_it_came(const row_of &r, pick_block &b, int token)
{
    const frit_gpu_pick &p = *r.pick;
    const frit_gpu_item *biases = (const frit_gpu_item *)p.biases;
    const frit_gpu_count *counts = (const frit_gpu_count *)p.counts;
    __syncthreads();
    if (threadIdx.x == 0) b.found = 0x7fffffff;
    __syncthreads();
    for (int i = threadIdx.x; i < p.n_biases + p.n_counts; i += THREADS)
        if ((i < p.n_biases ? biases[i].token : __ldcg(&counts[i - p.n_biases].token)) == token) atomicMin(&b.found, i);
    __syncthreads();
    const int i = b.found;
    if (i == 0x7fffffff) return __ldcg(r.logits + token);
    return i < p.n_biases ? __ldcg(&biases[i].logit) : __uint_as_float(__ldcg(&counts[i - p.n_biases].count));
}

FUNCTION void finish(const row_of &r, pick_block &b, int status, int token)
{
    const float logit = status == DONE_OK && r.pick->has_logprob ? logit_as_it_came(r, b, token) : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        frit_gpu_picked picked;
        picked.token = token;
        picked.status = status;
        picked.is_bad = b.s.is_bad;
        picked.logit = logit;
        picked.max = b.s.log_max;
        picked.pad = 0;
        picked.sum = b.s.log_sum;
        *(frit_gpu_picked *)r.pick->out = picked;
        *r.token = status == DONE_OK ? token : 0;   // a valid id, because the next step reads it
        b.s.pass = PASS_DONE;
    }
    __syncthreads();
}

// The logit of a token that a penalty changes, which replaces the count. True if the logit is not finite.
DEVICE bool penalize(const row_of &r, frit_gpu_count &c, u32 n)
{
    const frit_gpu_pick &p = *r.pick;
    const float old = __ldcg(r.logits + c.token);
    if (n > 0) r.logits[c.token] = penalized(old, n, p.repeat, p.frequency, p.presence);
    c.count = __float_as_uint(old);
    return !(old < INFINITE);
}

// Adds biases, in their order if a token has several, and penalties. A token of the step before that is to be counted
// may be among the counts.
FUNCTION void change_row(const row_of &r, pick_block &b)
{
    const frit_gpu_pick &p = *r.pick;
    frit_gpu_item *biases = (frit_gpu_item *)p.biases;
    frit_gpu_count *counts = (frit_gpu_count *)p.counts;
    bool is_bad = false;
    const int last = p.n_counts > 0 ? __ldcg(&counts[p.n_counts - 1].token) : 0;
    const int n_known = p.n_counts - (last < 0), unknown = last < 0 ? __ldcg(r.before + ~last) : -1;
    __syncthreads();
    if (threadIdx.x == 0) b.found = 0;
    for (int i = 0; i < p.n_biases; i++) {
        const int token = biases[i].token;
        if (token % THREADS != (int)threadIdx.x) continue;
        const float old = __ldcg(r.logits + token);
        is_bad |= !(old < INFINITE);
        r.logits[token] = __fadd_rn(old, biases[i].logit);
        biases[i].logit = old;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n_known; i += THREADS) {
        const u32 n = counts[i].count;
        if (counts[i].token == unknown) b.found = 1;
        is_bad |= penalize(r, counts[i], n + (n > 0 && counts[i].token == unknown));
    }
    __syncthreads();
    if (threadIdx.x == 0 && unknown >= 0 && !b.found) {
        counts[n_known].token = unknown;
        is_bad |= penalize(r, counts[n_known], 1);
    }
    if (is_bad) b.s.bad_changed = 1;
    __syncthreads();
}

DEVICE void begin_choice(const row_of &r, pick_block &b)
{
    if (r.pick->n_biases + r.pick->n_counts > 0) change_row(r, b);
    __syncthreads();
    if (threadIdx.x == 0) {
        b.s.uses_mask = r.pick->mask != 0;
        b.s.least = -LARGEST;
        b.s.last = 0x7fffffff;
        b.s.pass = PASS_MAX;
    }
    __syncthreads();
}

// The following functions of the state alone are called by one thread.

// Also removes everything below (least, last).
DEVICE void narrow(frit_gpu_pick_state &s, float least, int last)
{
    if (least < s.least || (least == s.least && last > s.last)) return;
    s.least = least;
    s.last = last;
}

DEVICE void begin_bins(frit_gpu_pick_state &s, bool by_weight, double wanted)
{
    s.by_weight = by_weight;
    s.level = 0;
    s.wanted = wanted;
    s.n_before = 0;
    s.pass = PASS_BINS;
}

DEVICE void after_top_p(const frit_gpu_pick &p, frit_gpu_pick_state &s)
{
    if (p.min_p > 0) narrow(s, __fadd_rn(s.max, p.log_min_p), 0x7fffffff);
    s.temp = p.temp;
    s.pass = PASS_SUM;
}

DEVICE void after_top_k(const frit_gpu_pick &p, frit_gpu_pick_state &s)
{
    if (p.top_p > 0 && p.top_p < 1)
        begin_bins(s, true, 0);
    else
        after_top_p(p, s);
}

DEVICE void after_sigma(const row_of &r, frit_gpu_pick_state &s)
{
    if (r.pick->top_k > 0 && r.pick->top_k < r.n_vocab)
        begin_bins(s, false, r.pick->top_k);
    else
        after_top_k(*r.pick, s);
}

DEVICE void after_bins(const frit_gpu_pick &p, frit_gpu_pick_state &s)
{
    if (s.lists != LIST_OF_NONE)
        s.pass = PASS_LIST;
    else if (s.by_weight)
        after_top_p(p, s);
    else
        after_top_k(p, s);
}

// The last logit that stays is `key`: keeps all equal logits of its bin, or the first of them.
DEVICE void end_at(const frit_gpu_pick &p, frit_gpu_pick_state &s, u32 key, u64 bin)
{
    const float logit = logit_of(key);
    const u64 each = s.by_weight ? weight_of(__fsub_rn(logit, s.max)) : 1, n_equal = bin / each;
    u64 n = 1;
    const double rest = (s.wanted - (double)s.n_before) / (double)each - 2;   // minus 2: a safe start
    if (rest > 1) n = (u64)rest < n_equal ? (u64)rest : n_equal;
    while (n < n_equal && (double)(s.n_before + n * each) < s.wanted) n++;
    const bool is_least = logit == s.least;
    if (!(is_least && n_equal <= n)) {
        if (!is_least) s.last = 0x7fffffff;
        s.least = logit;
        s.n_ties = n;
        if (n < n_equal) {
            s.pass = PASS_TIES;
            return;
        }
    }
    after_bins(p, s);
}

// Finds the bin in which the wanted number is reached: b.found, with b.bin as its content.
DEVICE void use_bins(const frit_gpu_pick &p, pick_block &b)
{
    frit_gpu_pick_state &s = b.s;
    s.prefix = (s.level == 0 ? 0 : s.prefix << level_bits(s.level)) | (u32)b.found;
    s.n_before += b.at;
    if (s.lists != LIST_OF_NONE && s.n_before + b.bin <= FRIT_GPU_PICK_LIST) {
        s.least = logit_of(s.prefix << level_shift(s.level));
        s.last = 0x7fffffff;
        s.pass = PASS_LIST;
    } else if (s.level == N_LEVELS - 1) {
        end_at(p, s, s.prefix, b.bin);
    } else {
        s.level++;
        s.pass = PASS_BINS;
    }
}

// Each thread has eight neighbouring bins, from the highest down.
FUNCTION void end_bins(const row_of &r, pick_block &b)
{
    enum { EACH = FRIT_GPU_PICK_BINS / THREADS };
    frit_gpu_pick_state &s = b.s;
    const int top = FRIT_GPU_PICK_BINS - 1 - (int)threadIdx.x * EACH;
    u64 bins[EACH], sum = 0;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        bins[k] = __ldcg(&r.work->bins[top - k]);
        r.work->bins[top - k] = 0;
        sum += bins[k];
    }
    sum_up(b, sum);
    const u64 total = b.sums[THREADS - 1];
    __syncthreads();
    if (threadIdx.x == 0) {
        b.found = -1;
        if (s.level == 0 && s.by_weight) s.wanted = (double)total * (double)r.pick->top_p;
    }
    __syncthreads();
    const bool all_stay = s.level == 0 && (double)total <= s.wanted;
    u64 before = b.sums[threadIdx.x] - sum;
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const bool was = (double)(s.n_before + before) >= s.wanted && before > 0;
        if (!all_stay && bins[k] > 0 && !was && (double)(s.n_before + before + bins[k]) >= s.wanted) {
            b.found = top - k;
            b.at = before;
            b.bin = bins[k];
        }
        before += bins[k];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        if (b.found < 0)
            after_bins(*r.pick, s);
        else
            use_bins(*r.pick, b);
    }
    __syncthreads();
}

DEVICE void drop_bins(const row_of &r)
{
    for (int i = threadIdx.x; i < FRIT_GPU_PICK_BINS; i += THREADS) r.work->bins[i] = 0;
}

// Stores the largest of the blocks' best keys in b.at, and the union of their flags in b.flags.
DEVICE void take_best(const row_of &r, pick_block &b)
{
    if (threadIdx.x == 0) b.flags = 0, b.at = 0;
    __syncthreads();
    if ((int)threadIdx.x < r.n_blocks) {
        atomicMax(&b.at, __ldcg(&r.work->block_best[threadIdx.x]));
        const int flags = __ldcg(&r.work->block_bad[threadIdx.x]);
        if (flags) atomicOr((u32 *)&b.flags, (u32)flags);
    }
    __syncthreads();
}

// The first pass also checks that the row is finite.
DEVICE void note_first(pick_block &b)
{
    if (threadIdx.x == 0) b.s.is_bad = b.flags != 0;
    __syncthreads();
}

// False: the pick has failed.
FUNCTION bool take_max(const row_of &r, pick_block &b)
{
    const float max = logit_of((u32)(b.at >> 32));
    const bool is_bad = b.s.bad_changed || (b.flags & BAD), is_empty = max == -INFINITE;
    if (is_bad || is_empty) {
        drop_bins(r);
        finish(r, b, is_bad ? NOT_FINITE : EMPTY, -1);
        return false;
    }
    if (threadIdx.x == 0) b.s.max = max;
    __syncthreads();
    return true;
}

// Begins the list of the best n tokens, after bins of the first level were counted.
DEVICE void begin_list(const row_of &r, pick_block &b, int what, int n)
{
    if (threadIdx.x == 0) {
        begin_bins(b.s, false, n);
        b.s.lists = what;
    }
    __syncthreads();
    end_bins(r, b);
}

DEVICE void end_log(const row_of &r, pick_block &b)
{
    take_best(r, b);
    note_first(b);
    if (!take_max(r, b)) return;
    if (threadIdx.x == 0) {
        b.s.log_max = b.s.max;
        b.s.pass = PASS_LOG_SUM;
    }
    __syncthreads();
    if (r.pick->n_top > 0) begin_list(r, b, LIST_OF_TOPS, r.pick->n_top);
}

DEVICE void end_log_sum(const row_of &r, pick_block &b)
{
    if (threadIdx.x == 0) {
        double sum = 0;
        for (int i = 0; i < FRIT_GPU_PICK_BLOCKS && i < r.n_blocks; i++)
            sum = __dadd_rn(sum, __ldcg(&r.work->block_parts[i][0]));
        b.s.log_sum = sum;
    }
    begin_choice(r, b);
}

DEVICE void end_change(const row_of &r, pick_block &b)
{
    take_best(r, b);
    note_first(b);
    begin_choice(r, b);
}

DEVICE void end_max(const row_of &r, pick_block &b)
{
    const frit_gpu_pick &p = *r.pick;
    take_best(r, b);
    if (!p.has_logprob && p.n_biases + p.n_counts == 0) note_first(b);
    if (!take_max(r, b)) return;
    if (!(p.temp > 0)) {
        finish(r, b, DONE_OK, (int)~(u32)b.at);
    } else if (wants_list(p)) {
        begin_list(r, b, LIST_OF_CHOICE, p.top_k);
    } else {
        if (threadIdx.x == 0 && p.top_n_sigma > 0) b.s.pass = PASS_SPREAD;
        if (threadIdx.x == 0 && !(p.top_n_sigma > 0)) after_sigma(r, b.s);
        __syncthreads();
    }
}

// The least logit within `limit` of the largest.
DEVICE float least_within(float max, double limit)
{
    const double least = (double)max - limit;
    float x = least < -(double)LARGEST ? -LARGEST : (float)least;
    while (x > -LARGEST && (double)max - (double)nextafterf(x, -INFINITE) <= limit) x = nextafterf(x, -INFINITE);
    while ((double)max - (double)x > limit) x = nextafterf(x, INFINITE);
    return x;
}

DEVICE void end_spread(const row_of &r, pick_block &b)
{
    if (threadIdx.x == 0) {
        double sums[3] = {0, 0, 0};
        for (int i = 0; i < r.n_blocks; i++)
            for (int k = 0; k < 3; k++) sums[k] = __dadd_rn(sums[k], __ldcg(&r.work->block_parts[i][k]));
        const double mean = sums[0] / sums[2], variance = __dsub_rn(sums[1] / sums[2], __dmul_rn(mean, mean));
        const double limit = __dmul_rn((double)r.pick->top_n_sigma, sqrt(variance > 0 ? variance : 0));
        narrow(b.s, least_within(b.s.max, limit), 0x7fffffff);
        after_sigma(r, b.s);
    }
    __syncthreads();
}

// Stores in b.found the block in which the running sum of blocks reaches `at`, and in b.at what is left of `at` there.
DEVICE void find_block(const row_of &r, pick_block &b, u64 at)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        int block = 0;
        for (; block + 1 < r.n_blocks; block++) {
            const u64 sum = __ldcg(&r.work->block_sum[block]);
            if (at < sum) break;
            at -= sum;
        }
        b.found = block;
        b.at = at;
    }
    __syncthreads();
}

// The token of block b.found at which the running sum of f(token, logit), in the order of tokens, exceeds b.at.
template <class F> DEVICE int find_token(const row_of &r, pick_block &b, F f)
{
    const int begin = b.found * r.block_size, end = min(begin + r.block_size, r.n_vocab);
    const int each = (r.block_size + THREADS - 1) / THREADS;
    const int first = begin + (int)threadIdx.x * each, last = min(first + each, end);
    const u32 *mask = b.s.uses_mask ? (const u32 *)r.pick->mask : nullptr;
    const u64 at = b.at;
    u64 sum = 0;
    auto number = [&](int token) -> u64 {
        return f(token, mask && !(mask[token / 32] >> token % 32 & 1) ? -INFINITE : __ldcg(r.logits + token));
    };
    for (int token = first; token < last; token++) sum += number(token);
    sum_up(b, sum);
    u64 before = b.sums[threadIdx.x] - sum;
    if (threadIdx.x == 0) b.found = begin;
    __syncthreads();
    if (before <= at && at < before + sum) {
        int token = first;
        for (; token + 1 < last && before + number(token) <= at; token++) before += number(token);
        b.found = token;
    }
    __syncthreads();
    return b.found;
}

DEVICE void end_ties(const row_of &r, pick_block &b)
{
    find_block(r, b, b.s.n_ties - 1);
    const int token = find_token(r, b, [&](int, float x) { return (u64)(x == b.s.least); });
    if (threadIdx.x == 0) {
        b.s.last = token;
        after_bins(*r.pick, b.s);
    }
    __syncthreads();
}

DEVICE void end_sum(const row_of &r, pick_block &b)
{
    u64 total = 0;
    for (int i = 0; i < r.n_blocks; i++) total += __ldcg(&r.work->block_sum[i]);
    find_block(r, b, number_below(r.pick->drawn, total));
    finish(r, b, DONE_OK, find_token(r, b, [&](int token, float x) { return (u64)weigh(b.s, token, x); }));
}

// ------------------------------------------------------------------------------- lists

// Sorts the list, largest first. The list has room for a power of two of items.
DEVICE void sort_items(pick_block &b, int n)
{
    int room = 2;
    while (room < n) room *= 2;
    for (int i = n + (int)threadIdx.x; i < room; i += THREADS) b.items[i] = 0;
    __syncthreads();
    for (int size = 2; size <= room; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int i = threadIdx.x; i < room; i += THREADS) {
                const int other = i ^ step;
                const u64 x = b.items[i], y = b.items[other];
                if (other > i && (x < y) == ((i & size) == 0)) b.items[i] = y, b.items[other] = x;
            }
            __syncthreads();
        }
}

DEVICE int token_of(u64 item)
{
    return (int)~(u32)item;
}

DEVICE float logit_of_item(u64 item)
{
    return logit_of((u32)(item >> 32));
}

// Number of the first n items that stay after top-p and min-p.
DEVICE int cut_list(const frit_gpu_pick &p, pick_block &b, int n)
{
    const int i = threadIdx.x;
    const float max = b.s.max;
    if (p.top_p > 0 && p.top_p < 1) {
        sum_up(b, i < n ? weight_of(__fsub_rn(logit_of_item(b.items[i]), max)) : 0);
        const double wanted = (double)b.sums[THREADS - 1] * (double)p.top_p;
        if (i == 0) b.found = n;
        __syncthreads();
        if (i < n && (double)b.sums[i] >= wanted) atomicMin(&b.found, i + 1);
        __syncthreads();
        n = b.found;
        __syncthreads();
    }
    if (p.min_p > 0) {
        const float least = __fadd_rn(max, p.log_min_p);
        if (i == 0) b.found = n;
        __syncthreads();
        if (i < n && !(logit_of_item(b.items[i]) >= least)) atomicMin(&b.found, i);
        __syncthreads();
        n = b.found > 0 ? b.found : 1;
        __syncthreads();
    }
    return n;
}

// Each thread has a token, and adds the weights of the tokens with lower ids.
DEVICE void draw_of_list(const row_of &r, pick_block &b, int n)
{
    const frit_gpu_pick &p = *r.pick;
    const int i = threadIdx.x;
    u64 own = 0;
    if (i < n) {
        const float below = __fsub_rn(logit_of_item(b.items[i]), b.s.max);
        own = weight_of(p.temp != 1 ? __fdiv_rn(below, p.temp) : below);
    }
    sum_up(b, own);
    const u64 at = number_below(p.drawn, b.sums[THREADS - 1]);
    __syncthreads();
    b.sums[i] = own;
    if (i == 0) b.found = token_of(b.items[0]);
    __syncthreads();
    u64 before = 0;
    for (int k = 0; k < n && i < n; k++) before += token_of(b.items[k]) < token_of(b.items[i]) ? b.sums[k] : 0;
    if (i < n && before <= at && at < before + own) b.found = token_of(b.items[i]);
    __syncthreads();
    finish(r, b, DONE_OK, b.found);
}

DEVICE void end_list(const row_of &r, pick_block &b)
{
    const frit_gpu_pick &p = *r.pick;
    const u32 n_list = __ldcg(&r.work->n_list);
    const int n = n_list < FRIT_GPU_PICK_LIST ? (int)n_list : FRIT_GPU_PICK_LIST;
    for (int i = threadIdx.x; i < n; i += THREADS) b.items[i] = __ldcg(&r.work->list[i]);
    __syncthreads();
    if (threadIdx.x == 0) r.work->n_list = 0;
    sort_items(b, n);
    if (b.s.lists == LIST_OF_CHOICE) {
        draw_of_list(r, b, cut_list(p, b, min(n, p.top_k)));
        return;
    }
    for (int i = threadIdx.x; i < p.n_top; i += THREADS) {
        frit_gpu_item top;
        top.token = i < n ? token_of(b.items[i]) : -1;
        top.logit = i < n ? __ldcg(r.logits + top.token) : -INFINITE;
        ((frit_gpu_item *)p.tops)[i] = top;
    }
    if (threadIdx.x == 0) {
        b.s.lists = LIST_OF_NONE;
        b.s.pass = PASS_LOG_SUM;
    }
    __syncthreads();
}

FUNCTION void end(const row_of &r, pick_block &b)
{
    const int pass = b.s.pass;
    __syncthreads();   // one thread changes it below
    switch (pass) {
    case PASS_LOG: end_log(r, b); break;
    case PASS_LOG_SUM: end_log_sum(r, b); break;
    case PASS_CHANGE: end_change(r, b); break;
    case PASS_MAX: end_max(r, b); break;
    case PASS_SPREAD: end_spread(r, b); break;
    case PASS_BINS: end_bins(r, b); break;
    case PASS_TIES: end_ties(r, b); break;
    case PASS_LIST: end_list(r, b); break;
    default: end_sum(r, b);
    }
}

// ------------------------------------------------------------------------------- the kernel

FUNCTION void scan_alone(const row_of &r, pick_block &b)
{
    for (int block = 0; block < r.n_blocks; block++) {
        scan(r, b, block);
        __syncthreads();
    }
}

DEVICE void begin(const row_of &r, frit_gpu_pick_state &s)
{
    const frit_gpu_pick &p = *r.pick;
    const bool changes = p.n_biases + p.n_counts > 0;
    s = frit_gpu_pick_state{};
    s.pass = p.has_logprob ? PASS_LOG : changes ? PASS_CHANGE : PASS_MAX;
    s.uses_mask = s.pass == PASS_MAX && p.mask;
    s.least = -LARGEST;
    s.last = 0x7fffffff;
    s.temp = 1;
}

extern "C" __global__ void __launch_bounds__(256) pick_pass(const frit_pick_args a)
{
    __shared__ pick_block b;
    row_of r;
    let_next_kernel_start();
    wait_for_kernel_before();
    r.pick = (const frit_gpu_pick *)a.picks + blockIdx.y;
    r.work = (frit_gpu_pick_work *)a.works + blockIdx.y;
    r.logits = (float *)a.rows + (long long)r.pick->row * a.n_vocab;
    r.token = (int *)a.tokens + blockIdx.y;
    r.before = (const int *)a.before;
    r.n_vocab = a.n_vocab;
    r.block_size = a.block_size;
    r.n_blocks = gridDim.x;
    if (a.is_first && threadIdx.x == 0) begin(r, b.s);
    if (!a.is_first && threadIdx.x < sizeof b.s / 4)
        ((u32 *)&b.s)[threadIdx.x] = __ldcg((const u32 *)&r.work->state + threadIdx.x);
    __syncthreads();
    if (b.s.pass == PASS_DONE) return;
    scan(r, b, blockIdx.x);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        b.is_last = atomicAdd(&r.work->n_arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!b.is_last) return;
    __threadfence();
    end(r, b);
    while (a.is_last && b.s.pass != PASS_DONE) {
        scan_alone(r, b);
        __threadfence();
        end(r, b);
    }
    if (threadIdx.x == 0) {
        r.work->n_arrived = 0;
        r.work->state = b.s;
    }
}
