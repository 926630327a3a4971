"""Whether what was stored of a snapshot is what its system's manifest says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from casnap.engine.compare import TreeView
from casnap.engine.content import pieces
from casnap.model.objects import ObjectSource
from casnap.model.report import Problem
from casnap.model.tree import Directory, File, Omitted


class Checksums:
    """Compares trees with lists of SHA-256; content that occurs again is not hashed again."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def faults(self, view: TreeView, sums: Mapping[bytes, str]) -> Iterator[Problem]:
        """What differs, path by path. What could not be captured is for the scan to tell."""
        left = dict(sums)
        for path, entry in view.walk():
            if isinstance(entry, Directory):
                continue
            said = left.pop(_listed(path, sums), None)
            if isinstance(entry, Omitted):
                continue
            if said is None:
                yield Problem(path, "is not in the manifest")
            elif not isinstance(entry, File):
                yield Problem(path, "is not the regular file that the manifest lists")
            elif self._sha256(view.source, entry) != said:
                yield Problem(path, "does not have the SHA-256 that the manifest lists")
        for path in sorted(left):
            yield Problem(path, "is in the manifest, but not in the snapshot")

    def _sha256(self, source: ObjectSource, file: File) -> str:
        if file.content not in self._known:
            sha256 = hashlib.sha256()
            for piece in pieces(source, file):
                sha256.update(piece)
            self._known[file.content] = sha256.hexdigest()
        return self._known[file.content]


def _listed(path: bytes, sums: Mapping[bytes, str]) -> bytes:
    """The name that a manifest in JSON has for a path: what is no UTF-8 stands there as replacement characters."""
    if path in sums:
        return path
    text = path.decode("utf-8", "surrogateescape")
    return "".join("\ufffd" if "\udc80" <= character <= "\udcff" else character for character in text).encode()
