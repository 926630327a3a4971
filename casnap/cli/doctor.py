"""``casnap doctor``."""

from __future__ import annotations

import os
from collections.abc import Iterator

from casnap import __version__
from casnap.agents.health import agent_health
from casnap.agents.installing.plan import Standing
from casnap.agents.installing.runtimes import RUNTIMES
from casnap.agents.notes import notebook
from casnap.cli.options import verb
from casnap.cli.output import printable
from casnap.cli.plugin import surroundings, this_command
from casnap.cli.session import Session
from casnap.engine.health import store_health, workspace_health
from casnap.engine.workspaces import all_workspaces
from casnap.errors import CasnapError, NoStore
from casnap.model.health import Diagnosis, Grade, bad, good, note
from casnap.model.paths import escape
from casnap.settings import Settings, SystemClock, load_settings, open_context
from casnap.settings.health import machine_health

ILL = 1
"""Exit status: something does not work, or will not when it is needed."""


@verb("doctor")
def command(session: Session) -> int:
    """Look at everything that casnap depends on, and say what to do about each fault.

    The store, the workspaces, the hooks of coding agents, the libraries and the limits of the system. Nothing is
    changed. The exit status is 1 where something does not work; `casnap check` looks through what is stored.
    """
    if session.options.workspaces:
        session.workspaces()  # it is about all of them; one that does not exist is a mistake nevertheless
    session.settings = load_settings(store=session.options.store, wait=session.options.wait, tolerant=True)
    found = list(_diagnoses(session))
    if session.as_json:
        session.document("doctor", None, findings=[_record(one) for one in found])
    else:
        for one in found:
            _show(session, one)
    return ILL if any(one.grade is Grade.BAD for one in found) else 0


def _diagnoses(session: Session) -> Iterator[Diagnosis]:
    settings = session.settings
    yield good("casnap", __version__)
    yield from machine_health(settings)
    if not settings.faults:
        yield from _store(settings)
    book = notebook(settings.environ, settings.home, settings.store)
    yield from agent_health(_standings(session), book.all(), _registered(settings), SystemClock().now())


def _standings(session: Session) -> list[Standing]:
    """How agents stand for the user; none where there is no home to look in."""
    if session.settings.home is None:
        return []
    around, command = surroundings(session), this_command()
    return [runtime(around, "user").standing(command) for runtime in RUNTIMES.values()]


def _store(settings: Settings) -> Iterator[Diagnosis]:
    try:
        context = open_context(settings)
    except NoStore as error:
        yield note("store", error.message, "casnap checkpoint makes one, and protects the current directory")
        return
    except CasnapError as error:
        yield bad("store", error.message, error.hint or "look through it with: casnap check")
        return
    try:
        yield from store_health(context)
        yield from workspace_health(context)
    finally:
        context.store.close()


def _registered(settings: Settings) -> list[str]:
    """The paths of all workspaces; none where the store cannot be opened, which is a finding of its own."""
    try:
        context = open_context(settings)
    except CasnapError:
        return []
    try:
        return [escape(os.fsencode(one.path)) for one in all_workspaces(context)]
    finally:
        context.store.close()


def _show(session: Session, one: Diagnosis) -> None:
    session.output.data(f"{one.grade.value:<5} {printable(one.subject)}: {printable(one.said)}")
    if one.remedy:
        session.output.data(f"      {printable(one.remedy)}")


def _record(one: Diagnosis) -> dict[str, str | None]:
    return {
        "subject": one.subject,
        "grade": one.grade.value,
        "said": one.said,
        "remedy": one.remedy or None,
    }
