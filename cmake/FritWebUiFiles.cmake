# SPDX-License-Identifier: MIT
# The web UI of frit serve. frit_web_ui_source is a C file that holds its files. frit_web_ui_licenses, if it is set, is a file
# with the licences of its libraries, which `tools/setup web-ui` installs from npm. Without Node.js or the libraries, the
# build uses the built web UI of a source tarball (packaging/web_ui), and without that a short HTML file that says so. The
# description of the API (docs/) needs neither.
option(FRIT_WEB_UI "Bundle the web UI, if it is built or if Node.js and its libraries are installed" ON)
set(FRIT_WEB_UI_TOOLS ${CMAKE_SOURCE_DIR}/build/tools/web-ui CACHE PATH "Where tools/setup installs the libraries of the web UI")
find_program(FRIT_NODE NAMES node nodejs)

set(web_ui ${CMAKE_SOURCE_DIR}/apps/server/web_ui)
set(frit_web_ui_source ${CMAKE_BINARY_DIR}/generated/web_ui_files.c)
file(GLOB web_ui_docs CONFIGURE_DEPENDS ${web_ui}/docs/*)
if(FRIT_WEB_UI AND FRIT_NODE AND EXISTS ${FRIT_WEB_UI_TOOLS}/node_modules/esbuild)
    set(bundle ${CMAKE_BINARY_DIR}/generated/web_ui)
    file(GLOB_RECURSE web_ui_sources CONFIGURE_DEPENDS ${web_ui}/src/* ${web_ui}/style/*)
    add_custom_command(OUTPUT ${bundle}/index.html.gz
                       DEPENDS ${web_ui_sources} ${web_ui_docs} ${web_ui}/index.html ${web_ui}/build.mjs
                               ${FRIT_WEB_UI_TOOLS}/node_modules/.package-lock.json
                       COMMAND ${FRIT_NODE} ${web_ui}/build.mjs ${FRIT_WEB_UI_TOOLS} ${bundle}
                       COMMENT "Bundling the web UI")
    set(web_ui_needs ${bundle}/index.html.gz)
    set(web_ui_files ${bundle}/*.gz)
    set(frit_web_ui_licenses ${bundle}/licenses.txt)
elseif(FRIT_WEB_UI AND EXISTS ${web_ui}/built/index.html.gz)
    file(GLOB web_ui_needs CONFIGURE_DEPENDS ${web_ui}/built/*.gz)
    set(web_ui_files ${web_ui}/built/*.gz)
    set(frit_web_ui_licenses ${web_ui}/built/licenses.txt)
else()
    message(STATUS "Node.js or the libraries of the web UI are not installed: frit serve shows a short text instead of the web UI")
    set(web_ui_needs ${web_ui_docs} ${web_ui}/plain/index.html)
    set(web_ui_files ${web_ui}/docs/* ${web_ui}/plain/*)
endif()
add_custom_command(OUTPUT ${frit_web_ui_source} DEPENDS ${web_ui_needs} ${CMAKE_SOURCE_DIR}/cmake/FritWebUi.cmake
                   COMMAND ${CMAKE_COMMAND} -DOUT=${frit_web_ui_source} "-DFILES=${web_ui_files}"
                           -P ${CMAKE_SOURCE_DIR}/cmake/FritWebUi.cmake VERBATIM)
