// SPDX-License-Identifier: MIT
// Windows has no localedef, and programs cannot make locales.
#include "support/locale.h"

#include "support/support.h"

const char *enter_comma_locale(void)
{
    skip_because("Windows has no localedef, which makes a locale with a decimal comma");
    return NULL;
}

void leave_comma_locale(void)
{
}
