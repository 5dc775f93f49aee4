# SPDX-License-Identifier: MIT
# Any Linux, x86_64: static programs with musl.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(frit_zig_name musl-x86_64)
set(frit_zig_target x86_64-linux-musl)
include(${CMAKE_CURRENT_LIST_DIR}/zig.cmake)
