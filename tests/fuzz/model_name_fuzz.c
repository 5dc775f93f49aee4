// SPDX-License-Identifier: MIT
// Any name of a model: an accepted name has no part that leads out of a folder, and is read again as the same name.
#include "hub/hub.h"
#include "hub/name.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static hub_settings settings = {.hub_endpoint = {"https://hub.example"}, .short_names = {"/nonexistent"}};
    static hub_name name, again;
    hub_path text;
    char *typed = malloc(n_bytes + 1);
    require(typed != NULL);
    memcpy(typed, bytes, n_bytes);
    typed[n_bytes] = 0;
    const hub_status status = hub_name_read(&settings, typed, &name);
    require(status == HUB_OK || status == HUB_E_NAME || status == HUB_E_NOT_FOUND);
    require(hub_is_name(typed) == (status != HUB_E_NOT_FOUND));
    if (status == HUB_OK) {
        require(!name.repo[0] || hub_is_safe_path(name.repo));
        require(!name.part[0] || hub_is_safe_path(name.part));
        require(!name.revision[0] || hub_is_safe_path(name.revision));
        require(hub_name_text(&name, &text) == HUB_OK && hub_name_read(&settings, text.text, &again) == HUB_OK);
        require(strcmp(name.repo, again.repo) == 0 && strcmp(name.part, again.part) == 0 &&
                strcmp(name.revision, again.revision) == 0 && strcmp(name.host, again.host) == 0);
    }
    free(typed);
    return 0;
}
