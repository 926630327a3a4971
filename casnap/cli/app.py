"""The program: its verbs and their other names, and what surrounds a run."""

from __future__ import annotations

import importlib
import itertools
import keyword
import os
import signal
from difflib import get_close_matches
from types import FrameType
from typing import Any, NoReturn

import click

from casnap.cli.errors import Terminated, report
from casnap.cli.options import global_options
from casnap.cli.output import Output
from casnap.cli.session import Session
from casnap.errors import Usage
from casnap.store import signals

VERBS = {
    "init": "Protect a directory from now on.",
    "checkpoint": "Record the workspace as it is now.",
    "list": "The checkpoints of a workspace, newest first.",
    "show": "One checkpoint in full.",
    "status": "How the workspace stands.",
    "diff": "What differs between checkpoints, or since one.",
    "rollback": "Put the workspace back to a checkpoint.",
    "undo": "Take the last rollback back.",
    "verify": "Compare the workspace with a checkpoint.",
    "check": "Look through the whole store, and mend it.",
    "restore-to": "Write a checkpoint into another directory.",
    "delete": "Delete checkpoints; undelete brings them back.",
    "undelete": "Bring a deleted checkpoint back.",
    "cleanup": "Delete old checkpoints by a rule.",
    "gc": "Give back the space of what was deleted.",
    "expunge": "Take paths out of every checkpoint, for good.",
    "pin": "Keep checkpoints from being deleted.",
    "unpin": "Let checkpoints be deleted again.",
    "rename": "Give a checkpoint another name.",
    "cat": "Write a file of a checkpoint to standard output.",
    "manifest": "Sums of all files of a checkpoint.",
    "log": "What was done, newest first.",
    "du": "What takes the space.",
    "workspace": "List, move or look for protected directories.",
    "config": "What casnap does where no option says it.",
    "import": "Checkpoints from the history of another system.",
    "recover": "Finish a rollback that was interrupted.",
    "forget": "Stop protecting a directory; its files stay.",
    "completion": "The script that completes in bash, zsh or fish.",
}
"""Each verb and what its help says in one line; kept here so that help need not import them all."""

ALIASES = {
    "create": "checkpoint",
    "save": "checkpoint",
    "savepoint": "checkpoint",
    "snapshot": "checkpoint",
    "ls": "list",
    "info": "show",
    "stats": "status",
    "restore": "rollback",
    "rewind": "rollback",
    "rm": "delete",
    "clean": "cleanup",
    "fsck": "check",
    "prune": "cleanup",
    "unregister": "forget",
}
"""Other names, most of them those that other tools use."""

COMPLETE = "_CASNAP_COMPLETE"
"""The variable by which a script of ``casnap completion`` asks; it holds ``<shell>_complete``."""


class Program(click.Group):
    """The verbs, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs in the order in which people meet them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb of this name."""
        name = ALIASES.get(cmd_name, cmd_name)
        if name not in VERBS:
            return None
        base = f"{name}_" if keyword.iskeyword(name) else name.replace("-", "_")
        module = importlib.import_module(f"casnap.cli.{base}")
        command: click.Command = module.restore if cmd_name == "restore" else module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that was typed.

        Raises:
            Usage: there is none of this name.
        """
        known = [*VERBS, *ALIASES]
        if args[0] not in known:
            near = get_close_matches(args[0], known, 1)
            hint = f"did you mean `casnap {near[0]}`?" if near else "see `casnap --help` for the verbs"
            raise Usage(f"bad command {args[0]!r}: there is no such verb", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs with their other names into the help."""
        rows = []
        for name, purpose in VERBS.items():
            aliases = [alias for alias, verb in ALIASES.items() if verb == name]
            rows.append((f"{name} ({', '.join(aliases)})" if aliases else name, purpose))
        with formatter.section("Verbs"):
            formatter.write_dl(rows, col_max=50)


@click.command("casnap", cls=Program, invoke_without_command=True, params=global_options())
@click.pass_context
def program(ctx: click.Context) -> Any:
    """Keep checkpoints of directories, and put any of them back.

    Without a verb: how the workspace stands, in five lines. Paths follow after --.
    """
    if ctx.invoked_subcommand is not None:
        return None
    session = ctx.ensure_object(Session)
    if session.raw_paths is not None:
        raise Usage("bad arguments: paths without a verb", hint="see `casnap --help` for the verbs")
    from casnap.cli.overview import overview

    return overview(session)


program.context_settings = {"help_option_names": ["-h", "--help"]}


def run(arguments: list[str]) -> int:
    """Run one command line; the status to exit with. Nothing is raised."""
    if asked := os.environ.get(COMPLETE):
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
        as_json = session.as_json or wants_json(words)
        status = report(error, output, as_json=as_json, debug=session.options.debug)
        return output.finish() or status


def _invoke(session: Session, words: list[str]) -> int:
    try:
        with program.make_context("casnap", words, obj=session) as ctx:
            return program.invoke(ctx) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    finally:
        session.close()


def split_paths(arguments: list[str]) -> tuple[list[str], list[str] | None]:
    """What stands before the first ``--``, and the paths behind it: click would drop the difference."""
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
