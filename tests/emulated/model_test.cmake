# SPDX-License-Identifier: MIT
# Runs a whole model on an emulated processor. frit must choose the best instruction set of that processor, and the
# answer must be the expected one.
#     cmake -DFRIT=path -DEMULATOR=command -DCPU=name -DISA=name -DLACKS=name -P model_test.cmake

function(run expected_exit out)
    execute_process(COMMAND ${EMULATOR} -cpu ${CPU} ${FRIT} ${ARGN} INPUT_FILE /dev/null OUTPUT_VARIABLE output ERROR_VARIABLE error
                    RESULT_VARIABLE exit_code)
    if(NOT exit_code EQUAL expected_exit)
        message(FATAL_ERROR "frit ${ARGN} on ${CPU}: exit ${exit_code}\n${output}${error}")
    endif()
    set(${out} "${output}${error}" PARENT_SCOPE)
endfunction()

function(expect text part)
    string(FIND "${text}" "${part}" at)
    if(at EQUAL -1)
        message(FATAL_ERROR "on ${CPU}, expected '${part}' in:\n${text}")
    endif()
endfunction()

run(0 told run -p "Tell me the tale of Rapunzel." --temp 0 -n 12)
expect("${told}" "There were once a man and a woman who had long")
run(0 measured bench -p 1 -n 0 -r 1 --no-probe)
expect("${measured}" "cpu ${ISA} ")
if(LACKS)
    run(1 refused bench -p 1 -n 0 -r 1 --no-probe --cpu ${LACKS})
    expect("${refused}" "cpu: ${LACKS} is asked for, but this processor")
endif()
