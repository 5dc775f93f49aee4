# SPDX-License-Identifier: MIT
# tools/check.c finds each kind of fault, and no fault in a clean file. Run with -DCHECK= -DBUILD=.
set(root ${BUILD}/check-test)
set(head "// SPDX-License-Identifier: MIT\n")

# check(FILE TEXT SENTENCES...): a tree with this file alone gives exactly these sentences, in this order.
function(check file text)
    file(REMOVE_RECURSE ${root})
    file(WRITE ${root}/${file} "${text}")
    execute_process(COMMAND ${CHECK} ${root} RESULT_VARIABLE result OUTPUT_VARIABLE output)
    list(LENGTH ARGN n_faults)
    list(JOIN ARGN "\n${file}:" expected)
    string(REGEX REPLACE "[^\n]*files, [^\n]*\n$" "" found "${output}")
    if(ARGN)
        set(expected "${file}:${expected}\n")
    endif()
    if(NOT found STREQUAL expected)
        message(SEND_ERROR "expected:\n${expected}found (${result}):\n${found}")
    elseif(n_faults EQUAL 0 AND NOT result EQUAL 0)
        message(SEND_ERROR "${file}: ended with ${result}")
    elseif(NOT n_faults EQUAL 0 AND result EQUAL 0 AND NOT found MATCHES "warning")
        message(SEND_ERROR "${file}: ended with 0")
    endif()
endfunction()

check(src/base/good.c "${head}// Fine.\n#include \"base/status.h\"\n\nint frit_x(void)\n{\n    return 0;\n}\n")
check(src/base/good.h "${head}// base/good.h: fine.\n#pragma once\n")

check(src/base/a.c "int x;\n" "1: the first line is not // SPDX-License-Identifier: MIT")
check(src/base/a.c "${head}int x;\n" "2: the second line does not say what the file is")
check(src/base/a.h "${head}// b.h: x\n#pragma once\n" "2: the second line does not start with // base/a.h:")
check(src/base/a.h "${head}// base/a.h: x\n" "1: no #pragma once")
check(src/base/a.c "${head}// A.\n\tint x;\n" "3: a tab")
check(src/base/a.c "${head}// A.\nint x; \n" "3: space at the end")
string(ASCII 195 169 accented)
check(src/base/a.c "${head}// A.\n// caf${accented}\n" "3: a character outside ASCII, in column 7")
check(src/base/a.c "${head}// A.\nint x;" "3: no line end at the end")

string(REPEAT "x" 119 wide)
check(src/base/a.c "${head}// A.\n//${wide}\n" "3: 121 columns, at most 120 are allowed")
check(src/base/a.c "${head}// A.\n// clang-format off\n//${wide}\n// clang-format on\n")

check(src/base/a.c "${head}// A.\n#include \"quant/dtype.h\"\n" "3: includes \"quant/dtype.h\"\; allowed here: frit.h frit_tools.h base/")
check(src/format/a.c "${head}// A.\n#include \"graph/graph.h\"\n"
      "3: includes \"graph/graph.h\"\; allowed here: frit.h base/ quant/ media/processor.h format/")
check(src/arch/a.c "${head}// A.\n#include \"format/gguf.h\"\n#include \"graph/graph.h\"\n")
check(src/backend/cuda/a.c "${head}// A.\n#include \"backend/cpu/ref/ref.h\"\n"
      "3: includes \"backend/cpu/ref/ref.h\"\; allowed here: frit.h base/ quant/ format/rows.h graph/ sample/weight.h backend/backend.h backend/cuda/")
check(src/new/a.c "${head}// A.\n" "1: this folder has no row in the table of layers")
check(apps/frit/a.c "${head}// A.\n#include \"base/file/file.h\"\n"
      "3: includes \"base/file/file.h\"\; allowed here: frit.h frit_tools.h frit/ common/ hub/ server/")
check(apps/frit/a.c "${head}// A.\n#include \"cli.h\"\n")
check(include/frit/a.h "${head}// frit/a.h: A.\n#include \"status.h\"\n")
check(include/frit/a.h "${head}// frit/a.h: A.\n#include \"base/file/file.h\"\n"
      "3: includes \"base/file/file.h\"\; allowed here: system headers only")

