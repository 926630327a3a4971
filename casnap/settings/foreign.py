"""Settings of other tools, as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casnap.errors import CasnapError, Usage
from casnap.model.config import BadValue, Value, key_of
from casnap.settings.whole_file import read_whole

_TAKEN = ("retention_days", "max_checkpoints", "auto_checkpoint", "exclude")


@dataclass(frozen=True, slots=True)
class Imported:
    """Values by key, and what a person should hear about what was left behind."""

    values: Mapping[str, Value]
    notes: tuple[str, ...]


def read_checkpoint_yaml(path: Path) -> Imported:
    """What an Oh My Coder ``checkpoint.yaml`` sets.

    Raises:
        Usage: it cannot be read, or holds what a key cannot hold.
        CasnapError: there is no YAML library.
    """
    table = _load(path)
    values: dict[str, Value] = {}
    notes: list[str] = []
    for name, given in table.items():
        key = key_of(name) if name in _TAKEN else None
        if key is None:
            notes.append(f"{name!s} is not known here, and was left out")
        else:
            try:
                values[key.name] = key.accept(given)
            except BadValue as error:
                raise Usage(f"bad {name} {given!r} in {path}: {error}", code="bad-config", hint=error.hint) from None
    if "retention.max_age" in values and "retention.keep" in values:
        notes.append("with both retention_days and max_checkpoints, only what is beyond both goes in a cleanup")
    return Imported(values, tuple(notes))


def _load(path: Path) -> Mapping[Any, Any]:
    try:
        import yaml
    except ImportError:
        raise CasnapError(
            "cannot read YAML: no library for it is installed",
            code="no-yaml",
            hint="install it with: pip install 'casnap[yaml]'",
        ) from None
    try:
        data = read_whole(path)
    except OSError as error:
        raise Usage(f"cannot read {path}: {error.strerror}", hint="name a checkpoint.yaml") from None
    try:
        table = yaml.safe_load(data)
        if table is None:
            table = {}
        if not isinstance(table, dict):
            raise ValueError("it is not a list of keys and values")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        cause = " ".join(str(error).split()) or "it is nested too deep"
        raise Usage(f"cannot read {path}: {cause}", code="bad-config") from None
    return table
