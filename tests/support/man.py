"""The manual page docs/man/casnap.1, made from the program itself.

``python -m support.man`` (part of ``make fmt``) writes it; a test compares.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

import click

from casnap import __version__
from casnap.cli.app import VERBS, program
from casnap.cli.grammar import ALIASES
from support.source import CHECKOUT

PAGE = CHECKOUT / "docs" / "man" / "casnap.1"

DESCRIPTION = """\
casnap keeps checkpoints of directories in one content-addressed store, and puts any of them back: after an agent, a
script or a person has broken something. Nothing is written into the directory but what a rollback puts back.

Without a verb it says in five lines how the workspace stands.

What follows -- is always a path, of run a command. Data goes to standard output, talk to standard error.
"""

REVISIONS = (
    ("NAME", "the checkpoint of this name"),
    ("ID", "the checkpoint whose id begins so: four digits or more"),
    ("STEP", "the checkpoint with this number"),
    ("@, HEAD", "head: what the workspace descends from"),
    ("latest", "the one with the highest step"),
    ("@good", "the highest step that is marked good: casnap run"),
    ("REV~N", "the N-th ancestor of REV"),
    ("@{TIME}", "the newest that was there at this time"),
)

STATUS_ROW = re.compile(r"^\| ([\d, ]+) \|.*\| ([^|]+) \|$", re.MULTILINE)
"""A row of the table in docs/reference/exit-codes.md."""

VARIABLES = (
    ("CASNAP_STORE", "the store, where --store names none"),
    ("CASNAP_WORKSPACE", "the workspace, where -w names none"),
    ("CASNAP_NO_INPUT, CI", "ask no questions"),
    ("NO_COLOR", "no colour"),
)

PLACES = (
    ("/var/lib/casnap", "root's store"),
    ("~/.local/share/casnap", "anybody else's store"),
    ("/etc/casnap/config.toml, ~/.config/casnap/config.toml", "configuration"),
    (".casnapignore", "what to leave out, in the syntax of .gitignore"),
)


def render() -> str:
    """The page in the man macros of troff."""
    context = click.Context(program, info_name="casnap", help_option_names=["-h", "--help"])
    shared: set[str | None] = {parameter.name for parameter in program.params}
    lines = [
        ".\\" + '" Made by `make fmt`.',
        f'.TH CASNAP 1 "" "casnap {__version__}" "User Commands"',
        *_section("NAME", ["casnap \\- checkpoints of directories, and a way back to any of them"]),
        *_section("SYNOPSIS", [".B casnap", "[OPTIONS] [VERB [OPTIONS] [ARGUMENTS]] [\\-\\- PATH...]"]),
        *_section("DESCRIPTION", _paragraphs(DESCRIPTION)),
        *_section("VERBS", [line for name in VERBS for line in _verb(context, name, shared)]),
        *_section("OPTIONS OF EVERY VERB", _options(context, program.get_params(context))),
        *_section("REVISIONS", _pairs(REVISIONS)),
        *_section("EXIT STATUS", _pairs(_statuses())),
        *_section("ENVIRONMENT", _pairs(VARIABLES)),
        *_section("FILES", _pairs(PLACES)),
        *_section("SEE ALSO", [".BR b3sum (1),", ".BR git (1),", ".BR sha256sum (1)"]),
    ]
    return "\n".join(lines) + "\n"


def _statuses() -> Iterator[tuple[str, str]]:
    table = (CHECKOUT / "docs" / "reference" / "exit-codes.md").read_text("utf-8")
    for status, when in STATUS_ROW.findall(table):
        yield status, when.replace("`", "")


def _verb(context: click.Context, name: str, shared: set[str | None]) -> Iterator[str]:
    command = program.get_command(context, name)
    assert command is not None
    inner = click.Context(command, info_name=name, parent=context)
    usage = [piece for piece in command.collect_usage_pieces(inner) if piece != "[OPTIONS]"]
    yield f".SS {_escape(' '.join([name, *usage]))}"
    yield from _paragraphs(command.help or VERBS[name])
    aliases = [alias for alias, verb in ALIASES.items() if verb == name]
    if aliases and "Other name" not in (command.help or ""):
        yield from (".PP", f"Other names: {_escape(', '.join(aliases))}.")
    own = (parameter for parameter in command.params if parameter.name not in shared)
    yield from _options(inner, (parameter for parameter in own if isinstance(parameter, click.Option)))


def _options(context: click.Context, parameters: Iterable[click.Parameter]) -> Iterator[str]:
    yield from _pairs(record for option in parameters if (record := option.get_help_record(context)) is not None)


def _section(title: str, lines: Iterable[str]) -> list[str]:
    return [f".SH {title}", *lines]


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.strip())):
        if number:
            yield ".PP"
        yield from _lines(paragraph)


def _pairs(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, what in rows:
        yield ".TP"
        yield f"\\fB{_escape(term)}\\fR"
        yield from _lines(what)


def _lines(text: str) -> list[str]:
    words = " ".join(text.split())
    return [_escape(line) for line in textwrap.wrap(words, 76, break_on_hyphens=False, break_long_words=False)]


def _escape(text: str) -> str:
    """Text that troff takes as it stands, whatever it begins with."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    plain = plain.replace("^", "\\(ha").replace("~", "\\(ti")
    return f"\\&{plain}" if plain.startswith(".") else plain


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
