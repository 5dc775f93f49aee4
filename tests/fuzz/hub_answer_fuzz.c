// SPDX-License-Identifier: MIT
// Any answer of the hub or of ollama's registry: accepted file names lie within a folder, and a choice names existing
// files.
#include "hub/manifest.h"
#include "hub/name.h"
#include "hub/repo.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void require(bool good)
{
    if (!good) abort();
}

static void choose(const hub_repo *repo, const char *part)
{
    hub_choice choice;
    if (hub_choose(repo, part, part[0] ? 0 : (uint64_t)1 << 30, "it", &choice) != HUB_OK) return;
    require(choice.n_files > 0 && choice.n_files <= repo->n);
    for (size_t i = 0; i < choice.n_files; i++) require(choice.files[i] < repo->n);
    hub_choice_free(&choice);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    hub_repo repo;
    hub_manifest manifest;
    if (hub_repo_parse(&repo, (const char *)bytes, n_bytes, "it") == HUB_OK) {
        require(hub_is_hex(repo.commit, 40));
        for (size_t i = 0; i < repo.n; i++) {
            require(hub_is_safe_path(repo.files[i].path));
            require(!repo.files[i].etag[0] || hub_is_etag(repo.files[i].etag));
        }
        choose(&repo, "");
        choose(&repo, "Q4_K_M");
        if (repo.n > 0) choose(&repo, repo.files[0].path);
        hub_repo_free(&repo);
    }
    if (hub_manifest_parse(&manifest, (const char *)bytes, n_bytes, "it") == HUB_OK) {
        require(manifest.model < manifest.n && manifest.n <= HUB_MAX_LAYERS);
        for (size_t i = 0; i < manifest.n; i++) require(hub_is_hex(manifest.layers[i].sha256, 64));
    }
    return 0;
}
