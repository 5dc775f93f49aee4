// SPDX-License-Identifier: MIT
// emulator/emulator.h: an emulated GPU, for testing the CUDA backend on machines without one. One library replaces
// CUDA's driver (driver.c), NVRTC (nvrtc.c) and cuBLASLt (cublaslt.c). Memory of the device is memory of the host.
// Kernels are compiled for the host (emulated.h, ptx.cuh), and run when they or the graph that they are captured in are
// launched.
//
// The emulator finds wrong arithmetic, wrong addresses and wrong orders of launches. It finds no races, because only
// one thread runs at a time.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMULATED_MAGIC 0x31756d6574697266u

enum { EMULATED_HEAD = 16 };   // bytes before a library: magic number, number of all bytes

// Runs the work of a stream at once, or stores it in the captured graph with a copy of `data`.
typedef struct emulated_work {
    void (*run)(const struct emulated_work *work, void *data);
    uint64_t to, from;
    size_t size;
    const void *object;
    unsigned grid[3], threads, shared_bytes;
    void *data;
    size_t n_bytes;
} emulated_work;

// For tests, which find these functions in the driver's library. After the call, functions that use the GPU return this
// error, as after the loss of a GPU; 0: none.
enum { EMULATED_LOST = 719 };
void emulated_break(int result);
// Sets the bytes of the GPU's memory that another process uses.
void emulated_take(uint64_t n_bytes);

typedef struct emulated_stream emulated_stream;
int emulated_submit(emulated_stream *stream, const emulated_work *work);
