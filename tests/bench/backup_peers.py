"""Programs for backups: restic, borg, bup and casync."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from shlex import quote

from bench.peer import Peer, emptied
from bench.process import Command


class Restic(Peer):
    """restic; where its restore cannot take away what was added, the workspace is emptied first."""

    name = "restic"
    program = "restic"
    note = (
        "encrypted, as it always is; its own cache is on; rollback: `restore --delete` where it has that, else empties"
    )

    @classmethod
    def version(cls) -> str:
        return subprocess.run(["restic", "version"], capture_output=True, text=True, check=True).stdout.strip()

    def variables(self) -> dict[str, str]:
        return {
            "RESTIC_REPOSITORY": f"{self.store}/repository",
            "RESTIC_PASSWORD": "bench",
            "RESTIC_CACHE_DIR": f"{self.home}/cache",
        }

    def begin(self) -> Command:
        return ["restic", "init", "-q"]

    def checkpoint(self, label: str) -> Command:
        return ["restic", "backup", "--host", "bench", "--tag", label, "."]

    def made(self, label: str, output: str) -> str:
        return str(re.findall(r"snapshot ([0-9a-f]{8,}) saved", output)[-1])

    def rollback(self, checkpoint: str) -> Command:
        target = str(self.workspace)
        if _restic_deletes():
            return ["restic", "restore", checkpoint, "--target", target, "--delete", "--overwrite", "if-changed", "-q"]
        return f"{emptied(self.workspace)} && exec restic restore {checkpoint} --target {quote(target)} -q"

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["restic", "restore", checkpoint, "--target", str(target), "-q"]

    def check(self) -> Command:
        return ["restic", "check", "--read-data", "-q"]

    def compact(self) -> Command:
        return ["restic", "prune", "-q"]

    def record(self, workspace: Path, number: int) -> Command:
        return f"cd {quote(str(workspace))} && exec restic backup -q --host copy{number} ."


@cache
def _restic_deletes() -> bool:
    said = subprocess.run(["restic", "restore", "--help"], capture_output=True, text=True, check=True).stdout
    return "--delete" in said


class Borg(Peer):
    """borg without encryption; it has no restore in place."""

    name = "borg"
    program = "borg"
    note = "not encrypted, zstd level 3; rollback: empties the workspace and extracts"

    def variables(self) -> dict[str, str]:
        return {
            "BORG_REPO": f"{self.store}/repository",
            "BORG_BASE_DIR": str(self.home),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
            "BORG_RELOCATED_REPO_ACCESS_IS_OK": "yes",
        }

    def begin(self) -> Command:
        return ["borg", "init", "-e", "none"]

    def checkpoint(self, label: str) -> Command:
        return ["borg", "create", "-C", "zstd,3", f"::{label}", "."]

    def rollback(self, checkpoint: str) -> Command:
        return f"{emptied(self.workspace)} && exec borg extract ::{checkpoint}"

    def restore(self, checkpoint: str, target: Path) -> Command:
        return f"cd {quote(str(target))} && exec borg extract ::{checkpoint}"

    def check(self) -> Command:
        return ["borg", "check", "--verify-data"]

    def compact(self) -> Command:
        return ["borg", "compact"]

    def record(self, workspace: Path, number: int) -> Command:
        return f"cd {quote(str(workspace))} && exec borg create -C zstd,3 ::copy{number} ."


class Bup(Peer):
    """bup; it has no restore in place, and names its versions by the second, so that the newest is taken."""

    name = "bup"
    program = "bup"
    note = "`bup index` and `bup save`; rollback: empties the workspace and restores; checked by `git fsck --full`"

    def variables(self) -> dict[str, str]:
        return {"BUP_DIR": f"{self.store}/repository", "GIT_CONFIG_NOSYSTEM": "1"}

    def begin(self) -> Command:
        return ["bup", "init"]

    def checkpoint(self, label: str) -> Command:
        return self._save(self.workspace, "main")

    def rollback(self, checkpoint: str) -> Command:
        target = quote(str(self.workspace))
        return f"{emptied(self.workspace)} && exec bup restore -q -C {target} main/latest/."

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["bup", "restore", "-q", "-C", str(target), "main/latest/."]

    def check(self) -> Command:
        repository = f"{self.store}/repository"
        return ["git", "--git-dir", repository, "fsck", "--full", "--no-progress", "--no-dangling"]

    def record(self, workspace: Path, number: int) -> Command:
        return self._save(workspace, f"copy{number}")

    def _save(self, workspace: Path, branch: str) -> Command:
        place = quote(str(workspace))
        return f"bup index -u {place} && exec bup save -q -n {branch} --strip {place}"


class Casync(Peer):
    """casync with a chunk store and one index a version."""

    name = "casync"
    program = "casync"
    note = "its `--cache` is off: archives made with it after an edit could not be extracted; it has no check"

    def begin(self) -> Command:
        return ["mkdir", "-p", f"{self.store}/chunks.castr", f"{self.store}/versions"]

    def checkpoint(self, label: str) -> Command:
        return self._make(self.workspace, label)

    def rollback(self, checkpoint: str) -> Command:
        return self.restore(checkpoint, self.workspace)  # an extraction takes away what the archive has not

    def restore(self, checkpoint: str, target: Path) -> Command:
        return ["casync", "extract", "--with=unix", self._chunks, self._version(checkpoint), str(target)]

    def compact(self) -> Command:
        return f"casync gc {quote(self._chunks)} {quote(str(self.store))}/versions/*.caidx"

    def record(self, workspace: Path, number: int) -> Command:
        return self._make(workspace, f"copy{number}")

    def _make(self, workspace: Path, label: str) -> Command:
        return ["casync", "make", "--with=unix", self._chunks, self._version(label), str(workspace)]

    @property
    def _chunks(self) -> str:
        return f"--store={self.store}/chunks.castr"

    def _version(self, label: str) -> str:
        return f"{self.store}/versions/{label}.caidx"
