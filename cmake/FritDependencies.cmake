# SPDX-License-Identifier: MIT
# Finds the libraries on which frit depends. docs/dev/architecture.md lists their purposes.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

add_library(frit_dependencies INTERFACE)
target_link_libraries(frit_dependencies INTERFACE PkgConfig::PCRE2 PkgConfig::UTF8PROC PkgConfig::JANSSON
                      Threads::Threads ${CMAKE_DL_LIBS} $<$<NOT:$<PLATFORM_ID:Windows>>:m>)

# Headers for Windows declare functions of a DLL unless a macro says that the library is static.
if(WIN32 AND FRIT_ZIG)
    target_compile_definitions(frit_dependencies INTERFACE PCRE2_STATIC UTF8PROC_STATIC)
endif()

# The library is opened at run time, so only headers are needed; the tests link it too.
option(FRIT_HWLOC "Ask hwloc about cores and memory nodes, where it is installed" ON)
if(FRIT_HWLOC AND NOT WIN32)
    pkg_check_modules(HWLOC IMPORTED_TARGET hwloc>=2.5)
endif()
if(FRIT_HWLOC AND HWLOC_FOUND)
    target_compile_definitions(frit_dependencies INTERFACE FRIT_HWLOC)
    target_include_directories(frit_dependencies INTERFACE ${HWLOC_INCLUDE_DIRS})
endif()
