// SPDX-License-Identifier: MIT
// emulator/emulator.h: a GPU that does not exist, so that the backend for NVIDIA GPUs is tested where there is
// none. One library stands for CUDA's driver (driver.c), NVRTC (nvrtc.c) and cuBLASLt (cublaslt.c): memory of the
// device is memory of the host, kernels are compiled for the host (emulated.h, ptx.cuh) and run when they are launched
// or, captured in a graph, when that is launched.
//
// It finds wrong arithmetic, wrong addresses and wrong order of launches. It finds no races: threads take turns.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMULATED_MAGIC 0x31756d6574697266u

enum { EMULATED_HEAD = 16 };   // bytes before a library: the magic number, how many bytes there are in all

// Work of a stream: done at once, or kept in a graph with a copy of `data`.
typedef struct emulated_work {
    void (*run)(const struct emulated_work *work, void *data);
    uint64_t to, from;
    size_t size;
    const void *object;
    unsigned grid[3], threads, shared_bytes;
    void *data;
    size_t n_bytes;
} emulated_work;

// For tests, which find them in the driver's library. From here on what uses the GPU returns this, as it does once a
// GPU is lost; 0: it works.
enum { EMULATED_LOST = 719 };
void emulated_break(int result);
// So many bytes of the GPU's memory are another process's.
void emulated_take(uint64_t n_bytes);

typedef struct emulated_stream emulated_stream;
int emulated_submit(emulated_stream *stream, const emulated_work *work);
