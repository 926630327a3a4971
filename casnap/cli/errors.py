"""What a failed command says, and the status that it ends with."""

from __future__ import annotations

from casnap.cli.output import Output, printable
from casnap.errors import CasnapError, interruption_in


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
    match interruption_in(error) or error:
        case CasnapError() as known:
            return known
        case Terminated():
            return TerminatedByRequest("stopped: terminated by a signal", hint=_AFTER_STOP)
        case KeyboardInterrupt():
            return Interrupted("stopped: interrupted", hint=_AFTER_STOP)
        case _:
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return Bug(f"unexpected failure: {cause}", hint="run again with --debug, and report what it prints")


_AFTER_STOP = "run `casnap status` to see how things stand"


def report(error: BaseException, output: Output, *, as_json: bool, debug: bool) -> int:
    """Say what failed, on stderr and with ``--json`` as a document on stdout too; the exit status."""
    known = as_casnap_error(error)
    if as_json:
        from casnap.cli.as_json import dump, error_record  # here, since help and most mistakes do without

        output.bytes(dump(error_record(known)))
    if debug:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            output.warn(line)
    output.warn(f"error: {printable(known.message)}")
    if known.hint:
        output.warn(f"hint: {printable(known.hint)}")
    return known.exit_status
