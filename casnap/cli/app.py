"""The program as click knows it: its verbs and their help."""

from __future__ import annotations

import importlib
import keyword
from difflib import get_close_matches
from typing import Any

import click

from casnap.cli.grammar import ALIASES, RESTORE, grammar_of
from casnap.cli.options import global_options, verb_of
from casnap.cli.session import Session
from casnap.errors import Usage

VERBS = {
    "init": "Protect a directory from now on.",
    "checkpoint": "Record the workspace as it is now.",
    "list": "The checkpoints of a workspace, newest first.",
    "show": "One checkpoint in full.",
    "status": "How the workspace stands.",
    "diff": "What differs between checkpoints, or since one.",
    "rollback": "Put the workspace back to a checkpoint.",
    "undo": "Take the last rollback back.",
    "run": "Run a command between two checkpoints.",
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
    "bench": "How quick casnap is with a directory of yours.",
    "plugin": "Set coding agents up to take checkpoints by themselves.",
    "doctor": "What does not work, and what to do about it.",
    "hook": "What coding agents call before they change files.",
    "completion": "The script that completes in bash, zsh or fish.",
}
"""Each verb and what its help says in one line; kept here so that help need not import them all."""


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
        if (grammar := grammar_of(cmd_name)) is not None:
            return verb_of("restore" if grammar is RESTORE else name, grammar, module.carry_out)
        command: click.Command = module.command
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


def invoke(session: Session, words: list[str]) -> int:
    """Do what a command line asks for; its exit status.

    Raises:
        Usage: the command line is wrong.
    """
    try:
        with program.make_context("casnap", words, obj=session) as ctx:
            return program.invoke(ctx) or 0
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.UsageError as error:
        raise Usage(_first_small(error.format_message().rstrip(".")), hint=_usage_hint(error)) from error


def _usage_hint(error: click.UsageError) -> str:
    takes_paths = error.ctx is not None and error.ctx.info_name in ("rollback", "restore", "rewind", "diff")
    if takes_paths and "extra argument" in error.message:
        return f"paths follow --; see {_help_command(error)}"
    if error.ctx is not None and error.ctx.info_name == "run" and isinstance(error, click.NoSuchOption):
        return f"the command and its options follow --; see {_help_command(error)}"
    return f"see {_help_command(error)}"


def _help_command(error: click.UsageError) -> str:
    return f"`{error.ctx.command_path if error.ctx else 'casnap'} --help`"


def _first_small(message: str) -> str:
    return message[:1].lower() + message[1:]
