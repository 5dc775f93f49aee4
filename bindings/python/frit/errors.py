# SPDX-License-Identifier: MIT
"""What goes wrong, as exceptions: one for each status of the library, with the library's sentence."""

from __future__ import annotations

from . import _declarations as c


class FritError(Exception):
    """A call of the library failed. The text says what was found and expected; it may change.

    `status` is negative, one of FRIT_E_*. `code` tells failures of one status apart ("invalid_type"), `field` names the
    field or option that the failure is about ("messages[2].content"); both are None where the library gives none.
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
    """A file, or a key of metadata, is not there."""

    status = c.FRIT_E_NOT_FOUND


class FormatError(FritError, ValueError):
    """A model's file is damaged, or numbers that it gives are not finite."""

    status = c.FRIT_E_FORMAT


class UnsupportedError(FritError, NotImplementedError):
    """The model or this machine cannot do that."""

    status = c.FRIT_E_UNSUPPORTED


class LimitError(FritError, ValueError):
    """The context, the cache or a limit of the caller's is too small."""

    status = c.FRIT_E_LIMIT


class CancelledError(FritError):
    """A progress function asked to stop."""

    status = c.FRIT_E_CANCELLED


class InternalError(FritError):
    """A mistake of the library."""

    status = c.FRIT_E_INTERNAL


class TimedOutError(FritError, TimeoutError):
    """A regular expression of the tokenizer took too long."""

    status = c.FRIT_E_TIMEOUT


class NetworkError(FritError, ConnectionError):
    """A model could not be fetched: there is no connection, or the server cannot answer now. Trying again continues."""

    status = c.FRIT_E_IO


class DeniedError(FritError, PermissionError):
    """A server wants a token, or a permission that the token does not have."""

    status = c.FRIT_E_IO


class AnswerError(FritError, ValueError):
    """An answer is not what its schema asks for: it was cut, it calls tools instead, or its type does not take it."""

    status = c.FRIT_E_INVALID


_BY_STATUS: dict[int, type[FritError]] = {
    kind.status: kind
    for kind in (
        InvalidError, OutOfMemoryError, InputOutputError, NotFoundError, FormatError, UnsupportedError, LimitError,
        CancelledError, InternalError, TimedOutError,
    )
}


def error_of(status: int, sentence: str, field: str | None = None, code: str | None = None) -> FritError:
    """The exception for a status."""
    error = _BY_STATUS.get(status, FritError)(sentence)
    error.field, error.code = field, code
    return error


def copy_of(error: FritError) -> FritError:
    """An exception of its own, as each is raised in another thread."""
    copy = type(error)(str(error))
    copy.field, copy.code = error.field, error.code
    return copy
