"""Changing the user's configuration file: comments and order stay, and a reader sees the old file or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from casnap.errors import Busy, Usage
from casnap.fs import durable
from casnap.fs.locks import try_flock
from casnap.model.config import ALIASES, KEYS, SIZE, Value, flat
from casnap.settings.whole_file import read_whole


def edit(path: Path, changes: Mapping[str, Value], removals: tuple[str, ...] = (), *, wait: float) -> bool:
    """Set keys in the file at ``path`` and take others away; whether that changed anything.

    Where a link stands there, the file that it leads to is changed. ``wait`` bounds, in seconds, the wait for others
    that are changing it.

    Raises:
        Usage: the file is no TOML; it is left as it is.
        Busy: somebody else is changing it.
        StorageFailed: it cannot be written.
    """
    target = Path(os.path.realpath(path))
    durable.make_directory(target.parent)
    with _locked(target.parent, wait):
        before, status = _read(target)
        document = _parsed(path, before)
        for name in removals:
            for spelling in (name, *_other_names(name)):
                _remove(document, spelling.split("."))
        for name, value in changes.items():
            for spelling in _other_names(name):
                _remove(document, [spelling])
            _set(document, name.split("."), _as_toml(name, value))
        after = tomlkit.dumps(document)
        if after == before:
            return False
        if status is None:
            durable.write_whole(target, after.encode("utf-8"))
        else:
            owner, mode = (status.st_uid, status.st_gid), stat.S_IMODE(status.st_mode)
            durable.write_whole(target, after.encode("utf-8"), owner=owner, mode=mode)
    return True


def names(path: Path) -> set[str]:
    """The keys that the file at ``path`` has, by their dotted names, known ones or not.

    Raises:
        Usage: the file is no TOML.
    """
    return {name for name, _ in flat(_parsed(path, _read(path)[0]).unwrap())}


def _parsed(path: Path, text: str) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise Usage(
            f"cannot change {path}: it is no TOML: {error}", code="bad-config", hint="repair the file with an editor"
        ) from None


@contextlib.contextmanager
def _locked(directory: Path, wait: float) -> Iterator[None]:
    """Lock the directory, so that no lock file lies about."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise durable.failed("open", directory, error) from error
    try:
        if not try_flock(fd, wait):
            raise Busy(f"cannot change the configuration: another program has locked {directory}")
        yield
    finally:
        os.close(fd)


def _read(path: Path) -> tuple[str, os.stat_result | None]:
    try:
        return read_whole(path).decode("utf-8"), path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "", None
    except UnicodeDecodeError:
        raise Usage(f"cannot change {path}: it is not UTF-8", code="bad-config") from None
    except OSError as error:
        raise durable.failed("read", path, error) from error


def _other_names(name: str) -> list[str]:
    """What else the file may call a key: setting it must not leave another value behind."""
    return [alias for alias, key in ALIASES.items() if key.name == name]


def _remove(table: MutableMapping[str, Any], parts: list[str]) -> None:
    joined = ".".join(parts)
    if joined in table:  # a plain name, or a quoted one with dots in it
        del table[joined]
        return
    inner = table.get(parts[0])
    if len(parts) > 1 and isinstance(inner, MutableMapping):
        _remove(inner, parts[1:])
        if not inner:
            del table[parts[0]]


def _set(table: MutableMapping[str, Any], parts: list[str], value: object) -> None:
    if (joined := ".".join(parts)) in table:
        table[joined] = value
        return
    for part in parts[:-1]:
        if not isinstance(table.get(part), MutableMapping):
            table[part] = tomlkit.table()
        table = table[part]
    table[parts[-1]] = value


def _as_toml(name: str, value: Value) -> object:
    """A value as a person would write it; TOML has no null."""
    key = KEYS[name]
    return key.text(value) if value is None or key.kind is SIZE else key.plain(value)
