"""A plain model of a workspace and its history, for the state machine: dicts, and nothing of casnap.

A tree is a dict from path (root as ``b""``) to a node. Files that are hard links of each other share one
:class:`Inode` object; copying a tree keeps the sharing.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from support.oracle import ROOT, Snapshot


@dataclass(eq=False)
class Inode:
    """A regular file: what its names share."""

    content: bytes
    mode: int


@dataclass(frozen=True)
class Dir:
    mode: int


@dataclass(frozen=True)
class Link:
    target: bytes


Node = Inode | Dir | Link
Tree = dict[bytes, Node]


@dataclass
class Point:
    """A checkpoint: its id, tree, step (0: safety), name, the checkpoint it came from, and whether it is deleted."""

    id: str
    tree: Tree
    step: int
    name: str | None
    parent: str | None
    deleted: bool = False


@dataclass
class History:
    """Checkpoints by id in order of making, head, the last step, and what undo leads to (tree, head)."""

    points: dict[str, Point] = field(default_factory=dict)
    head: str | None = None
    last_step: int = 0
    undo: tuple[Tree, str | None] | None = None

    def present_parent(self, id: str) -> str | None:
        parent = self.points[id].parent
        while parent is not None and self.points[parent].deleted:
            parent = self.points[parent].parent
        return parent

    def listed(self) -> list[Point]:
        return [point for point in reversed(self.points.values()) if point.step and not point.deleted]

    def ancestor(self, count: int) -> str | None:
        id = self.head
        for _ in range(count):
            if id is None:
                return None
            id = self.present_parent(id)
        return id


def clone(tree: Tree) -> Tree:
    """An independent copy that shares as the original does."""
    return copy.deepcopy(tree)


def below(tree: Tree, path: bytes) -> list[bytes]:
    """``path`` and everything below it, as far as it exists."""
    return [other for other in tree if other == path or other.startswith(path + b"/") or path == b""]


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def shape(tree: Tree) -> dict[bytes, object]:
    """The tree as values that compare: kind, mode, content or target, and the names of one file."""
    names: dict[int, list[bytes]] = {}
    for path, node in tree.items():
        if isinstance(node, Inode):
            names.setdefault(id(node), []).append(path)
    return {path: _value(node, names) for path, node in tree.items()}


def _value(node: Node, names: dict[int, list[bytes]]) -> object:
    match node:
        case Inode(content, mode):
            group = tuple(sorted(names[id(node)]))
            return ("file", mode, content, group if len(group) > 1 else ())
        case Dir(mode):
            return ("directory", mode)
        case Link(target):
            return ("symlink", target)


def shape_on_disk(root: bytes, snapshot: Snapshot) -> dict[bytes, object]:
    """The same values from the oracle's account of a directory."""
    found: dict[bytes, object] = {}
    for path, record in snapshot.items():
        name = b"" if path == ROOT else path
        if record.kind == "file":
            with open(root + b"/" + name, "rb") as file:
                found[name] = ("file", record.mode, file.read(), record.links)
        elif record.kind == "directory":
            found[name] = ("directory", record.mode)
        else:
            found[name] = (record.kind, record.target)
    return found


def limited(live: Tree, target: Tree, path: bytes) -> Tree:
    """``live`` with what lies at and below ``path`` as in ``target``."""
    result = {other: node for other, node in live.items() if other not in below(live, path)}
    wanted = below(target, path)
    if wanted:
        above = parent_of(path)
        missing = []
        while not isinstance(result.get(above), Dir):
            missing.append(above)
            above = parent_of(above)
        for directory in missing:
            result = {other: node for other, node in result.items() if other not in below(result, directory)}
        result.update((directory, target[directory]) for directory in missing)
    result.update((other, target[other]) for other in wanted)
    return result