check(src/base/a.c "${head}// A.\n#pragma GCC unroll 4\n"
      "3: clang unrolls no loop by GCC's pragma: FRIT_UNROLL is for both")
check(src/base/a.c "${head}// A.\nint x = printf(\"\");\n" "3: printf is not for a library")
check(src/base/a.c "${head}// A.\ndouble x = strtod(\"\", 0);\n" "3: strtod: the library has frit_parse_double")
check(apps/frit/a.c "${head}// A.\ndouble x = atof(\"\");\n" "3: atof: the library has frit_parse_double")
check(src/base/a.c "${head}// A.\nconst char *x = strerror(1);\n" "3: strerror: the library has frit_errno_text")
check(src/base/a.c "${head}// A.\nint x = snprintf(0, 0,\n  \"%d %.3g\", 1, 2.0);\nint y = f(\"%g\");\n"
      "4: snprintf of a fraction: the library has frit_format")
check(src/base/a.c "${head}// A.\nint x = sscanf(t, \"%lf\", &y);\n"
      "3: sscanf of a fraction: the library has frit_parse_double")
check(src/base/a.c "${head}// A.\nint x = snprintf(0, 0, \"%.0f%% %d %.*s\", 1.0, 2, 3, \"\");\n")
check(src/base/a.c "${head}// printf(1)\nint x = snprintf(0, 0, \"exit(1)\"); /* exit(1)\n exit(2) */\n")
check(src/base/a.c "${head}// A.\nint x = a.exit(1) + my_exit(1) + on_exit;\n")
check(src/graph/a.c "${head}// A.\n#ifdef _WIN32\n#endif\n"
      "3: asks for _WIN32\; that belongs to base/ or to a file with a suffix")
check(src/backend/cpu/x86/a.c "${head}// A.\n#ifdef __AVX2__\n#endif\n"
      "3: a condition in a kernel file: the file is the condition")

check(apps/frit/a.c "${head}// A.\nint x = {.help = \"of the model\"};\n"
      "3: a help text begins with 'of '\; expected what the option does")
check(docs/a.md "A page." "1: no line end at the end")

check(src/base/a.c "${head}// Whoever reads it.\n"
      "2: says 'whoever'\; write instead: name the function, thread or caller")
check(src/base/a.c "${head}// A.\nint x = f(\"%s: the id %d, which is none\", 1);\n"
      "3: says 'is none'\; write instead: say what was found and what is expected")
check(src/base/a.c "${head}// A.\n/* One\n * comes behind\n the other. */ int x;\n"
      "4: says 'behind'\; write instead: after")
check(src/base/a.c "${head}// A.\nint behind = whose + nobody_is;   // The whole is nonempty.\n")
check(src/base/a.c "${head}// A.\nchar x = '\"', y = '\\'';   // Behind it.\n" "3: says 'behind'\; write instead: after")
check(README.md "Who reads it?\n\n    cat behind\n\n`behind` is a name.\n"
      "1: says 'who'\; write instead: name the function, thread or caller")
check(CHANGELOG.md "Who reads it?\n")

check(src/base/a.c "${head}// Of the last line.\n\n// A line\n// of words.\nint x;   // Those of y.\n"
      "2: the comment begins with 'Of'\; begin with the noun that it is about"
      "6: the comment begins with 'Those'\; begin with the noun that it is about")
check(src/base/a.c "${head}// What y has.\nint y;\n\n// Whether it has y.\nint x;   // Whatever y has.\n"
      "2: the comment begins with 'What'\; begin with the noun that it is about"
      "5: the comment begins with 'Whether'\; begin with the noun that it is about")
check(src/base/a.c "${head}// Offers much.\n\n// It's all.\nint y;   // of x\nconst char *x = \"http:// of y\";\n")

string(REPEAT "    x();\n" 100 body)
check(src/base/a.c "${head}// A.\nvoid f(int a,\n       int b)\n{\n${body}}\n" "5: warning: f has 102 lines, more than 80")
string(REPEAT "    x();\n" 150 body)
check(src/base/a.c "${head}// A.\nvoid f(void)\n{\n${body}}\n" "4: f has 152 lines, at most 150 are allowed")
string(REPEAT "int x;\n" 1000 body)
check(src/base/a.c "${head}// A.\n${body}" "1002: 1002 lines, at most 1000 are allowed")
