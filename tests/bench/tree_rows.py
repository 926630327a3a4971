"""Rows about one tree: first checkpoint, nothing changed, ten files changed, rollback, restore, check."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from bench.peer import Peer
from bench.process import Failed, Run
from bench.turns import LARGE, Turns, whole_runs
from bench.workloads import Agent

ROWS = ("first", "unchanged", "changed", "rollback", "restore", "check")

Contents = dict[str, tuple[str, bool, str]]


class TreeRows:
    """Each program has a copy of ``tree``, a store, and an agent that makes the same edits for all."""

    def __init__(self, turns: Turns, peers: Sequence[Peer], tree: Path, files: list[str], repeats: int) -> None:
        self._turns, self._peers, self._repeats = turns, list(peers), repeats
        self._whole = whole_runs(repeats, len(files))
        self._large = len(files) > LARGE
        self._newest: dict[str, str] = {}
        self._number = 0
        for peer in peers:
            peer.fill(tree)
        self._agents = {peer.name: Agent(peer.workspace, files, "tree rows") for peer in peers}

    def measure(self, rows: Sequence[str]) -> None:
        """Measure those of :data:`ROWS` that are wanted."""
        if "first" in rows:
            self._peers = self._turns.measure("first", self._peers, self._first, repeats=self._whole, warm=False)
        else:
            for peer in self._peers:
                self._first(peer, 0)
        for row, act in (("unchanged", self._checkpoint), ("changed", self._changed)):
            if row in rows:
                able = [peer for peer in self._peers if not (peer.whole and self._large)]
                self._turns.measure(row, able, act, repeats=self._repeats)
        if "rollback" in rows:
            able = [peer for peer in self._peers if peer.rollback("") is not None]
            self._turns.measure("rollback", able, self._rollback, repeats=self._repeats)
        if "restore" in rows:
            able = [peer for peer in self._peers if peer.restore("", Path()) is not None]
            self._turns.measure("restore", able, self._restore, repeats=self._whole, warm=False)
        if "check" in rows:
            able = [peer for peer in self._peers if peer.check() is not None]
            self._turns.measure("check", able, self._check, repeats=self._whole, warm=False)

    def _first(self, peer: Peer, turn: int) -> Run:
        peer.empty()
        if (begin := peer.begin()) is not None:
            peer.run(begin)
        peer.place.sync()
        return self._checkpoint(peer, turn)

    def _checkpoint(self, peer: Peer, _turn: int) -> Run:
        self._number += 1
        label = f"v{self._number}"
        done = peer.run(peer.checkpoint(label))
        self._newest[peer.name] = peer.made(label, done.output)
        return done

    def _changed(self, peer: Peer, turn: int) -> Run:
        peer.place.sync()
        self._agents[peer.name].change()
        return self._checkpoint(peer, turn)

    def _rollback(self, peer: Peer, turn: int) -> Run:
        agent = self._agents[peer.name]
        before = contents(peer) if turn == 0 else None
        files = list(agent.files)
        peer.place.sync()
        agent.change()
        agent.files = files
        command = peer.rollback(self._newest[peer.name])
        assert command is not None
        done = peer.run(command)
        if before is not None:
            self._compare("rollback", peer, before, contents(peer))
        return done

    def _restore(self, peer: Peer, turn: int) -> Run:
        target = peer.room / "restored"
        target.mkdir()
        peer.place.sync()
        command = peer.restore(self._newest[peer.name], target)
        assert command is not None
        done = peer.run(command)
        if turn == 0:
            self._compare("restore", peer, contents(peer), contents(peer, target))
        peer.place.discard(target)
        return done

    def _compare(self, row: str, peer: Peer, expected: Contents, found: Contents) -> None:
        wrong = sum(expected.get(path) != found.get(path) for path in expected.keys() | found.keys())
        if wrong:
            raise Failed(f"{row}: {wrong} paths are not as they should be")

    def _check(self, peer: Peer, _turn: int) -> Run:
        command = peer.check()
        assert command is not None
        return peer.run(command)


def contents(peer: Peer, root: Path | None = None) -> Contents:
    """Kind, executable bit and content of all but directories: what every program keeps, as git keeps no more."""
    top = peer.workspace if root is None else root
    found: Contents = {}
    for directory, inner, names in os.walk(top):
        inner[:] = [name for name in inner if name not in peer.inside]
        for name in names:
            path = Path(directory) / name
            if path.is_symlink():
                found[str(path.relative_to(top))] = ("link", False, os.readlink(path))
            else:
                executable = bool(path.stat().st_mode & 0o100)
                digest = hashlib.blake2b(path.read_bytes()).hexdigest()
                found[str(path.relative_to(top))] = ("file", executable, digest)
    return found
