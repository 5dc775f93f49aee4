#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""archive.py FOLDER FILE: packs a folder as .tar.gz or .zip; the same files give the same bytes.

Names are sorted; owners, times (SOURCE_DATE_EPOCH) and permissions but "may be run" are those of no machine.
"""
import gzip
import os
import sys
import tarfile
import time
import zipfile

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])


def members(folder):
    top = os.path.dirname(os.path.abspath(folder))
    for at, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(at, name)
            yield path, os.path.relpath(path, top)


def mode_of(path):
    return 0o755 if os.access(path, os.X_OK) else 0o644


def write_tar(folder, file):
    with open(file, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path, name in members(folder):
            info = tarfile.TarInfo(name)
            info.mtime = EPOCH
            if os.path.islink(path):
                info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
                tar.addfile(info)
                continue
            info.mode, info.size = mode_of(path), os.path.getsize(path)
            with open(path, "rb") as content:
                tar.addfile(info, content)


def write_zip(folder, file):
    with zipfile.ZipFile(file, "w") as packed:
        for path, name in members(folder):
            info = zipfile.ZipInfo(name, time.gmtime(EPOCH)[:6])
            info.create_system, info.external_attr = 3, (0o100000 | mode_of(path)) << 16   # Unix, for its permissions
            with open(path, "rb") as content:
                packed.writestr(info, content.read(), zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    (write_zip if sys.argv[2].endswith(".zip") else write_tar)(sys.argv[1], sys.argv[2])
