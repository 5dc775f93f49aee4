# SPDX-License-Identifier: MIT
# Checks that `make test` hands its options to ctest as they are: TESTS may be a regular expression.
#     cmake -DFOLDER=folder -P make_test.cmake
file(REMOVE_RECURSE ${FOLDER})
file(COPY ${CMAKE_CURRENT_LIST_DIR}/../../Makefile DESTINATION ${FOLDER})
file(WRITE ${FOLDER}/tools/setup "#!/bin/sh\n")
file(CHMOD ${FOLDER}/tools/setup PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

# `make test` runs this test inside of a make, whose options would be those of the inner one.
unset(ENV{MAKEFLAGS})
unset(ENV{MFLAGS})
unset(ENV{MAKELEVEL})
foreach(options "-R ^base/(str|buf)$" "-R t* -E b;c -LE nightly" "")
    execute_process(COMMAND make --no-print-directory test "TESTS=${options}" JOBS=2 CONFIGURE=true BUILD=true "CTEST=printf '<%s>'"
                    WORKING_DIRECTORY ${FOLDER} OUTPUT_VARIABLE output ERROR_VARIABLE output)
    string(REPLACE " " "><" expected "<build/release -j 2 ${options}>")
    string(REPLACE "<>" "" expected "${expected}")
    if(NOT output STREQUAL expected)
        message(SEND_ERROR "make test TESTS='${options}' hands over '${output}', expected '${expected}'")
    endif()
endforeach()
