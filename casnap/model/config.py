"""The keys of the configuration: their names, types and defaults, and where each may be set (no input or output)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from casnap.model.policy import (
    DEFAULT_COMPRESSION,
    DEFAULT_KEEP,
    SENSITIVE_PATTERNS,
    Policy,
    Retention,
    Selection,
    Sensitive,
)

Value = bool | int | str | tuple[str, ...] | None
"""What a key holds: a size in bytes, an age in nanoseconds, a list as a tuple."""

Plain = bool | int | str | list[str] | None
"""A value as JSON has it."""

LEVELS = range(1, 20)
"""Compression levels that zstd can undo within the memory that readers grant."""

IN_WORKSPACE = "exclude"
"""The only key that files inside the workspace may set: whoever works there may write them."""

DEEPEST = 16
"""Most dots in a name; no key comes near that."""

_SIZE = r"(?ai)(?P<number>\d{1,15})(?P<unit>[KMGT]?)"
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_COUNT = r"(?a)\d{1,9}"
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_NEAR = 0.6

_STORE, _HOOKS = "the whole store", "all hooks"

_NO_TRUTH = ("neither true nor false", "write true or false")
_NO_COUNT = ("not a whole number", "write a number, such as 20")


class BadValue(ValueError):
    """A key cannot hold this; the text says what it is not, ``hint`` what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class Kind(Struct, frozen=True):
    """A type of values. ``parse`` reads text, ``accept`` a value of JSON or TOML; both raise :class:`BadValue`."""

    words: str
    parse: Callable[[str], Value]
    accept: Callable[[object], Value]
    plain: Callable[[Any], Plain] = lambda value: value
    text: Callable[[Any], str] = str


def _truth(text: str) -> Value:
    lower = text.lower()
    if lower not in _TRUE | _FALSE:
        raise BadValue(*_NO_TRUTH)
    return lower in _TRUE


def _accept_truth(found: object) -> Value:
    if not isinstance(found, bool):
        raise BadValue(*_NO_TRUTH)
    return found


def _count(text: str) -> Value:
    if not re.fullmatch(_COUNT, text):
        raise BadValue(*_NO_COUNT)
    return int(text)


def _accept_count(found: object) -> Value:
    if not isinstance(found, int) or isinstance(found, bool):
        raise BadValue(*_NO_COUNT)
    return _count(str(found))


def _size(text: str) -> Value:
    if (match := re.fullmatch(_SIZE, text)) is None:
        raise BadValue("not a size", "write bytes, or a number with K, M, G or T")
    return int(match["number"]) * _SIZES[match["unit"].upper()]


def _accept_size(found: object) -> Value:
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return _size(str(found) if is_number or isinstance(found, str) else "")


def _size_text(size: int) -> str:
    unit = next((unit for unit in "TGMK" if size and size % _SIZES[unit] == 0), "")
    return f"{size // _SIZES[unit]}{unit}"


def _age(text: str) -> Value:
    from casnap.model.age import NO_AGE, read_age  # here and below, since few set one

    if (age := read_age(text)) is None:
        raise BadValue(*NO_AGE)
    return age


def _accept_age(found: object) -> Value:
    return _age(found if isinstance(found, str) else "")


def _age_text(age: int) -> str:
    from casnap.model.age import age_text

    return age_text(age, "dhm")  # as retention is written: 7d and 30d, not 1w and 30d


def _days(text: str) -> Value:
    return _age(f"{_count(text)}d")


def _accept_days(found: object) -> Value:
    return _age(f"{_accept_count(found)}d")


def _level(text: str) -> Value:
    if not re.fullmatch(r"\d{1,2}", text, re.ASCII) or int(text) not in LEVELS:
        raise BadValue("not a compression level", f"write {LEVELS[0]} to {LEVELS[-1]}")
    return int(text)


def _accept_level(found: object) -> Value:
    return _level(str(found) if isinstance(found, int) and not isinstance(found, bool) else "")


def _lines(text: str) -> Value:
    return tuple(line for line in text.split("\n") if line)


def _accept_lines(found: object) -> Value:
    if not isinstance(found, list | tuple) or not all(isinstance(line, str) for line in found):
        raise BadValue("not a list of patterns", 'write a list of texts, such as ["*.log", "build/"]')
    if any("\n" in line or "\0" in line for line in found):
        raise BadValue("a pattern is more than one line", "write each pattern as a text of its own")
    return tuple(line for line in found if line)


def _choice(*words: str) -> Kind:
    def accept(found: object) -> Value:
        if not isinstance(found, str) or found not in words:
            raise BadValue(f"none of {', '.join(words)}", f"write {', '.join(words[:-1])} or {words[-1]}")
        return found

    return Kind(" or ".join(words), accept, accept)


TRUTH = Kind("true or false", _truth, _accept_truth, text=lambda value: "true" if value else "false")
COUNT = Kind("number", _count, _accept_count)
SIZE = Kind("size", _size, _accept_size, text=_size_text)
AGE = Kind("age", _age, _accept_age, plain=_age_text, text=_age_text)
DAYS = Kind("days", _days, _accept_days, plain=_age_text, text=_age_text)
LEVEL = Kind("level", _level, _accept_level)
LINES = Kind("list", _lines, _accept_lines, plain=list, text="\n".join)


