"""What a stat says about an entry, and when an equal one proves that nothing has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from casnap.fs.directories import Directories
from casnap.model.paths import split
from casnap.model.tree import NANOSECONDS

if TYPE_CHECKING:
    from casnap.model.clock import Clock

MARGIN = 20_000_000
"""Nanoseconds by which stamps must be past: two changes within one tick of the kernel's clock look alike."""

COARSE_MARGIN = 2_100_000_000
"""The same where stamps are whole seconds (FAT counts in twos)."""

REMOTE_MARGIN = 2.0
"""Seconds that must go by where a server makes the stamps, since its clock is not ours."""

_NETWORK = frozenset({"afs", "ceph", "cifs", "coda", "davfs", "lustre", "ncpfs", "nfs", "nfs4", "smb3", "smbfs"})
_CLUSTER = frozenset({"beegfs", "gfs2", "glusterfs", "gpfs", "ocfs2", "orangefs"})
_GUEST = frozenset({"9p", "prl_fs", "vboxsf", "virtiofs", "vmhgfs"})
_FUSE = frozenset({"fuse", "fuseblk"})
_REMOTE = _NETWORK | _CLUSTER | _GUEST | _FUSE
_SIGNED_64 = 1 << 63


class Signature(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What lstat says about an entry; ``mode`` is the whole ``st_mode``, times are in nanoseconds."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int
    nlink: int

    def matches(self, status: os.stat_result) -> bool:
        """Whether ``status`` shows the same state of the same file.

        Device numbers do not count: many file systems get another one at each mount.
        """
        return (
            self.mtime_ns == status.st_mtime_ns
            and self.ctime_ns == status.st_ctime_ns
            and self.size == status.st_size
            and self.inode == status.st_ino
            and self.mode == status.st_mode
        )

    @property
    def storable(self) -> bool:
        """Whether the times fit into 64 bits, with a sign; some file systems go beyond."""
        return -_SIGNED_64 <= self.mtime_ns < _SIGNED_64 and -_SIGNED_64 <= self.ctime_ns < _SIGNED_64


def signature_of(status: os.stat_result) -> Signature:
    """The signature that a stat gives."""
    return Signature(
        status.st_mode,
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
        status.st_nlink,
    )


def looker(directories: Directories) -> Callable[[bytes], Signature | None]:
    """What tells how a path of a workspace looks now; None where nothing is."""

    def look(path: bytes) -> Signature | None:
        parent, name = split(path)
        try:
            return signature_of(os.lstat(name, dir_fd=directories.fd(parent)))
        except OSError:
            return None

    return look


class Settling:
    """Says how long a state must have stood before it can be told from a later one by its signature.

    With a ``remote`` file system stamps are not compared with the clock: only waiting helps, and waiting is
    remembered by whoever waited.
    """

    def __init__(self, clock: Clock, *file_systems: str) -> None:
        self._clock = clock
        self._past = clock.now() - COARSE_MARGIN
        self.remote = any(kind in _REMOTE or kind.startswith("fuse.") for kind in file_systems)

    def settled(self, signature: Signature) -> bool:
        """Whether a change from now on is bound to give another signature."""
        if self.remote:
            return False
        if signature.mtime_ns <= self._past and signature.ctime_ns <= self._past:  # then, and so now
            return True
        return self.remaining(signature) <= 0

    def remaining(self, signature: Signature) -> int:
        """Nanoseconds until the stamps are past by the margin; 0 or less when they are.

        A stamp that lies further ahead than the margin was set by hand: a change would move it back.
        """
        now = self._clock.now()
        coarse = signature.mtime_ns % NANOSECONDS == 0 and signature.ctime_ns % NANOSECONDS == 0
        margin = COARSE_MARGIN if coarse else MARGIN
        ages = (now - signature.mtime_ns, now - signature.ctime_ns)
        return max((margin - age for age in ages if age > -margin), default=0)

    def wait(self, signatures: list[Signature]) -> None:
        """Wait once, until all of these have settled."""
        if self.remote:
            self._clock.sleep(REMOTE_MARGIN)
        elif (longest := max(map(self.remaining, signatures), default=0)) > 0:
            self._clock.sleep(longest / NANOSECONDS)
