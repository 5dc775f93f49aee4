// SPDX-License-Identifier: MIT
// common/speculate.h: speculation as an option asks for it. Shared by the commands and the server.
#pragma once
#include "frit.h"

// frit_session_speculate; FRIT_OK too where the model cannot, and nothing was asked for but "auto".
frit_status app_speculate(frit_session *session, const frit_speculate_options *options);
