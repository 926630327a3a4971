"""The programs under test, in the order in which they take turns."""

from __future__ import annotations

from bench.backup_peers import Borg, Bup, Casync, Restic
from bench.copy_peers import Btrfs, Copy, Rsync
from bench.git_peers import Git, GitManyFiles, Jujutsu
from bench.own_peer import Casnap
from bench.peer import Peer

PEERS: tuple[type[Peer], ...] = (
    Casnap,
    Git,
    GitManyFiles,
    Jujutsu,
    Restic,
    Borg,
    Bup,
    Casync,
    Rsync,
    Copy,
    Btrfs,
)

AT_ANY_SIZE = ("casnap", "git", "git-manyfiles", "jj", "restic", "borg", "cp")
"""Those that are also run on large trees; the others have no goal there."""
