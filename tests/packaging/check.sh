#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the packages in FOLDER. Files of make dist are checked by check.py, with validators from PyPI under
# build/check-packages. Packages of make deb are checked by lintian and, as root on a machine with debootstrap, by
# installing them in a bare root.
#
#     tests/packaging/check.sh FOLDER
set -eu
folder=$(realpath "$1")
cd "$(dirname "$0")/../.."
work=build/check-packages
mkdir -p "$work"
set -- "$folder"/*.deb
if [ ! -e "$folder/SHA256SUMS" ] && [ ! -e "$1" ]; then
    echo "check.sh: $folder has no packages: make dist and make deb write them" >&2
    exit 1
fi

if [ -e "$folder/SHA256SUMS" ]; then
    if ! "$work/venv/bin/python" -c 'import auditwheel, check_jsonschema, cyclonedx, jsonschema, lief, yaml' 2>/dev/null; then
        python3 -m venv "$work/venv"
        "$work/venv/bin/pip" install --quiet --disable-pip-version-check 'cyclonedx-python-lib[json-validation]' \
            auditwheel check-jsonschema lief pyyaml
    fi
    "$work/venv/bin/python" tests/packaging/check.py "$folder"
else
    echo "no SHA256SUMS in $folder: make dist writes archives"
fi

if [ ! -e "$1" ]; then
    echo "no Debian packages in $folder: make deb builds them"
    set --
elif command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning "$folder"/*.changes
    echo "lintian has no errors and no warnings"
else
    echo "lintian is not installed: the Debian packages are not checked with it"
fi
for archive in "$folder"/frit-*-linux-"$(uname -m)".tar.gz; do
    if [ -e "$archive" ]; then set -- "$archive" "$@"; fi
done
if [ $# -eq 0 ]; then exit 0; fi
if [ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null; then
    tests/packaging/bare_root.sh "$PWD/$work/root" "$@"
    if command -v buildah >/dev/null; then
        tests/packaging/bare_root.sh --container "$PWD/$work/root" "$@"
    else
        echo "buildah is not installed: nothing is tried in a container"
    fi
else
    echo "no root, or no debootstrap: nothing is tried in a bare root"
fi
