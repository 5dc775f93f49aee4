// SPDX-License-Identifier: MIT
// backend/cuda/group/receive.h: copies from one GPU to another, in the order of their queues.
#pragma once
#include "backend/cuda/device.h"

// `receive` of frit_backend.
frit_status frit_cuda_receive(frit_device *device, frit_address to, frit_address from, uint64_t n_bytes);
