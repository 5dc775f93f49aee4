#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the table of frit_web_get_field from the structs of frit.h, whose offsets the compiler fills in.

    layout.py OUT HEADER...
"""

import pathlib
import re
import sys

STRUCT = re.compile(r"typedef struct (frit_\w+) \{(.*?)\n\} \1;", re.S)
CALLBACK = re.compile(r"(.*\(\*(\w+)\)\(.*\))", re.S)


def fields(body: str):
    """Yields the name and the type of each field."""
    for line in re.sub(r"//[^\n]*", "", body).split(";"):
        line = " ".join(line.split())
        if not line:
            continue
        callback = CALLBACK.fullmatch(line)
        if callback:
            yield callback[2], "callback"
            continue
        base = re.match(r"(?:const )?(?:unsigned |enum |struct )?\w+", line)[0]
        for part in line[len(base):].split(","):
            name = re.search(r"(\w+) *(?:\[[^]]*\])?$", part)[1]
            yield name, base + re.sub(rf"\b{name}\b", "", part).replace(" ", "")


def main() -> None:
    out, *headers = sys.argv[1:]
    rows = []
    for header in headers:
        for name, body in STRUCT.findall(pathlib.Path(header).read_text()):
            rows.append(f'    {{"{name}", "", "", 0, sizeof({name})}},')
            for field, kind in fields(body):
                rows.append(f'    {{"{name}", "{field}", "{kind}", offsetof({name}, {field}), '
                            f"sizeof((({name} *)0)->{field})}},")
    text = ["// SPDX-License-Identifier: MIT", "// Made by layout.py.", '#include "layout.h"', "",
            "const frit_web_field frit_web_fields[] = {", *rows, "};",
            "const size_t frit_web_n_fields = sizeof frit_web_fields / sizeof *frit_web_fields;", ""]
    pathlib.Path(out).write_text("\n".join(text))


main()
