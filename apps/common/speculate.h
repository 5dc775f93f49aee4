// SPDX-License-Identifier: MIT
// common/speculate.h: speculation, from options. Shared by the commands and the server.
#pragma once
#include "frit.h"

// frit_session_speculate. A model that cannot speculate is an error only if the options ask for more than "auto".
frit_status app_speculate(frit_session *session, const frit_speculate_options *options);
