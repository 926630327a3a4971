"""``casnap hook``: what coding agents call. It is silent and succeeds, whatever happens, unless told otherwise."""

from __future__ import annotations

import os
import select
import sys

from casnap.agents.dialects import understand
from casnap.agents.event import Event, Moment
from casnap.agents.hook import Hook, Missed
from casnap.agents.notes import notebook
from casnap.agents.payload import BadPayload, parse
from casnap.cli.errors import as_casnap_error
from casnap.cli.output import printable
from casnap.cli.running import BLOCKS
from casnap.cli.session import Session
from casnap.settings import SystemClock, load_settings

LONGEST = 64 << 20
"""Bytes of the longest event that is read; some agents send whole conversations."""

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
    event = Event(agent=agent or "", moment=Moment.BEFORE_TOOL)
    hook, missed = None, None
    try:
        hook = _hook(session, arrived, clock)
        event = understand(parse(_read(hook.deadline)), agent or "", hook.settings.environ)
        missed = hook.see_to(event.at(session.options.workspaces) if session.options.workspaces else event)
    except Exception as error:  # whatever it is: the agent goes on, and a person must be able to read of it
        known = as_casnap_error(error)
        missed = Missed(known.message, known.hint or "") if hook is None else hook.fail(event.agent, known)
    if missed is None:
        return 0
    session.output.warn(f"casnap: {printable(missed.message)}")
    return _block(event, missed) if require and event.moment in (Moment.PROMPT, Moment.BEFORE_TOOL) else 0


def _occupy_standard_streams() -> None:
    """Let no file of ours get a number below 3, where an agent has closed a stream: it would be taken for that."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < _STREAMS:
        pass
    os.close(fd)


def _hook(session: Session, arrived: int, clock: SystemClock) -> Hook:
    """The hook; what is wrong with the configuration is remembered before it is raised."""
    options = session.options
    settings = load_settings(store=options.store, wait=options.wait, tolerant=True)
    session.settings = settings
    hook = Hook(settings, notebook(settings.environ, settings.home, settings.store), arrived, clock=clock)
    for fault in settings.faults:
        hook.fail("", fault)
        raise fault
    return hook


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
