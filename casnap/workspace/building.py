"""Building: a directory that is not there yet is made whole, with all that is in it, before it gets its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from casnap.fs import making, placing
from casnap.fs.directories import Directories
from casnap.fs.making import Given
from casnap.model.paths import split
from casnap.model.tree import Directory
from casnap.workspace.inodes import NewInodes
from casnap.workspace.layout import Layout

Ground = Callable[[bytes], tuple[bytes, Given | None]]
"""Where the topmost of new directories is to be built, and what is given there."""


class Building:
    """The new directories of a layout, each built in a staging directory.

    ``tops`` are those whose parents stay: they are moved to their places, and all that is below comes with them. Their
    own metadata comes after that, as does that of directories in which names are yet to join others: all others are
    ``finished`` before. ``made`` tells where each stands.
    """

    def __init__(self, layout: Layout, directories: Directories, ground: Ground, inodes: NewInodes) -> None:
        self._nodes: Mapping[bytes, Directory] = layout.directories
        self._staged = layout.staged
        self._directories = directories
        self._ground = ground
        self._inodes = inodes
        self._top_of: dict[bytes, bytes] = {}
        for path in layout.directories:
            self._top_of[path] = self._top_of.get(split(path)[0], path)
        self.tops = frozenset(self._top_of.values())
        self._parents = {split(path)[0] for path in layout.directories}
        self._late = self.tops | self._joined(layout)
        self.made: dict[bytes, bytes] = {}
        self._given: dict[bytes, Given | None] = {}
        self.finished: set[bytes] = set()

    def _joined(self, layout: Layout) -> set[bytes]:
        """Directories in which, or below which, hard links are made once all is in place."""
        found: set[bytes] = set()
        for pair in layout.linked:
            for path in pair:
                above = split(path)[0]
                while above in self._top_of and above not in found:
                    found.add(above)
                    above = split(above)[0]
        return found

    def __contains__(self, path: bytes) -> bool:
        return path in self._top_of

    def enter(self, path: bytes) -> tuple[int, Given | None]:
        """A descriptor of the directory where it is built, made now if it was not before; what is given in it."""
        if path not in self.made:
            self._make(path)
        return self._directories.fd(self.made[path]), self._given[self._top_of[path]]

    def _make(self, path: bytes) -> None:
        missing = []
        while path in self._top_of and path not in self.made:
            missing.append(path)
            path = split(path)[0]
        for path in reversed(missing):
            if path in self.tops:
                place, self._given[path] = self._ground(path)
            else:
                place = self.made[split(path)[0]] + path[len(split(path)[0]) :]
            above, name = split(place)
            given, node = self._given[self._top_of[path]], self._nodes[path]
            if given is not None and making.is_plain_directory(node, given):
                making.make_plain_directory(self._directories.fd(above), name, node)
            else:
                placing.make_directory(self._directories.fd(above), name)
            self.made[path] = place

    def leave(self, path: bytes) -> None:
        """All entries of the directory but the directories in it are made."""
        if path not in self._parents and path not in self._late:
            self._finish(path)

    def complete(self) -> None:
        """Make what is empty, and give each directory its metadata, but for those that get it in their places."""
        for path in self._top_of:
            if path not in self.made:
                self._make(path)
                self.leave(path)
        for path in sorted(self.made.keys() - self._late - self.finished, reverse=True):
            self._finish(path)

    def _finish(self, path: bytes) -> None:
        above, name = split(self.made[path])
        directory, given, node = self._directories.fd(above), self._given[self._top_of[path]], self._nodes[path]
        if given is not None and making.is_plain_directory(node, given):
            placing.set_times(directory, name, node.mtime_ns)
        else:
            self._inodes.note(path, placing.set_metadata(directory, name, node))
        self.finished.add(path)

    def below(self, top: bytes) -> set[bytes]:
        """All that is built in one of the ``tops``."""
        return {path for path in (*self._top_of, *self._staged) if path.startswith(top + b"/")}
