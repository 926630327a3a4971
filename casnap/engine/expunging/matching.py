"""Which entries of a tree some patterns take out."""

from __future__ import annotations

from collections.abc import Sequence

from casnap.errors import Usage
from casnap.model.paths import join
from casnap.model.tree import Directory, File, Listing, Omitted
from casnap.workspace.omissions import is_in_git
from casnap.workspace.patterns import Patterns
from casnap.workspace.side_files import database_of, may_be_database


class Matcher:
    """Patterns, which match what they would leave out if they stood in a ``.casnapignore`` at the workspace's root."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        """Take patterns, the last one that matches having the last word.

        Raises:
            Usage: there is none in them.
        """
        self.text = b"\n".join(patterns)
        self._patterns = Patterns.parse(self.text)
        if not self._patterns:
            raise Usage("bad pattern: it matches nothing", hint="name what is to be taken out, as in a .gitignore file")

    def sift(self, directory: bytes, listing: Listing) -> tuple[Listing, Listing]:
        """Of the entries in a directory, those that stay and those that go.

        What was never captured stays: it has no bytes, and tells a rollback what to leave alone. Of a git directory no
        part goes, as none is left out. A database's logs go with it, for what it holds may be in them.
        """
        if is_in_git(directory):
            return listing, ()
        going = {
            entry.name
            for entry in listing
            if not isinstance(entry, Omitted)
            and self._patterns.verdict(join(directory, entry.name), is_directory=isinstance(entry, Directory))
        }
        if not going:
            return listing, ()
        databases = {entry.name for entry in listing if entry.name in going and may_be_database(entry)}
        going |= {entry.name for entry in listing if isinstance(entry, File) and database_of(entry.name) in databases}
        stays = tuple(entry for entry in listing if entry.name not in going)
        return stays, tuple(entry for entry in listing if entry.name in going)
