# SPDX-License-Identifier: MIT
# frit_embed_kernels(FILE FOLDER PREFIX TYPE HEADER): makes the C file FILE of a folder of kernels. PREFIX,
# TYPE and HEADER are those of FritKernelSources.cmake.
function(frit_embed_kernels file folder prefix type header)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS ${folder}/*)
    set(script ${PROJECT_SOURCE_DIR}/cmake/FritKernelSources.cmake)
    add_custom_command(OUTPUT ${file} DEPENDS ${files} ${script}
                       COMMAND ${CMAKE_COMMAND} -DOUT=${file} -DFOLDER=${folder} -DPREFIX=${prefix} -DTYPE=${type}
                               -DHEADER=${header} -P ${script})
endfunction()
