"""The ignore rules of a checkpoint, as far as its tree and its record tell them."""

from __future__ import annotations

from collections.abc import Iterable

from casnap.engine.compare import TreeView
from casnap.errors import Damage
from casnap.model.change import Change
from casnap.model.paths import ROOT, components, join, split
from casnap.model.policy import Sensitive
from casnap.model.tree import AnyEntry, Directory, File
from casnap.workspace.omissions import is_in_git
from casnap.workspace.recording import parse_rules
from casnap.workspace.rules import CACHE_TAG, GIT_DIRECTORY, GIT_EXCLUDE, MAX_IGNORE_FILE, TOML_FILES, Rules

RULES_DIFFER = "the ignore rules have changed since head"


def rules_differ(then: TreeView, now: TreeView, changes: Iterable[Change]) -> bool:
    """Whether other ignore rules hold now than when a checkpoint was made; ``changes`` lead from one to the other."""
    names = Rules.of(parse_rules(now.rules).selection).files(at_root=False)
    return then.rules != now.rules or any(split(change.path)[1] in names for change in changes)


class TargetRules:
    """Says of paths that a checkpoint does not hold whether its rules are the reason."""

    def __init__(self, target: TreeView) -> None:
        self.target = target
        self.recorded = parse_rules(target.rules)
        self._known: dict[bytes, Rules] = {}

    def of(self, directory: bytes) -> Rules:
        """The rules for what is in a directory; for one that the checkpoint does not hold, those around it."""
        if directory not in self._known:
            above = Rules.of(self.recorded.selection) if directory == ROOT else self.of(split(directory)[0])
            self._known[directory] = self._inside(directory, above)
        return self._known[directory]

    def _inside(self, directory: bytes, above: Rules) -> Rules:
        held = self.target.entry(directory)
        if not isinstance(held, Directory) or is_in_git(directory):
            return above
        names = above.files(at_root=directory == ROOT)
        names += (GIT_EXCLUDE, CACHE_TAG) if above.selection.use_gitignore else (CACHE_TAG,)
        texts = {name: self._text(join(directory, name)) for name in names}
        repository = directory != ROOT and GIT_DIRECTORY in self.target.entries(held.tree)
        said = {name: text for name, text in texts.items() if text != b""}
        return above.inside(directory, said, is_repository=repository)

    def _text(self, path: bytes) -> bytes | None:
        if path in self.recorded.texts:
            return self.recorded.texts[path]
        entry = self.target.entry(path)
        if not isinstance(entry, File) or split(path)[1] == CACHE_TAG or path in TOML_FILES:
            return b""  # what the last two say is recorded
        if entry.size > MAX_IGNORE_FILE:
            return None
        try:
            from casnap.engine.content import pieces  # here, since most look at no rules but their own

            return b"".join(pieces(self.target.source, entry))
        except Damage:
            return None

    def ignored_top(self, path: bytes, entry: AnyEntry | None) -> bytes | None:
        """The highest directory at or above ``path`` that the rules leave out, or ``path`` itself, or None.

        ``path`` is one that the checkpoint does not hold, ``entry`` what stands there now.
        """
        parts = components(path)
        for depth in range(1, len(parts)):
            above = b"/".join(parts[:depth])
            if self.target.entry(above) is None and self._leaves_out(above, is_directory=True):
                return above
        if self._leaves_out(path, is_directory=isinstance(entry, Directory)):
            return path
        return path if self._is_too_large(path, entry) or self._is_skipped(path, entry) else None

    def _leaves_out(self, path: bytes, *, is_directory: bool) -> bool:
        directory = split(path)[0]
        return not is_in_git(directory) and self.of(directory).ignores(path, is_directory=is_directory)

    def _is_too_large(self, path: bytes, entry: AnyEntry | None) -> bool:
        limit = self.recorded.selection.max_file_size
        return limit is not None and isinstance(entry, File) and entry.size > limit and not is_in_git(path)

    def _is_skipped(self, path: bytes, entry: AnyEntry | None) -> bool:
        selection = self.recorded.selection
        skips = selection.sensitive is Sensitive.SKIP and isinstance(entry, File) and not is_in_git(path)
        return skips and selection.is_sensitive(split(path)[1])
