"""What may stand where the cursor is: verbs, options, choices, and what the store knows by name.

A shell asks between two keys, so this reads the catalog and nothing else: no file of the workspace, no object of
the store, no lock. What cannot be told is not offered.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from casnap.cli.app import VERBS
from casnap.cli.grammar import ALIASES
from casnap.cli.options import Verb
from casnap.cli.running import split_paths
from casnap.cli.session import Session
from casnap.cli.text import moment
from casnap.model.ids import MIN_PREFIX, short

if TYPE_CHECKING:
    from casnap.store.state import CheckpointRow

Item = CompletionItem[str]

REVISIONS = frozenset({"REV", "[REV]", "REV...", "[A [B]]", "A", "B"})
DIRECTORIES = frozenset({"DIR", "[DIR]"})
FILES = frozenset({"FILE", "[FILE]", "PATH"})
"""What a word stands for is told by what the help calls it."""

ACTIONS = {
    "workspace": ("list", "move", "gone"),
    "config": ("list", "get", "set", "add", "unset", "import"),
    "bench": ("mark",),
    "plugin": ("install", "uninstall", "status", "detect"),
}
"""The first words of the verbs that are several in one."""


@dataclass(slots=True)
class _Line:
    """The words before the cursor: whose turn it is, and which store and workspace they name."""

    command: click.Command
    session: Session
    option: click.Option | None = None
    words: list[str] = field(default_factory=list)

    def take(self, word: str) -> None:
        if self.option is not None:
            self._keep(self.option, word)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            self._begin(name, value if equals else None)
        elif word.startswith("-") and word != "-":
            self._take_letters(word[1:])
        elif isinstance(self.command, click.Group):
            verb = self.command.get_command(click.Context(self.command), word)
            self.command = verb or click.Command(None, add_help_option=False)  # nothing is known of it
        else:
            self.words.append(word)

    def _take_letters(self, letters: str) -> None:
        """Short options may share a dash, and the last of them may be joined to its value."""
        for at, letter in enumerate(letters, 1):
            self._begin(f"-{letter}", None)
            if self.option is not None:
                if letters[at:]:
                    self._keep(self.option, letters[at:])
                return

    def _begin(self, name: str, value: str | None) -> None:
        option = option_named(self.command, name)
        if option is None or option.is_flag:
            return
        self.option = option
        if value is not None:
            self._keep(option, value)

    def _keep(self, option: click.Option, value: str) -> None:
        self.option = None
        if option.name == "store":
            self.session.options.store = os.path.expanduser(value)
        elif option.name == "workspace":
            self.session.options.workspaces = (os.path.expanduser(value),)

    def argument(self) -> click.Argument | None:
        """The argument that the next word is."""
        taken = len(self.words)
        for parameter in self.command.params:
            if isinstance(parameter, click.Argument):
                if parameter.nargs == -1 or taken < parameter.nargs:
                    return parameter
                taken -= parameter.nargs
        return None


def option_named(command: click.Command, name: str) -> click.Option | None:
    """The option of a command that goes by this name."""
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    return next((option for option in options if name in (*option.opts, *option.secondary_opts)), None)


def candidates(program: click.Command, words: list[str], typed: str) -> list[Item]:
    """What the word that begins with ``typed`` may become, after these words; never an error.

    A candidate of type ``dir`` or ``file`` asks the shell for names of its own.
    """
    before, paths = split_paths(words)
    session = Session()
    session.options.quiet = True
    found: list[Item] = []
    try:
        with contextlib.suppress(Exception):  # a mistake in the line, or a store in trouble, is for the verb to report
            line = _Line(program, session)
            for word in before:
                line.take(word)
            for item in _items(line, typed) if paths is None else _paths(line, typed):
                found.append(item)  # one by one: what came before a failure counts
    finally:
        session.close()
    return [item for item in found if item.value.isprintable()]


def _paths(line: _Line, typed: str) -> Iterator[Item]:
    """Behind ``--`` the shell's own names, unless ``-w`` has them begin where the shell is not."""
    verb = line.command
    if isinstance(verb, Verb) and (verb.takes_command or (verb.takes_paths and not line.session.options.workspaces)):
        yield CompletionItem(typed, "file")


