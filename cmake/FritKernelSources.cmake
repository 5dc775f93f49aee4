# SPDX-License-Identifier: MIT
# Turns the files of src/backend/cuda/kernels into strings of a C file, line by line: kernels are compiled on the machine
# that runs them. As a script: cmake -DOUT=file.c -DFOLDER=kernels -P FritKernelSources.cmake
file(GLOB_RECURSE files ${FOLDER}/*.cu ${FOLDER}/*.cuh ${FOLDER}/*.h ${FOLDER}/*.def)
set(text "// SPDX-License-Identifier: MIT\n// Made by cmake/FritKernelSources.cmake from src/backend/cuda/kernels.\n")
string(APPEND text "#include \"backend/cuda/runtime/sources.h\"\n\nconst frit_cuda_source frit_cuda_sources[] = {\n")
foreach(file ${files})
    cmake_path(GET file FILENAME name)
    file(READ ${file} content)
    string(REPLACE "\\" "\\\\" content "${content}")
    string(REPLACE "\"" "\\\"" content "${content}")
    string(REPLACE "\n" "\\n\"\n    \"" content "${content}")
    string(APPEND text "    {\"${name}\",\n    \"${content}\"},\n")
endforeach()
string(APPEND text "};\nconst size_t frit_cuda_n_sources = sizeof frit_cuda_sources / sizeof frit_cuda_sources[0];\n")
file(WRITE ${OUT} "${text}")
