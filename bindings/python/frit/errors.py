# SPDX-License-Identifier: MIT
"""The errors of the library as exceptions, one class for each status."""

from __future__ import annotations

from . import _declarations as c


class FritError(Exception):
    """A call of the library failed. The text says what was found and what is expected; it may change.

    `status` is a negative number, one of FRIT_E_*. `code` distinguishes errors that have one status ("invalid_type"),
    and `field` names the field or option with the error ("messages[2].content"). Both are None if the library does not
    give them.
    """

    status: int = c.FRIT_E_INTERNAL
    field: str | None = None
    code: str | None = None


class InvalidError(FritError, ValueError):
    """An argument is not allowed."""

    status = c.FRIT_E_INVALID


class OutOfMemoryError(FritError, MemoryError):
    """The model, its context or a step does not fit into memory."""

    status = c.FRIT_E_MEMORY


class InputOutputError(FritError, OSError):
    """A file could not be read or written."""

    status = c.FRIT_E_IO


class NotFoundError(FritError, FileNotFoundError):
    """A file or a key of metadata does not exist."""

    status = c.FRIT_E_NOT_FOUND


class FormatError(FritError, ValueError):
    """A model's file is damaged, or has numbers that are not finite."""

    status = c.FRIT_E_FORMAT


class UnsupportedError(FritError, NotImplementedError):
    """The model or this machine does not support the request."""

    status = c.FRIT_E_UNSUPPORTED


class LimitError(FritError, ValueError):
    """The context, the cache or a limit that the caller gave is too small."""

    status = c.FRIT_E_LIMIT


class CancelledError(FritError):
    """A progress function returned False."""

    status = c.FRIT_E_CANCELLED


class InternalError(FritError):
    """The library has a bug."""

    status = c.FRIT_E_INTERNAL


class TimedOutError(FritError, TimeoutError):
    """A regular expression of the tokenizer took too long."""

    status = c.FRIT_E_TIMEOUT


class NetworkError(FritError, ConnectionError):
    """A model could not be fetched: there is no connection, or the server cannot answer now. The next try continues."""

    status = c.FRIT_E_IO


class DeniedError(FritError, PermissionError):
    """A server requires a token, or a permission that the token does not have."""

    status = c.FRIT_E_IO


class AnswerError(FritError, ValueError):
    """An answer does not match its schema: it was cut, it calls tools instead, or its type refuses it."""

    status = c.FRIT_E_INVALID


_BY_STATUS: dict[int, type[FritError]] = {
    kind.status: kind
    for kind in (
        InvalidError, OutOfMemoryError, InputOutputError, NotFoundError, FormatError, UnsupportedError, LimitError,
        CancelledError, InternalError, TimedOutError,
    )
}


def error_of(status: int, sentence: str, field: str | None = None, code: str | None = None) -> FritError:
    """Returns the exception for a status."""
    error = _BY_STATUS.get(status, FritError)(sentence)
    error.field, error.code = field, code
    return error


def copy_of(error: FritError) -> FritError:
    """Returns a copy of an exception. Each thread raises an exception of its own."""
    copy = type(error)(str(error))
    copy.field, copy.code = error.field, error.code
    return copy
