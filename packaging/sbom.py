#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sbom.py VERSION FILE...: writes FILE.cdx.json for each archive and wheel: its parts, versions and licences (CycloneDX 1.5).

The parts are the rows of libraries.tsv for the file's system, which platforms.tsv tells, and what the web UI consists of
where the server is; a source tarball has the web UI alone. The document's number comes from the file's hash, its time from
SOURCE_DATE_EPOCH: the same file gives the same document.
"""
import hashlib
import json
import os
import subprocess
import sys
import time
import uuid

FOLDER = os.path.dirname(os.path.abspath(__file__))
COLUMNS = {"libraries.tsv": ("name", "version", "licence", "copyright", "file", "systems"),
           "platforms.tsv": ("name", "target", "system", "processor", "wheel", "archive")}


def table(name, folder=FOLDER):
    """The rows of a table, as dictionaries."""
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return [dict(zip(COLUMNS[name], line.rstrip("\n").split("\t"))) for line in file if not line.startswith("#")]


def web_ui_table():
    """The rows of the libraries of the web UI, which packaging/web_ui builds if need be."""
    folder = subprocess.run([os.path.join(FOLDER, "web_ui")], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return table("libraries.tsv", folder)


def system_of(file):
    """The system of an archive or a wheel: linux, macos or windows; "" of a source tarball."""
    for row in table("platforms.tsv"):
        if file.endswith((f"-{row['name']}.{row['archive']}", f"-{row['wheel']}.whl")):
            return row["name"].split("-")[0]
    return ""


def component(row, kind="generic"):
    purl = f"pkg:{kind}/{row['name'].replace('@', '%40')}@{row['version']}"
    single = " " not in row["licence"]
    return {"type": "library", "bom-ref": purl, "name": row["name"], "version": row["version"],
            "licenses": [{"license": {"id": row["licence"]}} if single else {"expression": row["licence"]}],
            "copyright": row["copyright"], "purl": purl}


def document(version, file):
    name = os.path.basename(file)
    with open(file, "rb") as content:
        digest = hashlib.sha256(content.read()).hexdigest()
    parts = [component(row) for row in table("libraries.tsv") if system_of(name) in row["systems"].split()]
    if system_of(name) != "windows":   # where the server is
        parts += [component(row, "npm") for row in web_ui_table()]
    if not name.endswith(".whl"):
        parts.append({"type": "machine-learning-model", "bom-ref": "fable.gguf", "name": "fable-30m",
                      "licenses": [{"license": {"id": "CC0-1.0"}}]})
    purl = f"pkg:generic/frit@{version}"
    return {
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, 'sha256:' + digest)}",
        "metadata": {
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))),
            "component": {"type": "application", "bom-ref": purl, "name": "frit", "version": version, "purl": purl,
                          "description": name, "licenses": [{"license": {"id": "MIT"}}],
                          "hashes": [{"alg": "SHA-256", "content": digest}]},
        },
        "components": parts,
        "dependencies": [{"ref": purl, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


if __name__ == "__main__":
    for file in sys.argv[2:]:
        with open(file + ".cdx.json", "w", encoding="utf-8") as out:
            json.dump(document(sys.argv[1], file), out, indent=2)
            out.write("\n")
