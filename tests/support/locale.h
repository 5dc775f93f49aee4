// SPDX-License-Identifier: MIT
// support/locale.h: makes a locale whose decimal point is a comma, because few test machines have one.
#pragma once

// Makes the program use this locale ("0,5" is half). Skips the running test if localedef is missing or fails. Returns
// the folder for LOCPATH; the locale's name is "xx_XX".
const char *enter_comma_locale(void);
void leave_comma_locale(void);
