# SPDX-License-Identifier: MIT
# The files that `make install` installs: the command with its man page and completions, the library with its headers,
# files for pkg-config and find_package, the examples and the pages about it, and the bundled model. All paths are
# relative to the prefix, so an installation may be moved: the command finds the model relative to itself.
include(CMakePackageConfigHelpers)

set(frit_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/frit)

install(FILES include/frit.h include/frit_tools.h TYPE INCLUDE)
install(DIRECTORY include/frit TYPE INCLUDE FILES_MATCHING PATTERN *.h)
install(FILES models/fable.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/frit)
install(TARGETS frit_static frit_shared EXPORT frit)
file(GLOB frit_examples CONFIGURE_DEPENDS examples/*.c)
install(FILES ${frit_examples} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES docs/library.md docs/abi.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(TARGET frit)
    install(TARGETS frit)
endif()

# The command prints its own man page and completions. A cross build needs an emulator for that.
if(TARGET frit AND NOT WIN32 AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
    set(frit_printed)
    function(frit_install_printed file destination)   # ARGN: the command's arguments
        set(path ${CMAKE_BINARY_DIR}/installed/${file})
        cmake_path(GET path PARENT_PATH folder)
        file(MAKE_DIRECTORY ${folder})
        add_custom_command(OUTPUT ${path} COMMAND frit ${ARGN} > ${path} DEPENDS frit VERBATIM)
        list(APPEND frit_printed ${path})
        set(frit_printed ${frit_printed} PARENT_SCOPE)
        install(FILES ${path} DESTINATION ${destination})
    endfunction()
    frit_install_printed(frit.1 ${CMAKE_INSTALL_MANDIR}/man1 help --man)
    frit_install_printed(bash/frit ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completions bash)
    frit_install_printed(zsh/_frit ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completions zsh)
    frit_install_printed(fish/frit.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completions fish)
    add_custom_target(frit_printed ALL DEPENDS ${frit_printed})
else()
    message(STATUS "the command cannot run here: man page and completions are not installed")
    add_custom_target(frit_printed)
endif()
install(EXPORT frit NAMESPACE frit:: FILE frit-targets.cmake DESTINATION ${frit_cmake_folder})

configure_package_config_file(cmake/frit-config.cmake.in frit-config.cmake INSTALL_DESTINATION ${frit_cmake_folder})
write_basic_package_version_file(frit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/frit-config.cmake ${CMAKE_BINARY_DIR}/frit-config-version.cmake
        DESTINATION ${frit_cmake_folder})

# ${pcfiledir} is the folder of frit.pc, from which the prefix is found by the relative path of the installation.
cmake_path(SET pc_folder ${CMAKE_INSTALL_PREFIX})
cmake_path(APPEND pc_folder ${CMAKE_INSTALL_LIBDIR} pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pc_folder} OUTPUT_VARIABLE frit_pc_prefix)
# Outside of /usr the loader finds a library only after ldconfig, so programs get the library's folder as a run path.
set(frit_pc_rpath "")
if(NOT WIN32 AND NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(frit_pc_rpath "-Wl,-rpath,\${libdir} ")
endif()
configure_file(cmake/frit.pc.in frit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/frit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
