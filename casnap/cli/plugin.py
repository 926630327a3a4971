"""``casnap plugin``: setting coding agents up to run ``casnap hook``."""

from __future__ import annotations

import contextlib
import difflib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from casnap.agents.installing import apply
from casnap.agents.installing.command import HookCommand
from casnap.agents.installing.openclaw import OpenClaw
from casnap.agents.installing.plan import CommandRun, FileChange, Plan, Standing
from casnap.agents.installing.records import alone
from casnap.agents.installing.runtime import Runtime, Surroundings
from casnap.agents.installing.runtimes import RUNTIMES
from casnap.cli.options import flag, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.errors import CasnapError, NotFound, Usage
from casnap.settings import git_work_tree

ACTIONS = ("install", "uninstall", "status", "detect")


@verb("plugin")
@click.argument("action", metavar="install | uninstall | status | detect", required=False)
@click.option(
    "--runtime",
    "names",
    metavar="NAME",
    multiple=True,
    help=f"The agent: {', '.join(RUNTIMES)}; else all that are found.",
)
@click.option(
    "--scope", type=click.Choice(["user", "project"]), help="For the user (if not told otherwise), or for one project."
)
@flag("--dry-run", help="Show what would be done, and do nothing.")
@flag("--accept-capabilities", help="Tell OpenClaw that the plugin may do what it declares.")
def command(
    session: Session,
    action: str | None,
    names: tuple[str, ...],
    scope: str | None,
    dry_run: bool,
    accept_capabilities: bool,
) -> int:
    """Set coding agents up to take checkpoints by themselves: hooks, and a skill.

    Only entries of casnap's own are written or taken out, comments and everything else stay, and after uninstall each
    file is as it was before. Where an agent asks a person for trust or consent, casnap says so and does not answer.
    """
    if session.options.workspaces and scope != "project" and action != "status":
        session.workspaces()  # it is about none; one that does not exist is a mistake nevertheless
    if action not in ACTIONS:
        raise Usage(f"bad arguments: {action or 'no action'}", hint=f"say one of {', '.join(ACTIONS)}")
    around = surroundings(session)
    if action in ("status", "detect"):
        standings = list(_standings(around, names, scope, every_scope=action == "status"))
        return _tell(session, standings, detect=action == "detect")
    chosen = [runtime(around, scope or "user") for runtime in _runtimes(names, scope or "user")]
    for one in chosen:
        if isinstance(one, OpenClaw):
            one.accept_capabilities = accept_capabilities
    if not names:
        chosen = _found(chosen, installed=action == "uninstall")
    with contextlib.nullcontext() if dry_run else alone(around.home, session.settings.wait):
        return _change(session, chosen, action, dry_run=dry_run)


def _runtimes(names: tuple[str, ...], scope: str) -> list[type[Runtime]]:
    """Those that were named, else all that know this scope."""
    unknown = [name for name in names if name not in RUNTIMES]
    if unknown:
        raise Usage(f"bad runtime {unknown[0]!r}: there is no plugin for it", hint=f"say one of {', '.join(RUNTIMES)}")
    if names:
        return [RUNTIMES[name] for name in dict.fromkeys(names)]
    return [runtime for runtime in RUNTIMES.values() if scope in runtime.scopes]


def _standings(
    around: Surroundings, names: tuple[str, ...], scope: str | None, *, every_scope: bool
) -> Iterator[Standing]:
    """How agents stand in the scope that was named; else for the user, or in every scope that there is."""
    for wanted in (scope,) if scope else ("user", "project") if every_scope else ("user",):
        for runtime in _runtimes(names, wanted):
            if scope or (wanted in runtime.scopes and (wanted == "user" or around.project is not None)):
                yield runtime(around, wanted).standing(this_command())


def _found(all_of_them: list[Runtime], *, installed: bool) -> list[Runtime]:
    standings = [(one, one.standing(this_command())) for one in all_of_them]
    found = [one for one, standing in standings if (standing.installed if installed else standing.found)]
    if not found:
        what = "no agent is set up" if installed else "no agent is found here"
        raise NotFound(f"nothing to do: {what}", code="no-agent", hint=f"name it: --runtime {' | '.join(RUNTIMES)}")
    return found


def surroundings(session: Session) -> Surroundings:
    """Where to look for agents, and where casnap's own plugins are.

    Raises:
        Usage: this user has no home.
    """
    settings = session.settings
    if settings.home is None:
        raise Usage("no home: this user has none", hint="set HOME")
    home = Path(os.fsdecode(settings.home))
    data = settings.environ.get("XDG_DATA_HOME", "")
    own = (Path(data) if os.path.isabs(data) else home / ".local" / "share") / "casnap-plugins"
    return Surroundings(home, settings.environ, _project(session), own)


def _project(session: Session) -> Path | None:
    """The workspace that was named, else the git work tree around here, else the current directory."""
    if (named := session.options.workspace) is not None:
        return Path(os.path.abspath(named))
    here = session.settings.cwd
    return None if here is None else Path(os.fsdecode(git_work_tree(here) or here))


def this_command() -> HookCommand:
    """How this very casnap is run."""
    called = sys.argv[0]
    if os.path.basename(called) == "casnap" and os.path.isfile(called):
        return HookCommand([os.path.abspath(called)])
    return HookCommand([sys.executable, "-m", "casnap"])


