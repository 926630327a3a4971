"""The one tree of errors: each has a stable code, an exit status and, where one helps, a hint.

A message says what failed and why (``<what failed>: <cause>``); a hint is one imperative sentence.
"""

from __future__ import annotations

from typing import Any


class CasnapError(Exception):
    """Anything that casnap refuses or fails to do.

    ``code`` is stable across versions and meant for programs; ``exit_status`` is the status that the
    command line ends with; ``details`` holds JSON-ready facts (candidates, paths, the lock's holder).
    """

    code: str = "failed"
    exit_status: int = 1

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details or {}
        if code is not None:
            self.code = code


class Usage(CasnapError):
    """The request itself is malformed: a bad option, name, metadata or path."""

    code, exit_status = "usage", 2


class NoStore(CasnapError):
    """There is no store at the place that was asked for."""

    code, exit_status = "no-store", 10


class Busy(CasnapError):
    """A lock was not free within the wait; ``details["holder"]`` says who has it."""

    code, exit_status = "locked", 11


class NotFound(CasnapError, LookupError):
    """No such checkpoint or workspace, or more than one fits."""

    code, exit_status = "not-found", 13


class Refused(CasnapError):
    """Understood and possible, but not done: a taken name, a forbidden path, a foreign store."""

    code, exit_status = "refused", 14


class Damage(CasnapError):
    """Stored bytes do not match their name."""

    code, exit_status = "damage", 15


class TooNew(CasnapError):
    """The store, a record or an operation is of a format that this version does not know."""

    code, exit_status = "too-new", 16


class StorageFailed(CasnapError):
    """A disk is full, read only, or answered with an error."""

    code, exit_status = "storage", 17


def interruption_in(error: BaseException) -> KeyboardInterrupt | None:
    """The interruption that an error is, or that Python before 3.12 has wrapped: it came while a class was made."""
    cause: BaseException | None = error
    while isinstance(cause, RuntimeError):
        cause = cause.__cause__
    return cause if isinstance(cause, KeyboardInterrupt) else None
