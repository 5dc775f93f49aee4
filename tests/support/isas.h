// SPDX-License-Identifier: MIT
// support/isas.h: reports the instruction sets of the build that tests of kernels could not run on this processor.
#pragma once

// A set-up function of groups. At the end of the program it prints a line with the instruction sets that did not run.
int report_isas(void **state);
