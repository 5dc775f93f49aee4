# SPDX-License-Identifier: MIT
# Turns a folder of kernels into strings of a C file, line by line, because kernels are compiled on the machine where
# they run. Usage as a script:
#     cmake -DOUT=file.c -DFOLDER=kernels -DPREFIX=frit_cuda -DTYPE=frit_cuda_source
#           -DHEADER=backend/cuda/runtime/sources.h -P FritKernelSources.cmake
# HEADER declares TYPE, a name and a text, and the arrays of PREFIX.
file(GLOB_RECURSE files ${FOLDER}/*.cu ${FOLDER}/*.cuh ${FOLDER}/*.h ${FOLDER}/*.def ${FOLDER}/*.wgsl)
cmake_path(GET FOLDER FILENAME folder)
set(text "// SPDX-License-Identifier: MIT\n// Made by cmake/FritKernelSources.cmake from the folder ${folder}.\n")
string(APPEND text "#include \"${HEADER}\"\n\nconst ${TYPE} ${PREFIX}_sources[] = {\n")
foreach(file ${files})
    cmake_path(GET file FILENAME name)
    file(READ ${file} content)
    string(REPLACE "\\" "\\\\" content "${content}")
    string(REPLACE "\"" "\\\"" content "${content}")
    string(REPLACE "\n" "\\n\"\n    \"" content "${content}")
    string(APPEND text "    {\"${name}\",\n    \"${content}\"},\n")
endforeach()
string(APPEND text "};\nconst size_t ${PREFIX}_n_sources = sizeof ${PREFIX}_sources / sizeof ${PREFIX}_sources[0];\n")
file(WRITE ${OUT} "${text}")
