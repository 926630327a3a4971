"""A real store and workspace, driven by random verbs and edits, against a model of plain dicts."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from casnap import CheckpointManager, NotFound, Refused
from support.model import (
    Dir,
    History,
    Inode,
    Link,
    Node,
    Point,
    Tree,
    below,
    clone,
    limited,
    shape,
    shape_on_disk,
)
from support.oracle import snapshot

NAMES = st.sampled_from([b"a", b"b", b"c.txt", b"\xff", "ü".encode(), b"-n", b"sp ace"])
CONTENTS = st.one_of(st.sampled_from([b"", b"one", b"two", b"six"]), st.integers(0, 3).map(lambda n: bytes([n]) * 5000))
FILE_MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444])
DIR_MODES = st.sampled_from([0o755, 0o700, 0o775])
PICK = st.integers(0, 10_000)


class Machine(RuleBasedStateMachine):
    """``tree`` is what the workspace must hold; ``history`` what the catalog must say."""

    @initialize()
    def start(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="casnap-machine-"))
        self.root = os.fsencode(self.place / "workspace")
        os.mkdir(self.root, 0o755)
        self.tree: Tree = {b"": Dir(0o755)}
        self.history = History()
        self.open()

    def open(self) -> None:
        self.manager = CheckpointManager(os.fsdecode(self.root), store=str(self.place / "store"))

    def teardown(self) -> None:
        if hasattr(self, "place"):
            self.manager.close()
            shutil.rmtree(self.place)

    # -- edits ---------------------------------------------------------------------------------------------

    def absolute(self, path: bytes) -> bytes:
        return self.root + b"/" + path

    def pick(self, number: int, *kinds: type, root: bool = False) -> bytes | None:
        paths = sorted(path for path, node in self.tree.items() if isinstance(node, kinds) and (path or root))
        return paths[number % len(paths)] if paths else None

    def new_path(self, number: int, name: bytes) -> bytes:
        directory = self.pick(number, Dir, root=True)
        return directory + b"/" + name if directory else name

    def remove(self, path: bytes) -> None:
        absolute = self.absolute(path)
        if isinstance(self.tree.get(path), Dir):
            shutil.rmtree(absolute)
        elif path in self.tree:
            os.unlink(absolute)
        for gone in below(self.tree, path):
            del self.tree[gone]

    def make(self, path: bytes, node: Node) -> None:
        self.remove(path)
        absolute = self.absolute(path)
        match node:
            case Inode(content, mode):
                with open(absolute, "xb") as file:
                    file.write(content)
                os.chmod(absolute, mode)
            case Dir(mode):
                os.mkdir(absolute)
                os.chmod(absolute, mode)
            case Link(target):
                os.symlink(target, absolute)
        self.tree[path] = node

    @rule(at=PICK, name=NAMES, content=CONTENTS, mode=FILE_MODES)
    def write_new(self, at: int, name: bytes, content: bytes, mode: int) -> None:
        self.make(self.new_path(at, name), Inode(content, mode))

    @rule(at=PICK, name=NAMES, mode=DIR_MODES)
    def make_directory(self, at: int, name: bytes, mode: int) -> None:
        self.make(self.new_path(at, name), Dir(mode))

    @rule(at=PICK, name=NAMES, to=st.sampled_from([b"a", b"../a", b"/etc", b"nowhere", b"."]))
    def make_link(self, at: int, name: bytes, to: bytes) -> None:
        self.make(self.new_path(at, name), Link(to))

    @rule(at=PICK, content=CONTENTS)
    def write_in_place(self, at: int, content: bytes) -> None:
        path = self.pick(at, Inode)
        if path is not None:
            with open(self.absolute(path), "r+b") as file:
                file.truncate()
                file.write(content)
            self.tree[path].content = content  # type: ignore[union-attr]

    @rule(at=PICK, mode=FILE_MODES)
    def change_file_mode(self, at: int, mode: int) -> None:
        path = self.pick(at, Inode)
        if path is not None:
            os.chmod(self.absolute(path), mode)
            self.tree[path].mode = mode  # type: ignore[union-attr]

    @rule(at=PICK, mode=DIR_MODES)
    def change_directory_mode(self, at: int, mode: int) -> None:
        path = self.pick(at, Dir, root=True)
        assert path is not None
        os.chmod(self.absolute(path), mode)
        self.tree[path] = Dir(mode)

    @rule(at=PICK, to=PICK, name=NAMES)
    def link_hard(self, at: int, to: int, name: bytes) -> None:
        source, target = self.pick(at, Inode), self.new_path(to, name)
        if source is not None and source not in below(self.tree, target):
            self.remove(target)
            os.link(self.absolute(source), self.absolute(target))
            self.tree[target] = self.tree[source]

    @rule(at=PICK)
    def delete_path(self, at: int) -> None:
        path = self.pick(at, Inode, Dir, Link)
        if path is not None:
            self.remove(path)

    @rule(at=PICK, to=PICK, name=NAMES)
    def rename(self, at: int, to: int, name: bytes) -> None:
        source, target = self.pick(at, Inode, Dir, Link), self.new_path(to, name)
        if source is None or (target + b"/").startswith(source + b"/") or source in below(self.tree, target):
            return
        self.remove(target)
        os.rename(self.absolute(source), self.absolute(target))
        for path in below(self.tree, source):
            self.tree[target + path[len(source) :]] = self.tree.pop(path)

    # -- verbs ---------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from([None, None, "red", "green", "blau/grün"]))
    def make_checkpoint(self, name: str | None) -> None:
        self.checkpoint(name)

    def checkpoint(self, name: str | None) -> None:
        taken = any(point.name == name and not point.deleted for point in self.history.points.values())
        if name is not None and taken:
            try:
                self.manager.create(name)
            except Refused:
                return
            raise AssertionError("a taken name was accepted")
        made = self.manager.create(name)
        self.history.last_step += 1
        assert made.step == self.history.last_step
        assert made.name == name or made.automatic
        self.history.points[made.id] = Point(made.id, clone(self.tree), made.step, made.name, self.history.head)
        self.history.head = made.id

    def live_points(self) -> list[Point]:
        return self.history.listed()

    @precondition(lambda self: self.history.points)
    @rule(at=PICK, how=st.sampled_from(["name", "id", "prefix", "step"]))
    def rollback(self, at: int, how: str) -> None:
        points = self.live_points()
        if not points:
            return
        point = points[at % len(points)]
        revision = {"name": point.name, "id": point.id, "prefix": point.id[:12], "step": point.step}[how]
        report = self.manager.rollback(revision)
        self.after(report, point.tree, point.id)

    @precondition(lambda self: self.history.head)
    @rule(count=st.integers(0, 3))
    def rollback_by_ancestors(self, count: int) -> None:
        id = self.history.ancestor(count)
        if id is None:
            try:
                self.manager.rollback(n=count)
            except NotFound:
                return
            raise AssertionError("a rollback beyond the history was accepted")
        self.after(self.manager.rollback(n=count), self.history.points[id].tree, id)

    @precondition(lambda self: self.history.head)
    @rule(at=PICK, path_at=PICK)
    def rollback_one_path(self, at: int, path_at: int) -> None:
        points = self.live_points()
        if not points:
            return
        target = points[at % len(points)]
        known = sorted((self.tree.keys() | target.tree.keys()) - {b""})
        if not known:
            return
        path = known[path_at % len(known)]
        for tree in (self.tree, target.tree):  # names on both sides of the limit may end up either way
            inside = {id(tree[p]) for p in below(tree, path) if isinstance(tree[p], Inode)}
            outside = {id(n) for p, n in tree.items() if isinstance(n, Inode) and p not in below(tree, path)}
            if inside & outside:
                return
        report = self.manager.rollback(target.id, paths=[path])
        self.after(report, limited(self.tree, clone(target.tree), path), self.history.head)

    def after(self, report: object, tree: Tree, head: str | None) -> None:
        assert report.complete, report.left_alone  # type: ignore[attr-defined]
        if report.safety is not None:  # type: ignore[attr-defined]
            self.history.undo = (clone(self.tree), self.history.head)
            safety = report.safety  # type: ignore[attr-defined]
            if safety.safety and safety.id not in self.history.points:
                self.history.points[safety.id] = Point(safety.id, clone(self.tree), 0, None, self.history.head)
        else:
            assert shape(tree) == shape(self.tree)
            assert head == self.history.head
        self.tree = clone(tree)
        self.history.head = head

    @rule()
    def undo(self) -> None:
        if self.history.undo is None:
            try:
                self.manager.undo()
            except NotFound:
                return
            raise AssertionError("an undo of nothing was accepted")
        tree, head = self.history.undo
        while head is not None and self.history.points[head].deleted:
            head = self.history.points[head].parent
        self.after(self.manager.undo(), tree, head)

    @precondition(lambda self: self.history.points)
    @rule(at=PICK)
    def delete_checkpoint(self, at: int) -> None:
        points = self.live_points()
        if not points:
            return
        point = points[at % len(points)]
        self.manager.delete(point.id)
        point.deleted = True
        while self.history.head is not None and self.history.points[self.history.head].deleted:
            self.history.head = self.history.points[self.history.head].parent

    @rule(at=PICK)
    def undelete_checkpoint(self, at: int) -> None:
        gone = [point for point in self.history.points.values() if point.deleted]
        if not gone:
            return
        point = gone[at % len(gone)]
        report = self.manager.undelete(point.id)
        point.deleted = False
        if self.history.head is None:
            self.history.head = point.id
        taken = any(p is not point and p.name == point.name and not p.deleted for p in self.history.points.values())
        if taken:
            point.name = None
        assert report.checkpoint.name == point.name

    @precondition(lambda self: self.history.points)
    @rule()
    def forget_and_protect_again(self) -> None:
        self.manager.forget()
        try:
            self.manager.list()
        except NotFound:
            self.checkpoint(None)
            return
        raise AssertionError("a forgotten workspace was listed")

    @rule()
    def reopen(self) -> None:
        self.manager.close()
        self.open()

    @rule()
    def lose_the_catalog(self) -> None:
        self.manager.close()
        for path in (self.place / "store").glob("catalog-*"):
            path.unlink()
        self.open()

    @rule()
    def lose_the_cache(self) -> None:
        shutil.rmtree(self.place / "store" / "cache", ignore_errors=True)
        self.manager.close()
        if (self.place / "store").exists():
            (self.place / "store" / "cache").mkdir(exist_ok=True)
        self.open()

    # -- what always holds ---------------------------------------------------------------------------------

    @invariant()
    def the_workspace_is_as_the_model_says(self) -> None:
        if hasattr(self, "root"):
            assert shape_on_disk(self.root, snapshot(self.root)) == shape(self.tree)

    @invariant()
    def the_list_is_as_the_model_says(self) -> None:
        if not hasattr(self, "root") or not self.history.points:
            return
        listed = [(c.id, c.step, c.name, c.parent, c.head) for c in self.manager.list()]
        history = self.history
        assert listed == [
            (p.id, p.step, p.name, history.present_parent(p.id), p.id == history.head) for p in history.listed()
        ]

    @precondition(lambda self: self.history.points)
    @rule(at=PICK)
    def verify_tells_equal_from_different(self, at: int) -> None:
        points = self.live_points()
        if points:
            point = points[at % len(points)]
            assert bool(self.manager.verify(point.id)) == (shape(point.tree) == shape(self.tree))

    @precondition(lambda self: self.history.points)
    @rule(at=PICK)
    def diff_names_what_differs(self, at: int) -> None:
        points = self.live_points()
        if points:
            point = points[at % len(points)]
            old, new = shape(point.tree), shape(self.tree)
            differing = sorted(p for p in old.keys() | new.keys() if old.get(p) != new.get(p))
            changes = self.manager.diff(point.id)
            named = {change.path for change in changes} | {change.renamed_from for change in changes}
            assert sorted(named - {None}) == differing


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=100,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
