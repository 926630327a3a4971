"""Programs that keep whole directories: plain copies, hard links, and the snapshots of a file system."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from shlex import quote

from bench.peer import Peer, Stored
from bench.places import Place
from bench.process import Command, Run, environment, run


class Copy(Peer):
    """A full copy for each version."""

    name = "cp"
    program = "cp"
    note = "`cp -a` for each version; rollback by `rsync -a --delete`"
    whole = True

    def checkpoint(self, label: str) -> Command:
        return ["cp", "-a", str(self.workspace), f"{self.store}/{label}"]

    def rollback(self, checkpoint: str) -> Command | None:
        if shutil.which("rsync") is None:
            return None
        return ["rsync", "-a", "--delete", f"{self.store}/{checkpoint}/", f"{self.workspace}/"]

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["cp", "-a", f"{self.store}/{checkpoint}/.", str(target)]

    def record(self, workspace: Path, number: int) -> Command:
        return ["cp", "-a", str(workspace), f"{self.store}/copy{number}"]


class Rsync(Peer):
    """A directory for each version, with hard links to the one before."""

    name = "rsync"
    program = "rsync"
    note = "`rsync -a --link-dest` to the version before"

    def __init__(self, place: Place, room: str) -> None:
        super().__init__(place, room)
        self._before: str | None = None

    def empty(self) -> None:
        super().empty()
        self._before = None

    def checkpoint(self, label: str) -> Command:
        return self._copy(self.workspace, label)

    def rollback(self, checkpoint: str) -> Command:
        return ["rsync", "-a", "--delete", f"{self.store}/{checkpoint}/", f"{self.workspace}/"]

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["rsync", "-a", f"{self.store}/{checkpoint}/", f"{target}/"]

    def record(self, workspace: Path, number: int) -> Command:
        return self._copy(workspace, f"copy{number}")

    def _copy(self, source: Path, label: str) -> Command:
        linked = [] if self._before is None else [f"--link-dest=../{self._before}"]
        self._before = label
        return ["rsync", "-a", *linked, f"{source}/", f"{self.store}/{label}/"]


class Btrfs(Peer):
    """Snapshots of a subvolume; the room must be on a btrfs."""

    name = "btrfs"
    program = "btrfs"
    note = "read-only snapshots of a subvolume on a loop image; its size is that of the whole file system"

    @classmethod
    def installed(cls) -> bool:
        return super().installed() and shutil.which("mkfs.btrfs") is not None and os.geteuid() == 0

    def run(self, command: Command) -> Run:
        """Run it from outside: the workspace is replaced by a rollback."""
        return run(command, cwd=self.room, env=environment(self.home, {}))

    def fill(self, tree: Path) -> None:
        subprocess.run(["btrfs", "-q", "subvolume", "create", str(self.workspace)], check=True)
        shutil.copytree(tree, self.workspace, symlinks=True, dirs_exist_ok=True)

    def empty(self) -> None:
        for snapshot in self.store.iterdir():
            subprocess.run(["btrfs", "-q", "subvolume", "delete", str(snapshot)], check=True)

    def close(self) -> None:
        """Nothing is to be done: the image goes as a whole."""

    def stored(self) -> Stored:
        subprocess.run(["btrfs", "-q", "filesystem", "sync", str(self.room)], check=True)
        whole = os.statvfs(self.room)
        used = (whole.f_blocks - whole.f_bfree) * whole.f_frsize
        return Stored(used, used)

    def checkpoint(self, label: str) -> Command:
        return ["btrfs", "-q", "subvolume", "snapshot", "-r", str(self.workspace), f"{self.store}/{label}"]

    def rollback(self, checkpoint: str) -> Command:
        workspace, snapshot = quote(str(self.workspace)), quote(f"{self.store}/{checkpoint}")
        return f"btrfs -q subvolume delete {workspace} && exec btrfs -q subvolume snapshot {snapshot} {workspace}"

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["cp", "-a", "--reflink=auto", f"{self.store}/{checkpoint}/.", str(target)]

    def check(self) -> Command:
        return ["btrfs", "-q", "scrub", "start", "-B", str(self.room)]
