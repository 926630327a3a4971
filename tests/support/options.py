"""The option tables of docs/reference/cli.md, made from the program itself.

``python -m support.options`` (part of ``make fmt``) writes them; a test compares.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from casnap.cli.app import VERBS, program
from casnap.cli.grammar import ALIASES
from support.source import CHECKOUT

PAGE = CHECKOUT / "docs" / "reference" / "cli.md"
BEGIN = "<!-- made by `make fmt`: begin -->"
END = "<!-- made by `make fmt`: end -->"


def render() -> str:
    """A table of what all verbs have, and one for each verb."""
    context = click.Context(program, info_name="casnap")
    shared = {parameter.name for parameter in program.params}
    parts = ["### Options of every verb\n\nBefore or after the verb.\n\n" + _table(program.params)]
    for name in VERBS:
        command = _command(context, name)
        own = [parameter for parameter in command.params if parameter.name not in shared]
        if name == "rollback":
            restore = _command(context, "restore")
            own += [extra for extra in restore.params if extra.name not in {known.name for known in command.params}]
        parts.append(_section(name, own))
    return "\n\n".join(parts)


def update(page: str) -> str:
    """``page`` with its tables made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{render()}\n\n{END}{after}"


def _command(context: click.Context, name: str) -> click.Command:
    command = program.get_command(context, name)
    assert command is not None
    return command


def _section(name: str, parameters: list[click.Parameter]) -> str:
    arguments = [_argument(one) for one in parameters if isinstance(one, click.Argument)]
    aliases = [f"`{alias}`" for alias, verb in ALIASES.items() if verb == name]
    also = f"\n\nAlso called {', '.join(aliases)}." if aliases else ""
    options = [one for one in parameters if isinstance(one, click.Option) and not one.hidden]
    table = "\n\n" + _table(options) if options else ""
    return f"### `{' '.join(['casnap', name, *arguments])}`\n\n{VERBS[name]}{also}{table}"


def _argument(argument: click.Argument) -> str:
    metavar = argument.metavar or (argument.name or "").upper()
    return metavar if argument.required or metavar.startswith("[") or argument.nargs == -1 else f"[{metavar}]"


def _table(options: Sequence[click.Parameter]) -> str:
    rows = ["| option | |", "|---|---|"]
    for option in options:
        assert isinstance(option, click.Option)
        names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
        rows.append(f"| {names}{_value(option)} | {(option.help or '').replace('|', '&#124;')} |")
    return "\n".join(rows)


def _value(option: click.Option) -> str:
    if option.is_flag:
        return ""
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    return f" {option.metavar or '&#124;'.join(map(str, choices))}"


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text("utf-8")), "utf-8")
