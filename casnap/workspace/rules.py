"""The rules that leave entries out: patterns of ignore files and of settings, and which of them has the last word.

From the strongest to the weakest: what settings exclude, ``.casnapignore`` files (at the root followed by
``casnap.toml`` and ``pyproject.toml``), and with ``use_gitignore`` ``.gitignore`` files and a repository's
``info/exclude``; of two files of one kind the deeper one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from casnap.model.paths import ROOT, split
from casnap.model.policy import Selection

if TYPE_CHECKING:
    from casnap.workspace.patterns import Patterns

CASNAP_FILE = b".casnapignore"
GIT_FILE = b".gitignore"
GIT_EXCLUDE = b".git/info/exclude"
GIT_DIRECTORY = b".git"
CACHE_TAG = b"CACHEDIR.TAG"
MAX_IGNORE_FILE = 64 << 10
"""The longest ignore file that is read, in bytes; what a longer one covers is not known."""

TOML_FILES = (b"casnap.toml", b"pyproject.toml")
"""Files at the root that may hold patterns; the stronger one first."""

Texts = Mapping[bytes, bytes | None]
"""What the ignore files of one directory say, as lines, by their names; None: it cannot be read."""


class Layer(Struct, frozen=True):
    """The patterns of one source, and the directory that they are relative to."""

    base: bytes
    patterns: Patterns

    def verdict(self, path: bytes, *, is_directory: bool) -> bool | None:
        """Whether the entry is ignored (True) or expressly not (False); None when nothing is said of it."""
        below = path[len(self.base) + 1 :] if self.base else path
        return self.patterns.verdict(below, is_directory=is_directory)


class Rules(Struct, frozen=True):
    """The rules in force for the entries of one directory. ``own`` and ``git`` have the deepest file first.

    ``unsure`` says that one of the files at or above cannot be read: what it covers is not known.
    """

    selection: Selection
    excluded: tuple[Layer, ...] = ()
    own: tuple[Layer, ...] = ()
    git: tuple[Layer, ...] = ()
    unsure: bool = False
    _layers: tuple[Layer, ...] = ()

    def __post_init__(self) -> None:
        force_setattr(self, "_layers", (*self.excluded, *self.own, *self.git))

    @classmethod
    def of(cls, selection: Selection) -> Rules:
        """The rules above a workspace's root."""
        return cls(selection, _layers(ROOT, selection.exclude))

    def inside(self, directory: bytes, texts: Texts, *, is_repository: bool) -> Rules:
        """The rules for what is in ``directory``; a repository does not hear the .gitignore files around it."""
        git = () if is_repository else self.git
        if not texts and git == self.git:
            return self
        own = (layer for name in (CASNAP_FILE, *TOML_FILES) for layer in _layers(directory, texts.get(name)))
        return replace(
            self,
            own=(*own, *self.own),
            git=_layers(directory, texts.get(GIT_FILE)) + git + _layers(directory, texts.get(GIT_EXCLUDE)),
            unsure=self.unsure or None in texts.values(),
        )

    def ignores(self, path: bytes, *, is_directory: bool) -> bool:
        """Whether the entry at ``path`` is left out by a pattern; those above it are taken to be captured."""
        if not self.selection.include_git and split(path)[1] == GIT_DIRECTORY:
            return True
        for layer in self._layers:
            verdict = layer.verdict(path, is_directory=is_directory)
            if verdict is not None:
                return verdict
        return False

    def files(self, *, at_root: bool) -> tuple[bytes, ...]:
        """The names of the files that count in a directory."""
        own = (CASNAP_FILE, *TOML_FILES) if at_root else (CASNAP_FILE,)
        return (*own, GIT_FILE) if self.selection.use_gitignore else own


def _layers(base: bytes, text: bytes | None) -> tuple[Layer, ...]:
    if not text:
        return ()
    from casnap.workspace.patterns import Patterns  # here, since many a workspace has none

    patterns = Patterns.parse(text)
    return (Layer(base, patterns),) if patterns else ()
