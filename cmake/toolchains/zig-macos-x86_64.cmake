# SPDX-License-Identifier: MIT
# macOS 11 or newer, Intel.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(frit_zig_name macos-x86_64)
set(frit_zig_target x86_64-macos.11.0)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
