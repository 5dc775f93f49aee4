# SPDX-License-Identifier: MIT
# Warnings, sanitizers, link-time optimization, and the flags that the suffix of a kernel file asks for.

find_program(FRIT_CCACHE ccache)
if(FRIT_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${FRIT_CCACHE})
endif()

add_library(frit_warnings INTERFACE)
if(MSVC)
    target_compile_options(frit_warnings INTERFACE /W3 /experimental:c11atomics)
else()
    target_compile_options(frit_warnings INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
                           $<$<BOOL:${FRIT_WERROR}>:-Werror> -ffp-contract=off -fno-math-errno)
    # gcc 12 for arm64 ends with an internal error on sums of floats as doubles; fast kernels are written in vectors.
    if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13 AND
       CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
        target_compile_options(frit_warnings INTERFACE -fno-tree-vectorize)
    endif()
endif()
target_compile_definitions(frit_warnings INTERFACE $<$<PLATFORM_ID:Linux>:_GNU_SOURCE>
                           $<$<PLATFORM_ID:Windows>:_CRT_SECURE_NO_WARNINGS>
                           $<$<PLATFORM_ID:Windows>:__USE_MINGW_ANSI_STDIO=1>)

if(FRIT_SANITIZE)
    target_compile_options(frit_warnings INTERFACE -fsanitize=${FRIT_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    target_link_options(frit_warnings INTERFACE -fsanitize=${FRIT_SANITIZE})
endif()
if(FRIT_FUZZ)
    target_compile_options(frit_warnings INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(FRIT_COVERAGE)
    target_compile_options(frit_warnings INTERFACE --coverage)
    target_link_options(frit_warnings INTERFACE --coverage)
endif()

# suffix of a kernel file -> its flags. The file is the condition: no kernel asks the preprocessor what it may use.
set(frit_isa_avx2 -mavx2 -mfma -mf16c)
set(frit_isa_avxvnni ${frit_isa_avx2} -mavxvnni)
set(frit_isa_avx512 ${frit_isa_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(frit_isa_avx512vnni ${frit_isa_avx512} -mavx512vnni -mavx512vbmi)
set(frit_isa_avx512bf16 ${frit_isa_avx512vnni} -mavx512bf16)
set(frit_isa_amx ${frit_isa_avx512bf16} -mamx-tile -mamx-int8 -mamx-bf16)
# gcc's first scheduling moves more loads ahead than there are registers (docs/speed.md).
set(frit_isa_neon $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
set(frit_isa_dotprod ${frit_isa_neon} -march=armv8.2-a+dotprod)
set(frit_isa_i8mm ${frit_isa_dotprod}+i8mm)

# With sanitizers at -O2 gcc takes minutes and 700 MB for each file of packed products, at -O1 half a minute; their
# vectors are written out, so tests hardly take longer.
if(FRIT_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(frit_kernel_flags -O1)
endif()

# Flags of the file, by the last word of its name; nothing if that names no instruction set.
function(frit_isa_flags file out)
    set(${out} "" PARENT_SCOPE)
    string(REGEX MATCH "[_/]([a-z0-9]+)\\.[ch]$" suffix ${file})
    if(suffix AND NOT MSVC)
        set(${out} "${frit_isa_${CMAKE_MATCH_1}}" PARENT_SCOPE)
    endif()
endfunction()

# The folder of kernels for this processor, relative to src/backend/cpu; empty if there is none.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(frit_kernel_folder x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
    set(frit_kernel_folder arm)
endif()

# Drops the files whose suffix names another operating system, or a library that was not found.
function(frit_drop_foreign list)
    set(sources ${${list}})
    if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux)
        list(FILTER sources EXCLUDE REGEX "_linux\\.c$")
    endif()
    if(NOT (FRIT_HWLOC AND HWLOC_FOUND))
        list(FILTER sources EXCLUDE REGEX "_hwloc\\.c$")
    endif()
    if(WIN32)
        list(FILTER sources EXCLUDE REGEX "_posix\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "_win\\.c$")
    endif()
    set(${list} ${sources} PARENT_SCOPE)
endfunction()

# Adds the kernel files of this processor to the list and drops the files of other systems.
function(frit_platform_sources list)
    set(sources ${${list}})
    if(frit_kernel_folder)
        file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/${frit_kernel_folder}/*.c)
    endif()
    foreach(file ${kernels})
        frit_isa_flags(${file} flags)
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags};${frit_kernel_flags}")
    endforeach()
    frit_drop_foreign(sources)
    set(${list} ${sources} ${kernels} PARENT_SCOPE)
endfunction()
