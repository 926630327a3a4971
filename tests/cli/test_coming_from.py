"""What users of three other systems type works here, as the issue's table promises it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from support.cli import Result
from support.oracle import snapshot

Call = Callable[..., Result]


def test_the_commands_of_ws_ckpt_work(workspace: Path, call: Call) -> None:
    w = ("-w", str(workspace))
    call("init", *w, check=0)
    call("checkpoint", *w, "-s", "snap-001", "-m", "before refactor", check=0)
    before = snapshot(workspace)
    (workspace / "src" / "main.py").write_text("refactored\n")
    call("checkpoint", *w, "-i", "snap-002", "-m", "after", "--metadata", '{"ticket": 7}', check=0)
    assert "snap-001" in call("list", *w, check=0).stdout
    assert [one["name"] for one in call("list", *w, "--format", "json", check=0).json()] == ["snap-002", "snap-001"]
    assert "-print('one')\n+refactored\n" in call("diff", *w, "-f", "snap-001", "-t", "snap-002", check=0).stdout
    assert "M src/main.py\n" in call("rollback", *w, "-s", "snap-001", "--preview", check=0).stdout
    assert (workspace / "src" / "main.py").read_text() == "refactored\n"
    call("rollback", *w, "-s", "snap-001", check=0)
    assert snapshot(workspace) == before
    call("delete", *w, "-s", "snap-002", "--force", check=0)
    assert call("status", *w, "--format", "json", check=0).json()["head"]["name"] == "snap-001"
    call("recover", "--all", "--force", check=0)


def test_rollback_n_counts_parents_of_head(history: Path, call: Call) -> None:
    told = call("rollback", "-w", history, "-n", "2", check=0)
    assert "1 is its parent, `casnap rollback` alone goes to head" in told.stderr
    assert (history / "src" / "main.py").read_text() == "print('one')\n"


def test_the_commands_of_oh_my_coder_work(workspace: Path, call: Call) -> None:
    def omc(*args: str) -> str:
        return call(*args, cwd=workspace, check=0).stdout

    omc("create", "before-auth-refactor", "--desc", "before the auth module changes")
    omc("delete", "before-auth-refactor")
    omc("create", "approach-a")
    a = snapshot(workspace)
    (workspace / "b.txt").write_text("b\n")
    omc("create", "approach-b")
    omc("rollback", "approach-a")
    assert snapshot(workspace) == a
    omc("delete", "approach-b")
    assert re.search(r"name=ckpt-\d{8}T\d{6}Z-4 ", omc("create"))
    omc("create", "v1.0")
    assert "v1.0" in omc("show", "v1.0")
    (workspace / "README").write_text("changed\n")
    assert "-read me\n+changed\n" in omc("diff", "v1.0")
    omc("rollback", "v1.0", "--force")
    assert (workspace / "README").read_text() == "read me\n"


def test_the_same_name_on_the_same_day_is_refused(workspace: Path, call: Call) -> None:
    call("create", "daily-20261130", cwd=workspace, check=0)
    again = call("create", "daily-20261130", cwd=workspace, check=14)
    assert "daily-20261130" in again.stderr


def test_the_commands_of_pitrrwnd_work(workspace: Path, call: Call) -> None:
    (workspace / "db").mkdir()
    (workspace / "db" / "store.db").write_bytes(bytes(range(256)))
    call("init", cwd=workspace, check=0)
    first = call("savepoint", "--label", "before risky refactor", cwd=workspace, check=0).stdout
    assert re.match(r"checkpoint step=1 name=\S+ id=[0-9a-f]{12} digest=[0-9a-f]{12} ", first)
    before = snapshot(workspace)
    (workspace / "README").write_text("broken\n")
    (workspace / "db" / "store.db").unlink()
    (workspace / "junk.txt").write_text("junk")
    verified = call("verify", "--step", "1", cwd=workspace, check=4).stdout
    assert verified.splitlines() == ["M README  (content)", "D db/store.db", "A junk.txt"]
    call("rewind", "--step", "1", cwd=workspace, check=0)
    assert call("verify", "--step", "1", cwd=workspace, check=0).stdout.startswith("equal to step=1 ")
    assert snapshot(workspace) == before
    assert "step=2 " in call("savepoint", "--label", "next", cwd=workspace, check=0).stdout
    call("rewind", "-s", "1", cwd=workspace, check=0)
    call("verify", "-s", "1", cwd=workspace, check=0)


def test_restore_with_a_target_writes_elsewhere(history: Path, tmp_path: Path, call: Call) -> None:
    before = snapshot(history)
    call("restore", "c1", "--target", tmp_path / "out", cwd=history, check=0)
    assert (tmp_path / "out" / "src" / "main.py").read_text() == "print('one')\n"
    assert snapshot(history) == before
    call("rollback", "c1", "--target", tmp_path / "out2", cwd=history, check=2)
