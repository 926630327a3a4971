"""What a failed command says, and the status that it ends with."""

from __future__ import annotations

import traceback

import click

from casnap.cli.output import Output, printable
from casnap.errors import CasnapError, Usage


class Bug(CasnapError):
    """Something that casnap did not expect."""

    code, exit_status = "bug", 70


class Interrupted(CasnapError):
    """The user stopped it (Ctrl-C)."""

    code, exit_status = "interrupted", 130


class Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM)."""


class TerminatedByRequest(CasnapError):
    """The process was asked to end, and did."""

    code, exit_status = "interrupted", 143


def as_casnap_error(error: BaseException) -> CasnapError:
    """Any exception as one with a code, an exit status and a hint."""
    match error:
        case CasnapError():
            return error
        case click.UsageError():
            return Usage(_first_small(error.format_message().rstrip(".")), hint=_usage_hint(error))
        case Terminated():
            return TerminatedByRequest("stopped: terminated by a signal", hint=_AFTER_STOP)
        case KeyboardInterrupt():
            return Interrupted("stopped: interrupted", hint=_AFTER_STOP)
        case _:
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return Bug(f"unexpected failure: {cause}", hint="run again with --debug, and report what it prints")


_AFTER_STOP = "run `casnap status` to see how things stand"


def _usage_hint(error: click.UsageError) -> str:
    takes_paths = error.ctx is not None and error.ctx.info_name in ("rollback", "restore", "rewind", "diff")
    if takes_paths and "extra argument" in error.message:
        return f"paths follow --; see {_help_command(error)}"
    return f"see {_help_command(error)}"


def _help_command(error: click.UsageError) -> str:
    return f"`{error.ctx.command_path if error.ctx else 'casnap'} --help`"


def _first_small(message: str) -> str:
    return message[:1].lower() + message[1:]


def report(error: BaseException, output: Output, *, as_json: bool, debug: bool) -> int:
    """Say what failed, on stderr and with ``--json`` as a document on stdout too; the exit status."""
    known = as_casnap_error(error)
    if as_json:
        from casnap.cli.as_json import dump, error_record  # here, since help and most mistakes do without

        output.bytes(dump(error_record(known)))
    if debug:
        for line in "".join(traceback.format_exception(error)).splitlines():
            output.warn(line)
    output.warn(f"error: {printable(known.message)}")
    if known.hint:
        output.warn(f"hint: {printable(known.hint)}")
    return known.exit_status
