# SPDX-License-Identifier: MIT
"""Runs the C program of the package, as `frit` and as `python -m frit`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def command_path() -> Path | None:
    """Returns the path of the C program: the file that FRIT_COMMAND names, for development, or the one in the package.
    None if there is no such file."""
    if named := os.environ.get("FRIT_COMMAND"):
        return Path(named)
    found = Path(__file__).resolve().parent / "bin" / ("frit.exe" if sys.platform == "win32" else "frit")
    return found if found.exists() else None


def find_command() -> Path:
    """Returns the path of the C program. Ends the interpreter with a message if there is no such file."""
    found = command_path()
    if found is None:
        sys.exit("frit: this installation has the library alone, without the command")
    return found


def run(arguments: list[str]) -> NoReturn:
    """Runs the C program in place of this process."""
    command = str(find_command())
    if sys.platform == "win32":
        import subprocess

        sys.exit(subprocess.run([command, *arguments]).returncode)
    os.execv(command, ["frit", *arguments])


def main() -> NoReturn:
    """The entry point of the console script."""
    run(sys.argv[1:])


if __name__ == "__main__":
    main()
