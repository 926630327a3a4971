"""``casnap hook``: what coding agents call. It is silent and succeeds, whatever happens, unless told otherwise."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping

from casnap.agents.dialects import understand
from casnap.agents.event import Event, Moment
from casnap.agents.hook import Hook, Missed
from casnap.agents.notes import notebook, shortened
from casnap.agents.payload import BadPayload, parse
from casnap.cli.errors import as_casnap_error
from casnap.cli.output import Output, printable
from casnap.cli.running import BLOCKS
from casnap.cli.session import Session
from casnap.errors import CasnapError
from casnap.settings import SystemClock, load_settings

LONGEST = 64 << 20
"""Bytes of the longest event that is read; some agents send whole conversations."""

PATIENCE = 8 * 10**9
"""Nanoseconds that are waited for an event where no configuration says how long."""

HELD_UP = (Moment.PROMPT, Moment.BEFORE_TOOL)
"""When an agent may be stopped: never at the end of a turn, which it would go on with."""

_READ = 1 << 20
_STREAMS = 3


def carry_out(session: Session, agent: str | None, require: bool) -> int:
    """See to one event of a coding agent, which it writes as JSON to standard input.

    A checkpoint is taken at the prompt, before the first tool of a turn that may change files, and at the end of the
    turn, if the workspace has changed. Nothing is written to standard output, and the exit status is 0: an agent must
    not be stopped by its safety net. What went wrong is shown by `casnap status` and `casnap doctor`.
    """
    _occupy_standard_streams()
    clock = SystemClock()
    arrived = clock.monotonic()
    hook, fault = _hook(session, arrived, clock)
    event, unread = _event(agent or "", hook.deadline if hook else arrived + PATIENCE, os.environ)
    missed = _seen_to(session, hook, event, fault or unread)
    if missed is None:
        return 0
    Output().warn(f"casnap: {printable(shortened(missed.message))}")  # not the session's: there may be no settings
    return _block(event, missed) if require and event.moment in HELD_UP else 0


def may_be_held_up() -> bool:
    """Whether the event on standard input is one before which an agent may be stopped; for when nothing else works."""
    event, unread = _event("", SystemClock().monotonic() + PATIENCE, os.environ)
    return unread is None and event.moment in HELD_UP


def _seen_to(session: Session, hook: Hook | None, event: Event, fault: CasnapError | None) -> Missed | None:
    """What comes of an event; a ``fault`` keeps anything from being done about it."""
    if hook is None:
        fault = fault or CasnapError("unexpected failure")
        return Missed(fault.message, fault.hint or "")
    try:
        if fault is not None:
            return hook.fail(event, fault)
        return hook.see_to(event.at(session.options.workspaces) if session.options.workspaces else event)
    except Exception as error:  # whatever it is: the agent goes on, and a person must be able to read of it
        return hook.fail(event, as_casnap_error(error))


def _event(agent: str, deadline: int, environ: Mapping[str, str]) -> tuple[Event, CasnapError | None]:
    """What standard input tells of; where that cannot be understood, a tool, and why."""
    try:
        return understand(parse(_read(deadline)), agent, environ), None
    except BadPayload as error:
        return Event(agent=agent, moment=Moment.BEFORE_TOOL), error


def _occupy_standard_streams() -> None:
    """Let no file of ours get a number below 3, where an agent has closed a stream: it would be taken for that."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < _STREAMS:
        pass
    os.close(fd)


def _hook(session: Session, arrived: int, clock: SystemClock) -> tuple[Hook | None, CasnapError | None]:
    """The hook, if there can be one, and what is wrong with the configuration."""
    options = session.options
    try:
        settings = load_settings(store=options.store, wait=options.wait, tolerant=True, own_process=True)
        session.settings = settings
        hook = Hook(settings, notebook(settings.environ, settings.home, settings.store), arrived, clock=clock)
    except Exception as error:
        return None, as_casnap_error(error)
    return hook, next(iter(settings.faults), None)


def _block(event: Event, missed: Missed) -> int:
    """Keep the agent from going on, in the way that it understands."""
    import json

    reason = f"casnap could take no checkpoint: {missed.message}"
    if event.agent == "cline":
        sys.stdout.write(json.dumps({"cancel": True, "errorMessage": reason}))
        return 0
    if event.agent == "hermes":
        sys.stdout.write(json.dumps({"decision": "block", "reason": reason}))
    return BLOCKS


def _read(deadline: int) -> bytes:
    """All of standard input; ``deadline`` in nanoseconds of the monotonic clock.

    Raises:
        BadPayload: it has no end in time, is too long, or cannot be read.
    """
    parts = bytearray()
    try:
        if os.isatty(0):
            raise BadPayload("cannot read the event: standard input is a terminal", hint="agents write JSON to it")
        while _is_readable(0, deadline):
            part = os.read(0, _READ)
            if not part:
                return bytes(parts)
            parts += part
            if len(parts) > LONGEST:
                raise BadPayload(f"cannot read the event: it has more than {LONGEST} bytes")
    except OSError as error:
        raise BadPayload(f"cannot read the event: {error.strerror}") from None
    raise BadPayload("cannot read the event: standard input was not closed in time")


def _is_readable(fd: int, deadline: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(0, deadline - SystemClock().monotonic()) / 1_000_000))
