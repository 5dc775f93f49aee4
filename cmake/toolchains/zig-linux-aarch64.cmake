# SPDX-License-Identifier: MIT
# Linux with glibc 2.17 or newer, 64-bit ARM.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(frit_zig_name linux-aarch64)
set(frit_zig_target aarch64-linux-gnu.2.17)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
