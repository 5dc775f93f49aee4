# SPDX-License-Identifier: MIT
# The libraries that do what frit does not exist for. docs/architecture.md lists them with their jobs.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

add_library(frit_dependencies INTERFACE)
target_link_libraries(frit_dependencies INTERFACE PkgConfig::PCRE2 PkgConfig::UTF8PROC PkgConfig::JANSSON
                      Threads::Threads $<$<NOT:$<PLATFORM_ID:Windows>>:m>)
