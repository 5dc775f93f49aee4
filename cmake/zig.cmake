# SPDX-License-Identifier: MIT
# The toolchain for another system, a row of packaging/platforms.tsv that -DFRIT_PLATFORM=NAME names. zig cc is
# compiler, archiver and linker; tools/static_libraries builds the static libraries. zig comes from PyPI (tools/setup
# zig), or FRIT_ZIG names it.
cmake_path(SET frit_root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/..)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES FRIT_PLATFORM)

file(STRINGS ${frit_root}/packaging/platforms.tsv frit_row REGEX "^${FRIT_PLATFORM}\t")
if(NOT FRIT_PLATFORM OR NOT frit_row)
    message(FATAL_ERROR "FRIT_PLATFORM '${FRIT_PLATFORM}': expected a name in ${frit_root}/packaging/platforms.tsv")
endif()
string(REPLACE "\t" ";" frit_row "${frit_row}")
list(GET frit_row 1 frit_zig_target)
list(GET frit_row 2 CMAKE_SYSTEM_NAME)
list(GET frit_row 3 CMAKE_SYSTEM_PROCESSOR)

if(NOT FRIT_ZIG)
    if(DEFINED ENV{FRIT_ZIG})
        set(FRIT_ZIG $ENV{FRIT_ZIG})
    elseif(EXISTS ${frit_root}/build/tools/bin/zig)
        set(FRIT_ZIG ${frit_root}/build/tools/bin/zig)
    else()
        find_program(FRIT_ZIG zig REQUIRED)
    endif()
endif()
set(FRIT_ZIG ${FRIT_ZIG} CACHE FILEPATH "zig, which compiles for all systems")
if(DEFINED ENV{FRIT_STATIC_PREFIX})
    set(frit_static_prefix $ENV{FRIT_STATIC_PREFIX})
else()
    set(frit_static_prefix ${frit_root}/build/static/${FRIT_PLATFORM})
endif()

set(CMAKE_C_COMPILER ${FRIT_ZIG} cc -target ${frit_zig_target})
set(CMAKE_C_COMPILER_LAUNCHER env)   # zig has a compilation cache, and ccache does not support zig
# CMake cannot use "zig ar", two words, as an archiver on every system.
foreach(tool ar ranlib)
    file(WRITE ${CMAKE_BINARY_DIR}/zig-${tool} "#!/bin/sh\nexec ${FRIT_ZIG} ${tool} \"$@\"\n")
    file(CHMOD ${CMAKE_BINARY_DIR}/zig-${tool} PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endforeach()
set(CMAKE_AR ${CMAKE_BINARY_DIR}/zig-ar CACHE FILEPATH "Archiver")
set(CMAKE_RANLIB ${CMAKE_BINARY_DIR}/zig-ranlib CACHE FILEPATH "Archive index")
set(CMAKE_C_LINKER_DEPFILE_SUPPORTED FALSE)
set(CMAKE_LINK_DEPENDS_USE_LINKER FALSE)   # zig's linker does not list the files that it read

set(CMAKE_FIND_ROOT_PATH ${frit_static_prefix})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${frit_static_prefix}/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
