#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs clients.py with the unmodified `openai` package from PyPI, in a virtual environment under build/clients.
#
#     tests/server/clients.sh build/release/frit
set -eu
frit=$(realpath "$1")
cd "$(dirname "$0")/../.."
venv=build/clients
if ! "$venv/bin/python" -c 'import openai' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check openai
fi
exec "$venv/bin/python" tests/server/clients.py "$frit"
