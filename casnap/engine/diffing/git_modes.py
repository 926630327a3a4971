"""What git's format has words for: regular files with and without the executable bit, and symbolic links.

Directories, special files, other bits of modes, owners, extended attributes and hard links are in the changes
that a diff lists, and not in its patch.
"""

from __future__ import annotations

from casnap.model.change import Aspect, Change
from casnap.model.tree import AnyEntry, Directory, File, Omitted, Symlink

EXECUTABLE = 0o100
_EXECUTABLE_BITS = 0o111
_SILENT = Aspect.OWNER | Aspect.XATTRS | Aspect.LINKS


def git_mode(entry: AnyEntry | None) -> str | None:
    """The mode that git gives an entry; None for what it does not keep."""
    match entry:
        case File():
            return "100755" if entry.mode & EXECUTABLE else "100644"
        case Symlink():
            return "120000"
        case _:
            return None


def is_in_patch(change: Change) -> bool:
    """Whether a patch says anything of a change."""
    old, new = git_mode(change.old), git_mode(change.new)
    return old != new or (old is not None and (Aspect.CONTENT in change.aspects or change.renamed_from is not None))


def is_beyond_patch(change: Change) -> bool:
    """Whether a patch is silent about some of a change; that directories come and go is no news."""
    if any(not isinstance(entry, File | Symlink | Directory | None) for entry in (change.old, change.new)):
        return True
    return bool(change.aspects & _SILENT) or (Aspect.MODE in change.aspects and not _says_mode(change))


def _says_mode(change: Change) -> bool:
    old, new = change.old, change.new
    if old is None or new is None or isinstance(old, Omitted) or isinstance(new, Omitted):
        return False
    return git_mode(old) != git_mode(new) and not (old.mode ^ new.mode) & ~_EXECUTABLE_BITS
