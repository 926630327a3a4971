"""Real agents, installed by name and version, in a home of their own; and what each of them must show."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.cli import Result

PATIENCE = 240

SHOWN = 4000


def fetched(cache: Path, package: str, version: str) -> Path:
    """An npm package, unpacked and not built."""
    place = cache / f"{package.replace('/', '-').lstrip('@')}-{version}"
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            command = ["npm", "pack", f"{package}@{version}", "--silent"]
            name = subprocess.run(command, cwd=scratch, check=True, capture_output=True, text=True).stdout.split()[-1]
            subprocess.run(["tar", "xzf", name], cwd=scratch, check=True)
            os.rename(Path(scratch) / "package", place)
    return place


class Machine:
    """A home with a workspace, and nothing else of whoever runs the tests."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.workspace = self.home / "ws"
        (self.workspace / ".git").mkdir(parents=True)
        (self.workspace / "old.txt").write_text("old\n")
        (self.workspace / "kept.txt").write_text("kept\n")
        self.environ = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "TERM": "dumb",
            "LANG": "C.UTF-8",
            "TMPDIR": str(root / "tmp"),
            "CASNAP_STORE": str(root / "store"),
        }
        (root / "tmp").mkdir()

    def run(
        self, *words: str | Path, env: Mapping[str, str] | None = None, cwd: Path | None = None, check: int = 0
    ) -> Result:
        command = [str(word) for word in words]
        done = subprocess.run(
            command,
            cwd=cwd or self.workspace,
            env={**self.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        out, err = (stream.decode("utf-8", "backslashreplace") for stream in (done.stdout, done.stderr))
        assert done.returncode == check, f"{command}: {done.returncode}\n{out[-SHOWN:]}\n{err[-SHOWN:]}"
        return Result(tuple(command), done.returncode, out, err)

    def casnap(self, *words: str, env: Mapping[str, str] | None = None, check: int = 0) -> Result:
        return self.run(Path(sys.executable).parent / "casnap", *words, env=env, check=check)

    def checkpoints(self) -> list[dict[str, Any]]:
        """Oldest first."""
        found: list[dict[str, Any]] = self.casnap("list", "--reverse", "--json").json()["checkpoints"]
        return found

    def files(self) -> dict[str, str]:
        """What is in the workspace."""
        return {
            path.relative_to(self.workspace).as_posix(): path.read_text()
            for path in sorted(self.workspace.rglob("*"))
            if path.is_file()
        }


def configuration(directory: Path, *patterns: str) -> dict[str, bytes]:
    """The bytes of an agent's configuration files."""
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for pattern in patterns
        for path in sorted(directory.glob(pattern))
        if path.is_file()
    }


BEFORE = {"old.txt": "old\n", "kept.txt": "kept\n"}
AFTER = {"old.txt": "new\n", "kept.txt": "kept\n", "made.txt": "made\n"}


def require_turn(machine: Machine, agent: str, first: str = "before the turn", last: str = "after the turn") -> None:
    """What every agent must show: a checkpoint from before its turn, one from after it, and the way back and forth.

    ``first`` and ``last`` are what these two say.
    """
    assert machine.files() == AFTER
    found = machine.checkpoints()
    assert (found[0]["message"], found[-1]["message"]) == (first, last)
    assert {one["origin"]["agent"] for one in found} == {agent}
    assert all(one["origin"]["session"] for one in found)
    trees = [
        {name: machine.casnap("cat", one["id"], name).stdout for name in manifest(machine, one["id"])} for one in found
    ]
    assert trees[0] == BEFORE
    assert trees[-1] == AFTER
    machine.casnap("rollback", found[0]["id"])
    assert machine.files() == BEFORE
    machine.casnap("undo")
    assert machine.files() == AFTER
    assert not [line for line in machine.casnap("status").stderr.splitlines() if line.startswith("warning")]


def manifest(machine: Machine, revision: str) -> list[str]:
    return [line.partition("  ")[2] for line in machine.casnap("manifest", revision).stdout.splitlines()]
