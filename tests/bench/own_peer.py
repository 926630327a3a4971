"""casnap, as one of the programs under test."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from bench.peer import Peer
from bench.process import Command


class Casnap(Peer):
    """The casnap of the Python that runs this."""

    name = "casnap"
    program = str(Path(sys.executable).with_name("casnap"))

    def variables(self) -> dict[str, str]:
        return {"CASNAP_STORE": str(self.store)}

    def begin(self) -> Command:
        return [self.program, "init", "-w", str(self.workspace)]

    def checkpoint(self, label: str) -> Command:
        return [self.program, "checkpoint", "-w", str(self.workspace), "-m", label, "-q"]

    def made(self, label: str, output: str) -> str:
        return output.split()[-1]

    def rollback(self, checkpoint: str) -> Command:
        return [self.program, "rollback", "-w", str(self.workspace), checkpoint, "--yes"]

    def restore(self, checkpoint: str, target: Path) -> Command:
        return [self.program, "restore-to", str(target), checkpoint, "-w", str(self.workspace)]

    def check(self) -> Command:
        return [self.program, "check", "--read-data"]

    def compact(self) -> Command:
        return [self.program, "gc", "--repack"] if _repacks(self.program) else [self.program, "gc"]

    def record(self, workspace: Path, number: int) -> Command:
        return [self.program, "checkpoint", "-w", str(workspace), "-q"]


@cache
def _repacks(program: str) -> bool:
    said = subprocess.run([program, "gc", "--help"], capture_output=True, text=True, check=True).stdout
    return "--repack" in said
