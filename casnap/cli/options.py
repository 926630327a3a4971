"""Options that many verbs share, and how a verb is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from casnap import __version__
from casnap.cli.output import Output
from casnap.cli.session import Session
from casnap.errors import Usage

Function = TypeVar("Function", bound=Callable[..., Any])


class Verb(click.Command):
    """A command that accepts the options of all verbs, and knows whether paths may follow ``--``."""

    takes_paths = False

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless what follows ``--`` makes no sense to it."""
        session = ctx.ensure_object(Session)
        if session.raw_paths is not None:
            if not self.takes_paths:
                raise Usage(
                    f"bad arguments: {ctx.command_path} takes no paths after --",
                    hint=f"see `{ctx.command_path} --help`",
                )
            if not session.raw_paths:  # "-- $FILES" with nothing in it must not mean everything
                raise Usage(
                    "bad arguments: no path follows --", hint="name a path, or leave -- out for the whole workspace"
                )
        return super().invoke(ctx)


def verb(name: str, *, takes_paths: bool = False) -> Callable[[Callable[..., int]], Verb]:
    """Declare a verb: a function of the session and its own options that returns the exit status."""

    def declare(function: Callable[..., int]) -> Verb:
        command = click.command(name, cls=Verb)(click.pass_obj(function))
        command.takes_paths = takes_paths
        command.params.extend(global_options())
        return command

    return declare


def global_options() -> list[click.Parameter]:
    """The options that stand before or after any verb."""
    return [
        click.Option(["--store"], metavar="DIR", multiple=True, **_kept, help="The store to use."),
        click.Option(
            ["-w", "--workspace", "-C", "--root", "-p"],
            metavar="DIR",
            multiple=True,
            **_kept,
            help="The workspace, exactly this directory; repeated on checkpoint and rollback: each of them.",
        ),
        click.Option(["--json"], is_flag=True, **_kept, help="One JSON object on standard output."),
        click.Option(
            ["--format"],
            type=click.Choice(["table", "json"]),
            **_kept,
            help="json: as --json, on list, log and workspace list the bare array.",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, **_kept, help="Say nothing but what was asked for."),
        click.Option(["-v", "--verbose"], is_flag=True, **_kept, help="Name each path."),
        click.Option(["--strict"], is_flag=True, **_kept, help="Exit 3 when a rule left anything out."),
        click.Option(["--debug"], is_flag=True, **_kept, help="Show where an error comes from."),
        click.Option(["--no-color"], is_flag=True, **_kept, help="No colour and no progress bar."),
        click.Option(["--wait"], type=float, metavar="SECONDS", **_kept, help="How long to wait for a lock (10)."),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
    ]


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value is False or value == ():
        return
    session = ctx.ensure_object(Session)
    options, key = session.options, str(parameter.name)
    if key == "workspace":
        options.workspaces = tuple(dict.fromkeys((*options.workspaces, *value)))
        return
    if isinstance(value, tuple):
        value = _only(parameter, value if (before := getattr(options, key)) is None else (before, *value))
    setattr(options, key, value)


_kept: dict[str, Any] = {"expose_value": False, "callback": _keep}


def _only(parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """The value of an option that may be repeated but not contradict itself."""
    if len(set(values)) > 1:
        raise Usage(f"bad options: {'/'.join(parameter.opts)} was given twice, and differs", hint="give it once")
    return values[0]


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        Output().data(f"casnap {__version__}")
        ctx.exit()


def once(*names: str, metavar: str, help: str, type: Any = str) -> Callable[[Function], Function]:
    """An option with a value; given twice with different values it is refused rather than half obeyed."""

    def pick(_ctx: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
        return _only(parameter, values) if values else None

    return click.option(*names, metavar=metavar, help=help, type=type, multiple=True, callback=pick)


def flag(*names: str, help: str) -> Callable[[Function], Function]:
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help)


def agreed(function: Function) -> Function:
    """``--yes``: whoever gives it is not asked."""
    return flag("-y", "--yes", "--force", "yes", help="Do not ask.")(function)


def one_of(what: str, *given: tuple[str, str | None]) -> str | None:
    """The one value among several ways to say the same thing; the same said twice is no contradiction.

    Raises:
        Usage: two of them differ.
    """
    said = [(way, value) for way, value in given if value is not None]
    if len({value for _, value in said}) > 1:
        ways = " and ".join(way for way, _ in said)
        raise Usage(f"bad arguments: {what} was given twice, as {ways}", hint="give it once")
    return said[0][1] if said else None
