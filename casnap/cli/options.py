"""Options that many verbs share, and how a verb is declared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from casnap import __version__
from casnap.cli.grammar import AGREED, EVERYWHERE, Grammar, Option
from casnap.cli.output import Output
from casnap.cli.session import Session
from casnap.errors import Usage

Function = TypeVar("Function", bound=Callable[..., Any])


class Verb(click.Command):
    """A command that accepts the options of all verbs, and knows whether paths may follow ``--``, or a command."""

    takes_paths = False
    takes_command = False

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, unless what follows ``--`` makes no sense to it."""
        session = ctx.ensure_object(Session)
        if session.raw_paths is not None and not self.takes_command:
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


def verb(name: str, *, takes_paths: bool = False, takes_command: bool = False) -> Callable[[Callable[..., int]], Verb]:
    """Declare a verb: a function of the session and its own options that returns the exit status."""

    def declare(function: Callable[..., int]) -> Verb:
        command = click.command(name, cls=Verb)(click.pass_obj(function))
        command.takes_paths, command.takes_command = takes_paths, takes_command
        command.params.extend(global_options())
        return command

    return declare


def verb_of(name: str, grammar: Grammar, function: Callable[..., int]) -> Verb:
    """The verb that a grammar describes; ``function`` is what it does, and its help."""
    own: list[click.Parameter] = []
    if grammar.argument:
        own.append(click.Argument([grammar.argument], required=False, metavar=grammar.metavar))
    own += [_own_option(option) for option in grammar.options]
    command = click.command(name, cls=Verb, params=[*own, *global_options()])(click.pass_obj(function))
    command.takes_paths = grammar.takes_paths
    return command


def global_options() -> list[click.Parameter]:
    """The options that stand before or after any verb."""
    return [
        *(_option(option, expose_value=False, callback=_keep) for option in EVERYWHERE),
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
    ]


def _own_option(option: Option) -> click.Option:
    return _option(option, callback=_pick) if option.repeated == "same" else _option(option)


def _option(option: Option, **more: Any) -> click.Option:
    """An option that is declared as data, as click knows it."""
    names, several = [option.key, *option.names], option.repeated != "last"
    if option.takes == "nothing":
        return click.Option(names, is_flag=True, help=option.help, **more)
    kind = _type(option)
    return click.Option(names, type=kind, metavar=option.metavar, multiple=several, help=option.help, **more)


def _type(option: Option) -> Any:
    match option.takes:
        case "count":
            return click.IntRange(min=0)
        case "seconds":
            return float
        case "choice":
            return click.Choice(option.choices)
        case _:
            return str


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value is None or value is False or value == ():
        return
    session = ctx.ensure_object(Session)
    options, key = session.options, str(parameter.name)
    if isinstance(value, tuple) and key != "workspace":
        value = _only(parameter, value if (before := getattr(options, key)) is None else (before, *value))
    options.keep(key, value)


def _only(parameter: click.Parameter, values: tuple[str, ...]) -> str:
    """The value of an option that may be repeated but not contradict itself."""
    if len(set(values)) > 1:
        raise Usage(f"bad options: {'/'.join(parameter.opts)} was given twice, and differs", hint="give it once")
    return values[0]


def _pick(_ctx: click.Context, parameter: click.Parameter, values: tuple[Any, ...]) -> Any:
    return _only(parameter, values) if values else None


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if value:
        Output().data(f"casnap {__version__}")
        ctx.exit()


def once(*names: str, metavar: str, help: str, type: Any = str) -> Callable[[Function], Function]:
    """An option with a value; given twice with different values it is refused rather than half obeyed."""
    return click.option(*names, metavar=metavar, help=help, type=type, multiple=True, callback=_pick)


def flag(*names: str, help: str) -> Callable[[Function], Function]:
    """An option without a value."""
    return click.option(*names, is_flag=True, help=help)


def agreed(function: Function) -> Function:
    """``--yes``: whoever gives it is not asked."""
    return flag(*AGREED.names, AGREED.key, help=AGREED.help)(function)
