# SPDX-License-Identifier: MIT
# The toolchain for WebAssembly: Debian's emscripten, which tools/wasm_root unpacks into build/tools/wasm, and the static
# libraries of tools/static_libraries. docs/dev/web.md describes the module.
set(CMAKE_SYSTEM_NAME Emscripten)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(EMSCRIPTEN ON)
set(UNIX ON)
set(CMAKE_INSTALL_LIBDIR lib CACHE PATH "Folder of libraries")

cmake_path(SET frit_root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/..)
set(frit_wasm ${frit_root}/build/tools/wasm)
set(CMAKE_C_COMPILER ${frit_wasm}/bin/cc)
set(CMAKE_AR ${frit_wasm}/llvm/llvm-ar CACHE FILEPATH "Archiver")
set(CMAKE_RANLIB ${frit_wasm}/llvm/llvm-ranlib CACHE FILEPATH "Archive index")
set(CMAKE_NM ${frit_wasm}/llvm/llvm-nm CACHE FILEPATH "Lists symbols")
set(CMAKE_C_COMPILER_WORKS TRUE)   # linking a test program by emcc takes seconds
set(CMAKE_CROSSCOMPILING_EMULATOR ${frit_root}/tests/web/node)
set(THREADS_PREFER_PTHREAD_FLAG ON)
set(CMAKE_HAVE_LIBC_PTHREAD TRUE)

# Memory that threads share and vectors of 128 bits; all browsers of the last years have both.
add_compile_options(-pthread -matomics -mbulk-memory -msimd128)
add_link_options(-pthread)

set(CMAKE_FIND_ROOT_PATH ${frit_root}/build/static/wasm32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${frit_root}/build/static/wasm32/lib/pkgconfig)
set(ENV{PKG_CONFIG_PATH} "")
