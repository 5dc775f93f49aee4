# SPDX-License-Identifier: MIT
# The web page of frit serve: frit_page_source is a C file with its files, frit_page_licenses, where it is set, has the licences
# of its libraries. They come from npm, by `tools/setup page`. Where they or Node.js are absent, the built page that a source
# tarball brings along is taken (packaging/page), and where that is absent too, a short page says so. The page of the
# interface needs none of them.
option(FRIT_PAGE "Bundle the web page, where it is built or Node.js and the page's libraries are installed" ON)
set(FRIT_PAGE_TOOLS ${CMAKE_SOURCE_DIR}/build/tools/page CACHE PATH "Where tools/setup installs the page's libraries")
find_program(FRIT_NODE NAMES node nodejs)

set(page ${CMAKE_SOURCE_DIR}/apps/server/page)
set(frit_page_source ${CMAKE_BINARY_DIR}/generated/page_files.c)
file(GLOB page_docs CONFIGURE_DEPENDS ${page}/docs/*)
if(FRIT_PAGE AND FRIT_NODE AND EXISTS ${FRIT_PAGE_TOOLS}/node_modules/esbuild)
    set(bundle ${CMAKE_BINARY_DIR}/generated/page)
    file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS ${page}/src/* ${page}/style/*)
    add_custom_command(OUTPUT ${bundle}/index.html.gz
                       DEPENDS ${page_sources} ${page_docs} ${page}/index.html ${page}/build.mjs
                               ${FRIT_PAGE_TOOLS}/node_modules/.package-lock.json
                       COMMAND ${FRIT_NODE} ${page}/build.mjs ${FRIT_PAGE_TOOLS} ${bundle}
                       COMMENT "Bundling the web page")
    set(page_needs ${bundle}/index.html.gz)
    set(page_files ${bundle}/*.gz)
    set(frit_page_licenses ${bundle}/licenses.txt)
elseif(FRIT_PAGE AND EXISTS ${page}/built/index.html.gz)
    file(GLOB page_needs CONFIGURE_DEPENDS ${page}/built/*.gz)
    set(page_files ${page}/built/*.gz)
    set(frit_page_licenses ${page}/built/licenses.txt)
else()
    message(STATUS "Node.js or the page's libraries are not here: frit serve has a short page only")
    set(page_needs ${page_docs} ${page}/plain/index.html)
    set(page_files ${page}/docs/* ${page}/plain/*)
endif()
add_custom_command(OUTPUT ${frit_page_source} DEPENDS ${page_needs} ${CMAKE_SOURCE_DIR}/cmake/FritPage.cmake
                   COMMAND ${CMAKE_COMMAND} -DOUT=${frit_page_source} "-DFILES=${page_files}"
                           -P ${CMAKE_SOURCE_DIR}/cmake/FritPage.cmake VERBATIM)
