"""The history of ws-ckpt: a directory of snapshots that are plain trees, and an index beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from casnap.engine.importing import pitrrwnd
from casnap.engine.importing.history import Entry, Findings, History
from casnap.engine.importing.source import Fault, Source, object_of, text_of
from casnap.engine.importing.times import instant
from casnap.errors import NotFound, Usage
from casnap.model.paths import escape, is_valid_name
from casnap.model.report import Problem

SYSTEM = "ws-ckpt"
INDEX, INDEXES, SNAPSHOTS = b"index.json", b"indexes", b"snapshots"
SYSTEM_INDEXES = b"/var/lib/ws-ckpt/indexes"
"""Where ws-ckpt keeps the index of each workspace."""

LOOKED_FOR = "an index.json of ws-ckpt, and snapshots/<workspace>"


@dataclass(frozen=True, slots=True)
class Place:
    """A directory of snapshots, and the index that was found for it."""

    snapshots: bytes
    index: bytes | None


def find(path: bytes, index: bytes | None = None, *, sure: bool = False) -> Place | None:
    """The snapshots and index that ``path`` leads to: an index file, its directory, or a directory of snapshots.

    ``sure`` takes any directory for one of snapshots.

    Raises:
        NotFound: the index is there, its snapshots are not.
    """
    if index is not None:
        return Place(path, index)
    if os.path.isfile(path):
        return Place(_snapshots_of(path), path) if _ids_in(path) is not None else None
    own = os.path.join(path, INDEX)
    if os.path.isfile(own) and _ids_in(own) is not None:
        return Place(_snapshots_of(own), own)
    beside = _index_of(path)
    return Place(path, beside) if sure or beside is not None or _is_of_snapshots(path) else None


def read(place: Place) -> History:
    """The history that lies at ``place``.

    Raises:
        NotFound: the index cannot be read.
        Usage: the index names a workspace that cannot be one.
    """
    findings = Findings()
    index = {} if place.index is None else _load(place.index)
    source = Source(place.snapshots)
    if place.index is None:
        findings.notes.append("there is no index: messages, times and parents cannot be told; name it with --index")
        listed: dict[str, Any] = {name.decode("utf-8", "surrogateescape"): {} for name in source.required(b"")}
    else:
        listed = object_of(index, "snapshots")
        _tell_unlisted(source, listed, findings)
    present = _present(source, listed, findings)
    parents = _Parents(listed, present)
    order = parents.in_order(findings)
    head = parents.present_at(text_of(index, "head")) or (order[-1] if order else None)

    def entries() -> Iterator[Entry]:
        for id in order:
            yield _entry(present[id], object_of(listed, id), _shown(parents.present_above(id)))

    return History(
        system=SYSTEM,
        source=source,
        workspace=_workspace(index),
        head=_shown(head),
        entries=entries,
        linear=not parents.known,
        findings=findings,
    )


@dataclass(frozen=True, slots=True)
class _Present:
    """A snapshot that is there, its id as the index spells it, and its time as far as it can be told."""

    id: str
    place: bytes
    created: int


def _present(source: Source, listed: dict[str, Any], findings: Findings) -> dict[str, _Present]:
    present = {}
    for id in listed:
        facts = object_of(listed, id)
        name = _name_of(id)
        if not is_valid_name(name):
            findings.problems.append(Problem(b"", f"the index names a snapshot that cannot be: {escape(name)}"))
            continue
        if facts.get("missing") is True:
            findings.notes.append(f"{escape(name)} is missing, as the index says, and is left out")
            continue
        try:
            modified = source.check_directory(name)
        except Fault as fault:
            if fault.missing:
                findings.notes.append(f"{escape(name)} is not there, and is left out")
            else:
                findings.problems.append(Problem(name, f"it is not imported: {fault}"))
            continue
        created = instant(facts.get("created_at"))
        if created is None:
            created = modified
            findings.notes.append(f"{escape(name)}: its time cannot be told, that of its directory is taken")
        present[id] = _Present(id, name, created)
    return present


def _entry(found: _Present, facts: dict[str, Any], parent: str | None) -> Entry:
    said = facts.get("created_at")
    id = escape(found.place)
    return Entry(
        id=id,
        place=found.place,
        created=found.created,
        said=text_of(facts, "created_at") if isinstance(said, str) else "" if said is None else str(said),
        name=id,
        message=text_of(facts, "message"),
        parent=parent,
        metadata=facts.get("metadata"),
        pinned=facts.get("pinned") is True,
    )


class _Parents:
    """Which snapshot descends from which. ``known`` says whether the index tells."""

    def __init__(self, listed: dict[str, Any], present: Mapping[str, _Present]) -> None:
        self._present = present
        self._parent: dict[str, str] = {}
        for id in listed:
            children = object_of(listed, id).get("child_ids")
            for child in children if isinstance(children, list) else ():
                if isinstance(child, str):
                    self._parent[child] = id
        for id in listed:
            if parent := object_of(listed, id).get("parent_id"):
                self._parent[id] = str(parent)
        self.known = bool(self._parent)

    def present_at(self, id: str) -> str | None:
        """The snapshot ``id``, or where that is not there the nearest above it that is."""
        return id if id in self._present else self.present_above(id)

    def present_above(self, id: str) -> str | None:
        """The nearest snapshot above ``id`` that is there."""
        seen = {id}
        while (above := self._parent.get(id)) is not None and above not in seen:
            if above in self._present:
                return above
            seen.add(above)
            id = above
        return None

    def in_order(self, findings: Findings) -> list[str]:
        """All that are there: parents first, else by time."""
        placed: dict[str, None] = {}
        for found in sorted(self._present.values(), key=lambda one: (one.created, one.id)):
            chain: dict[str, None] = {}
            at: str | None = found.id
            while at is not None and at not in placed and at not in chain:
                chain[at] = None
                at = self.present_above(at)
            if at is not None and at in chain:
                findings.problems.append(Problem(b"", f"the parents of {_shown(at)} go round in the index"))
            placed.update(dict.fromkeys(reversed(chain)))
        return list(placed)


def _tell_unlisted(source: Source, listed: dict[str, Any], findings: Findings) -> None:
    known = {INDEX, *map(_name_of, listed)}
    for name in source.required(b""):
        if name not in known:
            findings.notes.append(f"{escape(name)} is not in the index, and is left out")


def _workspace(index: dict[str, Any]) -> bytes | None:
    said = index.get("workspace_path")
    if not said:
        return None
    if not isinstance(said, str) or not said.startswith("/") or "\0" in said:
        raise Usage(
            f"cannot tell the workspace: the index names {said!r}, which is no absolute path",
            hint="name the workspace with -w DIR",
        )
    return _name_of(said)


def _name_of(id: str) -> bytes:
    """The name of a snapshot's directory; what JSON can say and UTF-8 cannot becomes a name that nothing has."""
    try:
        return id.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return id.encode("utf-8", "surrogatepass")


