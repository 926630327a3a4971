"""Patches as git writes them (git-diff(1), "generating patch text with -p"), so that ``git apply`` reads them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from casnap.engine.diffing.binary import binary_patch
from casnap.engine.diffing.git_modes import git_mode
from casnap.engine.diffing.hunks import unified
from casnap.engine.diffing.lines import split_lines
from casnap.engine.diffing.quoting import quote
from casnap.model.change import Change
from casnap.model.report import LineCount
from casnap.model.tree import AnyEntry, Symlink

TEXT_LIMIT = 16 << 20
LINES_LIMIT = 1_000_000
LINE_LIMIT = 1 << 20
"""Files of more bytes, of more lines, or with a line of more bytes are large: they are not compared line by line."""

BINARY_LIMIT = 128 << 20
"""Files of more bytes are not put into a binary patch either."""

_PROBED = 8000
_ABBREVIATED = 7
_NO_BLOB = "0" * 40


@dataclass(frozen=True, slots=True)
class Style:
    """What a patch is to hold: so many lines around a change, and binary and large files or not."""

    context: int = 3
    binary: bool = False

    @property
    def limit(self) -> int:
        """How large a file may be for its bytes to be of use."""
        return BINARY_LIMIT if self.binary else TEXT_LIMIT


@dataclass(frozen=True, slots=True)
class FilePatch:
    """The text for one change, the lines that it adds and removes, and whether contents were too large for it."""

    text: bytes = b""
    count: LineCount = field(default_factory=LineCount)
    cut: bool = False


class _Side(NamedTuple):
    """What git sees of an entry; ``data`` is None where there are too many bytes, or they cannot be read."""

    mode: str
    data: bytes | None


class _Pair(NamedTuple):
    """Two versions of one thing, and the names that they have; None is a version that does not exist."""

    old_path: bytes
    new_path: bytes
    old: _Side | None
    new: _Side | None
    similarity: int = 0

    @property
    def names(self) -> tuple[str, str]:
        """Both names, as in the lines that begin a patch."""
        return (
            "/dev/null" if self.old is None else quote(b"a/" + self.old_path),
            "/dev/null" if self.new is None else quote(b"b/" + self.new_path),
        )


def patch_of(change: Change, old: bytes | None, new: bytes | None, style: Style) -> FilePatch:
    """The patch of one change, from the files' bytes (None: too many, or they cannot be read).

    Of files with the same content the bytes do not matter. A change of kind is a removal and an addition, as in git.
    """
    before, after = _side(change.old, old), _side(change.new, new)
    if before is None or after is None or before.mode[:3] == after.mode[:3]:
        old_path = change.path if change.renamed_from is None else change.renamed_from
        return _patch(_Pair(old_path, change.path, before, after, change.similarity), style)
    removal = _patch(_Pair(change.path, change.path, before, None), style)
    addition = _patch(_Pair(change.path, change.path, None, after), style)
    shown = addition.count.shown and removal.count.shown
    count = LineCount(addition.count.added, removal.count.removed, shown)
    return FilePatch(removal.text + addition.text, count, removal.cut or addition.cut)


def _side(entry: AnyEntry | None, data: bytes | None) -> _Side | None:
    mode = git_mode(entry)
    return None if mode is None else _Side(mode, entry.target if isinstance(entry, Symlink) else data)


def _patch(pair: _Pair, style: Style) -> FilePatch:
    if pair.old is None and pair.new is None:
        return FilePatch()
    header, body = _header(pair), _body(pair, style)
    if not header and not body.text:
        return FilePatch()
    first = f"diff --git {quote(b'a/' + pair.old_path)} {quote(b'b/' + pair.new_path)}\n"
    return FilePatch((first + header).encode() + body.text, body.count, body.cut)


def _header(pair: _Pair) -> str:
    old, new = pair.old, pair.new
    lines = []
    if old is None and new is not None:
        lines.append(f"new file mode {new.mode}")
    elif old is not None and new is None:
        lines.append(f"deleted file mode {old.mode}")
    elif old is not None and new is not None and old.mode != new.mode:
        lines += [f"old mode {old.mode}", f"new mode {new.mode}"]
    if pair.old_path != pair.new_path:
        lines.append(f"similarity index {pair.similarity}%")
        lines += [f"rename from {quote(pair.old_path)}", f"rename to {quote(pair.new_path)}"]
    return "".join(f"{line}\n" for line in lines)


def _body(pair: _Pair, style: Style) -> FilePatch:
    old, new = (b"" if side is None else side.data for side in (pair.old, pair.new))
    if old is None or new is None:
        return _large(pair)
    if old == new:
        return FilePatch() if pair.old and pair.new else FilePatch(_index(pair, old, new))
    is_binary = b"\0" in old[:_PROBED] or b"\0" in new[:_PROBED]
    lines = None if is_binary else _text_lines(old, new)
    if lines is not None:
        hunks, count = unified(*lines, style.context)
        return FilePatch(_index(pair, old, new) + _named(pair) + hunks, count)
    if style.binary:
        return FilePatch(_index(pair, old, new, whole=True) + binary_patch(old, new), LineCount(shown=False))
    if not is_binary:
        return _large(pair)
    text = "Binary files {} and {} differ\n".format(*pair.names)
    return FilePatch(_index(pair, old, new) + text.encode(), LineCount(shown=False))


def _large(pair: _Pair) -> FilePatch:
    """Words that ``git apply`` stumbles over: a patch that lacks something must not be taken for whole."""
    text = "Files {} and {} are too large to compare and differ\n".format(*pair.names)
    return FilePatch(text.encode(), LineCount(shown=False), cut=True)


def _text_lines(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]] | None:
    """The lines of both sides; None where they are more, or longer, than a patch for reading should have."""
    if max(len(old), len(new)) > TEXT_LIMIT or max(old.count(b"\n"), new.count(b"\n")) > LINES_LIMIT:
        return None
    before, after = split_lines(old), split_lines(new)
    longest = max(map(len, [*before, *after]), default=0)
    return (before, after) if longest <= LINE_LIMIT else None


def _index(pair: _Pair, old: bytes, new: bytes, *, whole: bool = False) -> bytes:
    """The line with git's ids of both contents; beside a binary patch ``git apply`` insists on whole ones."""
    digits = len(_NO_BLOB) if whole else _ABBREVIATED
    before = _NO_BLOB if pair.old is None else blob_id(old)
    after = _NO_BLOB if pair.new is None else blob_id(new)
    same_mode = pair.old is not None and pair.new is not None and pair.old.mode == pair.new.mode
    mode = f" {pair.old.mode}" if pair.old is not None and same_mode else ""
    return f"index {before[:digits]}..{after[:digits]}{mode}\n".encode()


def blob_id(data: bytes) -> str:
    """The id that git gives to a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _named(pair: _Pair) -> bytes:
    """Both names once more; a tab ends one with spaces, for programs that look for a time behind it."""
    before, after = (f"{name}\t" if " " in name and not name.startswith('"') else name for name in pair.names)
    return f"--- {before}\n+++ {after}\n".encode()
