# SPDX-License-Identifier: MIT
# Linux with glibc 2.17 or newer, x86_64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(frit_zig_name linux-x86_64)
set(frit_zig_target x86_64-linux-gnu.2.17)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
