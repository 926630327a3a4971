"""One run of the program: what surrounds whatever it is asked for."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from casnap.cli.errors import Terminated, report
from casnap.cli.foreign import StandIns
from casnap.cli.output import Output
from casnap.cli.session import Session
from casnap.cli.spellings import Request, read, verb_in
from casnap.store import signals

BLOCKS = 2
"""The exit status that keeps a tool from running, to those agents that ask for one."""

COMPLETE = "_CASNAP_COMPLETE"
"""The variable by which a script of ``casnap completion`` asks; it holds ``<shell>_complete``."""


def run(arguments: list[str]) -> int:
    """Run one command line; the status to exit with. Nothing is raised."""
    if asked := os.environ.get(COMPLETE):
        from casnap.cli.app import program
        from casnap.cli.completion import answer

        return answer(program, asked)
    signal.signal(signal.SIGTERM, _terminate)
    words, paths = split_paths(arguments)
    session = Session(paths)
    try:
        with signals.reported():
            status = _invoke(session, words)
            return session.finish() or status
    except BrokenPipeError:  # click writes the help by itself
        return Output().finish()
    except (Exception, KeyboardInterrupt) as error:
        output = Output()
        hooked = verb_in(words) == "hook"  # whoever calls it reads its output, and is stopped by its failures
        as_json = not hooked and (session.as_json or wants_json(words))
        status = report(error, output, as_json=as_json, debug=session.options.debug)
        if hooked:
            return BLOCKS if "--require" in words and _may_be_held_up() else 0
        return output.finish() or status


def _may_be_held_up() -> bool:
    from casnap.cli.hook import may_be_held_up  # here, since it is for mistakes in hooks only

    return may_be_held_up()


def _invoke(session: Session, words: list[str]) -> int:
    try:
        if session.raw_paths is None and (request := read(words)) is not None:
            session.options = request.options
            function = _function(request)
            _collect_from_now_on()
            return function(session, **request.values)
        from casnap.cli.app import invoke  # here, since click takes longer to import than most commands to run

        _collect_from_now_on()
        return invoke(session, words)
    finally:
        session.close()


def _collect_from_now_on() -> None:
    """Look for garbage again, among what is made from now on, if this process was begun without (:mod:`casnap.cli`)."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _function(request: Request) -> Callable[..., int]:
    with StandIns():
        function: Callable[..., int] = importlib.import_module(f"casnap.cli.{request.verb}").carry_out
    return function


def split_paths(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first ``--``, and the paths or the command behind it: click would drop the difference."""
    if "--" not in arguments:
        return arguments, None
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def wants_json(words: list[str]) -> bool:
    """Whether JSON was asked for, by a command line that may be too wrong to be read."""
    formats = [after for word, after in itertools.pairwise(words) if word == "--format"]
    return "--json" in words or "--format=json" in words or "json" in formats


def _terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise Terminated
