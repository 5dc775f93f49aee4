# SPDX-License-Identifier: MIT
# macOS 11 or newer, Apple silicon.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(frit_zig_name macos-aarch64)
set(frit_zig_target aarch64-macos.11.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
