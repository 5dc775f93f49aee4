# SPDX-License-Identifier: MIT
"""The command: `frit` and `python -m frit` are the C program that the wheel brings along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NoReturn


def find_command() -> Path:
    """The command's file: FRIT_COMMAND names one for development, else it lies within the package."""
    if named := os.environ.get("FRIT_COMMAND"):
        return Path(named)
    found = Path(__file__).resolve().parent / "bin" / ("frit.exe" if sys.platform == "win32" else "frit")
    if not found.exists():
        sys.exit(f"frit: {found} is not there: this installation has the library alone")
    return found


def run(arguments: list[str]) -> NoReturn:
    """Becomes the command."""
    command = str(find_command())
    if sys.platform == "win32":
        sys.exit(subprocess.run([command, *arguments]).returncode)
    os.execv(command, ["frit", *arguments])


def main() -> NoReturn:
    """The console script."""
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