def _change(session: Session, chosen: list[Runtime], action: str, *, dry_run: bool) -> int:
    hook = this_command()
    # what cannot be read is said before anything is done
    plans = [(one, one.install_plan(hook) if action == "install" else one.uninstall_plan()) for one in chosen]
    failed = {} if dry_run else _carry_out(session, plans, action)
    done = [(one, plan) for one, plan in plans if one.name not in failed]
    if not session.as_json:
        for one, plan in done:
            _show_plan(session, one, plan, action, dry_run=dry_run)
    if failed:
        raise _failure(session, failed, [one.name for one, _ in done])
    if action == "install" and hook.is_passing:
        session.output.warn(
            f"warning: {printable(hook.words[0])} will be gone some day; install it for good: uv tool install casnap"
        )
    if session.as_json:
        records = [_plan_record(one, plan) for one, plan in plans]
        session.document("plugin", None, action=action, dry_run=dry_run, plugins=records)
    return 0


def _carry_out(session: Session, plans: list[tuple[Runtime, Plan]], action: str) -> dict[str, CasnapError]:
    """Do what plans say; why it failed for some agents, which is no reason to leave the others alone."""
    act = apply.install if action == "install" else apply.uninstall
    failed = {}
    for one, plan in plans:
        try:
            act(plan, one.around.records, one.key, lambda step: _run(session, step))
        except CasnapError as error:
            failed[one.name] = error
    return failed


def _failure(session: Session, failed: dict[str, CasnapError], done: list[str]) -> CasnapError:
    """The first thing that went wrong, as the one that this command ends with; the others are said before it."""
    (_, first), *others = failed.items()
    for _, error in others:
        session.output.warn(f"error: {printable(error.message)}")
        if error.hint:
            session.output.warn(f"hint: {printable(error.hint)}")
    first.details |= {"done": done, "failed": {name: error.message for name, error in failed.items()}}
    return first


def _run(session: Session, step: CommandRun) -> None:
    """Run a command of an agent; what it says goes to standard error, and what it asks to the person, if there is one.

    Raises:
        CasnapError: it fails.
    """
    asking = session.may_ask
    session.output.flush()
    try:
        done = subprocess.run(
            step.words,
            stdin=sys.stdin if asking else subprocess.DEVNULL,
            stdout=sys.stderr if asking else subprocess.PIPE,
            stderr=sys.stderr if asking else subprocess.STDOUT,
            check=False,
        )
    except OSError as error:
        raise CasnapError(f"cannot run {step.words[0]}: {error.strerror}", code="agent-failed") from error
    said = (done.stdout or b"").decode("utf-8", "backslashreplace").strip().splitlines()
    for line in said:
        session.output.talk(f"{os.path.basename(step.words[0])}: {printable(line)}")
    if done.returncode != 0:
        raise CasnapError(
            f"cannot go on: {' '.join(step.words)} failed with {done.returncode}",
            code="agent-failed",
            hint=step.hint or (said[-1] if said else None),
        )


def _show_plan(session: Session, one: Runtime, plan: Plan, action: str, *, dry_run: bool) -> None:
    output = session.output
    if not plan.needed:
        output.data(f"{one.title}: nothing to do, it is {action}ed")
    for step in plan.needed:
        if isinstance(step, CommandRun):
            output.data(f"{one.title}: {'would run' if dry_run else 'ran'} {printable(' '.join(step.words))}")
        else:
            output.data(f"{one.title}: {_done(step, dry_run=dry_run)} {printable(str(step.path))}")
            for line in _difference(step) if dry_run and step.shared else ():
                output.data(printable(line))
    for sentence in plan.todo if plan.needed else ():
        output.talk(f"note: {printable(sentence)}")


def _done(step: FileChange, *, dry_run: bool) -> str:
    verb_ = "remove" if step.after is None else "write" if step.before is None else "change"
    return f"would {verb_}" if dry_run else {"remove": "removed", "write": "wrote", "change": "changed"}[verb_]


def _difference(step: FileChange) -> Iterator[str]:
    before, after = (_lines(step.before), _lines(step.after))
    return difflib.unified_diff(before, after, "before", "after", lineterm="")


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "backslashreplace").splitlines()


def _plan_record(one: Runtime, plan: Plan) -> dict[str, Any]:
    steps = [
        {"run": list(step.words)}
        if isinstance(step, CommandRun)
        else {"path": str(step.path), "what": _done(step, dry_run=True).removeprefix("would ")}
        for step in plan.needed
    ]
    return {"runtime": one.name, "scope": one.scope, "steps": steps, "todo": list(plan.todo)}


def _tell(session: Session, standings: list[Standing], *, detect: bool) -> int:
    if session.as_json:
        records = [
            {
                "runtime": one.runtime,
                "scope": one.scope,
                "found": one.found,
                "version": one.version,
                "where": list(one.where),
                "installed": one.installed,
                "differs": one.differs or None,
                "todo": list(one.todo),
            }
            for one in standings
        ]
        session.document("plugin", None, action="detect" if detect else "status", agents=records)
        return 0
    for one in standings:
        version = [one.version] if one.version else []
        state = ", ".join(map(printable, [*version, *one.where])) if one.found else "not found"
        if not detect:
            state = "set up" if one.installed else "not set up" if one.found else "not found"
            state += f", but not as today: {printable(one.differs)}" if one.differs else ""
        session.output.data(f"{one.runtime:<12} {state}" if detect else f"{one.runtime:<12} {one.scope:<8} {state}")
        for sentence in one.todo if one.installed and not detect else ():
            session.output.talk(f"note: {one.title}: {printable(sentence)}")
    return 0
