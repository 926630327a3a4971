"""New inodes: each entry that a rollback writes, made complete in a staging directory or below it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from casnap.codec.hashing import ContentHasher
from casnap.errors import Damage
from casnap.fs import making, placing
from casnap.fs.making import Given
from casnap.model.paths import escape
from casnap.model.report import Problem
from casnap.model.tree import AnyNode, File


class Contents(Protocol):
    """The bytes of files, which are asked for in the order in which they were announced."""

    def of(self, file: File) -> Iterator[bytes]:
        """A file's bytes in pieces, each checked against its name."""

    def whole(self, file: File) -> bytes:
        """All bytes of a file that is one chunk, checked against its name."""


ContentsOf = Callable[[Iterable[AnyNode]], Contents]
"""The bytes of these entries, as far as they are files; they will be asked for in this order."""


class NewInodes:
    """Makes them. ``faults`` is what could not be set; ``sync`` forces out the bytes of each file."""

    def __init__(self, contents_of: ContentsOf, *, sync: bool) -> None:
        self.faults: list[Problem] = []
        self._contents_of = contents_of
        self._contents = contents_of(())
        self._sync = sync

    def announce(self, nodes: Iterable[AnyNode]) -> None:
        """Tell what will be made, in its order."""
        self._contents = self._contents_of(nodes)

    def make(self, path: bytes, directory: int, name: bytes, node: AnyNode, given: Given | None) -> None:
        """Make the entry of ``path`` under ``name``; ``given`` is what a new inode has there, where that is known.

        Raises:
            Damage: a file's bytes are missing or do not match their name.
        """
        if not isinstance(node, File):
            placing.create_special(directory, name, node)
            faults = placing.set_metadata(directory, name, node)
        elif given is not None and making.is_plain_file(node, given):
            try:
                data = self._contents.whole(node)
            except Damage as damage:
                raise _of_path(path, damage) from damage
            making.make_file(directory, name, node, data, given, sync=self._sync)
            return
        else:
            faults = placing.create_file(directory, name, node, self._pieces(path, node), sync=self._sync)
        self.note(path, faults)

    def note(self, path: bytes, faults: list[str]) -> None:
        """Remember what could not be set at a path."""
        self.faults += [Problem(path, fault) for fault in faults]

    def _pieces(self, path: bytes, node: File) -> Iterator[bytes]:
        """A file's bytes. Those of a single chunk were checked against its name, which is the file's own."""
        hasher = ContentHasher() if node.chunk_list else None
        try:
            for piece in self._contents.of(node):
                if hasher is not None:
                    hasher.update(piece)
                yield piece
        except Damage as damage:
            raise _of_path(path, damage) from damage
        if hasher is not None and hasher.id() != node.content:
            raise Damage(f"cannot restore {escape(path)}: its chunks do not add up to content {node.content.hex()}")


def _of_path(path: bytes, damage: Damage) -> Damage:
    return Damage(
        f"cannot restore {escape(path)}: {damage.message}; nothing was changed",
        hint="choose another checkpoint, or restore other paths with -- PATH",
        details={**damage.details, "path": escape(path)},
    )
