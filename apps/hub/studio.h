// SPDX-License-Identifier: MIT
// hub/studio.h: models that LM Studio has fetched: PUBLISHER/MODEL/FILE in its own folder, which is only read.
#pragma once
#include "hub/hub.h"

hub_status hub_studio_find(const hub_settings *settings, const hub_name *name, hub_path *out);
