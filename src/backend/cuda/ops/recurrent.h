// SPDX-License-Identifier: MIT
// backend/cuda/ops/recurrent.h: ops that read and write a session's state (recurrent.cu).
#pragma once
#include "backend/cuda/device.h"

bool frit_cuda_recurrent_fits(const frit_node *node);
frit_status frit_cuda_lower_recurrent(frit_exec *exec, const frit_node *node);
