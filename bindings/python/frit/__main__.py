# SPDX-License-Identifier: MIT
"""The command: `frit` and `python -m frit` are the C program that the wheel brings along."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def command_path() -> Path | None:
    """The command's file: FRIT_COMMAND names one for development, else it lies within the package. None: there is none."""
    if named := os.environ.get("FRIT_COMMAND"):
        return Path(named)
    found = Path(__file__).resolve().parent / "bin" / ("frit.exe" if sys.platform == "win32" else "frit")
    return found if found.exists() else None


def find_command() -> Path:
    """The same, for a program that cannot go on without it."""
    found = command_path()
    if found is None:
        sys.exit("frit: this installation has the library alone, without the command")
    return found


def run(arguments: list[str]) -> NoReturn:
    """Becomes the command."""
    command = str(find_command())
    if sys.platform == "win32":
        import subprocess

        sys.exit(subprocess.run([command, *arguments]).returncode)
    os.execv(command, ["frit", *arguments])


def main() -> NoReturn:
    """The console script."""
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
