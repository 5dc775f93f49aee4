#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs deploy/ray under Ray Serve, from PyPI into build/check-deploy/ray, about 500 MB: ray_test.py.
#
#     tests/deploy/ray.sh build/release/frit
set -eu
frit=$(realpath "$1")
cd "$(dirname "$0")/../.."
venv=build/check-deploy/ray
if ! "$venv/bin/python" -c 'import ray.serve, httpx' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check 'ray[serve]' httpx
fi
"$venv/bin/python" tests/deploy/ray_test.py "$frit"
