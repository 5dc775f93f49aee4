# SPDX-License-Identifier: MIT
"""Runs `frit serve`, the HTTP server in C, as `python -m frit.server`, with the same options."""

from __future__ import annotations

import sys
from typing import NoReturn

from .__main__ import run


def main() -> NoReturn:
    """The entry point of the module."""
    run(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
