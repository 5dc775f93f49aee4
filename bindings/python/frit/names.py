# SPDX-License-Identifier: MIT
"""Finds and fetches models by name, with the command of the package (`frit pull --json`)."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from typing import IO, TYPE_CHECKING, Any, Callable, NamedTuple, NoReturn, Union

from ._arguments import flag, integer, path_of, show, text
from .errors import (
    CancelledError,
    DeniedError,
    FormatError,
    FritError,
    InputOutputError,
    InvalidError,
    NetworkError,
    NotFoundError,
    OutOfMemoryError,
    UnsupportedError,
)

if TYPE_CHECKING:
    import subprocess

    from .model import Path, Progress

_KINDS: dict[str, type[FritError]] = {
    "name": InvalidError, "not found": NotFoundError, "denied": DeniedError, "network": NetworkError,
    "disk": InputOutputError, "data": FormatError, "limit": OutOfMemoryError, "memory": OutOfMemoryError,
    "cancelled": CancelledError, "unsupported": UnsupportedError,
}
_USAGE, _BAD_MODEL = 2, 3   # the command's exit codes for a text that is not a name, and for a name without a model


class Fetching(NamedTuple):
    """The progress of a download: `done` of `total` bytes of the file `name` are fetched or, if `checks` is true, were
    read again to be checked. `total` is None if it is unknown."""

    name: str
    done: int
    total: int | None
    checks: bool


def pull(name: str, *, progress: Callable[[Fetching], object] | bool | None = None, update: bool = True,
         memory: str | None = None, connections: int = 4, sha256: str | None = None) -> str:
    """Fetches a model by its name, as `frit pull` does, and returns its path.

    name: "hf:ORG/REPO", "hf:ORG/REPO:Q4_K_M", "ollama:llama3.2:1b", "https://...", or a short name.
    progress: called with a `Fetching`; returning False cancels (CancelledError). None: a terminal shows a bar; False:
        no progress is shown. Messages also go to the logger "frit".
    update: False: a model that is on this machine is used without asking a server for a newer one.
    memory: chooses a quantization that fits into this much memory ("16G"); None: into the machine's memory.
        connections: the number of connections that fetch a file.
    sha256: the expected hash of a file that is named by its address.

    The next call continues a download that was stopped, also by Ctrl-C. Raises InvalidError for a text that is not a
    name, NotFoundError, DeniedError (a token is missing), NetworkError, FormatError (the file is not as expected),
    InputOutputError, OutOfMemoryError (no quantization fits), UnsupportedError.
    """
    if not isinstance(name, str):
        raise TypeError(f"name: found {show(name)}, expected a str")
    if not callable(progress) and progress not in (None, True, False):
        raise TypeError(f"progress: found {show(progress)}, expected a function, or True or False")
    options = [] if flag("update", update) else ["--missing"]
    options += ["--connections", str(integer("connections", connections, 1, 16))]
    for option, value in (("--memory", memory), ("--sha256", sha256)):
        if value is not None:
            options += [option, os.fsdecode(text(option[2:], value) or b"")]
    return _run(name, options, progress)


def found_path(path: Path, progress: Progress | None) -> Path:
    """Returns the path of a model. A path is returned unchanged, and a model that is given by a name is fetched if
    needed."""
    if not isinstance(path, str) or not path or path.startswith("-") or os.path.lexists(os.fsdecode(path_of("path", path))):
        return path
    is_name = re.match("[a-z]{2,}:", path) is not None

    def tell(fetching: Fetching) -> object:
        part = fetching.done / fetching.total if fetching.total else 0.0
        return progress(part) if callable(progress) else None

    try:
        return _run(path, ["--missing"], tell if callable(progress) else progress)
    except _NoName as failure:
        if is_name:
            raise InvalidError(str(failure)) from None
        return path   # opening the path gives the error
    except UnsupportedError:
        if is_name:
            raise
        return path


class _NoName(InvalidError):
    """The text is not a name for the command."""


def _run(name: str, options: list[str], progress: Union[Callable[[Fetching], object], bool, None]) -> str:
    import subprocess
    import tempfile

    from .__main__ import command_path

    command = command_path()
    if command is None:
        raise UnsupportedError(f"{name}: models by name need the command frit, which this installation does not have; "
                               "FRIT_COMMAND can name one")
    shows = progress in (None, True) and _is_probable(name) and _has_terminal()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [str(command), "pull", "--json", *([] if shows else ["--quiet"]), *options, "--", name], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=None if shows else said)
        assert process.stdout is not None
        try:
            last = _read(process.stdout, progress if callable(progress) else None)
        except BaseException:
            _stop(process)
            raise
        finally:
            process.stdout.close()
        code = process.wait()
        if "path" in last:
            return str(last["path"])
        if shows and not last and code != 130:   # the terminal has the sentence; the exception needs it too
            return _run(name, options, False)
        said.seek(0)
        _fail(name, code, last, " ".join(said.read().decode("utf-8", "replace").split()))


def _read(events: IO[bytes], progress: Callable[[Fetching], object] | None) -> dict[str, Any]:
    """Reports the progress of the command, and returns the object of its last line."""
    import logging

    event: dict[str, Any] = {}
    for line in events:
        event = json.loads(line)
        if "say" in event:
            logging.getLogger("frit").info("%s", event["say"])
        elif "done" in event and progress is not None:
            fetching = Fetching(event["name"], event["done"], event["total"], event["checks"])
            if progress(fetching) is False:
                raise CancelledError(f"{fetching.name}: fetching was cancelled; what came is kept, and the next call continues")
    return event


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stops the command as Ctrl-C does, so that the fetched part is kept."""
    from subprocess import TimeoutExpired

    if process.poll() is None:
        if sys.platform == "win32":
            process.terminate()
        else:
            process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=10)
    except TimeoutExpired:
        process.kill()
        process.communicate()


def _fail(name: str, code: int, last: dict[str, Any], said: str) -> NoReturn:
    if last.get("kind") == "cancelled" or code == 130:   # the terminal's Ctrl-C reached the command first
        raise KeyboardInterrupt
    if "error" in last:
        raise _KINDS.get(last["kind"], FritError)(last["error"])
    sentence = said.removeprefix("frit: ") or f"the command frit ended with {code} and said nothing"
    if code == _USAGE:
        raise _NoName(sentence)
    if code == _BAD_MODEL:
        raise NotFoundError(sentence)
    raise InputOutputError(f"{name}: {sentence}")


def _is_probable(name: str) -> bool:
    """True if a text looks like a name, and not like the path of a missing file."""
    return re.match("[a-z]{2,}:|hf.co/|huggingface.co/", name) is not None or re.search(r"[/\\]|\.\w+$", name) is None


def _has_terminal() -> bool:
    """True if text that the command writes to stderr appears on the program's terminal."""
    try:
        return sys.stderr is not None and sys.stderr.isatty() and sys.stderr.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False
