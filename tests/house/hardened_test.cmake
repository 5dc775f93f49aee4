# SPDX-License-Identifier: MIT
# Checks that the built files are hardened, since the server parses data of strangers.
#     cmake -DREADELF=path "-DFILES=frit;libfrit.so" -DFORTIFIED=ON "-DMARKED=libfrit.a" -P hardened_test.cmake

function(expect file text part reason)
    string(FIND "${text}" "${part}" at)
    if(at EQUAL -1)
        message(SEND_ERROR "${file}: ${reason}: readelf does not show '${part}'")
    endif()
endfunction()

foreach(file IN LISTS FILES)
    execute_process(COMMAND ${READELF} --wide --dynamic --program-headers --dyn-syms --notes ${file} OUTPUT_VARIABLE found
                    COMMAND_ERROR_IS_FATAL ANY)
    expect(${file} "${found}" "__stack_chk_fail" "functions with arrays have no guard on the stack")
    expect(${file} "${found}" "GNU_RELRO" "tables of the linker stay writable")
    expect(${file} "${found}" "BIND_NOW" "functions of libraries are looked up late, in tables that stay writable")
    if(FORTIFIED)
        expect(${file} "${found}" "_chk@" "calls of the C library do not check sizes (_FORTIFY_SOURCE)")
    endif()
    if(found MATCHES "GNU_STACK[^\n]* RWE")
        message(SEND_ERROR "${file}: the stack is executable")
    endif()
endforeach()

# A program is marked only if the objects of the C library are marked, which depends on the distribution.
if(MARKED)
    execute_process(COMMAND ${READELF} --wide --notes ${MARKED} OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
    expect(${MARKED} "${found}" "IBT, SHSTK" "jumps are not marked for the processor's control-flow enforcement")
endif()
