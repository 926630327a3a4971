"""Layers of configuration, from the weakest to the strongest, and what they come to (docs/reference/configuration.md).

The built-in defaults, the system's file, the user's file, what a workspace has in the store, and variables.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from casnap.errors import Usage
from casnap.fs.paths import canonical
from casnap.model.checkpoint import Origin
from casnap.model.config import KEYS, BadValue, Value, flat, key_of, policy_of, similar_to
from casnap.model.policy import Policy
from casnap.settings.environment import (
    boot_id,
    bounded_wait,
    current_directory,
    home_of,
    origin_of,
    processors,
    store_path,
)

SYSTEM_FILE = Path("/etc/casnap/config.toml")

DEFAULT = "default"
WORKSPACE = "workspace"
"""Origins of values beside files and variables."""

Stored = Iterable[tuple[str, str]]
"""What a workspace has in the store: keys, and their values as JSON."""

_LONGEST_SHOWN = 60
_HEADER = r"\s*\[([^\[\]]+)\]"
_ASSIGNMENT = r"\s*([^=#\s][^=#]*?)\s*="


class Layer(Struct, frozen=True):
    """Some values of one ``origin``, and what is wrong with others."""

    origin: str
    values: Mapping[str, Value]
    faults: tuple[Usage, ...] = ()


class Setting(Struct, frozen=True):
    """The value of a key that is in force, and where it comes from."""

    key: str
    value: Value
    origin: str
    default: Value


class Settings(Struct, frozen=True):
    """What files, environment and options come to.

    ``explicit`` says that the store was named by option or argument rather than found by default or
    environment. ``workspace`` is what CASNAP_WORKSPACE holds, ``cwd`` the current directory (None where it
    cannot be told), ``home`` the home directory, links resolved. ``files`` and ``variables`` are layers, the weakest
    first; what a workspace has in the store stands between the two. So many ``processes`` may be at work at once.
    """

    environ: Mapping[str, str]
    store: Path
    explicit: bool
    workspace: str | None
    cwd: bytes | None
    home: bytes | None
    user_file: Path | None
    files: tuple[Layer, ...]
    variables: tuple[Layer, ...]
    wait: float
    origin: Origin
    boot: str
    processes: int = 1

    @property
    def policy(self) -> Policy:
        """The policy where no workspace has a say."""
        return self.policy_of(())

    def policy_of(self, stored: Stored) -> Policy:
        """The policy in a workspace that has this in the store.

        Raises:
            Usage: what it has makes no sense.
        """
        layer = stored_layer(stored)
        require_sound((layer,))
        return policy_of({one.key: one.value for one in self.effective(layer)}, wait=self.wait)

    def effective(self, stored: Layer | None = None) -> list[Setting]:
        """Each key with the value that is in force."""
        values = {name: (key.default, DEFAULT) for name, key in KEYS.items()}
        for layer in (*self.files, *([stored] if stored else ()), *self.variables):
            values |= {name: (value, layer.origin) for name, value in layer.values.items()}
        return [Setting(name, value, origin, KEYS[name].default) for name, (value, origin) in values.items()]

    @property
    def faults(self) -> tuple[Usage, ...]:
        """What is wrong with files and variables."""
        return tuple(fault for layer in (*self.files, *self.variables) for fault in layer.faults)


def load_settings(
    environ: Mapping[str, str] | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    wait: float | None = None,
    tolerant: bool = False,
    own_process: bool = False,
) -> Settings:
    """Read the configuration files and the environment (this process's when None).

    ``store`` and ``wait`` (seconds) come from options. ``tolerant`` is for whoever is about to repair what is wrong.
    Only an ``own_process`` may have others at work: those of others may not like to be forked.

    Raises:
        Usage: a file, a variable or an option holds what it cannot hold; the message names it.
    """
    environ = os.environ if environ is None else environ
    home = home_of(environ)
    user_file = _user_file(environ, home)
    settings = Settings(
        environ=environ,
        store=store_path(environ, home, store),
        explicit=store is not None,
        workspace=environ.get("CASNAP_WORKSPACE") or None,
        cwd=current_directory(environ),
        home=None if home is None else canonical(os.fsencode(home)),
        user_file=user_file,
        files=tuple(file_layer(path) for path in (SYSTEM_FILE, user_file) if path is not None),
        variables=tuple(_variable_layers(environ)),
        wait=bounded_wait(wait),
        origin=origin_of(environ),
        boot=boot_id(),
        processes=processors() if own_process else 1,
    )
    if not tolerant:
        require_sound((*settings.files, *settings.variables))
    return settings


def require_sound(layers: Iterable[Layer]) -> None:
    """Go on only where nothing is wrong with these layers: a policy that is silently not followed is no policy.

    Raises:
        Usage: something is.
    """
    for layer in layers:
        for fault in layer.faults:
            raise fault


def _user_file(environ: Mapping[str, str], home: str | None) -> Path | None:
    if os.path.isabs(config := environ.get("XDG_CONFIG_HOME", "")):  # a relative one is to be ignored, says XDG
        return Path(config) / "casnap" / "config.toml"
    return None if home is None else Path(home) / ".config" / "casnap" / "config.toml"


def _variable_layers(environ: Mapping[str, str]) -> Iterator[Layer]:
    for key in KEYS.values():
        if text := environ.get(key.variable):
            try:
                yield Layer(key.variable, {key.name: key.parse(text)})
            except BadValue as error:
                fault = Usage(f"bad {key.variable} {_shown(text)}: {error}", code="bad-config", hint=error.hint)
                yield Layer(key.variable, {}, (fault,))


def stored_layer(stored: Stored) -> Layer:
    """The layer of a workspace."""
    found = ((name, _from_json(text)) for name, text in stored)
    return _layer(WORKSPACE, found, lambda name: "the settings of the workspace", {})


def _from_json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return Ellipsis  # what no key can hold


def file_layer(path: Path) -> Layer:
    """The layer of a TOML file; one that does not exist, or cannot be reached, has no values."""
    try:
        os.lstat(path)
        from casnap.settings.whole_file import read_whole  # here, since most runs meet no file

        data = read_whole(path)
    except (FileNotFoundError, NotADirectoryError):
        return Layer(str(path), {})
    except OSError as error:
        if isinstance(error, PermissionError) and not os.path.lexists(path):
            return Layer(str(path), {})
        fault = Usage(f"cannot read {path}: {error.strerror}", code="bad-config", details={"file": str(path)})
        return Layer(str(path), {}, (fault,))
    import tomllib  # most runs meet no file

    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        cause = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error) or "it is nested too deep"
        fault = Usage(f"cannot read {path}: {cause}", code="bad-config", hint="repair the file with an editor")
        return Layer(str(path), {}, (fault,))
    lines = lines_of(text)
    return _layer(str(path), flat(table), lambda name: _place(str(path), lines.get(name)), lines)


def _place(path: str, line: int | None) -> str:
    return path if line is None else f"{path}, line {line}"


def _layer(
    origin: str, found: Iterable[tuple[str, object]], place: Callable[[str], str], lines: Mapping[str, int]
) -> Layer:
    values: dict[str, Value] = {}
    faults: list[Usage] = []
    for name, given in found:
        details = {"key": name, "origin": origin, "line": lines.get(name)}
        try:
            key = key_of(name)
            if key is None:
                raise BadValue("there is no such key", unknown_hint(name))
            if key.common_to and origin == WORKSPACE:
                raise BadValue(f"it is for {key.common_to}", "set it for all workspaces with -g")
            if key.name in values:
                raise BadValue(f"{key.name} is set twice", "set it once")
            values[key.name] = key.accept(given)
        except BadValue as error:
            what = f"bad key {_shown(name)}" if key_of(name) is None else f"bad {name} {_shown(given)}"
            message = f"{what} in {place(name)}: {error}"
            faults.append(Usage(message, code="bad-config", hint=error.hint, details=details))
    return Layer(origin, values, tuple(faults))


def unknown_hint(name: str) -> str:
    """What to do about a key that does not exist."""
    near = similar_to(name)
    return f"did you mean {near}?" if near else "see the keys with: casnap config list -g"


def lines_of(text: str) -> dict[str, int]:
    """The line of each key in a TOML file, by its dotted name; what is written in unusual ways is left out."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        if header := re.match(_HEADER, line):
            table = _plain_name(header[1]) + "."
        elif assignment := re.match(_ASSIGNMENT, line):
            found.setdefault(table + _plain_name(assignment[1]), number)
    return found


def _plain_name(dotted: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in dotted.split("."))


def _shown(given: object) -> str:
    if given is Ellipsis:
        return "(no JSON)"
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
