# SPDX-License-Identifier: MIT
"""Builds the library and the command with CMake and puts them into the wheel.

FRIT_WHEEL_TARGET names the system, as cmake/toolchains/zig-NAME.cmake does: linux-x86_64, linux-aarch64, windows-x86_64,
macos-x86_64, macos-aarch64. tools/setup zig and tools/static_libraries NAME must have run (bindings/python/wheel.sh does
all of it). Without it the wheel is for this machine: its own compiler, and the libraries that are installed here.
"""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLATFORMS = {
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64",
    "windows-x86_64": "win_amd64",
    "macos-x86_64": "macosx_11_0_x86_64",
    "macos-aarch64": "macosx_11_0_arm64",
}


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root).parent.parent
        if not (root / "CMakeLists.txt").exists():
            raise RuntimeError(f"frit: {root} is not frit's source tree, of which the library is built")
        target = os.environ.get("FRIT_WHEEL_TARGET", "")
        if target and target not in PLATFORMS:
            raise RuntimeError(f"FRIT_WHEEL_TARGET '{target}': expected one of {', '.join(PLATFORMS)}")
        folder = root / "build" / (f"zig/{target}" if target else "wheel")
        self.build(root, folder, target)
        system = target.split("-")[0] or {"nt": "windows"}.get(os.name, "macos" if os.uname().sysname == "Darwin" else "linux")
        library, command = {"windows": ("libfrit.dll", "frit.exe"), "macos": ("libfrit.dylib", "frit")}.get(
            system, ("libfrit.so", "frit"))
        platform = PLATFORMS[target] if target else sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        build_data["force_include"][str((folder / library).resolve())] = f"frit/lib/{library}"
        build_data["force_include"][str(folder / command)] = f"frit/bin/{command}"

    def build(self, root: Path, folder: Path, target: str) -> None:
        options = ["-DCMAKE_BUILD_TYPE=Release", "-DFRIT_TESTS=OFF", "-DCMAKE_SHARED_LINKER_FLAGS=-s",
                   "-DCMAKE_EXE_LINKER_FLAGS=-s"]
        if target:
            options.append(f"-DCMAKE_TOOLCHAIN_FILE={root}/cmake/toolchains/zig-{target}.cmake")
        subprocess.run(["cmake", "--log-level=WARNING", "-S", root, "-B", folder, "-G", "Ninja", *options], check=True)
        jobs = os.environ.get("FRIT_JOBS", "")
        subprocess.run(["cmake", "--build", folder, "--target", "frit", "frit_shared",
                        *(["-j", jobs] if jobs else [])], check=True)
