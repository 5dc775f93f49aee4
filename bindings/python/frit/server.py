# SPDX-License-Identifier: MIT
"""`python -m frit.server` is `frit serve`: the HTTP server in C, with the same options."""

from __future__ import annotations

import sys
from typing import NoReturn

from .__main__ import run


def main() -> NoReturn:
    """The module as a program."""
    run(["serve", *sys.argv[1:]])


if __name__ == "__main__":
    main()
