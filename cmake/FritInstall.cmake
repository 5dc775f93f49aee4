# SPDX-License-Identifier: MIT
# What `make install` puts where: the command, the library with its header, how to find it (pkg-config and
# find_package), and the bundled model. Everything is relative to the prefix, so an installation may be moved;
# only the path of the bundled model is compiled into the command.
include(CMakePackageConfigHelpers)

set(frit_cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/frit)

install(FILES include/frit.h TYPE INCLUDE)
install(FILES models/fable.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/frit)
install(TARGETS frit_static frit_shared EXPORT frit)
if(TARGET frit)
    install(TARGETS frit)
endif()
install(EXPORT frit NAMESPACE frit:: FILE frit-targets.cmake DESTINATION ${frit_cmake_folder})

configure_package_config_file(cmake/frit-config.cmake.in frit-config.cmake INSTALL_DESTINATION ${frit_cmake_folder})
write_basic_package_version_file(frit-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/frit-config.cmake ${CMAKE_BINARY_DIR}/frit-config-version.cmake
        DESTINATION ${frit_cmake_folder})

# ${pcfiledir} is where frit.pc lies: the prefix is as far above it as it was installed below.
cmake_path(SET pc_folder ${CMAKE_INSTALL_PREFIX})
cmake_path(APPEND pc_folder ${CMAKE_INSTALL_LIBDIR} pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${pc_folder} OUTPUT_VARIABLE frit_pc_prefix)
configure_file(cmake/frit.pc.in frit.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/frit.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
