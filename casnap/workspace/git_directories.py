"""Git directories that change while they are captured: refs and the objects that they name must fit together.

``git pack-refs`` writes a ref into ``packed-refs`` and then removes its file. Whoever looks at the one before and at
the other after has lost the ref.
"""

from __future__ import annotations

import os
from collections import Counter

from casnap.fs.directories import Directories
from casnap.model.paths import join
from casnap.workspace.found import FoundDirectory
from casnap.workspace.lister import TRIES
from casnap.workspace.omissions import GIT_OBJECTS
from casnap.workspace.walk import GIT_AT_WORK, Walk

_HEAD, _REFS, _PACKED_REFS = b"HEAD", b"refs", b"packed-refs"


class GitDirectories:
    """The git directories of one scan, repositories of submodules included."""

    def __init__(self, directories: Directories, walk: Walk) -> None:
        self._directories = directories
        self._walk = walk
        self._tries: Counter[bytes] = Counter()

    def settle(self) -> bool:
        """Have refs and objects walked again where refs have been packed since; whether there is any such place."""
        moved = [found for found in self._walk.found.values() if self._has_moved(found)]
        again = False
        for found in moved:
            self._tries[found.path] += 1
            if self._tries[found.path] > TRIES:
                found.findings.problems[found.path] = GIT_AT_WORK
                continue
            again = True
            self._walk.look_anew(found, _PACKED_REFS)
            for name in (GIT_OBJECTS, _REFS):  # the last is walked first
                if join(found.path, name) in self._walk.found:
                    self._walk.walk_anew(join(found.path, name))
        return again

    def _has_moved(self, found: FoundDirectory) -> bool:
        if not found.is_git_root or _HEAD not in found.signatures or _REFS not in found.signatures:
            return False
        seen = found.signatures.get(_PACKED_REFS)
        try:
            now = os.lstat(_PACKED_REFS, dir_fd=self._directories.fd(found.path))
        except OSError:
            return seen is not None
        return seen is None or not seen.matches(now)