def _shown(id: str | None) -> str | None:
    """An id as entries have it: printable text."""
    return None if id is None else escape(_name_of(id))


def _load(path: bytes) -> dict[str, Any]:
    directory, name = os.path.split(path)
    source = Source(directory)
    try:
        return source.document(name)
    except Fault as fault:
        raise NotFound(
            f"no history at {escape(path)}: {fault}", code="no-history", hint="name an index.json of ws-ckpt"
        ) from fault
    finally:
        source.close()


def _ids_in(index: bytes) -> list[str] | None:
    """The snapshots that an index lists; None where the file is none."""
    try:
        listed = _load(index).get("snapshots")
    except NotFound:
        return None
    return list(listed) if isinstance(listed, dict) else None


def _holds_some(directory: bytes, ids: list[str]) -> bool:
    names = filter(is_valid_name, map(_name_of, ids))
    return any(os.path.isdir(os.path.join(directory, name)) for name in names)


def _is_of_snapshots(directory: bytes) -> bool:
    """Whether the layout makes a directory one of snapshots: it lies in one of that name, and holds only such."""
    above = os.path.dirname(directory)
    if os.path.basename(above) != SNAPSHOTS or os.path.basename(os.path.dirname(above)) == pitrrwnd.STATE:
        return False
    try:
        with os.scandir(directory) as entries:
            kinds = [entry.is_dir(follow_symlinks=False) for entry in entries]
    except OSError:
        return False
    return bool(kinds) and all(kinds)


def _index_of(snapshots: bytes) -> bytes | None:
    """The index of a directory of snapshots, by the layout; it must list at least one of them."""
    above, name = os.path.split(snapshots)
    for indexes in (os.path.join(os.path.dirname(above), INDEXES), SYSTEM_INDEXES):
        index = os.path.join(indexes, name, INDEX)
        if os.path.isfile(index) and _holds_some(snapshots, _ids_in(index) or []):
            return index
    return None


def _snapshots_of(index: bytes) -> bytes:
    """The directory of the snapshots that an index lists: by the layout, or beside it."""
    beside, _ = os.path.split(index)
    indexes, name = os.path.split(beside)
    usual = os.path.join(os.path.dirname(indexes), SNAPSHOTS, name)
    if os.path.isdir(usual) and not os.path.islink(usual):
        return usual
    if _holds_some(beside, _ids_in(index) or []):
        return beside
    raise NotFound(
        f"no snapshots for {escape(index)}: looked in {escape(usual)} and {escape(beside)}",
        code="no-history",
        hint="say where they are: casnap import DIR --index FILE",
    )
