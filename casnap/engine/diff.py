"""``diff``: what differs between two checkpoints, or between one and the live workspace."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from casnap.codec.hashing import content_id
from casnap.engine.compare import plan_between
from casnap.engine.content import pieces
from casnap.engine.context import Context, workspace_row
from casnap.engine.diffing.git_modes import is_beyond_patch, is_in_patch
from casnap.engine.diffing.patch import FilePatch, Style, patch_of
from casnap.engine.diffing.renames import find_renames
from casnap.engine.recorded import tree_of
from casnap.engine.roots import peek_root
from casnap.engine.scanning import scan_and_plan
from casnap.errors import Damage
from casnap.fs.directories import Directories
from casnap.model.change import Change
from casnap.model.checkpoint import Checkpoint
from casnap.model.objects import ObjectSource
from casnap.model.paths import split
from casnap.model.report import Diff, LineCount, Problem, WorkspaceInfo
from casnap.model.tree import AnyEntry, File
from casnap.workspace.reader import open_file

Read = Callable[[bytes, File], bytes]
"""Gives the bytes of a file by its path and entry; an OSError where the system does not let it."""

Emit = Callable[[bytes], None]
"""Takes the patch of one change after the other."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a diff is to find out and show.

    ``paths`` limits it to these and what lies below them. Without ``contents`` only names, kinds and metadata
    are compared. ``emit`` gets the patch instead of the report, so that it need not be held in memory as a whole.
    """

    paths: tuple[bytes, ...] = ()
    contents: bool = True
    renames: bool = True
    style: Style = field(default_factory=Style)
    emit: Emit | None = None


EVERYTHING = Wanted()


def diff(
    context: Context,
    workspace: WorkspaceInfo,
    old: Checkpoint,
    new: Checkpoint | None,
    wanted: Wanted = EVERYTHING,
) -> Diff:
    """Differences from ``old`` to ``new``, or to the live workspace (None)."""
    before = tree_of(context, old)
    if new is not None:
        after = tree_of(context, new)
        changes = plan_between(before, after, wanted.paths or None).visible
        sides = _Sides(_stored(before.source), _stored(after.source))
        return _report(old, new, changes, sides, wanted, ())
    row = workspace_row(context.store.state(), workspace)
    with peek_root(row) as directories:
        live, _, plan = scan_and_plan(
            context, row, directories, lambda live, sink: plan_between(before, live.view(sink), wanted.paths or None)
        )
        sides = _Sides(_stored(before.source), _live(directories))
        return _report(old, None, plan.visible, sides, wanted, live.problems)


def _stored(source: ObjectSource) -> Read:
    return lambda path, file: b"".join(pieces(source, file))


def _live(directories: Directories) -> Read:
    def read(path: bytes, file: File) -> bytes:
        parent, name = split(path)
        fd = open_file(directories.fd(parent), name)
        try:
            found: list[bytes] = []
            got = 0
            while got < file.size and (piece := os.pread(fd, file.size - got, got)):
                found.append(piece)
                got += len(piece)
            return b"".join(found)
        finally:
            os.close(fd)

    return read


@dataclass(slots=True)
class _Sides:
    """Where the bytes of both sides come from, and what went wrong in getting them."""

    read_old: Read
    read_new: Read
    problems: list[Problem] = field(default_factory=list)

    def candidate(self, change: Change) -> bytes | None:
        """The bytes of a file that was added or removed, for a comparison that can do without."""
        entry, read = (change.old, self.read_old) if change.new is None else (change.new, self.read_new)
        if not isinstance(entry, File):
            return None
        try:
            return read(change.path, entry)
        except (OSError, Damage):
            return None

    def patch(self, change: Change, style: Style) -> FilePatch:
        """The patch of one change."""
        old, new = change.old, change.new
        if isinstance(old, File) and isinstance(new, File) and old.content == new.content:
            return patch_of(change, b"", b"", style)
        origin = change.path if change.renamed_from is None else change.renamed_from
        before = self._bytes(self.read_old, origin, old, style)
        after = self._bytes(self.read_new, change.path, new, style)
        found = patch_of(change, before, after, style)
        moved = isinstance(new, File) and after is not None and content_id(after) != new.content
        if moved and (found.count.shown or style.binary):
            self.problems.append(Problem(change.path, "it changed while it was compared: the patch has what was read"))
        return found

    def _bytes(self, read: Read, path: bytes, entry: AnyEntry | None, style: Style) -> bytes | None:
        """A file's bytes, None where they are too many or cannot be read; nothing for what is no file."""
        if not isinstance(entry, File):
            return b""
        if entry.size > style.limit:
            return None
        try:
            return read(path, entry)
        except OSError as error:
            self.problems.append(Problem(path, f"cannot read it: {error.strerror}"))
            return None


def _report(
    old: Checkpoint,
    new: Checkpoint | None,
    changes: tuple[Change, ...],
    sides: _Sides,
    wanted: Wanted,
    problems: tuple[Problem, ...],
) -> Diff:
    notes: list[str] = []
    if wanted.renames:
        changes, note = find_renames(changes, sides.candidate)
        notes += [note] if note else []
    text, lines, cut = _patches(changes, sides, wanted) if wanted.contents else (b"", [], [])
    if wanted.contents:
        notes += _silences(changes, cut)
    return Diff(
        old=old.id,
        new=new.id if new else None,
        changes=changes,
        patch=text.decode("utf-8", "surrogateescape"),
        lines=tuple(lines),
        problems=(*problems, *sides.problems),
        cut=tuple(cut),
        notes=tuple(notes),
    )


def _patches(changes: tuple[Change, ...], sides: _Sides, wanted: Wanted) -> tuple[bytes, list[LineCount], list[bytes]]:
    """The patch unless it is emitted, the lines that each change changes, and the paths that were cut."""
    kept: list[bytes] = []
    emit = wanted.emit or kept.append
    lines, cut = [], []
    for change in changes:
        found = sides.patch(change, wanted.style)
        if found.text:
            emit(found.text)
        lines.append(found.count)
        if found.cut:
            cut.append(change.path)
    return b"".join(kept), lines, cut


def _silences(changes: tuple[Change, ...], cut: list[bytes]) -> list[str]:
    """What the patch does not tell, in words."""
    notes = []
    if cut:
        notes.append(f"contents of {_paths(len(cut))} are not in the patch: too large to compare, or not to be read")
    beyond = sum(is_beyond_patch(change) for change in changes)
    if changes and not beyond and not any(map(is_in_patch, changes)):
        beyond = len(changes)
    if beyond:
        notes.append(
            f"changes of {_paths(beyond)} are not, or not all, in the patch: git's format knows the contents of files, "
            "links and the executable bit"
        )
    return notes


def _paths(number: int) -> str:
    return "1 path" if number == 1 else f"{number} paths"
