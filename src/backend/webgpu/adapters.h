// SPDX-License-Identifier: MIT
// backend/webgpu/adapters.h: the adapters of this machine, which are devices with a number: "webgpu:1". A device is
// opened for one of them if frit_device_options.target has its name as the GPU.
#pragma once

int frit_webgpu_count(void);                    // of adapters
const char *frit_webgpu_numbered(int number);   // "webgpu:1"; NULL past the last
int frit_webgpu_number_of(const char *name);    // -1: the name is not one of these
