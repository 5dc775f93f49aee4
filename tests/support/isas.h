// SPDX-License-Identifier: MIT
// support/isas.h: tests of kernels run on the instruction sets of this processor, and say which of the build's did not.
#pragma once

// A set-up of groups: at the end of the program, a line with the instruction sets that did not run.
int report_isas(void **state);
