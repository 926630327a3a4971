"""Rows that compare casnap with what nobody can do without: an lstat, a bare Python, itself on a smaller task."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.own_peer import Casnap
from bench.peer import Peer
from bench.places import Place
from bench.process import Command, Run
from bench.turns import Turns
from bench.workloads import Agent

ROWS = ("in-process", "version", "list", "cost-files", "cost-checkpoints")

LSTAT, PYTHON, FEW_FILES, FEW_CHECKPOINTS = "lstat", "python", "a tenth", "10 checkpoints"
"""What stands where the other program stands in the other rows."""

QUICK = 20
"""Runs of what takes milliseconds."""

FEW = 10


class Bare(Peer):
    """A Python that does nothing; the same Python as casnap's."""

    name = PYTHON

    def nothing(self) -> Command:
        """The command that does nothing."""
        return [sys.executable, "-c", "pass"]


class FewFiles(Casnap):
    """casnap in a workspace of a tenth of the files."""

    name = FEW_FILES


class FewCheckpoints(Casnap):
    """casnap with a store of 10 checkpoints."""

    name = FEW_CHECKPOINTS


class OwnRows:
    """casnap in workspaces of its own in ``place``."""

    def __init__(self, turns: Turns, place: Place, repeats: int) -> None:
        self._turns, self._place, self._repeats = turns, place, repeats

    def start(self, rows: Sequence[str], tree: Path, files: list[str]) -> None:
        """``--version``, and ``list`` of ten checkpoints, beside a bare Python."""
        casnap, bare = Casnap(self._place, "start"), Bare(self._place, "bare")
        bare.workspace.mkdir()
        self._prepare(casnap, tree, files, FEW)
        words = {"version": ["--version"], "list": ["list", "-w", str(casnap.workspace)]}
        for row in rows:

            def act(peer: Peer, _turn: int, row: str = row) -> Run:
                return peer.run(bare.nothing() if peer is bare else [casnap.program, *words[row]])

            self._turns.measure(row, (casnap, bare), act, repeats=QUICK)
        casnap.close()
        bare.close()

    def in_process(self, tree: Path, files: list[str]) -> None:
        """``manager.create()`` where nothing has changed, beside one lstat of each file, in one process."""
        casnap = Casnap(self._place, "in-process")
        self._prepare(casnap, tree, files, 1)
        done = casnap.run(_inside("time", casnap, QUICK))
        for peer, seconds in json.loads(done.output).items():
            result = self._turns.result("in-process", peer)
            result.seconds = seconds
            self._turns.keep(result)
        casnap.close()

    def cost_of_files(self, large: tuple[Path, list[str]], small: tuple[Path, list[str]]) -> None:
        """One changed file among all files, beside one among a tenth of them."""
        many, few = Casnap(self._place, "many-files"), FewFiles(self._place, "few-files")
        self._prepare(many, *large, 1)
        self._prepare(few, *small, 1)
        agents = {
            peer.name: Agent(peer.workspace, files, "cost") for peer, files in ((many, large[1]), (few, small[1]))
        }
        self._compare("cost-files", (many, few), agents)

    def cost_of_checkpoints(self, tree: Path, files: list[str], checkpoints: int) -> None:
        """One changed file where the store has so many checkpoints, beside a store with ten."""
        many, few = Casnap(self._place, "many-checkpoints"), FewCheckpoints(self._place, "few-checkpoints")
        self._prepare(many, tree, files, checkpoints)
        self._prepare(few, tree, files, FEW)
        agents = {peer.name: Agent(peer.workspace, files, "cost") for peer in (many, few)}
        self._compare("cost-checkpoints", (many, few), agents)

    def _compare(self, row: str, peers: Sequence[Casnap], agents: dict[str, Agent]) -> None:
        def act(peer: Peer, _turn: int) -> Run:
            peer.place.sync()
            agents[peer.name].change(edit=1, add=0, delete=0)
            return peer.run(peer.checkpoint("one"))

        self._turns.measure(row, peers, act, repeats=2 * self._repeats)
        for peer in peers:
            peer.close()

    def _prepare(self, casnap: Casnap, tree: Path, files: list[str], checkpoints: int) -> None:
        casnap.fill(tree)
        casnap.run(_inside("grow", casnap, checkpoints, files[0]))


def _inside(what: str, casnap: Casnap, number: int, *more: str) -> Command:
    script = Path(__file__).with_name("in_process.py")
    return [sys.executable, str(script), what, str(casnap.workspace), str(number), *more]
