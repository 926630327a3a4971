"""A directory for what is to be gone afterwards, whatever was put into it."""

from __future__ import annotations

import contextlib
import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from casnap.fs.durable import failed

_PRIVATE = 0o700


@contextlib.contextmanager
def scratch_directory(parent: Path, prefix: str) -> Iterator[Path]:
    """A new private directory in ``parent``, which goes with the end of the with block, with all that is in it.

    Raises:
        StorageFailed: it cannot be made, or not be removed.
    """
    try:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    except OSError as error:
        raise failed("create a temporary directory in", parent, error) from error
    try:
        yield path
    finally:
        try:
            remove_tree(path)
        except OSError as error:
            raise failed("remove", path, error) from error


def remove_tree(root: Path) -> None:
    """Remove a directory that is nobody else's, of any depth and with any modes.

    Directories are moved up to ``root`` before they are emptied: no path grows long, and two descriptors are enough.
    """
    top = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        names = (f"removing-{number}" for number in itertools.count())
        _lift(top, top, names)
        while found := os.listdir(top):
            for name in found:
                fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
                try:
                    _lift(fd, top, names)
                finally:
                    os.close(fd)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    root.rmdir()


def _lift(directory: int, top: int, names: Iterator[str]) -> None:
    """Remove what is in ``directory`` but its directories; those come to ``top``, under one of ``names``."""
    for name in os.listdir(directory):
        try:
            os.unlink(name, dir_fd=directory)
        except IsADirectoryError:
            os.chmod(name, _PRIVATE, dir_fd=directory)  # whoever moves a directory must be able to write in it
            os.rename(name, next(names), src_dir_fd=directory, dst_dir_fd=top)