class Key(Struct, frozen=True):
    """One key. ``nothing`` is the word for no value where there may be none.

    ``common_to`` says what shares it where no workspace has a value of its own: the store, or hooks, which ask before
    they know of any workspace.
    """

    name: str
    kind: Kind
    default: Value
    about: str
    nothing: str = ""
    common_to: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "CASNAP_" + self.name.upper().replace(".", "_")

    def parse(self, text: str) -> Value:
        """The value that a text stands for.

        Raises:
            BadValue: it stands for none.
        """
        return None if self.nothing and text.lower() == self.nothing else self.kind.parse(text)

    def accept(self, found: object) -> Value:
        """The value that one of JSON or TOML stands for; null is no value.

        Raises:
            BadValue: it is of another type, or out of range.
        """
        if self.nothing and (found is None or found == self.nothing):
            return None
        return self.kind.accept(found)

    def plain(self, value: Value) -> Plain:
        """A value as JSON has it."""
        return None if value is None else self.kind.plain(value)

    def text(self, value: Value) -> str:
        """A value for a person; a list has a line for each of its texts."""
        return self.nothing if value is None else self.kind.text(value)


KEYS = {
    key.name: key
    for key in (
        Key("exclude", LINES, (), "patterns in gitignore syntax, relative to the workspace's root: left out"),
        Key("exclude_caches", TRUTH, True, "directories with a valid `CACHEDIR.TAG` are left out"),
        Key("use_gitignore", TRUTH, False, "`.gitignore` files and `.git/info/exclude` count too"),
        Key("max_file_size", SIZE, None, "larger regular files are left out", nothing="none"),
        Key("one_file_system", TRUTH, True, "file systems that are mounted in the workspace are left out"),
        Key("git", _choice("include", "exclude"), "include", "whether `.git` is captured"),
        Key("sensitive.patterns", LINES, SENSITIVE_PATTERNS, "base names of files that hold secrets"),
        Key(
            "sensitive.policy",
            _choice(*Sensitive),
            Sensitive.KEEP.value,
            "what becomes of such files: captured, left out, or captured without their values",
        ),
        Key("sqlite_consistent", TRUTH, False, "SQLite databases in use are captured through SQLite"),
        Key("retention.keep", COUNT, DEFAULT_KEEP, "how many of the newest a cleanup keeps", nothing="none"),
        Key("retention.max_age", AGE, None, "older checkpoints may go in a cleanup", nothing="none"),
        Key("retention.auto", TRUTH, False, "each checkpoint is followed by a cleanup"),
        Key("retention.keep_named", TRUTH, False, "a cleanup keeps checkpoints that were given a name"),
        Key("min_free", SIZE, None, "what must stay free on the store's disk", nothing="auto", common_to=_STORE),
        Key("auto_checkpoint", TRUTH, True, "`casnap hook` takes checkpoints when an agent asks for one"),
        Key(
            "hook.auto_init",
            _choice("project", "always", "never"),
            "project",
            "which directories a hook may register: git work trees, any, or none",
            common_to=_HOOKS,
        ),
        Key("hook.label", TRUTH, False, "the first words of a prompt become part of the checkpoint's message"),
        Key("hook.deadline", COUNT, 8, "seconds that an agent waits for a hook at most", common_to=_HOOKS),
        Key("gc.auto", TRUTH, True, "a gc runs by itself once much is dead", common_to=_STORE),
        Key("compression", LEVEL, DEFAULT_COMPRESSION, "zstd level, 1 to 19", common_to=_STORE),
    )
}
"""Every key, in the order in which people see them."""

ALIASES = {
    "max_checkpoints": KEYS["retention.keep"],
    "retention_days": replace(KEYS["retention.max_age"], kind=DAYS),
    "auto_cleanup": KEYS["retention.auto"],
}
"""Names that other tools have for some of them."""


def key_of(name: str) -> Key | None:
    """The key of this name or alias; None where there is none."""
    return KEYS.get(name) or ALIASES.get(name)


def flat(table: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The values of a table of tables by their dotted names, in order; a table too deep down is a value."""
    ahead: list[tuple[str, object]] = [*table.items()][::-1]
    while ahead:
        name, value = ahead.pop()
        if isinstance(value, dict) and value and name.count(".") < DEEPEST:
            ahead += [(f"{name}.{inner}", below) for inner, below in reversed(value.items())]
        else:
            yield name, value


def similar_to(name: str) -> str | None:
    """The key that somebody may have meant by a name that is none."""
    import difflib  # here, since it is for mistakes only

    near = difflib.get_close_matches(name, [*KEYS, *ALIASES], 1, _NEAR)
    if near:
        return near[0]
    return next((key for key in KEYS if key.rpartition(".")[2] == name), None)


def policy_of(values: Mapping[str, Any], *, wait: float) -> Policy:
    """The policy that a value for each key comes to; ``wait`` bounds the wait for a lock, in seconds."""
    exclude: tuple[str, ...] = values["exclude"]
    return Policy(
        min_free=values["min_free"],
        compression=values["compression"],
        wait=wait,
        selection=Selection(
            exclude="\n".join(exclude).encode("utf-8", "surrogateescape"),
            use_gitignore=values["use_gitignore"],
            exclude_caches=values["exclude_caches"],
            max_file_size=values["max_file_size"],
            include_git=values["git"] == "include",
            one_file_system=values["one_file_system"],
            sensitive=Sensitive(values["sensitive.policy"]),
            sensitive_patterns=values["sensitive.patterns"],
        ),
        sqlite_consistent=values["sqlite_consistent"],
        retention=Retention(
            keep=values["retention.keep"],
            max_age_ns=values["retention.max_age"],
            auto=values["retention.auto"],
            keep_named=values["retention.keep_named"],
        ),
        auto_gc=values["gc.auto"],
    )
