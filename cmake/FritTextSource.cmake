# SPDX-License-Identifier: MIT
# Turns a text file into a string of a C file, line by line. Usage as a script:
#     cmake -DOUT=file.c -DTEXT=file.txt -DHEADER=folder/header.h -DNAME=frit_thing -P FritTextSource.cmake
cmake_path(GET TEXT FILENAME name)
file(READ ${TEXT} content)
string(REPLACE "\\" "\\\\" content "${content}")
string(REPLACE "\"" "\\\"" content "${content}")
string(REPLACE "??" "?\\?" content "${content}")   # avoids trigraphs
string(REPLACE "\n" "\\n\"\n    \"" content "${content}")
file(WRITE ${OUT} "// SPDX-License-Identifier: MIT\n// Made by cmake/FritTextSource.cmake from ${name}.\n#include \"${HEADER}\"\n\n"
                  "const char ${NAME}[] =\n    \"${content}\";\nconst size_t ${NAME}_bytes = sizeof ${NAME} - 1;\n")
