// SPDX-License-Identifier: MIT
// support/locale.h: a locale whose decimal point is a comma, made on the spot: few machines that test have one.
#pragma once

// From here on the program runs in that locale ("0,5" is half). Skips the running test where localedef is not here or
// makes none. Returns the folder for LOCPATH; the locale's name is "xx_XX".
const char *enter_comma_locale(void);
void leave_comma_locale(void);
