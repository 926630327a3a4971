"""``casnap config``."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import msgspec

from casnap.cli.as_json import dump
from casnap.cli.options import flag, once, verb
from casnap.cli.output import printable
from casnap.cli.session import Session
from casnap.cli.table import show_table
from casnap.engine.config import configure, configured
from casnap.errors import NoStore, NotFound, Usage
from casnap.model.config import KEYS, BadValue, Key, Value, key_of
from casnap.model.report import WorkspaceInfo
from casnap.settings import Setting, Settings, load_settings, stored_layer
from casnap.settings.layers import unknown_hint

BROKEN = 2
"""Exit status of a list that could not be made in full: every other verb would end with it."""

_HEADINGS = ("KEY", "VALUE", "FROM")
_KEEP, _AGE, _AUTO = "retention.keep", "retention.max_age", "retention.auto"
_ACTIONS = "list, get KEY, set KEY VALUE, add KEY VALUE, unset KEY, or import FILE"


@dataclass(frozen=True, slots=True)
class _Changes:
    """What to set, what to put to the end of lists, what to take away, and what to say about it."""

    values: Mapping[str, Value] = field(default_factory=dict)
    additions: Mapping[str, Value] = field(default_factory=dict)
    removals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@verb("config")
@click.argument(
    "words", metavar="[list | get KEY | set KEY VALUE... | add KEY VALUE... | unset KEY... | import FILE]", nargs=-1
)
@flag("-g", "--global", "everywhere", help="For all workspaces: in the user's file.")
@flag("--enable-auto-cleanup", "enable", help="Clean up after each checkpoint: retention.auto.")
@flag("--disable-auto-cleanup", "disable", help="Do not.")
@once("--auto-cleanup-keep", "keep", metavar="N|Nd", help="Keep the newest N, or those younger than N s, m, h, d, w.")
def command(
    session: Session, words: tuple[str, ...], everywhere: bool, enable: bool, disable: bool, keep: str | None
) -> int:
    """What casnap does where no option says it: for one workspace, or with -g for all of them.

    Without words it lists each key with the value in force and where that comes from.
    """
    session.settings = load_settings(store=session.options.store, wait=session.options.wait, tolerant=True)
    wanted = _wanted_by_options(enable=enable, disable=disable, keep=keep)
    if wanted is None:
        wanted = _wanted_by_words(words)
    elif words:
        raise Usage(f"bad arguments: {' '.join(words)} beside --auto-cleanup options", hint="say one of the two")
    workspace = _workspace(session, everywhere=everywhere)
    if wanted is None:
        return _show(session, workspace, words[1:])
    before = _effective(session, workspace)
    wanted = _completed(session, workspace, wanted)
    _change(session, workspace, wanted)
    keys = {name for name in (*wanted.values, *wanted.removals) if name in KEYS}
    after = [one for one in _effective(session, workspace) if one.key in keys]
    notes = wanted.notes + tuple(_overruled(session, wanted, workspace, after))
    _report(session, workspace, after, notes, changed=after != [one for one in before if one.key in keys])
    return 0


command.ignore_unknown_options = True  # a value may begin with a dash; what is wrong with it is said of its key


def _wanted_by_options(*, enable: bool, disable: bool, keep: str | None) -> _Changes | None:
    """What the options for cleanup ask for; None where none is given."""
    if enable and disable:
        raise Usage("bad options: --enable-auto-cleanup and --disable-auto-cleanup", hint="give one of them")
    values: dict[str, Value] = {_AUTO: enable} if enable or disable else {}
    if keep is not None:
        # the other is set to none rather than taken away: a weaker layer may have a value
        by_number = re.fullmatch(r"\d+", keep, re.ASCII) is not None
        chosen, other = (_KEEP, _AGE) if by_number else (_AGE, _KEEP)
        values |= {chosen: _parsed("--auto-cleanup-keep", KEYS[chosen], keep), other: None}
    return _Changes(values) if values else None


def _wanted_by_words(words: Sequence[str]) -> _Changes | None:
    """What the words ask to be changed; None where they only ask."""
    match list(words):
        case [] | ["list"]:
            return None
        case ["get", name]:
            _key(name)
            return None
        case ["set", name, *given]:
            key = _key(name)
            return _Changes({key.name: _given(name, key, given)})
        case ["add", name, *given] if given:
            key = _key(name)
            if not isinstance(key.default, tuple):
                raise Usage(f"bad key {name}: it is no list", hint=f"say casnap config set {name} VALUE")
            return _Changes(additions={key.name: _given(name, key, given)})
        case ["unset", *names] if names:
            return _Changes(removals=tuple(map(_full_name, names)))
        case ["import", file]:
            from casnap.settings.foreign import read_checkpoint_yaml  # it needs an extra

            found = read_checkpoint_yaml(Path(file))
            return _Changes(found.values, notes=found.notes)
        case _:
            raise Usage(f"bad arguments: {' '.join(words)}", hint=f"say {_ACTIONS}")


def _completed(session: Session, workspace: WorkspaceInfo | None, wanted: _Changes) -> _Changes:
    """The same with whole lists for what is to be added: what was there, then what is new; the last line decides."""
    if not wanted.additions:
        return wanted
    kept = msgspec.structs.replace(session.settings, variables=())  # they come and go, and are not to be written down
    layer = None if workspace is None else stored_layer(configured(session.context(), workspace))
    present = {one.key: one.value for one in kept.effective(layer)}
    values = {name: _joined(present[name], added) for name, added in wanted.additions.items()}
    return dataclasses.replace(wanted, values=values)


def _joined(present: Value, added: Value) -> Value:
    if not isinstance(present, tuple) or not isinstance(added, tuple):
        return added
    return (*(line for line in present if line not in added), *added)


def _key(name: str) -> Key:
    if (key := key_of(name)) is None:
        raise Usage(f"bad key {name!r}: there is no such key", code="bad-config", hint=unknown_hint(name))
    return key


def _full_name(name: str) -> str:
    """The key that a name stands for; a name of none may be in a file all the same, and is to be taken away."""
    key = key_of(name)
    return name if key is None else key.name


def _given(name: str, key: Key, given: Sequence[str]) -> Value:
    if isinstance(key.default, tuple):
        try:
            "".join(given).encode("utf-8")
            return key.accept(list(given))
        except UnicodeEncodeError:
            raise Usage(f"bad {name}: it is not UTF-8 text", code="bad-config") from None
        except BadValue as error:
            raise Usage(f"bad {name}: {error}", code="bad-config", hint=error.hint) from None
    if len(given) != 1:
        raise Usage(f"bad arguments: {name} takes one value", hint=f"say casnap config set {name} VALUE")
    return _parsed(name, key, given[0])


def _parsed(what: str, key: Key, text: str) -> Value:
    try:
        return key.parse(text)
    except BadValue as error:
        raise Usage(f"bad {what} {text!r}: {error}", code="bad-config", hint=error.hint) from None


def _workspace(session: Session, *, everywhere: bool) -> WorkspaceInfo | None:
    """The workspace that it is about; None for all."""
    if everywhere:
        if session.options.workspace is not None:
            raise Usage("bad options: -g is for all workspaces, -w for one", hint="give one of them")
        return None
    try:
        return session.workspace()
    except (NoStore, NotFound) as error:
        hint = "name a workspace with -w DIR, or say -g for all of them"
        raise NotFound(error.message, code=error.code, hint=hint, details=error.details) from None


def _effective(session: Session, workspace: WorkspaceInfo | None) -> list[Setting]:
    layer = None if workspace is None else stored_layer(configured(session.context(), workspace))
    return session.settings.effective(layer)


def _faults(session: Session, workspace: WorkspaceInfo | None) -> tuple[Usage, ...]:
    stored = () if workspace is None else stored_layer(configured(session.context(), workspace)).faults
    return session.settings.faults + stored


def _change(session: Session, workspace: WorkspaceInfo | None, wanted: _Changes) -> None:
    if workspace is None:
        _change_file(session, wanted)
        return
    known = dict(configured(session.context(), workspace))
    for name in (*wanted.values, *wanted.removals):
        if name in KEYS and KEYS[name].common_to and name not in known:
            hint = f"say casnap config set -g {name} VALUE"
            raise Usage(f"bad key {name}: it is for {KEYS[name].common_to}, not for one workspace", hint=hint)
    for name in wanted.removals:
        if name not in known:
            _key(name)
    values = {name: msgspec.json.encode(KEYS[name].plain(value)).decode() for name, value in wanted.values.items()}
    configure(session.context(), workspace, {**values, **dict.fromkeys(wanted.removals, "")})


def _change_file(session: Session, wanted: _Changes) -> None:
    settings: Settings = session.settings
    if settings.user_file is None:
        raise Usage("no configuration file: this user has no home", hint="set HOME or XDG_CONFIG_HOME")
    from casnap.settings import user_file  # tomlkit takes longer to import than most commands to run

    in_file = user_file.names(settings.user_file) if wanted.removals else set()
    for name in wanted.removals:
        if name not in in_file:
            _key(name)
    user_file.edit(settings.user_file, wanted.values, wanted.removals, wait=settings.wait)
    session.settings = load_settings(store=session.options.store, wait=session.options.wait, tolerant=True)


def _overruled(
    session: Session, wanted: _Changes, workspace: WorkspaceInfo | None, after: Sequence[Setting]
) -> list[str]:
    """Where something stronger than what was set is in force."""
    place = str(session.settings.user_file) if workspace is None else "workspace"
    return [
        f"{one.key} is {_one_line(one)} all the same: {one.origin} is stronger"
        for one in after
        if one.key in wanted.values and one.origin != place
    ]


def _show(session: Session, workspace: WorkspaceInfo | None, names: Sequence[str]) -> int:
    settings, faults = _effective(session, workspace), _faults(session, workspace)
    if names:
        key = _key(names[0])
        for fault in faults:  # what it says cannot be told as long as something is wrong
            raise fault
        settings = [one for one in settings if one.key == key.name]
        if not session.as_json:
            for line in key.text(settings[0].value).splitlines():
                session.output.data(printable(line))
            return 0
    if session.bare_array and not names:
        session.output.bytes(dump([_record(one) for one in settings]))
    elif session.as_json:
        _document(session, workspace, settings, (), faults)
    else:
        rows = [(one.key, _one_line(one), printable(one.origin)) for one in settings]
        show_table(session.output, _HEADINGS, rows)
    for fault in faults:
        session.output.warn(f"problem: {printable(fault.message)}")
        if fault.hint:
            session.output.warn(f"hint: {printable(fault.hint)}")
    return BROKEN if faults else 0


def _report(
    session: Session,
    workspace: WorkspaceInfo | None,
    settings: Sequence[Setting],
    notes: tuple[str, ...],
    *,
    changed: bool,
) -> None:
    if session.as_json:
        _document(session, workspace, settings, notes, _faults(session, workspace))
    else:
        for one in settings:
            session.output.data(f"{one.key} = {_one_line(one)} ({printable(one.origin)})")
    if settings and not changed:
        session.output.talk("note: what is in force is as it was")
    for note in notes:
        session.output.talk(f"note: {printable(note)}")


def _document(
    session: Session,
    workspace: WorkspaceInfo | None,
    settings: Sequence[Setting],
    notes: tuple[str, ...],
    faults: tuple[Usage, ...],
) -> None:
    records = [_record(one) for one in settings]
    problems = [fault.message for fault in faults]
    session.document("config", workspace, settings=records, notes=list(notes), problems=problems)


def _record(one: Setting) -> dict[str, Any]:
    key = KEYS[one.key]
    return {"key": one.key, "value": key.plain(one.value), "origin": one.origin, "default": key.plain(one.default)}


def _one_line(one: Setting) -> str:
    text = KEYS[one.key].text(one.value)
    return printable(", ".join(text.split("\n"))) if text else "(empty)"
