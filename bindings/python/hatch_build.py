# SPDX-License-Identifier: MIT
"""Builds the library and the command with CMake and puts them into the wheel.

FRIT_WHEEL_TARGET names a row of packaging/platforms.tsv, for which packaging/compile builds with zig; the wheel then
has the licences of the libraries that are linked into it. Without FRIT_WHEEL_TARGET the wheel is for this machine,
built with its compiler and its libraries. FRIT_KERNELS names a folder with archives of kernels for NVIDIA GPUs
(packaging/kernels), which the wheel gets beside the library; a wheel for macOS gets none.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = {"windows": ("libfrit.dll", "frit.exe"), "macos": ("libfrit.dylib", "frit"), "linux": ("libfrit.so", "frit")}


def rows(table: Path) -> list[list[str]]:
    lines = table.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root).parent.parent
        if not (root / "CMakeLists.txt").exists():
            raise RuntimeError(f"frit: {root} is not frit's source tree, of which the library is built")
        inside: dict[str, str] = build_data["force_include"]
        target = os.environ.get("FRIT_WHEEL_TARGET", "")
        if target:
            platforms = {row[0]: row[4] for row in rows(root / "packaging" / "platforms.tsv")}
            if target not in platforms:
                raise RuntimeError(f"FRIT_WHEEL_TARGET '{target}': expected one of {', '.join(platforms)}")
            system, platform = target.split("-")[0], platforms[target]
            made = subprocess.run([root / "packaging" / "compile", target], check=True, stdout=subprocess.PIPE, text=True)
            folder = Path(made.stdout.strip())
            for name, release, _, _, file, systems in rows(root / "packaging" / "libraries.tsv"):
                if system in systems.split():
                    inside[str(root / "build" / "sources" / f"{name}-{release}" / file)] = f"frit/licences/{name}.txt"
        else:
            system = "windows" if os.name == "nt" else "macos" if os.uname().sysname == "Darwin" else "linux"
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            folder = self.build_here(root)
        library, command = FILES[system]
        inside[str(root / "LICENSE")] = "frit/licences/frit.txt"
        notices = [one / "licenses.txt" for one in (folder / "generated/web_ui", root / "apps/server/web_ui/built")]
        if system != "windows" and (found := [one for one in notices if one.exists()]):   # the libraries of the web UI
            inside[str(found[0])] = "frit/licences/web-ui.txt"
        inside[str((folder / library).resolve())] = f"frit/lib/{library}"
        inside[str(folder / command)] = f"frit/bin/{command}"
        kernels = os.environ.get("FRIT_KERNELS", "")
        for archive in sorted(Path(kernels).glob("sm_*.kernels")) if kernels and system != "macos" else []:
            inside[str(archive.resolve())] = f"frit/lib/kernels/{archive.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Compresses the wheel again, as much as zlib can. hatchling has no option for this."""
        if version == "editable":
            return
        with zipfile.ZipFile(artifact_path) as wheel:
            members = [(info, wheel.read(info)) for info in wheel.infolist()]
        with zipfile.ZipFile(artifact_path, "w") as wheel:
            for info, content in members:
                wheel.writestr(info, content, zipfile.ZIP_DEFLATED, 9)

    def build_here(self, root: Path) -> Path:
        folder = root / "build" / "wheel"
        try:
            subprocess.run(["cmake", "--log-level=WARNING", "-S", root, "-B", folder, "-G", "Ninja",
                            "-DCMAKE_BUILD_TYPE=Release", "-DFRIT_TESTS=OFF", "-DCMAKE_SHARED_LINKER_FLAGS=-s",
                            "-DCMAKE_EXE_LINKER_FLAGS=-s"], check=True)
        except (OSError, subprocess.CalledProcessError):
            self.say_what_is_missing(root)
            raise
        jobs = os.environ.get("JOBS", "")
        subprocess.run(["cmake", "--build", folder, "--target", "frit", "frit_shared",
                        *(["-j", jobs] if jobs else [])], check=True)
        return folder

    def say_what_is_missing(self, root: Path) -> None:
        """Ends the build with a list of the compiler, tools and libraries that this machine lacks, and of their
        packages."""
        if os.name == "nt":
            return
        said = subprocess.run([root / "tools" / "setup", "--check", "build"], capture_output=True, text=True)
        if said.returncode != 0:
            sys.exit("\nfrit: this wheel is built here, from C, and what that needs is not all on this machine (without libedit, "
                     f"libmicrohttpd and libcurl it can be built).\n{said.stdout}{said.stderr}"
                     "A wheel for this system (docs/python.md) needs none of it.")