def _items(line: _Line, typed: str) -> Iterator[Item]:
    name, equals, value = typed.partition("=")
    if line.option is not None:
        yield from _values(line, line.option, typed)
    elif equals and (option := option_named(line.command, name)) is not None:
        for item in _values(line, option, value):
            yield CompletionItem(f"{name}={item.value}", item.type, item.help)
    elif typed.startswith("-"):
        yield from line.command.shell_complete(_context(line.command), typed)
    elif isinstance(line.command, click.Group):
        yield from _verbs(typed)
    elif (argument := line.argument()) is not None:
        yield from _values(line, argument, typed)


def _context(command: click.Command) -> click.Context:
    return click.Context(command, help_option_names=["-h", "--help"])


def _verbs(typed: str) -> Iterator[Item]:
    """The verbs; their other names only when one was begun."""
    for name, purpose in VERBS.items():
        if name.startswith(typed):
            yield CompletionItem(name, help=purpose)
    for alias, name in ALIASES.items():
        if typed and alias.startswith(typed):
            yield CompletionItem(alias, help=VERBS[name])


def _values(line: _Line, parameter: click.Parameter, typed: str) -> Iterator[Item]:
    kind = parameter.metavar
    if isinstance(parameter.type, click.Choice):
        yield from (CompletionItem(str(choice)) for choice in parameter.type.choices if str(choice).startswith(typed))
    elif parameter.name == "workspace":
        yield from _workspaces(line, typed)
    elif line.command.name in ACTIONS and isinstance(parameter, click.Argument):
        yield from _actions(line, ACTIONS[line.command.name], typed)
    elif kind in REVISIONS:
        yield from _revisions(line, typed)
    elif parameter.name == "step":
        yield from _steps(line, typed)
    elif kind in DIRECTORIES:
        yield CompletionItem(typed, "dir")
    elif kind in FILES:
        yield CompletionItem(typed, "file")


def _actions(line: _Line, actions: tuple[str, ...], typed: str) -> Iterator[Item]:
    match line.words:
        case []:
            yield from (CompletionItem(action) for action in actions if action.startswith(typed))
        case ["move"]:
            yield from _workspaces(line, typed)
        case ["move", _] | ["mark"]:
            yield CompletionItem(typed, "dir")
        case ["import"]:
            yield CompletionItem(typed, "file")
        case ["list" | "unset", *_] | ["get" | "set" | "add"] if line.command.name == "config":
            from casnap.model.config import KEYS

            yield from (CompletionItem(key) for key in KEYS if key.startswith(typed))


def _workspaces(line: _Line, typed: str) -> Iterator[Item]:
    """Directories, and those that are registered farther below than the shell looks."""
    yield CompletionItem(typed, "dir")
    for row in line.session.context().store.state().workspaces():
        path = os.fsdecode(row.path)
        if not row.forgotten and path.startswith(typed) and "/" in path[len(typed) :]:
            yield CompletionItem(path)


def _rows(line: _Line) -> list[CheckpointRow]:
    """The checkpoints of the workspace, deleted ones too, newest first."""
    workspace = line.session.workspace()
    return line.session.context().store.state().history(workspace.id)


def _revisions(line: _Line, typed: str) -> Iterator[Item]:
    rows = _rows(line)
    wants_deleted = line.command.name == "undelete"
    taken = {row.name for row in rows if wants_deleted and not row.deleted}
    if rows and not wants_deleted:
        good = any(row.good and not row.deleted and not row.safety for row in rows)
        known = ("@", "latest", *(("@good",) if good else ()))
        yield from (CompletionItem(word) for word in known if word.startswith(typed))
    for row in rows:
        words = _words(row, typed, taken) if row.deleted == wants_deleted else ()
        for word in words:
            if word.startswith(typed) and word not in line.words:
                yield CompletionItem(word, help=f"{f'step {row.step}' if row.step else 'safety'}, {moment(row.time)}")


def _words(row: CheckpointRow, typed: str, taken: set[str]) -> Iterator[str]:
    """What names a checkpoint: one word while nothing is typed, then whatever was begun."""
    named = bool(row.name) and row.name not in taken
    if named and (typed or not row.automatic):
        yield row.name
    if row.step and (typed or row.automatic or not named):
        yield str(row.step)
    if len(typed) >= MIN_PREFIX and row.id.hex().startswith(typed):
        yield max(short(row.id), row.id.hex()[: len(typed)], key=len)


def _steps(line: _Line, typed: str) -> Iterator[Item]:
    for row in _rows(line):
        if row.step and not row.deleted and str(row.step).startswith(typed):
            yield CompletionItem(str(row.step), help=row.name or None)
