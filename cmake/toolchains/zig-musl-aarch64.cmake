# SPDX-License-Identifier: MIT
# Any Linux, 64-bit ARM: static programs with musl.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(frit_zig_name musl-aarch64)
set(frit_zig_target aarch64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
