// SPDX-License-Identifier: MIT
// kernels/probe_args.h: the arguments of probe.cu, read by the C compiler and by NVRTC. Pointers are device
// addresses.
#pragma once

typedef struct bench_probe_args {
    unsigned long long in, out;   // fill_16_bits: `in` is 1 for f16, 0 for bf16
    unsigned long long n_bytes;
    unsigned int seed;
    float scale;
} bench_probe_args;
