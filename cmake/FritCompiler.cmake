# SPDX-License-Identifier: MIT
# Warnings, sanitizers, hardening, and the flags that the suffix of a kernel file asks for.

include(CheckCCompilerFlag)
include(CheckLinkerFlag)

find_program(FRIT_CCACHE ccache)
if(FRIT_CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${FRIT_CCACHE})
endif()

# frit_warnings: for all targets, with the sanitizers. frit_plain: for files that no sanitizer checks, compiled as in a
# build without sanitizers, so that ccache compiles them once for both.
foreach(target frit_warnings frit_plain)
    add_library(${target} INTERFACE)
    if(MSVC)
        target_compile_options(${target} INTERFACE /W3 /experimental:c11atomics)
    else()
        target_compile_options(${target} INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
                               $<$<BOOL:${FRIT_WERROR}>:-Werror> -ffp-contract=off -fno-math-errno)
        # gcc 12 for arm64 fails with an internal error on sums of floats in double precision. Fast kernels use vector
        # types and are not affected.
        if(CMAKE_C_COMPILER_ID STREQUAL GNU AND CMAKE_C_COMPILER_VERSION VERSION_LESS 13 AND
           CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
            target_compile_options(${target} INTERFACE -fno-tree-vectorize)
        endif()
    endif()
    target_compile_definitions(${target} INTERFACE $<$<PLATFORM_ID:Linux>:_GNU_SOURCE>
                               $<$<PLATFORM_ID:Emscripten>:_GNU_SOURCE>
                               $<$<PLATFORM_ID:Windows>:_CRT_SECURE_NO_WARNINGS>
                               $<$<PLATFORM_ID:Windows>:__USE_MINGW_ANSI_STDIO=1>)
endforeach()

if(FRIT_SANITIZE)
    target_compile_options(frit_warnings INTERFACE -fsanitize=${FRIT_SANITIZE} -fno-omit-frame-pointer
                           -fno-sanitize-recover=all)
    # gcc with a stack protector (Ubuntu's default) misaligns vectors of 64 bytes in frames that the address sanitizer
    # keeps to find uses after return (gcc 13's default): kernels for AVX-512 and AMX ended with SIGSEGV.
    if(FRIT_SANITIZE MATCHES address AND NOT MSVC)
        target_compile_options(frit_warnings INTERFACE -fno-stack-protector)
    endif()
    target_link_options(frit_warnings INTERFACE -fsanitize=${FRIT_SANITIZE})
    # Files that are not sanitized have the options of a Release build, so that a build with sanitizers is one too.
    target_compile_options(frit_warnings INTERFACE $<$<CONFIG:Release>:-O1>)
    # Reports show functions, files and lines, for which -g1 is enough. With -g kernels take a third longer to compile,
    # and each of the test programs takes 95 MB. A position-independent program has 800,000 relocations at its start.
    if(NOT MSVC)
        target_compile_options(frit_warnings INTERFACE -g1)
    endif()
    if(CMAKE_SYSTEM_NAME STREQUAL Linux)
        target_link_options(frit_warnings INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
        # 270 programs of 18 MB are linked: gold takes half the time of the usual linker.
        check_linker_flag(C -fuse-ld=gold FRIT_HAS_GOLD)
        if(FRIT_HAS_GOLD)
            target_link_options(frit_warnings INTERFACE -fuse-ld=gold)
        endif()
    endif()
endif()
# The server parses data of strangers: a fault in it should end the process instead of running their code. The
# sanitizers find such faults themselves, and some of these flags hide faults from them.
if(FRIT_HARDENING AND NOT MSVC AND NOT WIN32)
    set(frit_hardened frit_plain)
    if(NOT FRIT_SANITIZE AND NOT FRIT_FUZZ AND NOT FRIT_COVERAGE)
        list(APPEND frit_hardened frit_warnings)
    endif()
    set(frit_hardening -fstack-protector-strong)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
        list(APPEND frit_hardening -fstack-clash-protection -fcf-protection=full)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
        list(APPEND frit_hardening -fstack-clash-protection -mbranch-protection=standard)
    endif()
    foreach(flag IN LISTS frit_hardening)
        string(MAKE_C_IDENTIFIER "FRIT_HAS${flag}" known)
        check_c_compiler_flag(${flag} ${known})
        foreach(target IN LISTS frit_hardened)
            target_compile_options(${target} INTERFACE $<$<BOOL:${${known}}>:${flag}>)
        endforeach()
    endforeach()
    # Level 3 needs gcc 12 or clang 9; older compilers treat it as level 2. It needs optimization. Distributions define
    # a level of their own, which must be removed first.
    foreach(target IN LISTS frit_hardened)
        target_compile_options(${target} INTERFACE $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>
                               $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>)
    endforeach()
    if(NOT APPLE AND frit_warnings IN_LIST frit_hardened)
        foreach(flag relro now noexecstack)
            check_linker_flag(C LINKER:-z,${flag} FRIT_HAS_Z_${flag})
            if(FRIT_HAS_Z_${flag})
                target_link_options(frit_warnings INTERFACE LINKER:-z,${flag})
            endif()
        endforeach()
    endif()
endif()
if(FRIT_FUZZ)
    target_compile_options(frit_warnings INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(FRIT_COVERAGE)
    target_compile_options(frit_warnings INTERFACE --coverage)
    target_link_options(frit_warnings INTERFACE --coverage)
endif()

# suffix of a kernel file -> its flags, which enable the features of the instruction set. Kernels do not ask the
# preprocessor for features: their file's suffix decides.
set(frit_cpu_def ${CMAKE_SOURCE_DIR}/src/base/machine/cpu.def)
set(frit_isa_def ${CMAKE_SOURCE_DIR}/src/backend/cpu/isa.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${frit_cpu_def} ${frit_isa_def})
file(STRINGS ${frit_cpu_def} frit_rows REGEX "^FEATURE")
foreach(row IN LISTS frit_rows)
    string(REGEX MATCH "^FEATURE\\( *([A-Z0-9_]+), *\"([^\"]*)\"\\)" found "${row}")
    set(name ${CMAKE_MATCH_1})
    set(flags ${CMAKE_MATCH_2})
    if(FRIT_ZIG)   # zig has another form for the architecture's version
        string(REGEX REPLACE "-march=armv8\\.([0-9])-a" "-mcpu=generic+v8_\\1a" flags "${flags}")
    endif()
    separate_arguments(frit_flags_${name} UNIX_COMMAND "${flags}")
endforeach()
file(STRINGS ${frit_isa_def} frit_rows REGEX "^ISA_")
foreach(row IN LISTS frit_rows)
    string(REGEX MATCH "^ISA_([A-Z0-9]+)\\( *([a-z0-9]+)," found "${row}")
    set(name ${CMAKE_MATCH_2})
    set(frit_isa_${name} "")
    # gcc's first scheduling pass moves more loads ahead than ARM has registers (docs/log/arm.md).
    if(CMAKE_MATCH_1 STREQUAL ARM)
        list(APPEND frit_isa_${name} $<$<C_COMPILER_ID:GNU>:-fno-schedule-insns>)
    endif()
    string(REGEX MATCHALL "FRIT_CPU_[A-Z0-9_]+" features "${row}")
    foreach(feature IN LISTS features)
        string(REPLACE FRIT_CPU_ "" feature ${feature})
        if(NOT DEFINED frit_flags_${feature})
            message(FATAL_ERROR "${frit_isa_def}: ${name} needs ${feature}, which is not a row of ${frit_cpu_def}")
        endif()
        list(APPEND frit_isa_${name} ${frit_flags_${feature}})
    endforeach()
endforeach()

# Packages of distributions are often built with -O2. gcc does not unroll loops with a constant number of rounds then,
# and keeps their variables on the stack: prompts of bf16 took five times as long.
if(NOT MSVC)
    set(frit_kernel_flags $<$<NOT:$<CONFIG:Debug>>:-O3>)
endif()
set(frit_kernel_warnings frit_plain)
# With the address sanitizer gcc takes up to five times as long for kernels, and the sanitizer finds little in them:
# arrays of tensors lie in mapped memory. Tests of kernels have a protected page after each array instead (tests/fence).
# FRIT_SANITIZE_ALL sanitizes kernels too, at -O1, because at -O2 gcc takes minutes and 700 MB for each file of packed
# products.
if(FRIT_SANITIZE AND (FRIT_SANITIZE_ALL OR NOT FRIT_SANITIZE MATCHES address))
    set(frit_kernel_flags -O1)
    set(frit_kernel_warnings frit_warnings)
endif()
if(FRIT_COVERAGE)
    set(frit_kernel_warnings frit_warnings)
endif()
# Fuzz targets test parsers and the interface. clang takes minutes for an instrumented file of kernels; the tests run
# kernels under sanitizers.
if(FRIT_FUZZ)
    set(frit_kernel_flags -O1)
endif()

# Sets the flags of a file by the last word of its name, unless that is not the name of an instruction set.
function(frit_isa_flags file out)
    set(${out} "" PARENT_SCOPE)
    string(REGEX MATCH "[_/]([a-z0-9]+)\\.[ch]$" suffix ${file})
    if(suffix AND NOT MSVC)
        set(${out} "${frit_isa_${CMAKE_MATCH_1}}" PARENT_SCOPE)
    endif()
endfunction()

# The folder of this processor's kernels in src/backend/cpu and src/quant; empty if there is no such folder.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|amd64")
    set(frit_kernel_folder x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
    set(frit_kernel_folder arm)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "wasm32")
    set(frit_kernel_folder wasm)
endif()

# Removes the files whose suffix names another operating system (_other: all but Linux), or a library that was not found.
function(frit_drop_foreign list)
    set(sources ${${list}})
    if(NOT CMAKE_SYSTEM_NAME STREQUAL Linux)
        list(FILTER sources EXCLUDE REGEX "_linux\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "_other\\.c$")
    endif()
    if(NOT (FRIT_HWLOC AND HWLOC_FOUND))
        list(FILTER sources EXCLUDE REGEX "_hwloc\\.c$")
    endif()
    if(WIN32)
        list(FILTER sources EXCLUDE REGEX "_posix\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "_win\\.c$")
    endif()
    set(web ${sources})
    list(FILTER web INCLUDE REGEX "_web\\.c$")
    if(EMSCRIPTEN)   # the browser's files replace those of POSIX systems with the same name
        list(TRANSFORM web REPLACE "_web\\.c$" "_posix.c")
        list(FILTER sources EXCLUDE REGEX "/backend/(cuda|webgpu)/|/placement/kernels\\.c$")
    endif()
    if(web)
        list(REMOVE_ITEM sources ${web})
    endif()
    set(${list} ${sources} PARENT_SCOPE)
endfunction()

# Sets the list of this processor's kernel files, with their flags.
function(frit_kernel_sources list)
    if(frit_kernel_folder)
        file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/${frit_kernel_folder}/*.c
             ${CMAKE_SOURCE_DIR}/src/quant/${frit_kernel_folder}/*.c)
    endif()
    list(FILTER kernels EXCLUDE REGEX "_relaxed\\.c$")   # bindings/web adds them to a module of its own
    foreach(file ${kernels})
        frit_isa_flags(${file} flags)
        string(REGEX MATCH "_([a-z0-9]+)\\.c$" suffix ${file})
        if(NOT DEFINED frit_isa_${CMAKE_MATCH_1})
            message(FATAL_ERROR "${file}: its suffix '${CMAKE_MATCH_1}' is not a row of ${frit_isa_def}")
        endif()
        set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "${flags};${frit_kernel_flags}")
    endforeach()
    set(${list} ${kernels} PARENT_SCOPE)
endfunction()

# The target exports the functions marked with FRIT_API and no symbol of static libraries that are linked into it, which
# would replace a program's own copies. zig's linker for macOS has no option for this: tools/static_libraries hides the
# symbols.
function(frit_export_own_symbols target)
    if(APPLE AND FRIT_ZIG)
        return()
    elseif(APPLE)
        target_link_options(${target} PRIVATE LINKER:-exported_symbol,_frit_*)
    elseif(NOT WIN32)
        target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/frit.map)
        set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/frit.map)
    endif()
endfunction()
