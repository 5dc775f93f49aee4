#!/bin/sh
# SPDX-License-Identifier: MIT
# Validates deploy/ without a network or a cluster: check.py, with validators from PyPI under build/check-deploy.
#
#     tests/deploy/check.sh build/release/frit
set -eu
frit=$(realpath "$1")
cd "$(dirname "$0")/../.."
venv=build/check-deploy
if ! "$venv/bin/python" -c 'import check_jsonschema, kubernetes_validate, yaml' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check check-jsonschema kubernetes-validate pyyaml
fi
"$venv/bin/python" tests/deploy/check.py "$frit"
