// SPDX-License-Identifier: MIT
// Sorts assignments of rows to experts by expert, and divides those of an expert into groups of at most group_rows. One
// block of threads. The order within an expert depends on timing; results do not depend on it.
//
// At most 1024 experts; 1024 threads.
#include "args.h"
#include "ptx.cuh"

extern "C" __global__ void __launch_bounds__(1024) dispatch(const frit_dispatch_args a)
{
    __shared__ int counts[1024], rows[1024], groups[1024];
    const int t = threadIdx.x;
    const float *route = (const float *)a.route;
    frit_expert_group *out = (frit_expert_group *)a.groups;
    let_next_kernel_start();
    wait_for_kernel_before();
    counts[t] = 0;
    __syncthreads();
    for (int i = t; i < a.n_assignments; i += 1024)
        atomicAdd(&counts[(int)__ldcg(route + i / a.n_used * 2 * a.n_used + i % a.n_used)], 1);
    __syncthreads();
    const int n = counts[t], n_groups = (n + a.group_rows - 1) / a.group_rows;
    rows[t] = n;
    groups[t] = n_groups;
    for (int d = 1; d < 1024; d *= 2) {   // inclusive prefix sum
        __syncthreads();
        const int r = t >= d ? rows[t - d] : 0, g = t >= d ? groups[t - d] : 0;
        __syncthreads();
        rows[t] += r;
        groups[t] += g;
    }
    __syncthreads();
    const int first = rows[t] - n, first_group = groups[t] - n_groups;
    for (int i = 0; i < n_groups; i++)
        out[first_group + i] =
            frit_expert_group{t, first + i * a.group_rows, min(a.group_rows, n - i * a.group_rows), 0};
    for (int i = groups[1023] + t; i < a.n_groups; i += 1024) out[i] = frit_expert_group{0, 0, 0, 0};
    counts[t] = first;
    __syncthreads();
    for (int i = t; i < a.n_assignments; i += 1024) {
        const int e = (int)__ldcg(route + i / a.n_used * 2 * a.n_used + i % a.n_used);
        ((int *)a.order)[atomicAdd(&counts[e], 1)] = i;
    }
}
