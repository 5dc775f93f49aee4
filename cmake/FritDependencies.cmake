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

# Decoders of pictures. A build without one of these libraries refuses files of its format.
option(FRIT_WITH_IMAGES "Read PNG, JPEG, WebP and GIF pictures, where libpng, libjpeg, libwebp and giflib are installed" ON)
set(frit_image_formats PNG JPEG WEBP GIF)
set(modules_PNG libpng)
set(modules_JPEG libjpeg)
set(modules_WEBP libwebpdemux libwebp)
if(FRIT_ZIG)   # static libraries need those below them
    set(modules_PNG libpng zlib)
endif()
set(frit_image_modules "")     # for pkg-config
set(frit_image_libraries "")   # without files for it
foreach(format ${frit_image_formats})
    string(TOLOWER ${format} name)
    set(frit_with_${format} OFF)
    if(NOT FRIT_WITH_IMAGES OR EMSCRIPTEN)
        continue()
    endif()
    if(format STREQUAL GIF)
        find_package(GIF QUIET)
        set(target GIF::GIF)
    else()
        pkg_check_modules(${format} IMPORTED_TARGET ${modules_${format}})
        set(target PkgConfig::${format})
    endif()
    if(NOT ${format}_FOUND)
        message(STATUS "the library of ${format} pictures is not here: this build does not read them")
        continue()
    endif()
    set(frit_with_${format} ON)
    target_link_libraries(frit_dependencies INTERFACE $<LINK_ONLY:${target}>)
    set_source_files_properties(src/media/image_${name}.c PROPERTIES INCLUDE_DIRECTORIES "${${format}_INCLUDE_DIRS}")
    set_property(SOURCE src/media/image.c APPEND PROPERTY COMPILE_DEFINITIONS FRIT_WITH_${format})
    list(APPEND frit_image_modules ${modules_${format}})
    if(format STREQUAL GIF)
        list(APPEND frit_image_libraries gif)
    endif()
endforeach()
list(JOIN frit_image_modules " " frit_image_modules)
list(TRANSFORM frit_image_libraries PREPEND " -l" OUTPUT_VARIABLE frit_image_links)
list(JOIN frit_image_links "" frit_image_links)

# Leaves out decoders whose library is not here.
function(frit_drop_decoders list)
    set(sources ${${list}})
    foreach(format ${frit_image_formats})
        if(NOT frit_with_${format})
            string(TOLOWER ${format} name)
            list(FILTER sources EXCLUDE REGEX "/media/image_${name}\\.c$")
        endif()
    endforeach()
    set(${list} ${sources} PARENT_SCOPE)
endfunction()
